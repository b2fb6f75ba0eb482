package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// fromRequest writes the members of a Responses body after its model. Requests have the whole
// conversation and ask the server to store nothing, unless it computes the reply in the background.
func fromRequest(e *encoder, req *llm.Request) {
	lead := leadingText(req.Messages)
	fromInstructions(e, req, lead)
	if e.Key("input") {
		fromInput(e, req.Messages, lead)
	}

	offered := !e.tools.Empty() || len(e.Tools) > 0
	if offered && e.Key("tools") {
		e.List(e.tools.Body)
	}
	if !e.tools.Empty() && e.Key("tool_choice") {
		fromChoice(e, req.Choice)
	}

	fromSettings(e, &req.Settings, offered)
	if e.output.Schema != nil && e.Key("text") {
		e.Raw(`{"format":{"type":"json_schema",`)
		e.schema()
		e.Raw(`}}`)
	}

	e.PromptCache(e.cache)
	background := e.inBackground(req)
	if background && e.Key("background") {
		e.Raw("true")
	}
	if e.Key("store") {
		e.Bool(background) // the server does not return a reply in the background without it
	}
	if e.mayReason(&req.Settings) && e.Key("include") {
		// Without it, reasoning could not be sent back, and the server would reject the calls that
		// follow it.
		e.Raw(`["reasoning.encrypted_content"]`)
	}
	if !req.Whole && e.Key("stream") {
		e.Raw("true")
	}
}

// leadingText returns the number of system messages at the beginning that have only text.
func leadingText(messages []llm.Message) int {
	lead := 0
	for lead < len(messages) && messages[lead].Role == llm.RoleSystem && wire.OnlyText(messages[lead].Parts) {
		lead++
	}
	return lead
}

// fromInstructions writes the first lead messages as instructions, and the schema of the output if
// the server does not enforce it.
func fromInstructions(e *encoder, req *llm.Request, lead int) {
	prompt := len(req.Output) > 0 && e.output.Schema == nil
	if lead == 0 && !prompt || !e.Key("instructions") {
		return
	}

	// Most requests have one system message, which is written without a copy.
	if lead == 1 && !prompt {
		e.String(req.Messages[0].Text())
		return
	}
	texts := make([]string, lead, lead+1)
	for i := range texts {
		texts[i] = req.Messages[i].Text()
	}
	if prompt {
		texts = append(texts, wire.SchemaPrompt(req.Output))
	}
	e.String(strings.Join(texts, "\n\n"))
}

// fromInput writes the messages from index lead on.
func fromInput(e *encoder, messages []llm.Message, lead int) {
	e.Raw("[")
	var types map[string]string // of the items without a result, by ID
	for i := lead; i < len(messages); i++ {
		fromMessage(e, i, &messages[i], &types)
	}
	for id, t := range types {
		if t == clientSearch {
			e.Fail(e.invalid("messages", "the item %s of type %s has no result", id, t))
		}
	}
	e.Raw("]")
}

// fromSettings writes the settings of a reply. offered reports whether the request has tools.
func fromSettings(e *encoder, s *llm.Settings, offered bool) {
	if s.MaxTokens > 0 && e.Key("max_output_tokens") {
		e.Int(s.MaxTokens)
	}
	e.sampling(s, offered)
	if len(s.StopSequences) > 0 {
		e.Fail(e.unsupported("settings.stop", "the Responses API has no stop sequences; openai-chat has them"))
	}
	if s.Effort != "" && e.Key("reasoning") {
		e.Quote(`{"effort":`, s.Effort, `}`)
	}
}

// mayReason reports whether the reply may contain reasoning.
func (e *encoder) mayReason(s *llm.Settings) bool {
	return s.Effort != "" && s.Effort != "none" || e.facts.reasons
}

// reasons reports, by its name, whether a model reasons before it answers. Such models accept a
// request for encrypted reasoning.
func reasons(model string) bool {
	if _, after, ok := strings.Cut(model, "/"); ok {
		model = after
	}
	has := func(s string) bool { return strings.HasPrefix(model, s) }
	switch {
	case strings.Contains(model, "-chat"), strings.Contains(model, "non-reasoning"):
		return false
	case has("o") && digitFrom('1', model[1:]), has("gpt-") && digitFrom('5', model[4:]):
		return true
	}
	return slices.ContainsFunc([]string{"codex", "gpt-oss", "grok-4", "grok-3-mini", "computer-use"}, has)
}

// digitFrom reports whether s begins with a digit that is not less than least.
func digitFrom(least byte, s string) bool {
	return s != "" && least <= s[0] && s[0] <= '9'
}

// fromTool appends the definition of a tool, in the flat form of Responses. Without an explicit
// "strict":false the API would rewrite the schema and require optional arguments.
func fromTool(dst []byte, name string, t *llm.ToolSpec, schema json.RawMessage, strict bool) []byte {
	dst = append(dst, `{"type":"function","name":`...)
	dst = jsonscan.AppendString(dst, name)
	if t.Description != "" {
		dst = append(dst, `,"description":`...)
		dst = jsonscan.AppendString(dst, t.Description)
	}
	dst = append(dst, `,"parameters":`...)
	dst = append(dst, schema...)
	dst = append(dst, `,"strict":`...)
	return append(strconv.AppendBool(dst, strict), '}')
}

func fromChoice(e *encoder, c llm.ToolChoice) {
	e.choice(c, `{"type":"function","name":`, `}`, `{"type":"allowed_tools","mode":"required","tools":[`, `]}`)
}

// fromMessage writes the input items of message i. types has the types of calls that are not
// functions, by call id, because their results have other types.
func fromMessage(e *encoder, i int, m *llm.Message, types *map[string]string) {
	switch m.Role {
	case llm.RoleAssistant:
		fromReply(e, i, m, types)
		return
	case llm.RoleTool:
		for j, p := range m.Parts {
			r, ok := p.(llm.ToolResult)
			if !ok {
				e.Fail(e.invalid(wire.Field(i, j), "%T has no place among results", p))
				return
			}
			// The result of a search by the client is used up: a later call may have the same id.
			fromResult(e, i, j, &r, (*types)[r.CallID])
			if (*types)[r.CallID] == clientSearch {
				delete(*types, r.CallID)
			}
		}
		return
	case llm.RoleSystem, llm.RoleDeveloper, llm.RoleUser:
	default:
		e.Fail(e.invalid("messages", "message %d has the unknown role %q", i, m.Role))
	}
	e.local = m.Role == llm.RoleUser
	e.Comma()
	e.Raw(`{"type":"message","role":"`)
	e.Raw(string(m.Role))
	e.Raw(`","content":`)
	if t, ok := single(m.Parts); ok {
		e.String(t)
	} else {
		e.Raw("[")
		for j, p := range m.Parts {
			fromPart(e, i, j, p)
		}
		e.Raw("]")
	}
	e.local = false
	e.Raw(`}`)
}

// single returns the text of parts that are one text.
func single(parts []llm.Part) (string, bool) {
	if len(parts) != 1 {
		return "", false
	}
	t, ok := parts[0].(llm.Text)
	return t.Text, ok
}

func fromPart(e *encoder, message, i int, p llm.Part) {
	e.Comma()
	switch p := p.(type) {
	case llm.Text:
		e.Quote(`{"type":"input_text","text":`, p.Text, `}`)
	case llm.Media:
		fromMedia(e, wire.Field(message, i), p)
	default:
		e.Fail(e.invalid(wire.Field(message, i), "%T has no place in this message", p))
	}
}

func fromMedia(e *encoder, where string, m llm.Media) {
	m = e.read(where, m)
	kind := mediaKind(m)
	switch {
	case wire.FileID(m.URL) && kind == "image" && m.MIME != "":
		e.Raw(`{"type":"input_image","file_id":`)
		e.uploaded(where, m.URL)
		e.Raw(`}`)
	case wire.FileID(m.URL):
		e.Raw(`{"type":"input_file","file_id":`)
		e.uploaded(where, m.URL)
		e.Raw(`}`)
	case kind == "image":
		e.Raw(`{"type":"input_image","image_url":`)
		e.source(m)
		e.Raw(`}`)
	case kind == "file" && m.URL != "":
		e.Quote(`{"type":"input_file","file_url":`, m.URL, `}`)
	case kind == "file":
		e.Raw(`{"type":"input_file","filename":"`)
		e.Raw(fileName(m.MIME))
		e.Raw(`","file_data":`)
		e.source(m)
		e.Raw(`}`)
	default:
		e.Fail(e.unsupported(where, "the Responses API cannot take media of type %q", m.MIME))
	}
}

// fromReply writes the items of an assistant message in order. Reasoning at the end, of a reply
// that was cut off, is left out: the server rejects reasoning without the item that follows it.
func fromReply(e *encoder, message int, m *llm.Message, types *map[string]string) {
	last := len(m.Parts) - 1
	for last >= 0 && needsFollower(e, m.Parts[last]) {
		last--
	}

	for i, p := range m.Parts[:last+1] {
		switch p := p.(type) {
		case llm.Text:
			if p.Text == "" {
				continue
			}
			e.Comma()
			e.Quote(`{"type":"message","role":"assistant","content":`, p.Text)
			e.Extra(e.tag, p.Opaque)
			e.Raw(`}`)
		// An item goes back byte for byte, and only to its own server: others cannot decrypt it.
		case llm.Reasoning:
			if p.Opaque != nil && p.Opaque.Provider == e.tag && returnable(e, p.Opaque.Data) {
				e.Comma()
				e.Body = append(e.Body, p.Opaque.Data...)
				noteSearch(types, p.Opaque.Data)
			}
		case llm.ToolCall:
			fromCall(e, &p, types)
		default:
			e.Fail(e.unsupported(wire.Field(message, i), "the Responses API cannot take %T in an assistant message", p))
		}
	}
}

// needsFollower reports whether p is reasoning. Items of the provider's own tools, which are stored
// as reasoning too, can be the last item of a reply.
func needsFollower(e *encoder, p llm.Part) bool {
	r, ok := p.(llm.Reasoning)
	if !ok {
		return false
	}
	own := r.Opaque != nil && r.Opaque.Provider == e.tag
	return !own || opaqueType(r.Opaque, e.tag) == "reasoning"
}

// returnable reports whether an item can be sent back. Reasoning that the server neither stored
// nor returned, encrypted or plain, is an id that it does not find.
func returnable(e *encoder, item []byte) bool {
	reasoning := false
	content := false
	c := jsonscan.New(item)
	for k := range c.Members() {
		switch string(k) {
		case "type":
			reasoning = string(c.Text()) == "reasoning"
		case "encrypted_content":
			content = content || c.Kind() == jsonscan.String
		case "content":
			content = content || c.Kind() == jsonscan.Array
		}
	}
	if !reasoning || content {
		return true
	}
	for _, k := range e.Keys {
		if k == "store" || k == "conversation" || k == "previous_response_id" {
			return true // the server stores items
		}
	}
	return false
}

// clientSearch is the type of an item that needs a result if the client has to search.
const clientSearch = "tool_search_call"

// noteSearch stores an item that is a search by the client, until its result follows.
func noteSearch(types *map[string]string, item []byte) {
	// Most items are no searches. The check saves parsing every stored item again for each request.
	if !bytes.Contains(item, []byte("tool_search_")) {
		return
	}
	var s struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Execution string `json:"execution"`
	}
	switch {
	case json.Unmarshal(item, &s) != nil || s.Execution != "client":
	case s.Type == clientSearch:
		note(types, s.CallID, clientSearch)
	case s.Type == "tool_search_output":
		delete(*types, s.CallID)
	}
}

// note stores the type of an item that is not a function call.
func note(types *map[string]string, id, t string) {
	if *types == nil {
		*types = map[string]string{}
	}
	(*types)[id] = t
}

// outputType maps calls that are not functions to the type of their results.
var outputType = map[string]string{
	customType:         "custom_tool_call_output",
	"local_shell_call": "local_shell_call_output",
	"shell_call":       "shell_call_output",
	"apply_patch_call": "apply_patch_call_output",
}

func fromCall(e *encoder, c *llm.ToolCall, types *map[string]string) {
	e.Comma()
	// The opaque data of a call that is no function is its whole item, which the server expects
	// unchanged.
	if t := opaqueType(c.Opaque, e.tag); t != "" {
		note(types, c.ID, t)
		e.Body = append(e.Body, c.Opaque.Data...)
		return
	}
	// A program that the model wrote made this call. Its result must name the program too.
	if c.Opaque != nil && c.Opaque.Provider == e.tag {
		if caller := wire.Member(c.Opaque.Data, "caller"); caller != nil {
			if e.callers == nil {
				e.callers = map[string][]byte{}
			}
			e.callers[c.ID] = caller
		}
	}
	e.Quote(`{"type":"function_call","call_id":`, e.fitting(c.ID), `,"name":`, e.tools.ToWire(c.Name), `,"arguments":`)
	fromArgs(e, c.Args)
	e.Extra(e.tag, c.Opaque)
	e.Raw(`}`)
}

// fromResult writes the result of a call whose item has type of. An empty type means
// function_call.
func fromResult(e *encoder, message, part int, r *llm.ToolResult, of string) {
	e.Comma()
	out := cmp.Or(outputType[of], "function_call_output")
	e.Raw(`{"type":"`)
	e.Raw(out)
	e.Quote(`","call_id":`, e.fitting(r.CallID))
	if caller := e.callers[r.CallID]; caller != nil { // the program that waits for the result
		e.Raw(`,"caller":`)
		e.Body = append(e.Body, caller...)
	}
	// The results of the provider's own tools have no place for an error but a status or an exit
	// code.
	switch of {
	case "apply_patch_call":
		if r.IsError {
			e.Raw(`,"status":"failed"`)
		} else {
			e.Raw(`,"status":"completed"`)
		}
	case "shell_call":
		e.Quote(`,"output":[{"stdout":`, r.Text(), `,"stderr":"","outcome":{"type":"exit","exit_code":`)
		if r.IsError {
			e.Raw(`1}}]}`)
		} else {
			e.Raw(`0}}]}`)
		}
		return
	}
	e.Raw(`,"output":`)
	// Only a result with media needs a list.
	if !slices.ContainsFunc(r.Parts, isMedia) {
		e.resultText(r)
		e.Raw(`}`)
		return
	}
	e.Raw("[")
	if r.IsError {
		e.Raw(`{"type":"input_text","text":"Error"}`)
	}
	for _, p := range r.Parts {
		fromPart(e, message, part, p)
	}
	e.Raw(`]}`)
}
