package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// partForm is the visible content of a part. Ids and opaque data belong to the provider.
func partForm(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return "text " + p.Text
	case llm.Reasoning:
		return "reasoning " + p.Text
	case llm.ToolCall:
		return "call " + p.Name + " " + string(p.Args)
	case llm.Media:
		return fmt.Sprintf("media %s %s %q", p.MIME, p.URL, p.Data)
	}
	return fmt.Sprintf("%T", p)
}

// Form returns v as JSON.
func Form(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Sorted returns JSON with sorted keys: their order in opaque data has no meaning.
func Sorted(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	return Form(v)
}

// opaqueForm is the content of a part with its opaque data.
func opaqueForm(p llm.Part) string {
	var o *llm.Opaque
	switch p := p.(type) {
	case llm.Text:
		o = p.Opaque
	case llm.Reasoning:
		o = p.Opaque
	case llm.ToolCall:
		o = p.Opaque
	}
	if o == nil {
		return partForm(p)
	}
	return partForm(p) + " with " + Sorted(string(o.Data))
}

// forms returns the contents of parts, each as form returns it.
func forms(parts []llm.Part, form func(llm.Part) string) []string {
	var all []string
	for _, p := range parts {
		all = append(all, form(p))
	}
	return all
}

// requestForm returns the content of a request that must arrive at api. An empty api can express
// everything. Reasoning is left out, names of media have the API's form, and messages of one role
// may be joined.
func requestForm(api string, r *llm.Request) string {
	c := *r
	c.Messages = nil
	for _, m := range r.Messages {
		n := llm.Message{Role: m.Role}
		if n.Role == llm.RoleDeveloper {
			n.Role = llm.RoleSystem
		}
		for _, p := range m.Parts {
			switch q := p.(type) {
			case llm.Reasoning:
				continue
			case llm.Text:
				p = llm.Text{Text: q.Text}
			case llm.Media:
				if q.URL != "" {
					p = llm.Media{URL: q.URL}
				}
			case llm.ToolCall:
				q.Opaque = nil
				p = q
			}
			n.Parts = append(n.Parts, p)
		}
		if api != "" {
			joinTexts(n.Parts)
		}
		if last := len(c.Messages) - 1; last >= 0 && c.Messages[last].Role == n.Role && n.Role != llm.RoleAssistant {
			c.Messages[last].Parts = append(c.Messages[last].Parts, n.Parts...)
			continue
		}
		c.Messages = append(c.Messages, n)
	}
	c.Tools = nil
	for _, t := range r.Tools {
		c.Tools = append(c.Tools,
			&llm.ToolSpec{Name: t.Name, Description: t.Description, Input: schemaForm(api, t.Input),
				Output: t.Output, Deferred: t.Deferred, NoRepair: t.NoRepair})
	}
	c.Output = schemaForm(api, r.Output)
	// IDs come from the API or from pawl; only the pairing matters.
	if api == "" {
		ordinals(c.Messages)
	}
	if api == wire.Anthropic || api == wire.Gemini {
		ordinals(c.Messages)
		if p := c.Settings.Parallel; p != nil && *p {
			c.Settings.Parallel = nil
		}
	}
	return Form(&c)
}

// joinTexts joins the texts of each result that follow each other, which some APIs have as one
// string.
func joinTexts(parts []llm.Part) {
	for i, p := range parts {
		r, ok := p.(llm.ToolResult)
		if !ok {
			continue
		}
		var joined []llm.Part
		for _, inner := range r.Parts {
			joined = appendJoined(joined, inner)
		}
		r.Parts = joined
		parts[i] = r
	}
}

// appendJoined appends p, or joins it with the last part if both are texts.
func appendJoined(parts []llm.Part, p llm.Part) []llm.Part {
	text, ok := p.(llm.Text)
	if !ok || len(parts) == 0 {
		return append(parts, p)
	}
	last := len(parts) - 1
	before, ok := parts[last].(llm.Text)
	if !ok {
		return append(parts, p)
	}
	parts[last] = llm.Text{Text: before.Text + text.Text}
	return parts
}

// ordinals numbers the calls of each reply in place of their ids.
func ordinals(messages []llm.Message) {
	var ids map[string]string
	for _, m := range messages {
		if m.Role == llm.RoleAssistant {
			ids = map[string]string{}
		}
		for i, p := range m.Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				if ids != nil {
					ids[p.ID] = fmt.Sprint(len(ids))
				}
				p.ID = ids[p.ID]
				m.Parts[i] = p
			case llm.ToolResult:
				p.CallID = ids[p.CallID]
				m.Parts[i] = p
			}
		}
	}
}

// schemaForm returns a schema with sorted keys. An adapter may write a definition in the place that
// refers to it, and an object without properties in either way. For Gemini it leaves out the parts
// that its dialect writes in another way.
func schemaForm(api string, schema json.RawMessage) json.RawMessage {
	v := decoded(schema)
	if v == nil {
		return schema
	}
	root, ok := v.(map[string]any)
	if props, _ := root["properties"].(map[string]any); ok && len(props) == 0 {
		delete(root, "properties")
	}
	if api == wire.Gemini {
		plainSchema(v)
	}
	return wire.Marshal(v)
}

func plainSchema(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	delete(m, "additionalProperties")
	delete(m, "propertyOrdering")
	if kind, ok := m["type"].(string); ok {
		m["type"] = strings.ToLower(kind)
	}
	props, _ := m["properties"].(map[string]any)
	for _, p := range props {
		plainSchema(p)
	}
	plainSchema(m["items"])
}
