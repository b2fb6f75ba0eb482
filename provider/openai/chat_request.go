package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// fromChatRequest writes the members of a Chat Completions body after its model.
func fromChatRequest(e *encoder, req *llm.Request) {
	if e.Key("messages") {
		e.Raw("[")
		n := len(e.Body)
		fromChatMessages(e, req)
		if len(e.Body) == n {
			e.Fail(e.invalid("messages", "the API wants at least one message"))
		}
		e.Raw("]")
	}
	if (!e.tools.Empty() || len(e.Tools) > 0) && e.Key("tools") {
		e.List(e.tools.Body)
	}
	if !e.tools.Empty() {
		if e.Key("tool_choice") {
			fromChatChoice(e, req.Choice)
		}
	}
	s := &req.Settings
	if s.MaxTokens > 0 {
		// OpenAI renamed the field, and rejects the old name for newer models. Most other servers
		// know only the old name, and some ignore the new one.
		name := "max_completion_tokens"
		if e.compatible {
			name = "max_tokens"
		}
		if e.Key(name) {
			e.Int(s.MaxTokens)
		}
	}
	e.sampling(s, !e.tools.Empty() || len(e.Tools) > 0)
	if len(s.StopSequences) > 0 && e.Key("stop") {
		e.Strings(s.StopSequences)
	}
	if s.Effort != "" && e.Key("reasoning_effort") {
		e.String(s.Effort)
	}
	switch {
	case len(req.Output) == 0:
	case e.jsonObject:
		// The instructions have the schema. With tools JSON cannot be enforced, because calls come
		// with text.
		if e.tools.Empty() && e.Key("response_format") {
			e.Raw(`{"type":"json_object"}`)
		}
	case e.output.Schema != nil && e.Key("response_format"):
		e.Raw(`{"type":"json_schema","json_schema":{`)
		e.schema()
		e.Raw(`}}`)
	}
	e.PromptCache(e.cache)
	if !req.Whole {
		if e.Key("stream") {
			e.Raw("true")
		}
		if e.Key("stream_options") {
			e.Raw(`{"include_usage":true}`)
		}
	}
}

func fromChatMessages(e *encoder, req *llm.Request) {
	lead := leading(req.Messages)
	for i := range req.Messages[:lead] {
		fromChatMessage(e, i, &req.Messages[i])
	}
	if len(req.Output) > 0 && (e.jsonObject || e.output.Schema == nil) {
		// Only a prompt can ask for the schema. It follows the instructions.
		e.Comma()
		e.Quote(`{"role":"system","content":`, wire.SchemaPrompt(req.Output), `}`)
	}
	for i := lead; i < len(req.Messages); i++ {
		fromChatMessage(e, i, &req.Messages[i])
	}
}

// leading returns the number of instructions at the beginning.
func leading(messages []llm.Message) int {
	n := 0
	for n < len(messages) && wire.Instructs(&messages[n]) {
		n++
	}
	return n
}

// fromChatTool appends the definition of a tool, in the nested form of Chat Completions.
func fromChatTool(dst []byte, name string, t *llm.ToolSpec, schema json.RawMessage, strict bool) []byte {
	dst = append(dst, `{"type":"function","function":{"name":`...)
	dst = jsonscan.AppendString(dst, name)
	if t.Description != "" {
		dst = append(dst, `,"description":`...)
		dst = jsonscan.AppendString(dst, t.Description)
	}
	dst = append(dst, `,"parameters":`...)
	dst = append(dst, schema...)
	if strict {
		dst = append(dst, `,"strict":true`...)
	}
	return append(dst, `}}`...)
}

func fromChatChoice(e *encoder, c llm.ToolChoice) {
	e.choice(c, `{"type":"function","function":{"name":`, `}}`, `{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[`, `]}}`)
}

// fromChatMessage writes message i as one object. Results become one object each, and one more for
// their media.
func fromChatMessage(e *encoder, i int, m *llm.Message) {
	switch m.Role {
	case llm.RoleAssistant:
		fromChatReply(e, i, m)
		return
	case llm.RoleTool:
		fromChatResults(e, i, m)
		return
	}
	e.Comma()
	e.Raw(`{"role":"`)
	switch m.Role {
	case llm.RoleSystem, llm.RoleUser:
		e.Raw(string(m.Role))
	case llm.RoleDeveloper:
		if e.compatible {
			e.Raw("system") // only OpenAI knows the role
		} else {
			e.Raw("developer")
		}
	default:
		e.Fail(e.invalid("messages", "message %d has the unknown role %q", i, m.Role))
	}
	e.Raw(`","content":`)
	e.local = m.Role == llm.RoleUser
	fromChatContent(e, i, m.Parts)
	e.local = false
	e.Raw(`}`)
}

func fromChatContent(e *encoder, message int, parts []llm.Part) {
	if len(parts) == 0 {
		e.Raw(`""`)
		return
	}
	if t, ok := parts[0].(llm.Text); ok && len(parts) == 1 {
		e.String(t.Text)
		return
	}
	e.Raw("[")
	for i, p := range parts {
		fromChatPart(e, message, i, p)
	}
	e.Raw("]")
}

func fromChatPart(e *encoder, message, i int, p llm.Part) {
	switch p := p.(type) {
	case llm.Text:
		e.Comma()
		e.Quote(`{"type":"text","text":`, p.Text, `}`)
	case llm.Media:
		e.Comma()
		fromChatMedia(e, wire.Field(message, i), p)
	default:
		e.Fail(e.invalid(wire.Field(message, i), "%T has no place in this message", p))
	}
}

func fromChatMedia(e *encoder, where string, m llm.Media) {
	m = e.read(where, m)
	kind := mediaKind(m)
	// The API has a form for each kind of media. What has none is an error, because the message is
	// the user's, who can send another file.
	switch {
	case wire.FileID(m.URL) && (kind != "image" || m.MIME == ""):
		e.Raw(`{"type":"file","file":{"file_id":`)
		e.uploaded(where, m.URL)
		e.Raw(`}}`)
	case wire.FileID(m.URL):
		e.Fail(e.unsupported(where, "Chat Completions takes uploaded documents by their id, but no images; the Responses API does"))
	case kind == "image":
		e.Raw(`{"type":"image_url","image_url":{"url":`)
		e.source(m)
		e.Raw(`}}`)
	case kind == "audio" && m.URL == "":
		format := ""
		switch m.MIME {
		case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
			format = "wav"
		case "audio/mpeg", "audio/mp3":
			format = "mp3"
		default:
			e.Fail(e.unsupported(where, "audio must be audio/wav or audio/mpeg, not %s", m.MIME))
		}
		e.Raw(`{"type":"input_audio","input_audio":{"data":"`)
		e.Base64(m.Data)
		e.Raw(`","format":"`)
		e.Raw(format)
		e.Raw(`"}}`)
	case kind == "file" && m.URL == "":
		e.Raw(`{"type":"file","file":{"filename":"`)
		e.Raw(fileName(m.MIME))
		e.Raw(`","file_data":`)
		e.source(m)
		e.Raw(`}}`)
	case m.URL != "":
		e.Fail(e.unsupported(where, "Chat Completions takes %s by value only, not by URL", m.MIME))
	default:
		e.Fail(e.unsupported(where, "Chat Completions cannot take media of type %q", m.MIME))
	}
}

// fromChatReply writes an assistant message: its texts as one string, its calls, and the reasoning
// that this server reads.
func fromChatReply(e *encoder, message int, m *llm.Message) {
	e.Comma()
	e.Raw(`{"role":"assistant","content":`)
	texts := 0
	calls := 0
	thoughts := 0
	for i, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" {
				texts++
			}
		case llm.ToolCall:
			calls++
		case llm.Reasoning:
			if p.Opaque != nil && p.Opaque.Provider == e.tag {
				thoughts++
			}
		default:
			e.Fail(e.unsupported(wire.Field(message, i), "Chat Completions cannot take %T in an assistant message", p))
		}
	}
	// The API requires content unless there are calls, so null is valid only with them.
	switch {
	case thoughts > 0 && fromChatThinking(e, m):
	case texts > 0:
		e.String(m.Text())
	case calls > 0:
		e.Raw("null")
	default:
		e.Raw(`""`)
	}
	// Reasoning goes back only to the server that wrote it, in the member that it uses.
	if thoughts > 0 {
		fromChatReasoning(e, m)
	}
	if e.thinks && !thought(m, e.tag, reasoningContent) {
		e.Raw(`,"reasoning_content":" "`) // the server rejects an empty one too
	}
	if calls > 0 {
		e.Raw(`,"tool_calls":[`)
		for _, p := range m.Parts {
			if c, ok := p.(llm.ToolCall); ok {
				fromChatCall(e, &c)
			}
		}
		e.Raw(`]`)
	}
	e.Raw(`}`)
}

// thought reports whether a reply has reasoning of this server in a form.
func thought(m *llm.Message, tag, form string) bool {
	return slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
		r, ok := p.(llm.Reasoning)
		if !ok {
			return false
		}
		f, _ := readOpaque(r.Opaque, tag)
		return f == form
	})
}

func fromChatCall(e *encoder, c *llm.ToolCall) {
	e.Comma()
	e.Quote(`{"id":`, e.fitting(c.ID))
	if opaqueType(c.Opaque, e.tag) == customType {
		e.Quote(`,"type":"custom","custom":{"name":`, e.tools.ToWire(c.Name), `,"input":`)
		e.Bytes(c.Args)
		e.Raw(`}}`)
		return
	}
	e.Quote(`,"type":"function","function":{"name":`, e.tools.ToWire(c.Name), `,"arguments":`)
	fromArgs(e, c.Args)
	e.Raw(`}}`)
}

// fromArgs writes arguments as a string of JSON, which is always an object.
func fromArgs(e *encoder, args []byte) { e.Bytes(wire.Object(args, "invalid_arguments")) }

// fromChatResults writes the results of one round. Tool messages contain only text. The media of
// all results follow in one user message, each after a line that names its call.
func fromChatResults(e *encoder, message int, m *llm.Message) {
	media := false
	for i, p := range m.Parts {
		r, ok := p.(llm.ToolResult)
		if !ok {
			e.Fail(e.invalid(wire.Field(message, i), "%T has no place among results", p))
			return
		}
		e.Comma()
		e.Quote(`{"role":"tool","tool_call_id":`, e.fitting(r.CallID), `,"content":`)
		e.resultText(&r)
		e.Raw(`}`)
		media = media || slices.ContainsFunc(r.Parts, isMedia)
	}
	// The media come after the last tool message: servers reject a message of another role between
	// a call and its result.
	if !media {
		return
	}
	e.Comma()
	e.Raw(`{"role":"user","content":[`)
	for i, p := range m.Parts {
		r := p.(llm.ToolResult)
		for _, p := range r.Parts {
			if md, ok := p.(llm.Media); ok {
				e.Comma()
				e.Quote(`{"type":"text","text":`, "From the result of call "+e.fitting(r.CallID)+":", `},`)
				fromChatMedia(e, wire.Field(message, i), md)
			}
		}
	}
	e.Raw(`]}`)
}

// These are the forms in which servers send reasoning. The Data of Opaque is
// {"field":"reasoning_content"} or the reasoning_details, which have signatures.
const (
	reasoningContent = "reasoning_content" // DeepSeek, xAI, z.ai, llama.cpp, Moonshot, Alibaba
	reasoningPlain   = "reasoning"         // Groq, Cerebras, Ollama, OpenRouter
	reasoningList    = "thinking"          // Mistral: a typed part of the content
	reasoningDetails = "reasoning_details" // OpenRouter, Vercel
)

// readOpaque returns the form of reasoning, and its details as the content of an array.
func readOpaque(o *llm.Opaque, tag string) (form string, details []byte) {
	if o == nil || o.Provider != tag {
		return "", nil
	}
	c := jsonscan.New(o.Data)
	c.Fields("field", &form, reasoningDetails, &details)
	if len(details) >= 2 && details[0] == '[' {
		return reasoningDetails, details[1 : len(details)-1]
	}
	return form, nil
}

// fromChatThinking writes content as a list that begins with the thinking, if the server sent it
// so. Otherwise it writes nothing and returns false.
func fromChatThinking(e *encoder, m *llm.Message) bool {
	if !thought(m, e.tag, reasoningList) {
		return false
	}
	// The list has thinking and text in the order in which the server sent them.
	e.Raw("[")
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			fromChatPart(e, 0, 0, p)
		case llm.Reasoning:
			if form, _ := readOpaque(p.Opaque, e.tag); form == reasoningList {
				e.Comma()
				e.Quote(`{"type":"thinking","thinking":[{"type":"text","text":`, p.Text, `}]}`)
			}
		}
	}
	e.Raw("]")
	return true
}

// fromChatReasoning writes reasoning under the server's name for it.
func fromChatReasoning(e *encoder, m *llm.Message) {
	// Servers read reasoning only under the name under which they sent it.
	for _, form := range [...]string{reasoningContent, reasoningPlain} {
		var text strings.Builder
		found := false
		for _, p := range m.Parts {
			if r, ok := p.(llm.Reasoning); ok {
				if f, _ := readOpaque(r.Opaque, e.tag); f == form {
					found = true
					text.WriteString(r.Text)
				}
			}
		}
		if found {
			e.Quote(`,"`+form+`":`, text.String())
		}
	}

	begun := false
	for _, p := range m.Parts {
		r, _ := p.(llm.Reasoning)
		_, details := readOpaque(r.Opaque, e.tag)
		if len(details) == 0 {
			continue
		}
		if begun {
			e.Raw(",")
		} else {
			e.Raw(`,"reasoning_details":[`)
			begun = true
		}
		e.Body = append(e.Body, details...)
	}
	if begun {
		e.Raw("]")
	}
}

// These are the types of calls that are not functions. They are sent back unchanged.
const customType = "custom_tool_call"

// opaqueType returns the type in an Opaque of this server; "" means none.
func opaqueType(o *llm.Opaque, tag string) string {
	if o == nil || o.Provider != tag {
		return ""
	}
	return wire.MemberText(o.Data, "type")
}
