package dialect

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
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
// JSON Schema of 2020-12 is returned unchanged, on one line, without Changes. Use the result as the
// tool's input: calls are validated against it.
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
	return appendJSON(nil, o), n.changes, nil
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
	oneSchema   = []string{"items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
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
		case bool, string:
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

func (n *normalizer) schema(v any) any {
	o, ok := v.(*object)
	if !ok {
		switch v := v.(type) {
		case bool:
			return v
		case string: // "name": "string"
			t := n.typeName(v, 0)
			if t == nil {
				return true
			}
			n.changes = append(n.changes, Change{"", fmt.Sprintf("the schema %q is read as a type", v)})
			return t
		}
		n.changes = append(n.changes, Change{"", fmt.Sprintf("%s is not a schema; anything is allowed there", clip(show(v), 40))})
		return true
	}
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

// drafts converts keywords of older drafts with the same meaning.
func (n *normalizer) drafts(o *object) {
	if s := o.text("$schema"); s != "" && !strings.Contains(s, "2020-12") {
		n.old = n.old || strings.Contains(s, "draft-0") && !strings.Contains(s, "2019")
		n.change(o.ptr, "$schema %s is left out; the rest is read as draft 2020-12", s)
		o.remove("$schema")
	}
	if n.old && o.text("$ref") != "" && !onlyAnnotated(o, "$ref") {
		n.change(o.ptr, "keywords next to $ref have no meaning in this draft and are left out")
		for _, k := range slices.Clone(o.keys) {
			if k != "$ref" && slices.Contains(vocabulary, k) {
				o.remove(k)
			}
		}
	}
	for _, side := range []string{"inimum", "aximum"} {
		ex := "exclusiveM" + side
		bound := "m" + side
		if b, ok := o.get(ex).(bool); ok {
			n.change(o.ptr, "%s: %v is read as of draft 4", ex, b)
			v := o.get(bound)
			o.remove(ex)
			if b && v != nil {
				o.remove(bound)
				o.set(ex, v)
			}
		}
	}
	if list, ok := o.get("items").([]any); ok {
		n.change(o.ptr, "items as a list is rewritten as prefixItems")
		rest, more := o.get("additionalItems"), o.has("additionalItems")
		o.remove("items", "additionalItems")
		if len(list) > 0 {
			o.set("prefixItems", list)
		}
		if more {
			o.set("items", rest)
		}
	} else if o.has("additionalItems") {
		o.remove("additionalItems") // it has no meaning without a list
	}
	if deps := o.object("dependencies"); deps != nil {
		n.change(o.ptr, "dependencies is rewritten as dependentRequired and dependentSchemas")
		names, schemas := newObject(o.ptr), newObject(o.ptr)
		for _, k := range deps.keys {
			if _, ok := deps.vals[k].([]any); ok {
				names.set(k, deps.vals[k])
			} else {
				schemas.set(k, deps.vals[k])
			}
		}
		o.remove("dependencies")
		if len(names.keys) > 0 {
			o.set("dependentRequired", names)
		}
		if len(schemas.keys) > 0 {
			o.set("dependentSchemas", schemas)
		}
	}
}

// empties removes values by which programs express "none".
func (n *normalizer) empties(o *object) {
	for _, k := range slices.Clone(o.keys) {
		v := o.vals[k]
		list, isList := v.([]any)
		switch {
		case slices.Contains(mapSchemas, k) && (v == nil || isList && len(list) == 0):
			n.change(o.ptr, "%s: %s is read as {}", k, show(v))
			o.set(k, newObject(join(o.ptr, k)))
		case v == nil && k != "default" && k != "const" && k != "example":
			n.change(o.ptr, "%s: null is left out", k)
			o.remove(k)
		case isList && len(list) == 0 && n.unfillable(k):
			n.change(o.ptr, "%s: [] is left out", k)
			o.remove(k)
		case slices.Contains([]string{"items", "type", "required", "dependencies", "exclusiveMinimum", "exclusiveMaximum"}, k):
			// older and foreign forms are converted elsewhere
		case !shaped(k, v):
			n.change(o.ptr, "%s: %s has no meaning and is left out", k, clip(show(v), 40))
			o.remove(k)
		}
	}
}

// shaped reports whether v has the kind that the keyword requires.
func shaped(keyword string, v any) bool {
	_, isObject := v.(*object)
	_, isList := v.([]any)
	_, isNumber := v.(json.Number)
	_, isBool := v.(bool)
	switch {
	case slices.Contains(mapSchemas, keyword), keyword == "dependentRequired":
		return isObject
	case slices.Contains(listSchemas, keyword), keyword == "enum", keyword == "required":
		return isList
	case slices.Contains(oneSchema, keyword):
		return isObject || isBool || isText(v) || keyword == "items"
	case slices.Contains(counts, keyword):
		return isNumber && isCount(v)
	case keyword == "multipleOf":
		r, ok := rat(v)
		return isNumber && (!ok || r.Sign() > 0)
	case strings.HasPrefix(keyword, "min"), strings.HasPrefix(keyword, "max"), strings.HasPrefix(keyword, "exclusiveM"):
		return isNumber || !slices.Contains(vocabulary, keyword)
	case slices.Contains([]string{"uniqueItems", "deprecated", "readOnly", "writeOnly"}, keyword):
		return isBool
	case slices.Contains([]string{"title", "description", "pattern", "format", "$ref", "$dynamicRef", "$recursiveRef", "$schema", "contentEncoding", "contentMediaType", "$comment"}, keyword):
		return isText(v)
	case keyword == "$anchor", keyword == "$dynamicAnchor":
		name, _ := v.(string)
		return anchorName.MatchString(name)
	case keyword == "$id":
		address, _ := v.(string)
		_, err := url.Parse(address)
		return isText(v) && err == nil && !strings.Contains(address, " ")
	case keyword == "examples":
		return isList
	}
	return true
}

// anchorName matches the values of $anchor.
var anchorName = regexp.MustCompile(`^[A-Za-z_][-A-Za-z0-9._]*$`)

// counts are the keywords whose value is a number of things.
var counts = strings.Fields("minLength maxLength minItems maxItems minContains maxContains minProperties maxProperties")

// isCount reports whether v is a whole number that is not negative.
func isCount(v any) bool {
	r, ok := rat(v)
	return !ok || r.IsInt() && r.Sign() >= 0
}

func isList(v any) bool { _, ok := v.([]any); return ok }

func isSchema(v any) bool {
	switch v.(type) {
	case *object, bool, string:
		return true
	}
	return false
}

func isText(v any) bool { _, ok := v.(string); return ok }

// required converts required: true at a property, and invalid required lists.
func (n *normalizer) required(o *object) {
	need := o.words("required")
	if v := o.get("required"); v != nil {
		if _, ok := v.([]any); !ok {
			if b, ok := v.(bool); ok {
				n.change(o.ptr, "required: %v is read as a statement about the property itself", b)
			} else {
				n.change(o.ptr, "required: %s is not a list and is left out", clip(show(v), 40))
			}
			o.remove("required")
		} else if list := o.list("required"); len(need) != len(list) {
			n.change(o.ptr, "required: %s is read as the names in it", clip(show(list), 40))
			o.set("required", anyList(need))
		}
	}
	props := o.object("properties")
	if props == nil {
		return
	}
	more := false
	for _, name := range props.keys {
		if p, ok := props.vals[name].(*object); ok && p.get("required") == true && !slices.Contains(need, name) {
			need, more = append(need, name), true
		}
	}
	if more {
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
			if sub := n.typeName(s, 0); sub != nil && sub.text("type") != "" && !slices.Contains(names, any(sub.text("type"))) {
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

// senseless reports whether v, the value of a keyword that has been converted from its older and
// foreign forms, still has no form of JSON Schema.
func senseless(k string, v any) bool {
	switch k {
	case "type":
		return !isText(v) && !isList(v)
	case "items":
		return !isSchema(v)
	case "exclusiveMinimum", "exclusiveMaximum":
		return !shaped(k, v)
	}
	return k == "dependencies"
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
	list, t := o.list("enum"), o.text("type")
	if t == "" || list == nil {
		return
	}
	to := make([]any, 0, len(list))
	for _, v := range list {
		s, isText := v.(string)
		num, isNumber := v.(json.Number)
		switch {
		case v == nil:
			to = append(to, v)
		case t == "array" && typeOf(v) != "array":
			to = append(to, v)
		case isText && json.Valid([]byte(s)) && numberOf(t, s):
			if _, ok := rat(json.Number(s)); !ok {
				return
			}
			to = append(to, json.Number(s))
		case t == "boolean" && (s == "true" || s == "false"):
			to = append(to, s == "true")
		case t == "string" && isNumber:
			to = append(to, string(num))
		default:
			return
		}
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
