package dialect

import (
	"encoding/json"
	"slices"
	"strings"
)

var jsonTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// foreignTypes maps type names of other languages, in lower case, to JSON types.
var foreignTypes = foreignNames(map[string]string{
	"string": "str text char character charsequence varchar enum date datetime date-time time timestamp " +
		"uuid guid uri url email path bytes byte[] password regex literal",
	"number": "float float32 float64 double decimal bigdecimal real numeric num",
	"integer": "int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 long short byte bigint " +
		"biginteger",
	"boolean": "bool",
	"object": "dict dictionary map hashmap hashtable treemap record struct json mapping typeddict " +
		"jsonobject",
	"array": "list arraylist linkedlist tuple set hashset frozenset vector vec slice sequence iterable " +
		"collection queue stack",
	"null": "none nil nonetype void undefined",
	"":     "any mixed unknown variant dynamic type_unspecified anything value",
})

// foreignNames returns the JSON type of each name. An empty type means any.
func foreignNames(names map[string]string) map[string]string {
	types := map[string]string{}
	for t, list := range names {
		for _, name := range strings.Fields(list) {
			types[name] = t
		}
	}
	return types
}

// typeName converts a type name of another language. It returns nil if the name is unknown. A
// result without "type" means any type.
func (n *normalizer) typeName(s string, depth int) *object {
	s = strings.TrimSpace(s)
	if depth > 8 || s == "" {
		return nil
	}
	low := strings.ToLower(s)
	if slices.Contains(jsonTypes, low) {
		return schemaOf("", "type", low)
	}
	if t, ok := foreignTypes[low]; ok {
		if t == "" {
			return newObject("")
		}
		return schemaOf("", "type", t)
	}

	// In the order in which they bind: "int[]?" is an array or null.
	if inner, ok := strings.CutSuffix(low, "?"); ok {
		return orNull(n.typeName(inner, depth+1))
	}
	if inner, ok := strings.CutSuffix(low, "[]"); ok {
		return arrayOf(n.typeName(inner, depth+1))
	}
	if parts := split(low, '|'); len(parts) > 1 {
		return n.union(parts, depth)
	}

	base, args, ok := generic(low)
	if !ok {
		return nil
	}
	return n.generic(base, args, depth)
}

// generic converts a type with arguments, such as list[int].
func (n *normalizer) generic(base string, args []string, depth int) *object {
	switch base {
	case "optional", "nullable":
		if len(args) == 1 {
			return orNull(n.typeName(args[0], depth+1))
		}
		return nil
	case "union":
		return n.union(args, depth)
	case "tuple":
		return schemaOf("", "type", "array")
	}

	switch foreignTypes[base] {
	case "array":
		if len(args) == 1 {
			return arrayOf(n.typeName(args[0], depth+1))
		}
		return schemaOf("", "type", "array")

	case "object":
		o := schemaOf("", "type", "object")
		if len(args) == 2 {
			if v := n.typeName(args[1], depth+1); v != nil && len(v.keys) > 0 {
				o.set("additionalProperties", v)
			}
		}
		return o
	}

	if base == "array" && len(args) == 1 {
		return arrayOf(n.typeName(args[0], depth+1))
	}
	return nil
}

func (n *normalizer) union(parts []string, depth int) *object {
	var names []any
	for _, p := range parts {
		o := n.typeName(p, depth+1)
		if o == nil || o.text("type") == "" {
			return newObject("")
		}
		if t := o.get("type"); !slices.Contains(names, t) {
			names = append(names, t)
		}
	}
	if len(names) == 1 {
		return schemaOf("", "type", names[0])
	}
	return schemaOf("", "type", names)
}

func orNull(o *object) *object {
	if o != nil && o.text("type") != "" && o.text("type") != "null" {
		o.set("type", []any{o.text("type"), "null"})
	}
	return o
}

func arrayOf(item *object) *object {
	o := schemaOf("", "type", "array")
	if item != nil && len(item.keys) > 0 {
		o.set("items", item)
	}
	return o
}

// generic parses list<int>, list[int] and list(int).
func generic(s string) (base string, args []string, ok bool) {
	i := strings.IndexAny(s, "<[(")
	if i <= 0 || !strings.ContainsRune(">])", rune(s[len(s)-1])) {
		return "", nil, false
	}
	return strings.TrimSpace(s[:i]), split(s[i+1:len(s)-1], ','), true
}

// split splits s at sep outside brackets.
func split(s string, sep byte) []string {
	var out []string
	depth := 0
	from := 0
	for i := range len(s) {
		switch s[i] {
		case '<', '[', '(':
			depth++
		case '>', ']', ')':
			depth--
		case sep:
			if depth == 0 {
				out, from = append(out, s[from:i]), i+1
			}
		}
	}
	return append(out, s[from:])
}

// protoType converts a number of the type enumeration in Google's protocol buffers.
func protoType(n json.Number) *object {
	names := map[json.Number]string{"1": "string", "2": "number", "3": "integer", "4": "boolean", "5": "array", "6": "object", "7": "null"}
	if names[n] == "" {
		return nil
	}
	return schemaOf("", "type", names[n])
}
