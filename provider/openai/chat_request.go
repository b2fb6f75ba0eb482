package openai

import (
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
)

// fromRequest writes the members of a Chat Completions body after its model.
func fromChatRequest(e *encoder, req *pawl.Request) {
	if e.key("messages") {
		e.raw("[")
		for i := range req.Messages {
			fromChatMessage(e, i, &req.Messages[i])
		}
		e.raw("]")
	}
	if len(req.Tools) > 0 {
		if e.key("tools") {
			e.b = append(e.b, e.tools.body...)
		}
		if e.key("tool_choice") {
			fromChatChoice(e, req.Choice)
		}
	}
	s := &req.Settings
	if s.MaxTokens > 0 {
		// OpenAI renamed the field, and refuses the old name for newer models; most other servers know only the old one, and
		// some ignore the new one in silence.
		name := "max_completion_tokens"
		if e.compatible {
			name = "max_tokens"
		}
		if e.key(name) {
			e.int(s.MaxTokens)
		}
	}
	e.sampling(s, len(req.Tools) > 0)
	if len(s.Stop) > 0 && e.key("stop") {
		e.raw("[")
		for _, stop := range s.Stop {
			e.comma()
			e.string(stop)
		}
		e.raw("]")
	}
	if s.Effort != "" && e.key("reasoning_effort") {
		e.string(s.Effort)
	}
	if len(req.Output) > 0 && e.key("response_format") {
		e.raw(`{"type":"json_schema","json_schema":{"name":"output","strict":`)
		e.bool(strict(req.Output))
		e.raw(`,"schema":`)
		e.b = append(e.b, req.Output...)
		e.raw(`}}`)
	}
	if !req.Whole {
		if e.key("stream") {
			e.raw("true")
		}
		if e.key("stream_options") {
			e.raw(`{"include_usage":true}`)
		}
	}
}

// fromTool appends the definition of a tool, nested as Chat Completions has it.
func fromChatTool(dst []byte, name string, t *pawl.Tool, schema []byte) []byte {
	dst = append(dst, `{"type":"function","function":{"name":`...)
	dst = jsonscan.AppendString(dst, name)
	if t.Description != "" {
		dst = append(dst, `,"description":`...)
		dst = jsonscan.AppendString(dst, t.Description)
	}
	dst = append(dst, `,"parameters":`...)
	dst = append(dst, schema...)
	return append(dst, `}}`...)
}

func fromChatChoice(e *encoder, c pawl.ToolChoice) {
	switch {
	case c.Mode == pawl.ToolAuto:
		e.raw(`"auto"`)
		return
	case c.Mode == pawl.ToolNone:
		e.raw(`"none"`)
		return
	case c.Mode == pawl.ToolRequired:
		e.raw(`"required"`)
		return
	case len(c.Names) > 1:
		e.raw(`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[`)
	}
	for i, n := range c.Names {
		if i > 0 {
			e.raw(",")
		}
		e.raw(`{"type":"function","function":{"name":`)
		e.string(e.tools.toWire(n))
		e.raw(`}}`)
	}
	if len(c.Names) > 1 {
		e.raw(`]}}`)
	}
}

// fromMessage writes message i: one object, or, for results, one for each and one more for their media.
func fromChatMessage(e *encoder, i int, m *pawl.Message) {
	switch m.Role {
	case pawl.RoleAssistant:
		fromChatReply(e, i, m)
		return
	case pawl.RoleTool:
		fromChatResults(e, i, m)
		return
	}
	e.comma()
	e.raw(`{"role":"`)
	switch m.Role {
	case pawl.RoleSystem, pawl.RoleUser:
		e.raw(string(m.Role))
	case pawl.RoleDeveloper:
		if e.compatible {
			e.raw("system") // only OpenAI knows the role
		} else {
			e.raw("developer")
		}
	default:
		e.fail(e.invalid("messages", "message %d has the unknown role %q", i, m.Role))
	}
	e.raw(`","content":`)
	fromChatContent(e, i, m.Parts)
	e.raw(`}`)
}

func fromChatContent(e *encoder, message int, parts []pawl.Part) {
	if len(parts) == 0 {
		e.raw(`""`)
		return
	}
	if t, ok := parts[0].(pawl.Text); ok && len(parts) == 1 {
		e.string(t.Text)
		return
	}
	e.raw("[")
	for i, p := range parts {
		fromChatPart(e, message, i, p)
	}
	e.raw("]")
}

func fromChatPart(e *encoder, message, i int, p pawl.Part) {
	switch p := p.(type) {
	case pawl.Text:
		e.comma()
		e.raw(`{"type":"text","text":`)
		e.string(p.Text)
		e.raw(`}`)
	case pawl.Media:
		e.comma()
		fromChatMedia(e, field(message, i), p)
	default:
		e.fail(e.invalid(field(message, i), "%T has no place in this message", p))
	}
}

func fromChatMedia(e *encoder, where string, m pawl.Media) {
	switch kind := mediaKind(m); {
	case kind == "image":
		e.raw(`{"type":"image_url","image_url":{"url":`)
		if m.URL != "" {
			e.string(m.URL)
		} else {
			e.dataURI(m.MIME, m.Data)
		}
		e.raw(`}}`)
	case kind == "audio" && m.URL == "":
		format := ""
		switch m.MIME {
		case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
			format = "wav"
		case "audio/mpeg", "audio/mp3":
			format = "mp3"
		default:
			e.fail(e.unsupported(where, "audio must be audio/wav or audio/mpeg, not %s", m.MIME))
		}
		e.raw(`{"type":"input_audio","input_audio":{"data":"`)
		e.base64(m.Data)
		e.raw(`","format":"`)
		e.raw(format)
		e.raw(`"}}`)
	case kind == "file" && m.URL == "":
		e.raw(`{"type":"file","file":{"filename":"`)
		e.raw(fileName(m.MIME))
		e.raw(`","file_data":`)
		e.dataURI(m.MIME, m.Data)
		e.raw(`}}`)
	case m.URL != "":
		e.fail(e.unsupported(where, "Chat Completions takes %s by value only, not by URL", m.MIME))
	default:
		e.fail(e.unsupported(where, "Chat Completions cannot take media of type %q", m.MIME))
	}
}

// fromReply writes an assistant message: its texts as one string, its calls, and what this server wants back of its reasoning.
func fromChatReply(e *encoder, message int, m *pawl.Message) {
	e.comma()
	e.raw(`{"role":"assistant","content":`)
	texts, calls, thoughts := 0, 0, 0
	for i, p := range m.Parts {
		switch p := p.(type) {
		case pawl.Text:
			if p.Text != "" {
				texts++
			}
		case pawl.ToolCall:
			calls++
		case pawl.Reasoning:
			if p.Opaque != nil && p.Opaque.Provider == e.tag {
				thoughts++
			}
		default:
			e.fail(e.unsupported(field(message, i), "Chat Completions cannot take %T in an assistant message", p))
		}
	}
	switch {
	case thoughts > 0 && fromChatThinking(e, m):
	case texts == 1:
		for _, p := range m.Parts {
			if t, ok := p.(pawl.Text); ok && t.Text != "" {
				e.string(t.Text)
			}
		}
	case texts > 1:
		e.string(m.Text())
	case calls > 0:
		e.raw("null")
	default:
		e.raw(`""`)
	}
	if thoughts > 0 {
		fromChatReasoning(e, m)
	}
	if calls > 0 {
		e.raw(`,"tool_calls":[`)
		for _, p := range m.Parts {
			if c, ok := p.(pawl.ToolCall); ok {
				fromChatCall(e, &c)
			}
		}
		e.raw(`]`)
	}
	e.raw(`}`)
}

func fromChatCall(e *encoder, c *pawl.ToolCall) {
	e.comma()
	e.raw(`{"id":`)
	e.id(c.ID)
	if opaqueType(c.Opaque, e.tag) == customType {
		e.raw(`,"type":"custom","custom":{"name":`)
		e.string(e.tools.toWire(c.Name))
		e.raw(`,"input":`)
		e.bytes(c.Args)
		e.raw(`}}`)
		return
	}
	e.raw(`,"type":"function","function":{"name":`)
	e.string(e.tools.toWire(c.Name))
	e.raw(`,"arguments":`)
	fromChatArgs(e, c.Args)
	e.raw(`}}`)
}

// fromChatArgs writes arguments as a string of JSON. OpenAI takes back whatever its model wrote. Other servers parse the
// string to put it into the model's template, and fail on what is no JSON: for them it is wrapped.
func fromChatArgs(e *encoder, args []byte) {
	n := len(args)
	switch {
	case n == 0:
		e.raw(`"{}"`)
	case !e.compatible || args[0] == '{' && args[n-1] == '}' || jsonscan.Valid(args):
		e.bytes(args)
	default:
		wrapped := jsonscan.AppendString([]byte(`{"invalid_arguments":`), args)
		e.bytes(append(wrapped, '}'))
	}
}

// fromResults writes the results of one round. Tool messages take text only, so the media of all of them
// follow in one user message, each after a line that says which call it belongs to.
func fromChatResults(e *encoder, message int, m *pawl.Message) {
	media := false
	for i, p := range m.Parts {
		r, ok := p.(pawl.ToolResult)
		if !ok {
			e.fail(e.invalid(field(message, i), "%T has no place among results", p))
			return
		}
		e.comma()
		e.raw(`{"role":"tool","tool_call_id":`)
		e.id(r.CallID)
		e.raw(`,"content":`)
		e.resultText(&r)
		e.raw(`}`)
		for _, p := range r.Parts {
			_, ok := p.(pawl.Media)
			media = media || ok
		}
	}
	if !media {
		return
	}
	e.comma()
	e.raw(`{"role":"user","content":[`)
	for i, p := range m.Parts {
		r := p.(pawl.ToolResult)
		for _, p := range r.Parts {
			if md, ok := p.(pawl.Media); ok {
				e.comma()
				e.raw(`{"type":"text","text":`)
				e.string("From the result of call " + r.CallID + ":")
				e.raw(`},`)
				fromChatMedia(e, field(message, i), md)
			}
		}
	}
	e.raw(`]}`)
}

// The forms in which servers of this API send reasoning. They are the Data of Opaque: {"field":"reasoning_content"}, or the
// reasoning_details themselves, which hold signatures.
const (
	reasoningContent = "reasoning_content" // DeepSeek, xAI, z.ai, llama.cpp, Moonshot, Alibaba
	reasoningPlain   = "reasoning"         // Groq, Cerebras, Ollama, OpenRouter
	reasoningList    = "thinking"          // Mistral: a typed part of the content
	reasoningDetails = "reasoning_details" // OpenRouter, Vercel
)

// readOpaque tells the form of reasoning, and its details as the inside of an array.
func readOpaque(o *pawl.Opaque, tag string) (form string, details []byte) {
	if o == nil || o.Provider != tag {
		return "", nil
	}
	c := jsonscan.New(o.Data)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "field":
			form = c.String()
		case reasoningDetails:
			raw := c.Raw()
			if len(raw) >= 2 && raw[0] == '[' {
				form, details = reasoningDetails, raw[1:len(raw)-1]
			}
		}
	}
	return form, details
}

// fromChatThinking writes content as a list with the thinking in front, where the server sent it so. It reports false
// and writes nothing where it did not.
func fromChatThinking(e *encoder, m *pawl.Message) bool {
	found := false
	for _, p := range m.Parts {
		if r, ok := p.(pawl.Reasoning); ok {
			form, _ := readOpaque(r.Opaque, e.tag)
			found = found || form == reasoningList
		}
	}
	if !found {
		return false
	}
	e.raw("[")
	for _, p := range m.Parts {
		switch p := p.(type) {
		case pawl.Text:
			fromChatPart(e, 0, 0, p)
		case pawl.Reasoning:
			if form, _ := readOpaque(p.Opaque, e.tag); form == reasoningList {
				e.comma()
				e.raw(`{"type":"thinking","thinking":[{"type":"text","text":`)
				e.string(p.Text)
				e.raw(`}]}`)
			}
		}
	}
	e.raw("]")
	return true
}

// fromChatReasoning writes reasoning under the name that the server gave it.
func fromChatReasoning(e *encoder, m *pawl.Message) {
	for _, form := range [...]string{reasoningContent, reasoningPlain} {
		var text strings.Builder
		found := false
		for _, p := range m.Parts {
			if r, ok := p.(pawl.Reasoning); ok {
				if f, _ := readOpaque(r.Opaque, e.tag); f == form {
					found = true
					text.WriteString(r.Text)
				}
			}
		}
		if found {
			e.raw(`,"` + form + `":`)
			e.string(text.String())
		}
	}
	found := false
	for _, p := range m.Parts {
		r, ok := p.(pawl.Reasoning)
		if !ok {
			continue
		}
		if _, details := readOpaque(r.Opaque, e.tag); len(details) > 0 {
			if !found {
				e.raw(`,"reasoning_details":[`)
				found = true
			} else {
				e.comma()
			}
			e.b = append(e.b, details...)
		}
	}
	if found {
		e.raw(`]`)
	}
}

// The types of calls that are not plain functions, which go back under their own names.
const (
	customType = "custom_tool_call"
)

// opaqueType returns the type that an Opaque of this server names; "" where there is none.
func opaqueType(o *pawl.Opaque, tag string) string {
	if o == nil || o.Provider != tag {
		return ""
	}
	c := jsonscan.New(o.Data)
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		if string(k) == "type" {
			return c.String()
		}
	}
	return ""
}
