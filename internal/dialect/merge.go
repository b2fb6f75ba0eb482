package dialect

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
)

// annotations are keywords that only explain.
var annotations = []string{
	"title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "$comment",
}

// scaffolding lists keywords that name and contain schemas. They are not needed after references
// are resolved.
var scaffolding = []string{
	"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions",
}

// vocabulary lists all other keywords of JSON Schema. A word in none of the three lists is not a
// keyword.
var vocabulary = []string{
	"type", "enum", "const",
	"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
	"maxLength", "minLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema",
	"maxItems", "minItems", "uniqueItems", "maxContains", "minContains",
	"prefixItems", "items", "contains", "unevaluatedItems",
	"maxProperties", "minProperties", "required", "dependentRequired", "dependentSchemas",
	"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames",
	"if", "then", "else", "allOf", "anyOf", "oneOf", "not",
	"$ref", "$dynamicRef", "$recursiveRef",
}

// isKeyword reports whether k is a keyword of JSON Schema, other than scaffolding.
func isKeyword(k string) bool {
	return slices.Contains(vocabulary, k) || slices.Contains(annotations, k)
}

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
	if a.object("properties") != nil || b.object("properties") != nil {
		out.set("properties", bothProperties(a, b))
	}

	for _, k := range b.keys {
		v := b.vals[k]
		switch {
		case k == "properties":
		case k == "unevaluatedProperties" || k == "unevaluatedItems":
			left.set(k, v) // it depends on the keywords of b, not of a
		case !out.has(k):
			out.set(k, v)
		case slices.Contains(annotations, k) || slices.Contains(scaffolding, k):
			// The schema a explains itself.
		case equal(out.vals[k], v):
		default:
			if x, ok := bothValues(k, a, b, out.vals[k], v); ok {
				out.set(k, x)
			} else {
				left.set(k, v)
			}
		}
	}

	if len(left.keys) == 0 {
		return out
	}
	// if and then belong together: separated, they have another meaning.
	if b.has("if") {
		for _, k := range []string{"if", "then", "else"} {
			if b.has(k) {
				left.set(k, b.vals[k])
			}
		}
	}
	out.set("allOf", append(slices.Clone(out.list("allOf")), left))
	return out
}

// bothValues combines u and v, the values of the keyword k in the schemas a and b. It returns false
// if no value of k says the same as both.
func bothValues(k string, a, b *object, u, v any) (any, bool) {
	switch k {
	case "type":
		t := bothTypes(u, v)
		if len(t) == 1 {
			return t[0], true
		}
		return t, true

	case "required", "enum", "allOf":
		return bothLists(k, u, v), true

	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return bound(u, v, 1), true
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return bound(u, v, -1), true
	case "uniqueItems":
		return u == true || v == true, true

	// What items and contains apply to depends on a neighbour.
	case "items":
		if a.has("prefixItems") || b.has("prefixItems") {
			return nil, false
		}
	case "contains":
		if a.has("minContains") {
			return nil, false
		}
	case "additionalProperties", "propertyNames":
	default:
		return nil, false
	}
	return schemaOf(b.ptr, "allOf", []any{u, v}), true
}

// bothLists combines two values of a keyword whose value is a list. Another value counts as an
// empty list.
func bothLists(k string, u, v any) []any {
	first, _ := u.([]any)
	second, _ := v.([]any)
	out := slices.Clone(first)
	switch k {
	case "required":
		for _, name := range second {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	case "enum":
		out = slices.DeleteFunc(out, func(x any) bool { return !containsValue(second, x) })
	case "allOf":
		out = append(out, second...)
	}
	return out
}

// containsValue reports whether a list contains a value that is equal in JSON.
func containsValue(list []any, v any) bool {
	return slices.ContainsFunc(list, func(u any) bool { return equal(u, v) })
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
			also := func(more any) any {
				return schemaOf(ptrOf(v, join(out.ptr, name)), "allOf", []any{v, more})
			}
			switch {
			case o != nil && o.has(name):
				if !equal(v, o.vals[name]) {
					v = also(o.vals[name])
				}
			case other.has("patternProperties"):
				// A pattern that matches the name would exempt it from additionalProperties.
			case other.has("additionalProperties") && other.get("additionalProperties") != true:
				v = also(other.get("additionalProperties"))
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

	// The value of a large exponent would have as many digits.
	f, err := n.Float64()
	size := math.Abs(f)
	isTiny := size != 0 && size < 1e-100
	if err != nil || size > 1e100 || isTiny {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}
