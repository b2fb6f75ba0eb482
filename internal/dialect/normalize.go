package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
)

// Change is a part that Normalize has changed.
type Change struct {
	Path string `json:"path"` // JSON Pointer into the original
	Text string `json:"text"` // "type \"dict\" is read as object"
}

// String returns "path: text".
func (c Change) String() string {
	if c.Path == "" {
		return "/: " + c.Text
	}
	return c.Path + ": " + c.Text
}

// Normalize converts a description of arguments that is meant as JSON Schema to JSON Schema of
// draft 2020-12. It converts types of programming languages and of OpenAPI (dict, float,
// ArrayList<String>, OBJECT, nullable), lists that are null or an empty array, required: true at a
// property, an enum of which no value has the stated type, and the forms of older drafts. Valid
// JSON Schema of 2020-12 is returned unchanged, on one line, without Changes; only the type of the
// arguments becomes object, where it is a list with object. Use the result as the tool's input:
// calls are validated against it.
//
// It returns an error if the document is not a JSON object.
func Normalize(schema json.RawMessage) (json.RawMessage, []Change, error) {
	v, err := parse(schema)
	if err != nil {
		return nil, nil, err
	}
	o, ok := v.(*object)
	if !ok {
		return nil, nil, fmt.Errorf("a schema of arguments is an object, got %s", show(v))
	}
	n := normalizer{meant: true}
	n.schema(o)
	n.root(o)
	return appendJSON(nil, o), n.changes, nil
}

// root converts what the schema says of the arguments as a whole: they are an object, so that other
// types in a list have no meaning.
func (n *normalizer) root(o *object) {
	list, _ := o.vals["type"].([]any)
	if slices.Contains(list, any("object")) {
		n.change(o.ptr, "type: %s is read as object, since arguments are one", clip(show(o.vals["type"]), 40))
		o.set("type", "object")
	}
}

// normalizer changes a tree in place.
type normalizer struct {
	// also convert what JSON Schema reads differently: OpenAPI's nullable, enum values of another
	// type
	meant   bool
	old     bool // the document has a draft in which siblings of $ref have no effect
	changes []Change
}

func (n *normalizer) change(ptr, format string, args ...any) {
	n.changes = append(n.changes, Change{ptr, fmt.Sprintf(format, args...)})
}

// The keywords, by the kind of their values.
var (
	oneSchema = []string{
		"items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains",
		"propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema",
	}
	listSchemas = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	mapSchemas  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

// each calls f for every schema directly inside o, and replaces it by the result.
func each(o *object, f func(any) any) {
	for _, k := range o.keys {
		switch v := o.vals[k].(type) {
		case *object:
			switch {
			case slices.Contains(oneSchema, k):
				o.vals[k] = f(v)
			case slices.Contains(mapSchemas, k):
				for _, name := range v.keys {
					v.vals[name] = f(v.vals[name])
				}
			}

		case bool, string: // a string is the name of a type, in a schema that is no JSON Schema
			if slices.Contains(oneSchema, k) {
				o.vals[k] = f(v)
			}

		case []any:
			if slices.Contains(listSchemas, k) {
				for i := range v {
					v[i] = f(v[i])
				}
			}
		}
	}
}

// schema converts the schema v and the schemas in it.
func (n *normalizer) schema(v any) any {
	o, ok := v.(*object)
	if !ok {
		return n.noObject(v)
	}

	// Drafts first: the steps after it read only the keywords of draft 2020-12.
	n.drafts(o)
	n.empties(o)
	n.types(o)
	n.required(o)

	for _, k := range []string{"items", "type", "exclusiveMinimum", "exclusiveMaximum", "dependencies"} {
		if o.has(k) && senseless(k, o.get(k)) {
			v := o.get(k)
			n.change(o.ptr, "%s: %s has no meaning and is left out", k, clip(show(v), 40))
			o.remove(k)
		}
	}
	each(o, n.schema)
	return o
}

// noObject converts a schema that is not an object.
func (n *normalizer) noObject(v any) any {
	switch v := v.(type) {
	case bool:
		return v
	case string: // "name": "string"
		t := n.typeName(v, 0)
		if t == nil {
			return true
		}
		n.change("", "the schema %q is read as a type", v)
		return t
	}
	n.change("", "%s is not a schema; anything is allowed there", clip(show(v), 40))
	return true
}

// empties removes values by which programs express "none".
func (n *normalizer) empties(o *object) {
	for _, k := range slices.Clone(o.keys) {
		v := o.vals[k]
		list, isList := v.([]any)
		emptyList := isList && len(list) == 0
		none := v == nil || emptyList
		switch {
		case none && slices.Contains(mapSchemas, k):
			n.change(o.ptr, "%s: %s is read as {}", k, show(v))
			o.set(k, newObject(join(o.ptr, k)))
		case v == nil && slices.Contains(anyValue, k):
			// null is a value there
		case v == nil:
			n.change(o.ptr, "%s: null is left out", k)
			o.remove(k)
		case emptyList && n.unfillable(k):
			n.change(o.ptr, "%s: [] is left out", k)
			o.remove(k)
		case slices.Contains(olderForms, k):
			// converted elsewhere
		case !shaped(k, v):
			n.change(o.ptr, "%s: %s has no meaning and is left out", k, clip(show(v), 40))
			o.remove(k)
		}
	}
}

// required converts required: true at a property, and invalid required lists.
func (n *normalizer) required(o *object) {
	need := o.words("required")
	switch v := o.get("required").(type) {
	case nil:
	case bool:
		n.change(o.ptr, "required: %v is read as a statement about the property itself", v)
		o.remove("required")
	case []any:
		if len(need) != len(v) {
			n.change(o.ptr, "required: %s is read as the names in it", clip(show(v), 40))
			o.set("required", anyList(need))
		}
	default:
		n.change(o.ptr, "required: %s is not a list and is left out", clip(show(v), 40))
		o.remove("required")
	}

	props := o.object("properties")
	if props == nil {
		return
	}
	stated := len(need)
	for _, name := range props.keys {
		p := props.object(name)
		if p != nil && p.get("required") == true && !slices.Contains(need, name) {
			need = append(need, name)
		}
	}
	if len(need) > stated {
		o.set("required", anyList(need))
	}
}

func anyList(words []string) []any {
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = w
	}
	return list
}

// types converts a type that is not one of the seven types of JSON Schema, and nullable.
func (n *normalizer) types(o *object) {
	switch t := o.get("type").(type) {
	case string:
		if !slices.Contains(jsonTypes, t) {
			n.setType(o, t, n.typeName(t, 0))
		}
	case json.Number:
		n.setType(o, show(t), protoType(t))
	case []any:
		var names []any
		clean := true
		for _, v := range t {
			s, _ := v.(string)
			if slices.Contains(jsonTypes, s) {
				if !slices.Contains(names, v) {
					names = append(names, v)
				}
				continue
			}
			clean = false
			sub := n.typeName(s, 0)
			if sub == nil || sub.text("type") == "" {
				continue
			}
			if !slices.Contains(names, any(sub.text("type"))) {
				names = append(names, sub.text("type"))
			}
		}
		if !clean {
			n.change(o.ptr, "type %s is read as %s", show(t), show(names))
			if names == nil {
				o.remove("type")
			} else {
				o.set("type", names)
			}
		}
	case *object:
		// In practice, a field named "type" without properties is a mistake: its schema is unknown.
		n.change(o.ptr, "type is not the name of a type and is left out")
		o.remove("type")
	}
	if n.meant {
		n.values(o)
		n.null(o)
	}
}

// unfillable reports whether an empty list of the keyword k would match nothing, or is not allowed.
func (n *normalizer) unfillable(k string) bool {
	return k == "anyOf" || k == "oneOf" || k == "allOf" || k == "enum" && n.meant
}

// numberOf reports whether the text of a number is a number of the type t.
func numberOf(t, text string) bool {
	return t == "number" || t == "integer" && typeOf(json.Number(text)) == "integer"
}

// values converts an enum of which no value has the stated type, so that nothing would match:
// numbers written as strings for an integer, or strings meant for the items of an array.
func (n *normalizer) values(o *object) {
	list := o.list("enum")
	t := o.text("type")
	if t == "" || list == nil {
		return
	}
	to := make([]any, 0, len(list))
	for _, v := range list {
		meant, ok := valueAs(t, v)
		if !ok {
			return
		}
		to = append(to, meant)
	}

	if t != "array" {
		n.change(o.ptr, "enum %s is read as %s, since the type is %s", clip(show(list), 60), clip(show(to), 60), t)
		o.set("enum", to)
		return
	}

	items := o.object("items")
	if items == nil && !o.has("items") {
		items = newObject(join(o.ptr, "items"))
		o.set("items", items)
	}
	if items == nil || items.has("enum") {
		return
	}
	n.change(o.ptr, "enum %s is read as of the items", clip(show(list), 60))
	o.remove("enum")
	items.set("enum", to)
}

// valueAs returns the value of an enum that is meant by v, which is not of the type t. For an
// array, that is a value of its items. It returns false if v is of the type, or nothing is meant.
func valueAs(t string, v any) (any, bool) {
	s, isText := v.(string)
	number, isNumber := v.(json.Number)
	switch {
	case v == nil:
		return v, true
	case t == "array" && typeOf(v) != "array":
		return v, true
	case isText && json.Valid([]byte(s)) && numberOf(t, s):
		_, ok := rat(json.Number(s))
		return json.Number(s), ok
	case t == "boolean" && (s == "true" || s == "false"):
		return s == "true", true
	case t == "string" && isNumber:
		return string(number), true
	}
	return nil, false
}

// null converts OpenAPI's nullable.
func (n *normalizer) null(o *object) {
	b, ok := o.get("nullable").(bool)
	if !ok {
		return
	}
	n.change(o.ptr, "nullable: %v is rewritten in type", b)
	o.remove("nullable")
	if !b {
		return
	}

	// A value must satisfy each keyword, so that each of them gets null.
	switch t := o.get("type").(type) {
	case string:
		if t != "null" {
			o.set("type", []any{t, "null"})
		}
	case []any:
		if !slices.Contains(t, any("null")) {
			o.set("type", append(slices.Clone(t), "null"))
		}
	}
	if list := o.list("enum"); list != nil && !slices.Contains(list, nil) {
		o.set("enum", append(slices.Clone(list), nil))
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if list := o.list(k); list != nil {
			o.set(k, append(slices.Clone(list), schemaOf(o.ptr, "type", "null")))
		}
	}
}

// setType replaces a type by sub. Other keywords of sub (the items of a list) are added if the
// schema does not have them.
func (n *normalizer) setType(o *object, was string, sub *object) {
	if sub == nil {
		n.change(o.ptr, "type %q is not known; anything is allowed there", was)
		o.remove("type")
		return
	}
	if !sub.has("type") {
		n.change(o.ptr, "type %q is read as any type", was)
		o.remove("type")
	} else {
		n.change(o.ptr, "type %q is read as %s", was, strings.Trim(show(sub.get("type")), `"`))
	}
	for _, k := range sub.keys {
		if k == "type" || !o.has(k) {
			o.set(k, sub.vals[k])
		}
	}
}

// clip shortens s to n bytes at the start of a rune.
func clip(s string, n int) string { return text.Clip(s, n) }
