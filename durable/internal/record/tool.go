package record

// tool.go: OfferedTool, the definition of a tool.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// OfferedTool is the definition of a tool that a run offers.
type OfferedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Input       json.RawMessage `json:"input,omitzero"`
	Output      json.RawMessage `json:"output,omitzero"`
	// Effect.Assumed of the tool: the order of its calls is not compared.
	Effect  pawl.Effect `json:"effect"`
	Passive bool        `json:"passive,omitzero"`
	Address string      `json:"address,omitzero"`
}

// Offer returns the definition of t.
func Offer(t *pawl.Tool) OfferedTool {
	return OfferedTool{
		Name:        t.Name,
		Description: t.Description,
		Input:       t.Input,
		Output:      t.Output,
		Effect:      t.Effect.Assumed(),
		Passive:     t.Passive,
		Address:     t.Address,
	}
}

// OfferSpecs returns the definitions of the tools that a request offers.
func OfferSpecs(specs []*llm.ToolSpec) (out []OfferedTool) {
	for _, s := range specs {
		out = append(out, Offer(ToolOf(s)))
	}
	return out
}

// ToolOf returns the tool that a request offers as spec. A middleware may make a spec without a
// tool. For such a spec, it makes a tool from the fields.
func ToolOf(spec *llm.ToolSpec) *pawl.Tool {
	if t, ok := spec.Source.(*pawl.Tool); ok {
		return t
	}
	return &pawl.Tool{
		Name:        spec.Name,
		Description: spec.Description,
		Input:       spec.Input,
		Output:      spec.Output,
		Deferred:    spec.Deferred,
		NoRepair:    spec.NoRepair,
		Passive:     true,
	}
}

// ToolDigest returns the digest of everything that a model and the pipeline know of a tool.
func ToolDigest(spec *llm.ToolSpec) string {
	t := ToolOf(spec)
	return Digest(
		[]byte(t.Digest(nil)),
		[]byte(t.Description),
		t.Output,
		[]byte(t.Effect.Assumed().String()),
		fmt.Append(nil, t.Passive),
	)
}

// ToolsByName returns the definitions by the name of the tool.
func ToolsByName(all []OfferedTool) map[string]*OfferedTool {
	out := map[string]*OfferedTool{}
	for i := range all {
		out[all[i].Name] = &all[i]
	}
	return out
}

// Compatible reports whether the tool now can execute the calls of the recorded tool was: they
// differ at most in texts for the model.
func (was *OfferedTool) Compatible(now OfferedTool) bool {
	if was.Effect != now.Effect || was.Passive != now.Passive || was.Address != now.Address {
		return false
	}
	return sameSchema(was.Input, now.Input) && sameSchema(was.Output, now.Output)
}

// sameSchema compares schemas without their annotations.
func sameSchema(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	return reflect.DeepEqual(plainSchema(x, true), plainSchema(y, true))
}

// plainSchema removes the annotations of a schema. In a map of schemas or values, such as
// properties, every name is content.
func plainSchema(v any, schema bool) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plainSchema(v[i], schema)
		}
	case map[string]any:
		for key, one := range v {
			if !schema {
				v[key] = plainSchema(one, true)
				continue
			}
			switch key {
			case "description", "title", "examples", "$comment": // annotations
				delete(v, key)
			case "const", "enum", "default": // values
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
				// maps of schemas
				v[key] = plainSchema(one, false)
			default:
				v[key] = plainSchema(one, true)
			}
		}
	}
	return v
}

// Difference describes the first field in which the tool differs from what it was.
func (was *OfferedTool) Difference(now *OfferedTool) string {
	if now == nil {
		return "it is gone"
	}
	for _, f := range []struct{ name, was, now string }{
		{"effect", was.Effect.String(), now.Effect.String()},
		{"address", was.Address, now.Address},
		{"passive", fmt.Sprint(was.Passive), fmt.Sprint(now.Passive)},
		{"input", string(was.Input), string(now.Input)},
		{"output", string(was.Output), string(now.Output)},
		{"description", was.Description, now.Description},
	} {
		if f.was != f.now {
			return f.name + " was " + excerpt(f.was, f.now) + ", is " + excerpt(f.now, f.was)
		}
	}
	return "no field that is compared"
}

// excerpt returns the part of a text that begins shortly before the difference from other.
func excerpt(s, other string) string {
	n := text.Common(s, other)
	out := text.Clip(s[max(n-20, 0):], 80)
	if n > 20 {
		out = "…" + out
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(out, ""))
}

// ApplyTo returns t with the recorded texts.
func (was *OfferedTool) ApplyTo(t *pawl.Tool) *pawl.Tool {
	now := Offer(t)
	if now.Description == was.Description && bytes.Equal(now.Input, was.Input) && bytes.Equal(now.Output, was.Output) {
		return t
	}

	c := t.Clone()
	c.Description = was.Description
	c.Input = was.Input
	c.Output = was.Output
	return c
}
