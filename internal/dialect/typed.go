package dialect

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// The functions of this file compile schemas for dialects in which every schema has one type and
// only some keywords are known. Their input is a schema with resolved references and joined allOf.
// They return nil if no value matches.

// typed compiles the schema of a value. left are keywords that were lost in joining.
func (c *compiler) typed(w *object, left []*object) (*object, *back) {
	c.nodes++
	if c.nodes > maxNodes {
		c.fail(w.ptr, "$ref", RefsInlined, "with its references inlined it has more than %d parts", maxNodes)
	}
	if c.err != nil {
		return newObject(w.ptr), nil
	}

	var hints []string
	for _, l := range left {
		hints = append(hints, c.lost(l, l.keys, Keywords)...)
	}
	if no, ok := w.get("not").(*object); ok && onlyAnnotated(no) || w.get("not") == true {
		return nil, nil
	}
	for _, k := range w.keys {
		if !isKeyword(k) && !slices.Contains(scaffolding, k) {
			c.lose(w.ptr, k, Note, Keywords, "it is not a keyword of JSON Schema and is not sent")
		}
	}

	// A schema with both keeps anyOf.
	if list := w.list("anyOf"); list != nil {
		if w.has("oneOf") {
			hints = append(hints, c.lost(w, []string{"oneOf"}, Keywords)...)
			w = w.clone()
			w.remove("oneOf")
		}
		return c.alternatives(w, "anyOf", list, hints)
	}
	if list := w.list("oneOf"); list != nil {
		return c.alternatives(w, "oneOf", list, hints)
	}
	hints = append(hints, c.lost(w, []string{"if", "not"}, Keywords)...)

	types, null := c.typesOf(w)
	values, fixed := c.values(w, &types, &null)
	noValue := fixed && len(values) == 0
	noType := types != nil && len(types) == 0
	switch {
	case (noValue || noType) && !null:
		return nil, nil
	case types == nil:
		return c.anything(w, hints)
	case len(types) == 0:
		return c.nothing(w, hints), nil
	case len(types) > 1:
		return c.ofTypes(w, types, values, null, hints)
	}

	out, b := c.ofType(w, types[0], values, hints)
	switch {
	case out != nil && null:
		return c.orNull(out), b
	case out == nil && null:
		return c.nothing(w, hints), nil
	}
	return out, b
}

// ofTypes compiles the schema of values of several types. Each type gets the keywords that apply to
// it.
func (c *compiler) ofTypes(w *object, types []string, values []any, null bool, hints []string) (*object, *back) {
	plain := w.clone()
	plain.remove(annotations...)
	var outs []*object
	var backs []*back
	for _, t := range types {
		own := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return !hasType(v, t) })
		if out, b := c.ofType(plain, t, own, nil); out != nil {
			outs = append(outs, out)
			backs = append(backs, b)
		}
	}
	return c.combine(w, outs, backs, null, hints)
}

// hasType reports whether v has the type t. A whole number is a number, too.
func hasType(v any, t string) bool {
	own := typeOf(v)
	return own == t || own == "integer" && t == "number"
}

// typesOf returns the types that a schema states, and whether null is one of them. number includes
// integer. Nil means that no type is stated and none can be derived.
func (c *compiler) typesOf(w *object) (types []string, null bool) {
	if w.has("type") {
		types = []string{}
		for _, t := range typesOf(w.get("type")) {
			s, _ := t.(string)
			switch {
			case s == "null":
				null = true
			case s == "integer" && slices.Contains(types, "number"):
			case s == "number" && slices.Contains(types, "integer"):
				types[slices.Index(types, "integer")] = "number"
			case slices.Contains(jsonTypes, s) && !slices.Contains(types, s):
				types = append(types, s)
			}
		}
		return types, null
	}
	if w.has("enum") || w.has("const") {
		return nil, false
	}

	for _, meant := range keywordsOfTypes {
		if slices.ContainsFunc(meant.keywords, w.has) {
			types = append(types, meant.name)
		}
	}
	if len(types) > 0 {
		c.lose(w.ptr, "type", Stricter, TypeNeeded, "no type is stated; %s is assumed", strings.Join(types, " or "))
	}
	return types, false
}

// keywordsOfTypes are the keywords that say something about values of one type only. A schema that
// states no type means the types whose keywords it has.
var keywordsOfTypes = []struct {
	name     string
	keywords []string
}{
	{"object", []string{
		"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties",
		"propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
	}},
	{"array", []string{
		"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems",
	}},
	{"string", []string{"pattern", "minLength", "maxLength", "format"}},
	{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
}

// values returns the values that enum and const allow, restricted to the allowed types, and whether
// there is such a keyword. Without a stated type, the types are derived from the values. null is
// removed and reported separately.
func (c *compiler) values(w *object, types *[]string, null *bool) (values []any, fixed bool) {
	list, fixed := w.get("enum").([]any)
	if v, ok := w.vals["const"]; ok {
		if !fixed || containsValue(list, v) {
			list = []any{v}
		} else {
			list = []any{}
		}
		fixed = true
	}
	if !fixed {
		return nil, false
	}

	stated := *types
	nullable := false
	var found []string
	for _, v := range list {
		t := typeOf(v)
		if t == "null" {
			nullable = nullable || stated == nil || *null
			continue
		}
		if t == "integer" && slices.Contains(stated, "number") {
			t = "number"
		}
		if stated != nil && !slices.Contains(stated, t) || containsValue(values, v) {
			continue
		}
		values = append(values, v)
		if !slices.Contains(found, t) {
			found = append(found, t)
		}
	}

	if slices.Contains(found, "number") {
		found = slices.DeleteFunc(found, func(t string) bool { return t == "integer" })
	}
	if found == nil {
		found = []string{}
	}
	*types = found
	*null = nullable
	return values, true
}

// typeOf returns the type of a JSON value: integer for whole numbers.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case *object:
		return "object"
	case json.Number:
		if r, ok := rat(v); ok && r.IsInt() {
			return "integer"
		}
	}
	return "number"
}

// ofType compiles the schema of values of one type.
func (c *compiler) ofType(w *object, t string, values []any, hints []string) (*object, *back) {
	if t == "object" || t == "array" {
		if values != nil {
			hints = append(hints, c.lost(w, []string{"enum", "const"}, Keywords)...)
		}
		if t == "object" {
			return c.object(w, hints)
		}
		return c.array(w, hints)
	}

	out := schemaOf(w.ptr, "type", c.typeName(t))
	switch t {
	case "string":
		hints = append(hints, c.keep(out, w, "pattern", "minLength", "maxLength", "format")...)
	case "integer", "number":
		hints = append(hints, c.keep(out, w,
			"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format")...)
	}
	if values != nil {
		hints = append(hints, c.enum(out, w, t, values)...)
	}
	c.finish(out, w, hints)
	return out, nil
}

func (c *compiler) typeName(t string) string {
	if c.dialect.has(UpperTypes) {
		return strings.ToUpper(t)
	}
	return t
}

// enum emits the values of a scalar type.
func (c *compiler) enum(out, w *object, t string, values []any) (hints []string) {
	keyword := "enum"
	if w.has("const") {
		keyword = "const"
	}
	if !c.dialect.has(StringEnums) {
		out.set("enum", values)
		return nil
	}

	if t == "string" {
		filled := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == "" })
		if len(filled) == len(values) {
			out.set("enum", values)
			return nil
		}
		if len(filled) > 0 {
			c.lose(w.ptr, keyword, Stricter, FilledEnums, "the empty string cannot be one of the values")
			out.set("enum", filled)
			return nil
		}
	}

	hints = c.lost(w, []string{keyword}, StringEnums)
	if t == "boolean" {
		return hints
	}
	for _, v := range values { // at least the range is enforced
		if _, ok := rat(v); !ok {
			return hints
		}
		if lo := out.get("minimum"); lo == nil || v == values[0] {
			out.set("minimum", v)
			out.set("maximum", v)
		} else {
			out.set("minimum", bound(lo, v, -1))
			out.set("maximum", bound(out.get("maximum"), v, 1))
		}
	}
	return hints
}

// keep emits the keywords that the dialect accepts, and reports the others.
func (c *compiler) keep(out, w *object, keywords ...string) (hints []string) {
	for _, k := range keywords {
		if !w.has(k) {
			continue
		}
		v := w.get(k)
		switch {
		case k == "format":
			hints = append(hints, c.format(out, w)...)
		case k == "pattern" && c.dialect.has(PlainPatterns) && looksAround(w.text(k)):
			hints = append(hints, c.lost(w, []string{k}, PlainPatterns)...)
		case k == "minItems" && c.dialect.has(MaxMinItems):
			most := json.Number(strconv.Itoa(c.dialect.rule(MaxMinItems).Limit))
			out.set(k, bound(v, most, -1))
			if !equal(out.get(k), v) {
				hints = append(hints, c.lost(w, []string{k}, MaxMinItems)...)
			}
		case c.dialect.takes(k):
			if b, ok := out.get(k).(json.Number); ok && (k == "minimum" || k == "maximum") {
				v = bound(b, v, map[string]int{"minimum": 1, "maximum": -1}[k])
			}
			out.set(k, v)
		case k == "exclusiveMinimum" && c.inclusive(out, w, k, "minimum", 1), k == "exclusiveMaximum" && c.inclusive(out, w, k, "maximum", -1):
		default:
			hints = append(hints, c.lost(w, []string{k}, Keywords)...)
		}
	}
	return hints
}

// inclusive converts an exclusive bound of integers to an inclusive one.
func (c *compiler) inclusive(out, w *object, exclusive, inclusive string, step int64) bool {
	r, ok := rat(w.get(exclusive))
	if !ok || out.text("type") != c.typeName("integer") || !c.dialect.takes(inclusive) {
		return false
	}
	n := new(big.Int).Div(r.Num(), r.Denom()) // the floor
	if step > 0 || r.IsInt() {
		n.Add(n, big.NewInt(step))
	}
	var v any = json.Number(n.String())
	if b := w.get(inclusive); b != nil {
		v = bound(b, v, int(step))
	}
	out.set(inclusive, v)
	return true
}

func looksAround(pattern string) bool {
	return slices.ContainsFunc([]string{"(?=", "(?!", "(?<=", "(?<!"},
		func(s string) bool { return strings.Contains(pattern, s) })
}

// checkedFormats lists the formats that validators check; other formats only explain.
var checkedFormats = []string{
	"date", "time", "date-time", "duration", "period", "semver", "email", "idn-email", "hostname", "idn-hostname",
	"ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uri-template", "uuid", "json-pointer",
	"relative-json-pointer", "regex",
}

func (c *compiler) format(out, w *object) []string {
	f := w.text("format")
	if f == "" {
		return nil
	}
	r := c.dialect.rule(Formats)
	if r == nil || slices.Contains(r.Words, strings.ToLower(out.text("type"))+":"+f) {
		out.set("format", f)
		return nil
	}
	if out.text("type") == c.typeName("string") && slices.Contains(checkedFormats, f) {
		return c.lost(w, []string{"format"}, Formats)
	}
	c.lose(w.ptr, "format", Note, Formats, "%s is not an accepted format", f)
	if out.text("type") == c.typeName("string") && f != "string" && f != "enum" {
		return []string{"format: " + f}
	}
	return nil
}

// anything compiles a schema for a value of any type, if the dialect can express it.
func (c *compiler) anything(w *object, hints []string) (*object, *back) {
	scalars := func() []any {
		list := []any{}
		for _, t := range []string{"string", "number", "boolean"} {
			list = append(list, schemaOf(w.ptr, "type", c.typeName(t)))
		}
		if c.dialect.has(Closed) {
			return list
		}
		return append(list, schemaOf(w.ptr, "type", c.typeName("object")))
	}
	items := c.orNull(schemaOf(w.ptr, "anyOf", scalars()))
	out := c.orNull(schemaOf(w.ptr, "anyOf", append(scalars(), schemaOf(w.ptr, "type", c.typeName("array"), "items", items))))
	what := "an array inside an array"
	if c.dialect.has(Closed) {
		what = "an object, or an array inside an array,"
	}
	c.lose(w.ptr, "type", Stricter, TypeNeeded, "no type is stated; %s cannot be sent", what)
	c.finish(out, w, hints)
	return out, nil
}

// nothing compiles the schema of null.
func (c *compiler) nothing(w *object, hints []string) *object {
	if !c.dialect.has(NullableFlag) {
		out := schemaOf(w.ptr, "type", "null")
		c.finish(out, w, hints)
		return out
	}
	c.lose(w.ptr, "type", Looser, NullableFlag, "that only null is allowed is not enforced")
	out := schemaOf(w.ptr, "type", c.typeName("string"), "nullable", true)
	c.finish(out, w, append(hints, "always null"))
	return out
}

// cut ends a recursion: the remaining levels are replaced by their type, or by nothing if every
// field must be named.
func (c *compiler) cut(w *object) *object {
	if c.dialect.has(Closed) {
		c.lose(w.ptr, "$ref", Stricter, RecursionCut, "it contains itself; more than %d levels cannot be sent", c.levels)
		return nil
	}
	c.lose(w.ptr, "$ref", Looser, RecursionCut, "it contains itself; after %d levels only its type is sent", c.levels)

	types, null := c.typesOf(w)
	var forms []any
	for _, t := range types {
		o := schemaOf(w.ptr, "type", c.typeName(t))
		if t == "array" {
			items, _ := c.anything(newObject(w.ptr), nil)
			o.set("items", items)
		}
		forms = append(forms, o)
	}

	var out *object
	switch len(forms) {
	case 0:
		out, _ = c.anything(newObject(w.ptr), nil)
	case 1:
		out = forms[0].(*object)
	default:
		out = schemaOf(w.ptr, "anyOf", forms)
	}
	if null {
		out = c.orNull(out)
	}
	c.finish(out, w, []string{"goes on as above"})
	return out
}
