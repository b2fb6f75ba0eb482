package schema

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// fastSchema accepts plain cases of a schema directly from the bytes, without decoding: objects
// with named fields, lists, words from a list, and numbers within bounds. Most tools need no more.
// It never rejects: anything else goes to the full validator, which also describes the faults. A
// property test checks that it accepts only what the validator accepts.
type fastSchema struct {
	kinds    uint8 // allowed kinds, by bit; 0 means any
	props    []fastProp
	required uint64      // bits of props
	closed   bool        // no other fields
	others   *fastSchema // the schema of other fields; nil means any value
	items    *fastSchema // nil means any value
	enum     []string    // allowed strings; nil means any
	min, max int64       // bounds of integers, if bounded is set
	bounded  bool
}

type fastProp struct {
	name   string
	schema *fastSchema // nil means any value
}

const (
	kindNull uint8 = 1 << iota
	kindBool
	kindString
	kindInteger
	kindNumber
	kindArray
	kindObject
)

var fastKinds = map[string]uint8{"null": kindNull, "boolean": kindBool, "string": kindString, "integer": kindInteger,
	"number": kindNumber | kindInteger, "array": kindArray, "object": kindObject}

// compileFast returns nil if s has a rule that only the full validator understands.
func compileFast(s map[string]any) *fastSchema {
	f := &fastSchema{}
	for k, v := range s {
		ok := true
		switch k {
		case "title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly":
		case "$schema":
			ok = v == "https://json-schema.org/draft/2020-12/schema" || v == "http://json-schema.org/draft-07/schema#"
		case "type":
			ok = f.addKinds(v)
		case "properties", "required":
			// handled below, together
		case "additionalProperties":
			switch v := v.(type) {
			case bool:
				f.closed = !v
			case map[string]any:
				f.others = compileFast(v)
				ok = f.others != nil
			default:
				ok = false
			}
		case "items":
			m, isMap := v.(map[string]any)
			if ok = isMap; ok {
				f.items = compileFast(m)
				ok = f.items != nil
			}
		case "enum":
			list, _ := v.([]any)
			for _, e := range list {
				word, isWord := e.(string)
				if !isWord {
					return nil
				}
				f.enum = append(f.enum, word)
			}
			ok = len(f.enum) > 0
		case "minimum", "maximum":
			// handled below, together
		default:
			ok = false
		}
		if !ok {
			return nil
		}
	}
	if len(f.enum) > 0 && f.kinds != kindString {
		return nil
	}
	if !f.addBounds(s) || !f.addProps(s) {
		return nil
	}
	return f
}

func (f *fastSchema) addKinds(v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, k := range list {
		name, _ := k.(string)
		bits := fastKinds[name]
		if bits == 0 {
			return false
		}
		f.kinds |= bits
	}
	return f.kinds != 0
}

func (f *fastSchema) addBounds(s map[string]any) bool {
	low, hasLow := s["minimum"]
	high, hasHigh := s["maximum"]
	if !hasLow && !hasHigh {
		return true
	}
	if f.kinds != kindInteger {
		return false
	}
	f.bounded, f.min, f.max = true, -1<<62, 1<<62
	return (!hasLow || exactInt(low, &f.min)) && (!hasHigh || exactInt(high, &f.max))
}

func exactInt(v any, into *int64) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	i, err := strconv.ParseInt(string(n), 10, 62)
	*into = i
	return err == nil
}

func (f *fastSchema) addProps(s map[string]any) bool {
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	if s["properties"] != nil && props == nil || s["required"] != nil && required == nil || len(props) > 64 {
		return false
	}
	for name, v := range props {
		p := fastProp{name: name}
		switch v := v.(type) {
		case map[string]any:
			if p.schema = compileFast(v); p.schema == nil {
				return false
			}
		case bool:
			if !v {
				return false
			}
		default:
			return false
		}
		f.props = append(f.props, p)
	}
	for _, v := range required {
		i := slices.IndexFunc(f.props, func(p fastProp) bool { return p.name == v })
		if i < 0 {
			return false
		}
		f.required |= 1 << i
	}
	return true
}

// accepts reports that args certainly fit.
func (f *fastSchema) accepts(args json.RawMessage) bool {
	if !json.Valid(args) {
		return false
	}
	c := jsonscan.New(args)
	return f.value(&c) && c.Err() == nil
}

func (f *fastSchema) value(c *jsonscan.Cursor) bool {
	if f == nil {
		c.Skip()
		return true
	}
	switch c.Kind() {
	case jsonscan.Object:
		return f.allows(kindObject) && f.object(c)
	case jsonscan.Array:
		if !f.allows(kindArray) {
			return false
		}
		for c.Array(); c.More(); {
			if !f.items.value(c) {
				return false
			}
		}
		return true
	case jsonscan.String:
		if !f.allows(kindString) {
			return false
		}
		if f.enum == nil {
			c.Skip()
			return true
		}
		word := c.Text()
		return slices.ContainsFunc(f.enum, func(e string) bool { return e == string(word) })
	case jsonscan.Number:
		return f.number(c.Raw())
	case jsonscan.True, jsonscan.False:
		c.Skip()
		return f.allows(kindBool)
	case jsonscan.Null:
		c.Skip()
		return f.allows(kindNull)
	}
	return false
}

func (f *fastSchema) allows(kind uint8) bool { return f.kinds == 0 || f.kinds&kind != 0 }

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

// number accepts a plain integer, and any number if all numbers are allowed. The full validator
// decides whether 1.0 and 1e3 are integers.
func (f *fastSchema) number(raw []byte) bool {
	if f.allows(kindNumber) && !f.bounded {
		return true
	}
	if !f.allows(kindInteger) || len(raw) > 18 {
		return false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && (!f.bounded || n >= f.min && n <= f.max)
}
