package dialect

import (
	"math/big"
	"slices"
)

// object compiles the schema of an object.
func (c *compiler) object(w *object, hints []string) (*object, *back) {
	out := schemaOf(w.ptr, "type", c.typeName("object"))
	more := unnamed(w)
	fields := c.fields(w, more)
	if fields == nil {
		return nil, nil
	}

	hints = append(hints, c.unnamedFields(w, more, len(fields.sent.keys) > 0)...)
	hints = append(hints, c.keep(out, w, "minProperties", "maxProperties")...)
	hints = append(hints, c.lost(w, []string{"dependentRequired", "dependentSchemas", "propertyNames"}, Keywords)...)
	if isObject(w.get("unevaluatedProperties")) {
		hints = append(hints, c.lost(w, []string{"unevaluatedProperties"}, Keywords)...)
	}
	c.finish(out, w, hints)

	// The order of the keywords is part of the output.
	if len(fields.sent.keys) > 0 || c.dialect.has(PropertiesNeeded) || w.ptr == "" {
		out.set("properties", fields.sent)
	}
	if len(fields.demanded) > 0 || c.dialect.has(AllRequired) {
		out.set("required", fields.demanded)
	}
	if c.dialect.has(Closed) {
		out.set("additionalProperties", false)
	}
	return out, &back{props: fields.members}
}

// unnamed returns what w says about fields that it does not name: true, false, a schema, or nil if
// it says nothing.
func unnamed(w *object) any {
	more := w.get("additionalProperties")
	if !w.has("additionalProperties") && w.get("unevaluatedProperties") == false {
		return false
	}
	if o, ok := more.(*object); ok && onlyAnnotated(o) {
		return true
	}
	return more
}

// fieldsOf is what the output says about the named fields of an object.
type fieldsOf struct {
	sent     *object            // properties
	demanded []any              // required
	members  map[string]*member // the way back, by the name in the output
}

// fields compiles the named fields of an object. It returns nil if a required field accepts no
// value.
func (c *compiler) fields(w *object, more any) *fieldsOf {
	need := w.words("required")
	props := w.object("properties")
	if props == nil {
		props = newObject(join(w.ptr, "properties"))
	}
	if c.dialect.has(RequiredDefined) {
		props = c.define(w, props, need, more)
	}

	f := &fieldsOf{sent: newObject(props.ptr), demanded: []any{}, members: map[string]*member{}}
	for _, name := range props.keys {
		ptr := ptrOf(props.vals[name], join(props.ptr, name))
		required := slices.Contains(need, name)
		x, sub := c.node(props.vals[name], ptr)
		if x == nil && required {
			c.unfit = ptr
			return nil
		}
		if x == nil {
			if !c.dialect.has(Closed) {
				c.lose(ptr, "not", Looser, Keywords, "the field is never allowed, which is not enforced")
			}
			continue
		}

		m := &member{name: name, back: sub}
		if list := x.list("enum"); len(list) > 0 {
			m.only = list
		}
		if c.dialect.has(AllRequired) && !required {
			x = c.optional(x, m, ptr)
		}

		wire := c.wireName(props.ptr, name)
		f.sent.set(wire, x)
		f.members[wire] = m
		if required || c.dialect.has(AllRequired) {
			f.demanded = append(f.demanded, wire)
		}
	}
	return f
}

// optional returns x, the schema of a field that can be left out, for a dialect that requires all
// fields.
func (c *compiler) optional(x *object, m *member, ptr string) *object {
	// null cannot stand for leaving the field out where it is a value of its own.
	if c.takesNull(x) {
		c.lose(ptr, "required", Stricter, AllRequired, "the field cannot be left out; null can be sent")
		return x
	}
	m.null = true
	c.reshaped = true
	c.lose(ptr, "required", Reshaped, AllRequired, "null stands for leaving the field out")
	return c.orNull(x)
}

// unnamedFields reports what is lost about fields that w does not name, and returns hints. named
// reports whether the output has named fields.
func (c *compiler) unnamedFields(w *object, more any, named bool) (hints []string) {
	patterns := w.object("patternProperties") != nil
	free := more == true || patterns || isObject(more)
	closed := c.dialect.has(Closed)
	anything := free || more == nil && !w.has("properties")
	if closed && !named && anything {
		c.fail(w.ptr, "additionalProperties", Closed, "an object without named fields cannot be expressed")
	}

	switch {
	case closed:
		if more != false || patterns {
			c.lose(w.ptr, "additionalProperties", Stricter, Closed, "only the named fields can be sent")
		}
	case more == false && !c.dialect.takes("additionalProperties"):
		c.lose(w.ptr, "additionalProperties", Looser, Keywords, "unnamed fields are not refused")
	case isObject(more):
		hints = c.lost(w, []string{"additionalProperties"}, Keywords)
	}

	if !closed || free && named {
		hints = append(hints, c.lost(w, []string{"patternProperties"}, Keywords)...)
	}
	return hints
}

// define adds properties for required names without a schema.
func (c *compiler) define(w, props *object, need []string, more any) *object {
	out := props
	for _, name := range need {
		if props.has(name) {
			continue
		}
		if out == props {
			out = props.clone()
		}

		var v any = true
		if more != nil {
			v = more
		}
		c.lose(w.ptr, "required", Note, RequiredDefined, "%s is required and not described; a property is added for it", name)
		out.set(name, v)
	}
	return out
}

func isObject(v any) bool { _, ok := v.(*object); return ok }

// array compiles the schema of an array. A tuple becomes an array whose items may be any of its
// elements.
func (c *compiler) array(w *object, hints []string) (*object, *back) {
	out := schemaOf(w.ptr, "type", c.typeName("array"))
	hints = append(hints, c.keep(out, w, "minItems", "maxItems", "uniqueItems")...)
	hints = append(hints, c.lost(w, []string{"contains", "unevaluatedItems"}, Keywords)...)

	var (
		items *object
		sub   *back
	)
	prefix := w.list("prefixItems")
	switch {
	case len(prefix) > 0:
		forms := c.tupleForms(out, w, prefix)
		hints = append(hints, tuple(prefix))
		if len(forms) == 1 {
			items, sub = c.node(forms[0], join(w.ptr, "prefixItems/0"))
		} else {
			items, sub = c.node(schemaOf(w.ptr, "anyOf", forms), w.ptr)
		}
	case w.has("items"):
		items, sub = c.node(w.get("items"), join(w.ptr, "items"))
	default:
		items, sub = c.node(true, join(w.ptr, "items"))
	}

	if items == nil { // only the empty array matches
		items, _ = c.node(true, join(w.ptr, "items"))
		if c.dialect.takes("maxItems") {
			out.set("maxItems", 0)
		} else {
			c.lose(w.ptr, "items", Looser, Keywords, "not enforced, but described: always empty")
			hints = append(hints, "always empty")
		}
	}

	b := &back{}
	if sub != nil {
		b.items = []*back{sub}
	}
	c.finish(out, w, hints)
	out.set("items", items)
	return out, b
}

// tupleForms returns the different forms that the items of a tuple may have, and reports what is
// lost. It sets the length in out if the tuple has no items after prefix.
func (c *compiler) tupleForms(out, w *object, prefix []any) []any {
	var forms []any
	for _, v := range prefix {
		if v != false && !containsValue(forms, v) {
			forms = append(forms, v)
		}
	}

	// described: each item that the array may have is in forms.
	described := false
	if most, ok := rat(w.get("maxItems")); ok {
		described = most.Cmp(big.NewRat(int64(len(prefix)), 1)) <= 0
	}
	rest := w.get("items")
	if o, ok := rest.(*object); ok && !described {
		if !onlyAnnotated(o) || refOf(o) != "" {
			forms = append(forms, o)
			described = true
		}
	} else if rest == false {
		described = true
		if !out.has("maxItems") && c.dialect.takes("maxItems") {
			out.set("maxItems", len(prefix))
		}
	}

	c.lose(w.ptr, "prefixItems", Looser, Keywords, "which item stands where is not enforced")
	if !described {
		c.lose(w.ptr, "prefixItems", Stricter, Keywords, "items after the %d described have one of their forms", len(prefix))
	}
	return forms
}
