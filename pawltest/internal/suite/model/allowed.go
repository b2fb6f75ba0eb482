package model

import (
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// allow takes from an arrived request the differences to the sent request that an adapter to api
// may need, because the API has no other form for what was sent.
func allow(api string, arrived, sent *llm.Request) {
	switch api {
	case wire.Anthropic:
		if sent.Settings.MaxTokens == 0 {
			arrived.Settings.MaxTokens = 0 // the API has no default, so the adapter has one
		}
		allowOutputInInstructions(arrived, sent)
	case wire.Chat:
		allowFailedInText(arrived, sent)
	case wire.Responses:
		allowFailedInText(arrived, sent)
		allowJoinedInstructions(arrived, sent)
	}
}

// allowJoinedInstructions allows that the instructions are one text, with blank lines between: the
// API has one field for them.
func allowJoinedInstructions(arrived, sent *llm.Request) {
	var texts []string
	for _, m := range sent.Messages {
		if m.Role != llm.RoleSystem {
			break
		}
		texts = append(texts, m.Text())
	}
	if len(texts) > 1 && arrived.Messages[0].Text() == strings.Join(texts, "\n\n") {
		arrived.Messages = append(sent.Messages[:len(texts):len(texts)], arrived.Messages[1:]...)
	}
}

// allowOutputInInstructions allows that the instructions have the output schema, which not every
// model has a field for.
func allowOutputInInstructions(arrived, sent *llm.Request) {
	if sent.Output == nil || arrived.Output != nil {
		return
	}
	said, added := strings.CutPrefix(arrived.Messages[0].Text(), sent.Messages[0].Text())
	if added && mentions(said, decoded(sent.Output)) {
		arrived.Output = sent.Output
		arrived.Messages[0] = sent.Messages[0]
	}
}

// mentions reports whether a text has the keys and the strings of a schema.
func mentions(text string, schema any) bool {
	switch v := schema.(type) {
	case map[string]any:
		for key, inner := range v {
			if !strings.Contains(text, Form(key)) || !mentions(text, inner) {
				return false
			}
		}
	case []any:
		for _, inner := range v {
			if !mentions(text, inner) {
				return false
			}
		}
	case string:
		return strings.Contains(text, Form(v))
	}
	return true
}

// allowFailedInText allows that the text of a failed result says so: the API has no field for it.
func allowFailedInText(arrived, sent *llm.Request) {
	for i, m := range sent.Messages {
		if i >= len(arrived.Messages) || len(arrived.Messages[i].Parts) != len(m.Parts) {
			return
		}
		for k, p := range m.Parts {
			was, failed := p.(llm.ToolResult)
			is, ok := arrived.Messages[i].Parts[k].(llm.ToolResult)
			if failed && ok && was.IsError && is.Text() != was.Text() && strings.HasSuffix(is.Text(), was.Text()) {
				arrived.Messages[i].Parts[k] = was
			}
		}
	}
}

// decoded returns the schema as a value, with the definitions in the places that refer to them.
func decoded(schema json.RawMessage) any {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return nil
	}
	root, ok := v.(map[string]any)
	if !ok {
		return v
	}
	defs, _ := root["$defs"].(map[string]any)
	delete(root, "$defs")
	return inlined(root, defs)
}

// inlined returns v with definitions in place of references. A reference without one stays.
func inlined(v any, defs map[string]any) any {
	switch v := v.(type) {
	case map[string]any:
		ref, _ := v["$ref"].(string)
		if def, ok := defs[strings.TrimPrefix(ref, "#/$defs/")]; ok && ref != "" {
			return inlined(def, defs)
		}
		for key, inner := range v {
			v[key] = inlined(inner, defs)
		}
	case []any:
		for i, inner := range v {
			v[i] = inlined(inner, defs)
		}
	}
	return v
}
