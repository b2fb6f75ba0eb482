package dialect

import (
	"math/big"
	"slices"
)

// object compiles the schema of an object.
func (c *compiler) object(w *object, hints []string) (*object, *back) {
	out := schemaOf(w.ptr, "type", c.typeName("object"))
	b := &back{props: map[string]*member{}}
	props, need, more := w.object("properties"), w.words("required"), w.get("additionalProperties")
	if !w.has("additionalProperties") && w.get("unevaluatedProperties") == false {
		more = false
	}
	if o, ok := more.(*object); ok && onlyAnnotated(o) {
		more = true
	}
	if props == nil {
		props = newObject(join(w.ptr, "properties"))
	}
	if c.d.has(RequiredDefined) {
		props = c.define(w, props, need, more)
	}
	sent := newObject(props.ptr)
	demanded := []any{}
	for _, name := range props.keys {
		ptr := ptrOf(props.vals[name], join(props.ptr, name))
		x, sub := c.node(props.vals[name], ptr)
		required := slices.Contains(need, name)
		if x == nil {
			if required {
				c.unfit = ptr
				return nil, nil
			}
			if !c.d.has(Closed) {
				c.lose(ptr, "not", Looser, Keywords, "the field is never allowed, which is not enforced")
			}
			continue
		}
		m := &member{name: name, back: sub}
		if list := x.list("enum"); len(list) > 0 {
			m.only = list
		}
		if c.d.has(AllRequired) && !required {
			if c.takesNull(x) {
				c.lose(ptr, "required", Stricter, AllRequired, "the field cannot be left out; null can be sent")
			} else {
				x = c.orNull(x)
				m.null = true
				c.reshaped = true
				c.lose(ptr, "required", Reshaped, AllRequired, "null stands for leaving the field out")
			}
		}
		wire := c.wireName(props.ptr, name)
		sent.set(wire, x)
		b.props[wire] = m
		if required || c.d.has(AllRequired) {
			demanded = append(demanded, wire)
		}
	}
	free := more == true || w.object("patternProperties") != nil || isObject(more)
	switch {
	case c.d.has(Closed):
		if len(sent.keys) == 0 && (free || more == nil && !w.has("properties")) {
			c.fail(w.ptr, "additionalProperties", Closed, "an object without named fields cannot be expressed")
		}
		if more != false || w.object("patternProperties") != nil {
			c.lose(w.ptr, "additionalProperties", Stricter, Closed, "only the named fields can be sent")
		}
	case more == false && !c.d.takes("additionalProperties"):
		c.lose(w.ptr, "additionalProperties", Looser, Keywords, "unnamed fields are not refused")
	case isObject(more):
		hints = append(hints, c.lost(w, []string{"additionalProperties"}, Keywords)...)
	}
	if !c.d.has(Closed) || free && len(sent.keys) > 0 {
		hints = append(hints, c.lost(w, []string{"patternProperties"}, Keywords)...)
	}
	hints = append(hints, c.keep(out, w, "minProperties", "maxProperties")...)
	hints = append(hints, c.lost(w, []string{"dependentRequired", "dependentSchemas", "propertyNames"}, Keywords)...)
	if isObject(w.get("unevaluatedProperties")) {
		hints = append(hints, c.lost(w, []string{"unevaluatedProperties"}, Keywords)...)
	}
	c.finish(out, w, hints)
	if len(sent.keys) > 0 || c.d.has(PropertiesNeeded) || w.ptr == "" {
		out.set("properties", sent)
	}
	if len(demanded) > 0 || c.d.has(AllRequired) {
		out.set("required", demanded)
	}
	if c.d.has(Closed) {
		out.set("additionalProperties", false)
	}
	return out, b
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
	b := &back{}
	hints = append(hints, c.keep(out, w, "minItems", "maxItems", "uniqueItems")...)
	hints = append(hints, c.lost(w, []string{"contains", "unevaluatedItems"}, Keywords)...)
	prefix, rest := w.list("prefixItems"), w.get("items")
	var items *object
	var sub *back
	switch {
	case len(prefix) > 0:
		var forms []any
		for _, v := range prefix {
			if v != false && !slices.ContainsFunc(forms, func(u any) bool { return equal(u, v) }) {
				forms = append(forms, v)
			}
		}
		full := false
		if most, ok := rat(w.get("maxItems")); ok {
			full = most.Cmp(big.NewRat(int64(len(prefix)), 1)) <= 0
		}
		if o, ok := rest.(*object); ok && !full {
			if !onlyAnnotated(o) || refOf(o) != "" {
				forms, full = append(forms, o), true
			}
		} else if rest == false {
			full = true
			if !out.has("maxItems") && c.d.takes("maxItems") {
				out.set("maxItems", len(prefix))
			}
		}
		c.lose(w.ptr, "prefixItems", Looser, Keywords, "which item stands where is not enforced")
		if !full {
			c.lose(w.ptr, "prefixItems", Stricter, Keywords, "items after the %d described have one of their forms", len(prefix))
		}
		hints = append(hints, tuple(prefix))
		if len(forms) == 1 {
			items, sub = c.node(forms[0], join(w.ptr, "prefixItems/0"))
		} else {
			items, sub = c.node(schemaOf(w.ptr, "anyOf", forms), w.ptr)
		}
	case w.has("items"):
		items, sub = c.node(rest, join(w.ptr, "items"))
	default:
		items, sub = c.node(true, join(w.ptr, "items"))
	}
	if items == nil { // only the empty array matches
		items, _ = c.node(true, join(w.ptr, "items"))
		if c.d.takes("maxItems") {
			out.set("maxItems", 0)
		} else {
			c.lose(w.ptr, "items", Looser, Keywords, "not enforced, but described: always empty")
			hints = append(hints, "always empty")
		}
	}
	if sub != nil {
		b.items = []*back{sub}
	}
	c.finish(out, w, hints)
	out.set("items", items)
	return out, b
}
