package dialect_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file imitates a provider that reads the output: what it refuses, and which values it
// accepts. It follows the providers' pages, and shares no code with the package.

// node is a decoded JSON object.
type node = map[string]any

func decode(b []byte) any {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		panic(err)
	}
	return v
}

// refused returns the faults for which a provider would refuse a schema.
func refused(dialect string, schema []byte) []string {
	r := &refusals{}
	root, ok := decode(schema).(node)
	if !ok {
		return []string{"the root is no object"}
	}
	switch dialect {
	case "openai":
		r.root(root, "object", "anyOf", "oneOf", "allOf", "enum", "const", "not")
		r.each(root, "", func(path string, s node) { r.refTop(path, s, root); r.items(path, s); r.properties(path, s) })
	case "gemini-json":
		r.root(root, "object")
		r.each(root, "", func(path string, s node) { r.refTop(path, s, root); r.items(path, s) })
	case "anthropic":
		r.root(root, "object", "anyOf", "oneOf", "allOf")
		key := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
		r.each(root, "", func(path string, s node) {
			r.refTop(path, s, root)
			for name := range sub(s, "properties") {
				if !key.MatchString(name) {
					r.say(path, "property %q", name)
				}
			}
		})
	case "openai-strict":
		r.root(root, "object", "anyOf", "oneOf", "allOf", "enum", "const", "not")
		known := strings.Fields("type properties required additionalProperties items anyOf enum const $ref $defs title description pattern format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems")
		r.each(root, "", func(path string, s node) {
			r.refTop(path, s, root)
			r.items(path, s)
			r.known(path, s, known)
			if s["$ref"] != nil && len(s) > 1 {
				r.say(path, "siblings of $ref")
			}
			if s["type"] == nil && s["anyOf"] == nil && s["$ref"] == nil {
				r.say(path, "no type")
			}
			if is(s, "object") {
				r.properties(path, s)
				if s["additionalProperties"] != false {
					r.say(path, "not closed")
				}
				need, _ := s["required"].([]any)
				for name := range sub(s, "properties") {
					if !slices.Contains(need, any(name)) {
						r.say(path, "%s is not required", name)
					}
				}
			}
			if f, ok := s["format"]; ok && !slices.Contains(strings.Fields("date-time time date duration email hostname ipv4 ipv6 uuid"), f.(string)) {
				r.say(path, "format %v", f)
			}
			r.needed(path, s)
		})
	case "anthropic-strict":
		r.root(root, "object", "anyOf", "oneOf", "allOf")
		known := strings.Fields("type properties required additionalProperties items anyOf enum const title description format minItems")
		key := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
		r.each(root, "", func(path string, s node) {
			r.known(path, s, known)
			r.items(path, s)
			r.needed(path, s)
			if s["type"] == nil && s["anyOf"] == nil && s["enum"] == nil {
				r.say(path, "no type")
			}
			if is(s, "object") && s["additionalProperties"] != false {
				r.say(path, "not closed")
			}
			for name := range sub(s, "properties") {
				if !key.MatchString(name) {
					r.say(path, "property %q", name)
				}
			}
			if m, ok := s["minItems"].(float64); ok && m > 1 {
				r.say(path, "minItems %v", m)
			}
			if f, ok := s["format"]; ok && !slices.Contains(strings.Fields("date-time time date duration email hostname uri ipv4 ipv6 uuid"), f.(string)) {
				r.say(path, "format %v", f)
			}
			for _, v := range list(s["enum"]) {
				if _, bad := v.(node); bad {
					r.say(path, "enum value %v", v)
				}
			}
		})
	case "gemini":
		r.root(root, "OBJECT", "anyOf")
		known := strings.Fields("type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum")
		r.each(root, "", func(path string, s node) {
			r.known(path, s, known)
			t, _ := s["type"].(string)
			switch {
			case s["anyOf"] != nil:
				if len(s) > 1 {
					r.say(path, "siblings of anyOf")
				}
			case !slices.Contains([]string{"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}, t):
				r.say(path, "type %v", s["type"])
			}
			if t == "ARRAY" && s["items"] == nil {
				r.say(path, "no items")
			}
			if list, ok := s["enum"].([]any); ok {
				if t != "STRING" || len(list) == 0 {
					r.say(path, "enum of %s", t)
				}
				for _, v := range list {
					if v, ok := v.(string); !ok || v == "" {
						r.say(path, "enum value %v", v)
					}
				}
			}
			if f, ok := s["format"].(string); ok && !slices.Contains(strings.Fields("STRING:date-time NUMBER:float NUMBER:double INTEGER:int32 INTEGER:int64"), t+":"+f) {
				r.say(path, "format %s", f)
			}
			r.needed(path, s)
		})
	}
	return r.list
}

type refusals struct{ list []string }

func (r *refusals) say(path, format string, args ...any) {
	r.list = append(r.list, path+": "+fmt.Sprintf(format, args...))
}

func (r *refusals) root(s node, typ string, without ...string) {
	if s["type"] != typ {
		r.say("", "root type %v", s["type"])
	}
	if _, ok := s["properties"].(node); !ok {
		r.say("", "root without properties")
	}
	for _, k := range without {
		if _, ok := s[k]; ok {
			r.say("", "%s at the root", k)
		}
	}
}

func (r *refusals) known(path string, s node, known []string) {
	for k := range s {
		if !slices.Contains(known, k) {
			r.say(path, "keyword %s", k)
		}
	}
}

func (r *refusals) needed(path string, s node) {
	for _, name := range list(s["required"]) {
		if _, ok := sub(s, "properties")[name.(string)]; !ok {
			r.say(path, "%v is required and not defined", name)
		}
	}
}

func (r *refusals) refTop(path string, s, root node) {
	ref, ok := s["$ref"].(string)
	if !ok {
		return
	}
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if _, there := sub(root, "$defs")[name]; !ok || !there {
		r.say(path, "$ref %s", ref)
	}
}

func (r *refusals) items(path string, s node) {
	if _, ok := s["items"].(node); is(s, "array") && !ok {
		r.say(path, "array without items")
	}
}

func (r *refusals) properties(path string, s node) {
	if _, ok := s["properties"].(node); is(s, "object") && !ok {
		r.say(path, "object without properties")
	}
}

// each visits every schema. A value in place of a schema is a fault.
func (r *refusals) each(v any, path string, f func(string, node)) {
	s, ok := v.(node)
	if !ok {
		if _, isBool := v.(bool); !isBool {
			r.say(path, "%v is no schema", v)
		}
		return
	}
	f(path, s)
	for _, k := range []string{"items", "not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"} {
		if x, ok := s[k]; ok {
			r.each(x, path+"/"+k, f)
		}
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		for i, x := range list(s[k]) {
			r.each(x, fmt.Sprintf("%s/%s/%d", path, k, i), f)
		}
	}
	for _, k := range []string{"properties", "patternProperties", "$defs", "dependentSchemas"} {
		for name, x := range sub(s, k) {
			r.each(x, path+"/"+k+"/"+name, f)
		}
	}
}

func sub(s node, key string) node { m, _ := s[key].(node); return m }

func list(v any) []any { l, _ := v.([]any); return l }

func is(s node, typ string) bool {
	return s["type"] == typ || slices.Contains(list(s["type"]), any(typ))
}

// takes reports whether v matches a schema of a strict dialect, as the enforcing provider
// interprets it.
func takes(s, root node, v any) bool {
	if ref, ok := s["$ref"].(string); ok {
		return takes(sub(sub(root, "$defs"), strings.TrimPrefix(ref, "#/$defs/")), root, v)
	}
	if forms := list(s["anyOf"]); forms != nil {
		return slices.ContainsFunc(forms, func(f any) bool { return takes(f.(node), root, v) })
	}
	if v == nil && s["nullable"] == true {
		return true
	}
	types := list(s["type"])
	if t, ok := s["type"].(string); ok {
		types = []any{t}
	}
	if !slices.ContainsFunc(types, func(t any) bool { return hasType(v, strings.ToLower(t.(string))) }) {
		return false
	}
	if values := list(s["enum"]); values != nil &&
		!slices.ContainsFunc(values, func(x any) bool { return fmt.Sprintf("%T%v", x, x) == fmt.Sprintf("%T%v", v, v) }) {
		return false
	}
	num := func(k string) (float64, bool) { f, ok := s[k].(float64); return f, ok }
	within := func(n float64, lo, hi string) bool {
		if m, ok := num(lo); ok && n < m {
			return false
		}
		m, ok := num(hi)
		return !ok || n <= m
	}
	switch v := v.(type) {
	case string:
		if p, ok := s["pattern"].(string); ok {
			if re, err := regexp.Compile(p); err == nil && !re.MatchString(v) {
				return false
			}
		}
		if f, ok := s["format"].(string); ok {
			if one, err := compiledOnce([]byte(`{"format":"` + f + `"}`)); err == nil && one.Validate(v) != nil {
				return false
			}
		}
		return within(float64(utf8.RuneCountInString(v)), "minLength", "maxLength")
	case float64:
		if m, ok := num("exclusiveMinimum"); ok && v <= m {
			return false
		}
		if m, ok := num("exclusiveMaximum"); ok && v >= m {
			return false
		}
		if m, ok := num("multipleOf"); ok && math.Abs(math.Remainder(v, m)) > 1e-9 {
			return false
		}
		return within(v, "minimum", "maximum")
	case []any:
		for _, x := range v {
			if items, ok := s["items"].(node); ok && !takes(items, root, x) {
				return false
			}
		}
		return within(float64(len(v)), "minItems", "maxItems")
	case node:
		props := sub(s, "properties")
		for _, name := range list(s["required"]) {
			if _, ok := v[name.(string)]; !ok {
				return false
			}
		}
		for k, x := range v {
			p, ok := props[k].(node)
			if !ok && s["additionalProperties"] == false || ok && !takes(p, root, x) {
				return false
			}
		}
		return within(float64(len(v)), "minProperties", "maxProperties")
	}
	return true
}

func hasType(v any, t string) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case float64:
		return t == "number" || t == "integer" && v == math.Trunc(v)
	case []any:
		return t == "array"
	case node:
		return t == "object"
	}
	return false
}

// spellOut converts v for a model that cannot leave out a field: null stands for an absent field.
func spellOut(s, root node, v any) any {
	if ref, ok := s["$ref"].(string); ok {
		return spellOut(sub(sub(root, "$defs"), strings.TrimPrefix(ref, "#/$defs/")), root, v)
	}
	for _, f := range list(s["anyOf"]) {
		if w := spellOut(f.(node), root, v); takes(f.(node), root, w) {
			return w
		}
	}
	switch v := v.(type) {
	case node:
		out := node{}
		for k, x := range v {
			if p, ok := sub(s, "properties")[k].(node); ok {
				x = spellOut(p, root, x)
			}
			out[k] = x
		}
		for k := range sub(s, "properties") {
			if _, ok := out[k]; !ok && slices.Contains(list(s["required"]), any(k)) {
				out[k] = nil
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			if items, ok := s["items"].(node); ok {
				x = spellOut(items, root, x)
			}
			out[i] = x
		}
		return out
	}
	return v
}

// enforced reports whether the provider enforces the output.
func enforced(dialect string) bool {
	return dialect == "gemini" || strings.HasSuffix(dialect, "-strict")
}
