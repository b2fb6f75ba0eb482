package read

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// geminiReader reads contents, and gives an id to each call without one.
type geminiReader struct {
	messages []llm.Message
	open     []llm.ToolCall // of the previous content, without a result
	calls    int
}

func readGemini(body []byte) (*llm.Request, error) {
	var w wire.Fields
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	req := &llm.Request{Model: strings.TrimPrefix(w.Text("model"), "models/"), Whole: true}
	var r geminiReader
	system, err := r.parts(w.Object("systemInstruction"))
	if err != nil {
		return nil, fmt.Errorf("systemInstruction: %w", err)
	}
	if len(system) > 0 {
		r.messages = append(r.messages, llm.Message{Role: llm.RoleSystem, Parts: system})
	}
	contents, err := w.List("contents")
	if err != nil {
		return nil, err
	}
	for i, c := range contents {
		if err := r.content(c); err != nil {
			return nil, fmt.Errorf("content %d: %w", i, err)
		}
	}
	req.Messages = r.messages
	req.Tools, err = geminiTools(w)
	if err != nil {
		return nil, err
	}
	choice := w.Object("toolConfig").Object("functionCallingConfig")
	var allowed []string
	if err := choice.Into("allowedFunctionNames", &allowed); err != nil {
		return nil, err
	}
	switch strings.ToUpper(choice.Text("mode")) {
	case "NONE":
		req.Choice.Mode = llm.ToolNone
	case "ANY":
		req.Choice = llm.Named(allowed...)
		if allowed == nil {
			req.Choice.Mode = llm.ToolRequired
		}
	}
	config := w.Object("generationConfig")
	for name, v := range map[string]any{"maxOutputTokens": &req.Settings.MaxTokens, "temperature": &req.Settings.Temperature,
		"topP": &req.Settings.TopP, "stopSequences": &req.Settings.StopSequences, "responseJsonSchema": &req.Output} {
		if err := config.Into(name, v); err != nil {
			return nil, fmt.Errorf("generationConfig: %w", err)
		}
	}
	if open := config.Get("responseSchema"); open != nil {
		req.Output = jsonSchema(open)
	}
	req.Settings.Effort = strings.ToLower(config.Object("thinkingConfig").Text("thinkingLevel"))
	return req, nil
}

func geminiTools(w wire.Fields) ([]*llm.ToolSpec, error) {
	tools, err := w.List("tools")
	if err != nil {
		return nil, err
	}
	var all []*llm.ToolSpec
	for _, t := range tools {
		declared, err := t.List("functionDeclarations")
		if err != nil {
			return nil, err
		}
		for _, f := range declared {
			schema := f.Get("parametersJsonSchema")
			if open := f.Get("parameters"); schema == nil && open != nil {
				schema = jsonSchema(open)
			}
			all = append(all, &llm.ToolSpec{Name: f.Text("name"), Description: f.Text("description"), Input: schema})
		}
	}
	return all, nil
}

// content reads one turn. A result without an id belongs to the first open call of its name.
func (r *geminiReader) content(c wire.Fields) error {
	parts, err := r.parts(c)
	if err != nil {
		return err
	}
	role := c.Text("role")
	switch role {
	case "model":
		r.open = nil
		for i, p := range parts {
			if call, ok := p.(llm.ToolCall); ok {
				if call.ID == "" {
					r.calls++
					call.ID = fmt.Sprintf("call_%d", r.calls)
					parts[i] = call
				}
				r.open = append(r.open, call)
			}
		}
		r.messages = append(r.messages, llm.Message{Role: llm.RoleAssistant, Parts: parts})
	case "user", "function", "":
		for i, p := range parts {
			if res, ok := p.(geminiResult); ok {
				res.CallID = r.answers(res)
				parts[i] = res.ToolResult
			}
		}
		r.messages = append(r.messages, splitResults(parts)...)
	default:
		return fmt.Errorf("unknown role %q", role)
	}
	return nil
}

// answers returns the id of the call that res answers.
func (r *geminiReader) answers(res geminiResult) string {
	for i, call := range r.open {
		if res.CallID == call.ID || res.CallID == "" && res.name == call.Name {
			r.open = append(r.open[:i:i], r.open[i+1:]...)
			return call.ID
		}
	}
	return res.CallID
}

// geminiResult is a result with the name of its call.
type geminiResult struct {
	llm.ToolResult
	name string
}

// parts reads the parts of a content.
func (r *geminiReader) parts(c wire.Fields) ([]llm.Part, error) {
	list, err := c.List("parts")
	if err != nil {
		return nil, err
	}
	var parts []llm.Part
	for _, f := range list {
		p, err := geminiPart(f)
		if err != nil {
			return nil, err
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

func geminiPart(f wire.Fields) (llm.Part, error) {
	var own *llm.Opaque
	if f.Get("thoughtSignature") != nil {
		own = &llm.Opaque{Provider: "gemini", Data: wire.Marshal(f)}
	}
	switch {
	case f.Get("functionCall") != nil:
		call := f.Object("functionCall")
		args := call.Get("args")
		if args == nil {
			args = json.RawMessage("{}")
		}
		return llm.ToolCall{ID: call.Text("id"), Name: call.Text("name"), Args: args, Opaque: own}, nil
	case f.Get("functionResponse") != nil:
		return geminiAnswer(f.Object("functionResponse"))
	case f.Get("text") != nil:
		if string(f.Get("thought")) == "true" {
			return llm.Reasoning{Text: f.Text("text"), Opaque: own}, nil
		}
		return llm.Text{Text: f.Text("text"), Opaque: own}, nil
	case f.Get("inlineData") != nil:
		data := f.Object("inlineData")
		return media("data:"+data.Text("mimeType")+";base64,"+data.Text("data"), ""), nil
	case f.Get("fileData") != nil:
		file := f.Object("fileData")
		return llm.Media{MIME: file.Text("mimeType"), URL: file.Text("fileUri")}, nil
	}
	return llm.Reasoning{Opaque: &llm.Opaque{Provider: "gemini", Data: wire.Marshal(f)}}, nil
}

// geminiAnswer reads a functionResponse. An object with one member (result, output, content or
// error) that is a string stands for the string. Any other object stands for its JSON.
func geminiAnswer(f wire.Fields) (llm.Part, error) {
	res := geminiResult{name: f.Text("name")}
	res.CallID = f.Text("id")
	response := f.Get("response")
	said := f.Object("response")
	if len(said) == 1 {
		for _, word := range []string{"result", "output", "content", "error"} {
			if s := said.Text(word); s != "" || string(said.Get(word)) == `""` {
				response = nil
				res.IsError = word == "error"
				res.Parts = append(res.Parts, llm.Text{Text: s})
			}
		}
	}
	if response != nil {
		res.Parts = append(res.Parts, llm.Text{Text: string(response)})
	}
	media, err := new(geminiReader).parts(f)
	res.Parts = append(res.Parts, media...)
	return res, err
}

// jsonSchema converts a schema in this API's OpenAPI form to JSON Schema: types in small letters, a
// list with null for nullable, numbers for numbers in quotes. Unreadable parts are unchanged.
func jsonSchema(open json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(open, &v) != nil {
		return open
	}
	openSchema(v)
	return wire.Marshal(v)
}

// schemaTypes are the types by their number in the protocol.
var schemaTypes = []string{"", "string", "number", "integer", "boolean", "array", "object", "null"}

func openSchema(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	delete(m, "propertyOrdering")
	delete(m, "property_ordering")
	switch kind := m["type"].(type) {
	case string:
		m["type"] = strings.ToLower(kind)
	case float64:
		if n := int(kind); n > 0 && n < len(schemaTypes) {
			m["type"] = schemaTypes[n]
		}
	}
	if m["type"] == "type_unspecified" {
		delete(m, "type")
	}
	if nullable, _ := m["nullable"].(bool); nullable && m["type"] != nil {
		m["type"] = []any{m["type"], "null"}
	}
	delete(m, "nullable")
	for _, k := range []string{"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"} {
		if s, ok := m[k].(string); ok {
			m[k] = json.Number(s)
		}
	}
	props, _ := m["properties"].(map[string]any)
	for _, p := range props {
		openSchema(p)
	}
	openSchema(m["items"])
	choices, _ := m["anyOf"].([]any)
	for _, p := range choices {
		openSchema(p)
	}
}
