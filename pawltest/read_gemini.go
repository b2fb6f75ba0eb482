package pawltest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// fields is an object whose names may be in camelCase or snake_case.
type fields map[string]json.RawMessage

func (f fields) get(name string) json.RawMessage {
	if v, ok := f[name]; ok {
		return v
	}
	return f[snake(name)]
}

// into decodes the field into v, and leaves v unchanged if the field does not exist.
func (f fields) into(name string, v any) error {
	raw := f.get(name)
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (f fields) text(name string) string {
	var s string
	json.Unmarshal(f.get(name), &s) // "" if it is not a string
	return s
}

func (f fields) object(name string) fields {
	var o fields
	json.Unmarshal(f.get(name), &o) // nil if it is not an object
	return o
}

// list returns the objects of a field that is a list, or one object.
func (f fields) list(name string) ([]fields, error) {
	raw := f.get(name)
	if strings.HasPrefix(strings.TrimSpace(string(raw)), "{") {
		raw = json.RawMessage("[" + string(raw) + "]")
	}
	if raw == nil {
		return nil, nil
	}
	var list []fields
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// geminiReader reads contents, and gives an id to each call without one.
type geminiReader struct {
	messages []llm.Message
	open     []llm.ToolCall // of the previous content, without a result
	calls    int
}

func readGemini(body []byte) (*llm.Request, error) {
	var w fields
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	req := &llm.Request{Model: strings.TrimPrefix(w.text("model"), "models/"), Whole: true}
	var r geminiReader
	system, err := r.parts(w.object("systemInstruction"))
	if err != nil {
		return nil, fmt.Errorf("systemInstruction: %w", err)
	}
	if len(system) > 0 {
		r.messages = append(r.messages, llm.Message{Role: llm.RoleSystem, Parts: system})
	}
	contents, err := w.list("contents")
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
	choice := w.object("toolConfig").object("functionCallingConfig")
	var allowed []string
	if err := choice.into("allowedFunctionNames", &allowed); err != nil {
		return nil, err
	}
	switch strings.ToUpper(choice.text("mode")) {
	case "NONE":
		req.Choice.Mode = llm.ToolNone
	case "ANY":
		req.Choice = llm.Named(allowed...)
		if allowed == nil {
			req.Choice.Mode = llm.ToolRequired
		}
	}
	config := w.object("generationConfig")
	for name, v := range map[string]any{"maxOutputTokens": &req.Settings.MaxTokens, "temperature": &req.Settings.Temperature,
		"topP": &req.Settings.TopP, "stopSequences": &req.Settings.StopSequences, "responseJsonSchema": &req.Output} {
		if err := config.into(name, v); err != nil {
			return nil, fmt.Errorf("generationConfig: %w", err)
		}
	}
	if open := config.get("responseSchema"); open != nil {
		req.Output = jsonSchema(open)
	}
	req.Settings.Effort = strings.ToLower(config.object("thinkingConfig").text("thinkingLevel"))
	return req, nil
}

func geminiTools(w fields) ([]*llm.ToolSpec, error) {
	tools, err := w.list("tools")
	if err != nil {
		return nil, err
	}
	var all []*llm.ToolSpec
	for _, t := range tools {
		declared, err := t.list("functionDeclarations")
		if err != nil {
			return nil, err
		}
		for _, f := range declared {
			schema := f.get("parametersJsonSchema")
			if open := f.get("parameters"); schema == nil && open != nil {
				schema = jsonSchema(open)
			}
			all = append(all, &llm.ToolSpec{Name: f.text("name"), Description: f.text("description"), Input: schema})
		}
	}
	return all, nil
}

// content reads one turn. A result without an id belongs to the first open call of its name.
func (r *geminiReader) content(c fields) error {
	parts, err := r.parts(c)
	if err != nil {
		return err
	}
	role := c.text("role")
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
func (r *geminiReader) parts(c fields) ([]llm.Part, error) {
	list, err := c.list("parts")
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

func geminiPart(f fields) (llm.Part, error) {
	var own *llm.Opaque
	if f.get("thoughtSignature") != nil {
		own = &llm.Opaque{Provider: "gemini", Data: marshal(f)}
	}
	switch {
	case f.get("functionCall") != nil:
		call := f.object("functionCall")
		args := call.get("args")
		if args == nil {
			args = json.RawMessage("{}")
		}
		return llm.ToolCall{ID: call.text("id"), Name: call.text("name"), Args: args, Opaque: own}, nil
	case f.get("functionResponse") != nil:
		return geminiAnswer(f.object("functionResponse"))
	case f.get("text") != nil:
		if string(f.get("thought")) == "true" {
			return llm.Reasoning{Text: f.text("text"), Opaque: own}, nil
		}
		return llm.Text{Text: f.text("text"), Opaque: own}, nil
	case f.get("inlineData") != nil:
		data := f.object("inlineData")
		return media("data:"+data.text("mimeType")+";base64,"+data.text("data"), ""), nil
	case f.get("fileData") != nil:
		file := f.object("fileData")
		return llm.Media{MIME: file.text("mimeType"), URL: file.text("fileUri")}, nil
	}
	return llm.Reasoning{Opaque: &llm.Opaque{Provider: "gemini", Data: marshal(f)}}, nil
}

// geminiAnswer reads a functionResponse. An object with one member (result, output, content or
// error) that is a string stands for the string. Any other object stands for its JSON.
func geminiAnswer(f fields) (llm.Part, error) {
	res := geminiResult{name: f.text("name")}
	res.CallID = f.text("id")
	response := f.get("response")
	said := f.object("response")
	if len(said) == 1 {
		for _, word := range []string{"result", "output", "content", "error"} {
			if s := said.text(word); s != "" || string(said.get(word)) == `""` {
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
	return marshal(v)
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
