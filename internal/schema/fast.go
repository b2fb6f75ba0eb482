package schema

import (
	stdjson "encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// fastSchema accepts plain cases of a schema directly from the bytes, without decoding: objects
// with named fields, lists, words from a list, and numbers within bounds. Most tools need no more.
// It never rejects: anything else goes to the full validator, which also describes the faults. A
// property test checks that it accepts only what the validator accepts.
type fastSchema struct {
	kinds    []jsonscan.Kind // allowed kinds; nil means any
	integer  bool            // a number is an integer within the bounds
	min, max *int64          // nil means none
	props    []fastProp
	required uint64      // bits of props
	closed   bool        // no other fields
	others   *fastSchema // the schema of other fields; nil means any value
	items    *fastSchema // nil means any value
	enum     []any       // allowed strings; nil means any
}

type fastProp struct {
	name   string
	schema *fastSchema
}

var fastKinds = map[string]jsonscan.Kind{"null": jsonscan.Null, "boolean": jsonscan.True, "string": jsonscan.String,
	"integer": jsonscan.Number, "number": jsonscan.Number, "array": jsonscan.Array, "object": jsonscan.Object}

// fastNotes are the keywords that the fast path may ignore.
var fastNotes = strings.Fields("title description default examples $comment deprecated readOnly writeOnly")

// fastSource is what the fast path reads of a schema. The full validator has accepted it.
type fastSource struct {
	Draft      string                    `json:"$schema"`
	Type       any                       `json:"type"`
	Properties map[string]jsontext.Value `json:"properties"`
	Required   []string                  `json:"required"`
	Others     jsontext.Value            `json:"additionalProperties"`
	Items      jsontext.Value            `json:"items"`
	Enum       []any                     `json:"enum"`
	Minimum    *int64                    `json:"minimum"`
	Maximum    *int64                    `json:"maximum"`
	Notes      map[string]any            `json:",embed"`
}

// compileFast returns nil if src, a schema that the full validator has accepted, has a rule that
// only this one understands.
func compileFast(src jsontext.Value) *fastSchema {
	if string(src) == "true" {
		return &fastSchema{}
	}
	var s fastSource
	if json.Unmarshal(src, &s) != nil || !s.understood() {
		return nil
	}

	f := &fastSchema{min: s.Minimum, max: s.Maximum, enum: s.Enum}
	types := s.types()
	for _, t := range types {
		f.kinds = append(f.kinds, fastKinds[t.(string)])
	}
	// The fast path is exact or absent: each rule that it does not fully cover makes the full
	// validator check everything.
	f.integer = slices.Contains(types, any("integer")) && !slices.Contains(types, any("number"))
	if f.enum != nil && !slices.Equal(types, []any{"string"}) || slices.ContainsFunc(f.enum, notText) {
		return nil
	}
	if (f.min != nil || f.max != nil) && !slices.Equal(types, []any{"integer"}) {
		return nil
	}

	if !f.compileProperties(&s) {
		return nil
	}
	f.closed = string(s.Others) == "false"
	if !f.closed && s.Others != nil {
		f.others = compileFast(s.Others)
		if f.others == nil {
			return nil
		}
	}

	if s.Items != nil {
		f.items = compileFast(s.Items)
		if f.items == nil {
			return nil
		}
	}
	return f
}

// understood reports whether the schema is of a known draft and has no further keywords, and
// whether its properties fit into a set of bits.
func (s *fastSource) understood() bool {
	switch s.Draft {
	case "", "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#":
	default:
		return false
	}
	for name := range s.Notes {
		if !slices.Contains(fastNotes, name) {
			return false
		}
	}
	return len(s.Properties) <= 64
}

// types returns the types that the schema states. Empty means all.
func (s *fastSource) types() []any {
	if list, ok := s.Type.([]any); ok || s.Type == nil {
		return list
	}
	return []any{s.Type}
}

// compileProperties compiles the fields of an object. It returns false if a field has a rule that
// only the full validator understands.
func (f *fastSchema) compileProperties(s *fastSource) bool {
	for name, v := range s.Properties {
		field := compileFast(v)
		if field == nil {
			return false
		}
		f.props = append(f.props, fastProp{name, field})
	}
	for _, name := range s.Required {
		i := slices.IndexFunc(f.props, func(p fastProp) bool { return p.name == name })
		if i < 0 {
			return false
		}
		// A shift of 64 and more sets no bit. understood has refused schemas with so many fields.
		f.required |= 1 << i
	}
	return true
}

func notText(v any) bool { _, ok := v.(string); return !ok }

// accepts reports whether args certainly fit.
func (f *fastSchema) accepts(args stdjson.RawMessage) bool {
	c := jsonscan.New(args)
	return stdjson.Valid(args) && f.value(&c) && c.Err() == nil
}

func (f *fastSchema) value(c *jsonscan.Cursor) bool {
	if f == nil {
		c.Skip()
		return true
	}
	kind := c.Kind()
	// Both are the type boolean.
	if kind == jsonscan.False {
		kind = jsonscan.True
	}
	switch {
	case f.kinds != nil && !slices.Contains(f.kinds, kind):
		return false
	case kind == jsonscan.Object:
		return f.object(c)
	case kind == jsonscan.Array:
		for c.Array(); c.More(); {
			if !f.items.value(c) {
				return false
			}
		}
		return true
	case kind == jsonscan.String && f.enum != nil:
		word := c.Text()
		return slices.ContainsFunc(f.enum, func(e any) bool { return e.(string) == string(word) })
	case kind == jsonscan.Number && f.integer:
		return f.whole(c.Raw())
	}
	c.Skip()
	return true
}

func (f *fastSchema) object(c *jsonscan.Cursor) bool {
	var seen uint64
	for name := range c.Members() {
		i := slices.IndexFunc(f.props, func(p fastProp) bool { return p.name == string(name) })
		if i < 0 {
			if f.closed || !f.others.value(c) {
				return false
			}
			continue
		}
		// The readers of arguments disagree about which value of a repeated name counts.
		if seen&(1<<i) != 0 {
			return false // a repeated name
		}
		seen |= 1 << i
		if !f.props[i].schema.value(c) {
			return false
		}
	}
	return seen&f.required == f.required
}

// whole reports whether raw is certainly an allowed integer. An integer may also be written as 1.0
// or 1e3; the full validator decides about these.
func (f *fastSchema) whole(raw []byte) bool {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case err != nil || len(raw) > 18:
		return false
	case f.min != nil && n < *f.min, f.max != nil && n > *f.max:
		return false
	}
	return true
}
