package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/nearest"
)

// schema is the part of a JSON Schema that a plan examines before it runs: fields, items and types.
// A nil schema allows everything, and so does a schema in another form ($ref, oneOf, …). An unknown
// type is not refused, because each call is validated in full when it is made.
type schema map[string]any

func parseSchema(b json.RawMessage) schema {
	var s schema
	if json.Unmarshal(b, &s) != nil {
		return nil
	}
	return s.plain()
}

func listOf(s schema) schema {
	out := schema{"type": "array"}
	if s != nil {
		out["items"] = map[string]any(s)
	}
	return out
}

// plain returns s, or nil if s uses keywords that are not examined here.
func (s schema) plain() schema {
	for _, word := range []string{"$ref", "$dynamicRef", "oneOf", "anyOf", "allOf", "not", "if", "patternProperties", "prefixItems"} {
		if s[word] != nil {
			return nil
		}
	}
	return s
}

func asSchema(v any) schema {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	return schema(m).plain()
}

// types returns the types that s allows, without null. Nil means any type.
func (s schema) types() (out []string) {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok {
				out = append(out, name)
			}
		}
		if len(out) > 1 {
			out = slices.DeleteFunc(out, func(t string) bool { return t == "null" })
		}
	}
	return out
}

// may reports whether a value that matches s can have the type kind.
func (s schema) may(kind string) bool {
	types := s.types()
	return types == nil || slices.Contains(types, kind) || kind == "number" && slices.Contains(types, "integer") ||
		kind == "integer" && slices.Contains(types, "number")
}

// takes reports whether a value that matches given can match s.
func (s schema) takes(given schema) bool {
	types := given.types()
	return types == nil || s.types() == nil || slices.ContainsFunc(types, s.may)
}

// kinds names the types of s for a sentence.
func (s schema) kinds() string {
	types := s.types()
	if types == nil {
		return "any value"
	}
	return strings.Join(types, " or ")
}

func (s schema) items() schema { return asSchema(s["items"]) }

// at returns the schema of the value at path within a value that matches s. A fault says that there
// can be no value at path.
func (s schema) at(path []string) (_ schema, fault string) {
	for _, name := range path {
		switch types := s.types(); {
		case s == nil, types == nil:
			return nil, ""
		case s.may("object"):
			if s, fault = s.field(name); fault != "" {
				return nil, fault
			}
		case s.may("array"):
			if strings.Trim(name, "0123456789") != "" {
				return nil, fmt.Sprintf("%s is not an index of a list; an index is a number from 0", name)
			}
			s = s.items()
		default:
			return nil, fmt.Sprintf("there is no %s in it: it is %s", name, s.kinds())
		}
	}
	return s, ""
}

func (s schema) field(name string) (schema, string) {
	fields, _ := s["properties"].(map[string]any)
	if f, ok := fields[name]; ok {
		return asSchema(f), ""
	}
	if s["additionalProperties"] != false {
		return asSchema(s["additionalProperties"]), ""
	}
	names := slices.Sorted(maps.Keys(fields))
	fault := fmt.Sprintf("there is no %s in it; there are: %s", name, strings.Join(names, ", "))
	if near := nearest.Word(name, names); near != "" {
		fault += fmt.Sprintf(". Did you mean %q?", near)
	}
	return nil, fault
}
