package dialect

import (
	"encoding/json"
	"math/big"
	"slices"
)

// annotations are keywords that only explain.
var annotations = []string{"title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}

// scaffolding lists keywords that name and contain schemas. They are not needed after references
// are resolved.
var scaffolding = []string{"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions"}

// vocabulary lists all other keywords of JSON Schema. A word in none of the three lists is not a
// keyword.
var vocabulary = []string{"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
	"maxItems", "minItems", "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties", "required", "dependentRequired", "format",
	"contentEncoding", "contentMediaType", "contentSchema", "prefixItems", "items", "contains", "additionalProperties", "properties", "patternProperties",
	"dependentSchemas", "propertyNames", "if", "then", "else", "allOf", "anyOf", "oneOf", "not", "unevaluatedItems", "unevaluatedProperties",
	"$ref", "$dynamicRef", "$recursiveRef"}

// onlyAnnotated reports whether o contains only the given keywords, annotations and definitions.
func onlyAnnotated(o *object, beside ...string) bool {
	return !slices.ContainsFunc(o.keys, func(k string) bool {
		return slices.Contains(vocabulary, k) && !slices.Contains(beside, k)
	})
}

// both returns a schema that accepts exactly the values that a and b both accept. It does not
// examine nested schemas: if both have one in the same place, the result has an allOf of the two.
// Keywords that cannot be combined stay in its allOf.
func both(a, b *object) *object {
	out := a.clone()
	left := newObject(b.ptr) // keywords that could not be combined
	aProps, bProps := a.object("properties"), b.object("properties")
	if aProps != nil || bProps != nil {
		out.set("properties", bothProperties(a, b))
	}
	for _, k := range b.keys {
		v := b.vals[k]
		if k == "unevaluatedProperties" || k == "unevaluatedItems" {
			left.set(k, v) // it depends on the keywords of b, not of a
			continue
		}
		if !out.has(k) {
			if k != "properties" {
				out.set(k, v)
			}
			continue
		}
		u := out.vals[k]
		switch {
		case k == "properties" || slices.Contains(annotations, k) || slices.Contains(scaffolding, k):
		case equal(u, v):
		case k == "type":
			if t := bothTypes(u, v); len(t) == 1 {
				out.set(k, t[0])
			} else {
				out.set(k, t)
			}
		case k == "required":
			list := slices.Clone(out.list(k))
			for _, name := range b.list(k) {
				if !slices.Contains(list, name) {
					list = append(list, name)
				}
			}
			out.set(k, list)
		case k == "enum":
			values := b.list(k)
			out.set(k, slices.DeleteFunc(slices.Clone(out.list(k)), func(x any) bool {
				return !slices.ContainsFunc(values, func(y any) bool { return equal(x, y) })
			}))
		case slices.Contains([]string{"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}, k):
			out.set(k, bound(u, v, 1))
		case slices.Contains([]string{"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}, k):
			out.set(k, bound(u, v, -1))
		case k == "uniqueItems":
			out.set(k, u == true || v == true)
		case k == "items" && !a.has("prefixItems") && !b.has("prefixItems"), k == "additionalProperties", k == "contains" && !a.has("minContains"), k == "propertyNames":
			out.set(k, schemaOf(b.ptr, "allOf", []any{u, v}))
		case k == "allOf":
			out.set(k, append(slices.Clone(out.list(k)), b.list(k)...))
		default:
			left.set(k, v)
		}
	}
	if len(left.keys) > 0 {
		// if and then belong together: separated, they have another meaning.
		if b.has("if") {
			for _, k := range []string{"if", "then", "else"} {
				if b.has(k) {
					left.set(k, b.vals[k])
				}
			}
		}
		out.set("allOf", append(slices.Clone(out.list("allOf")), left))
	}
	return out
}

// bothProperties combines the properties of two schemas. A property that only one of them names is
// combined with the additionalProperties of the other.
func bothProperties(a, b *object) *object {
	out := newObject(join(b.ptr, "properties"))
	add := func(from, other *object) {
		props := from.object("properties")
		if props == nil {
			return
		}
		for _, name := range props.keys {
			if out.has(name) {
				continue
			}
			v := props.vals[name]
			o := other.object("properties")
			switch {
			case o != nil && o.has(name):
				if !equal(v, o.vals[name]) {
					v = schemaOf(ptrOf(v, join(out.ptr, name)), "allOf", []any{v, o.vals[name]})
				}
			case other.has("additionalProperties") && !other.has("patternProperties") && other.get("additionalProperties") != true:
				v = schemaOf(ptrOf(v, join(out.ptr, name)), "allOf", []any{v, other.get("additionalProperties")})
			}
			out.set(name, v)
		}
	}
	add(a, b)
	add(b, a)
	return out
}

// ptrOf returns the path of v, or the argument or if v has none.
func ptrOf(v any, or string) string {
	if o, ok := v.(*object); ok && o.ptr != "" {
		return o.ptr
	}
	return or
}

func typesOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func bothTypes(a, b any) []any {
	out := []any{}
	for _, t := range typesOf(a) {
		for _, u := range typesOf(b) {
			switch {
			case t == u, t == "integer" && u == "number":
				if !slices.Contains(out, t) {
					out = append(out, t)
				}
			case t == "number" && u == "integer":
				if !slices.Contains(out, u) {
					out = append(out, u)
				}
			}
		}
	}
	return out
}

// bound returns the greater of two numbers, or the smaller one if sign is negative.
func bound(a, b any, sign int) any {
	x, ok1 := rat(a)
	y, ok2 := rat(b)
	if ok1 && ok2 && x.Cmp(y)*sign < 0 {
		return b
	}
	return a
}

// rat returns the value of a number. Extremely long numbers are not parsed.
func rat(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 64 {
		return nil, false
	}
	if f, err := n.Float64(); err != nil || f > 1e100 || f < -1e100 || f != 0 && f < 1e-100 && f > -1e-100 {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}
