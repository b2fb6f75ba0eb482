package dialect

import (
	"fmt"
	"slices"
	"strings"
)

// alternatives compiles an anyOf or oneOf.
func (c *compiler) alternatives(w *object, keyword string, list []any, hints []string) (*object, *back) {
	base := w.clone()
	base.remove(keyword)
	if keyword == "oneOf" {
		c.lose(w.ptr, keyword, Looser, Keywords, "sent as anyOf: that only one of the forms fits is not enforced")
	}

	// Alternatives that only choose between required fields of one object are described in text,
	// because the schema would repeat the object.
	if need := requiredOnly(base, list); need != nil {
		c.lose(w.ptr, keyword, Looser, Keywords, "which of the fields are required together is not enforced")
		if h := choices(need, base.list("required")); h != "" {
			hints = append(hints, h)
		}
		out, b := c.typed(base, nil)
		describe(out, hints)
		return out, b
	}

	limits := base.clone()
	limits.remove(annotations...)
	limits.remove(scaffolding...)

	null := false
	var outs []*object
	var backs []*back
	for i, v := range list {
		ptr := fmt.Sprintf("%s/%s/%d", w.ptr, keyword, i)
		if !onlyAnnotated(limits) && v != false {
			o, ok := v.(*object)
			if !ok {
				o = newObject(ptr)
			}
			v = schemaOf(ptr, "allOf", []any{o, limits})
		}
		if o, ok := v.(*object); ok && isNull(o) {
			null = true
			continue
		}
		if out, b := c.node(v, ptr); out != nil {
			outs = append(outs, out)
			backs = append(backs, b)
		}
	}
	return c.combine(w, outs, backs, null, hints)
}

// requiredOnly returns the required fields of each alternative of an object. It returns nil if base
// has no fields, or an alternative says anything else.
func requiredOnly(base *object, list []any) (need [][]string) {
	if base.object("properties") == nil {
		return nil
	}
	for _, v := range list {
		o, ok := v.(*object)
		if !ok || !onlyAnnotated(o, "required", "type") {
			return nil
		}
		if o.has("type") && o.get("type") != "object" {
			return nil
		}
		need = append(need, o.words("required"))
	}
	return need
}

// isNull reports whether o allows null only, and contains nothing else.
func isNull(o *object) bool {
	if !onlyAnnotated(o, "type", "const", "enum") {
		return false
	}
	if o.has("type") && !slices.Contains(typesOf(o.get("type")), any("null")) {
		return false
	}

	if v, ok := o.vals["const"]; ok {
		return v == nil && !o.has("enum")
	}
	if o.has("enum") {
		return len(o.list("enum")) == 1 && o.list("enum")[0] == nil
	}
	return o.get("type") == "null" || len(o.list("type")) == 1
}

// combine builds one schema from several, of which one must match.
func (c *compiler) combine(w *object, outs []*object, backs []*back, null bool, hints []string) (*object, *back) {
	var forms []any
	b := &back{}
	for i, o := range outs {
		// The forms of an anyOf within are as good as its own, unless it says something about them.
		inner := []any{o}
		if list := o.list("anyOf"); list != nil && !o.has("description") && !o.has("title") {
			inner = list
		}
		for _, v := range inner {
			if f := v.(*object); f.get("type") == "null" && len(f.keys) == 1 {
				null = true
			} else if !slices.ContainsFunc(forms, func(u any) bool { return equal(u, v) }) {
				forms = append(forms, v)
			}
		}
		if backs[i] != nil {
			b.alts = append(b.alts, backs[i])
		}
	}

	var out *object
	switch len(forms) {
	case 0:
		if null {
			return c.nothing(w, hints), nil
		}
		return nil, nil

	case 1:
		out = forms[0].(*object).clone()
		if out.has("$ref") && c.dialect.has(RefAlone) {
			if text, title := c.annotate(w, hints); text != "" || title != "" || null {
				out = schemaOf(w.ptr, "anyOf", []any{out})
			}
		}
	default:
		out = schemaOf(w.ptr, "anyOf", forms)
	}

	if null {
		out = c.orNull(out)
	}
	c.finish(out, w, hints)
	return out, b
}

// orNull makes o accept null as well.
func (c *compiler) orNull(o *object) *object {
	if c.takesNull(o) {
		return o
	}
	o = o.clone()
	list := o.list("anyOf")
	switch {
	case c.dialect.has(NullableFlag) && list != nil: // no keyword may be next to anyOf
		list = slices.Clone(list)
		list[0] = c.orNull(list[0].(*object))
		o.set("anyOf", list)
	case c.dialect.has(NullableFlag):
		o.set("nullable", true)
	case list != nil:
		o.set("anyOf", append(slices.Clone(list), schemaOf(o.ptr, "type", "null")))
	case o.has("$ref"):
		o = schemaOf(o.ptr, "anyOf", []any{o, schemaOf(o.ptr, "type", "null")})
	default:
		o.set("type", []any{o.get("type"), "null"})
		if list := o.list("enum"); list != nil {
			o.set("enum", append(slices.Clone(list), nil))
		}
	}
	return o
}

func (c *compiler) takesNull(o *object) bool {
	if o.get("nullable") == true || slices.Contains(typesOf(o.get("type")), any("null")) {
		return true
	}
	if name, ok := strings.CutPrefix(o.text("$ref"), "#/$defs/"); ok {
		target := c.defs.object(name)
		return target != nil && !target.has("$ref") && c.takesNull(target)
	}
	return slices.ContainsFunc(o.list("anyOf"), func(v any) bool { return c.takesNull(v.(*object)) })
}
