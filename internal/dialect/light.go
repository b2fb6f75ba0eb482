package dialect

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// light copies a schema for a dialect that accepts almost everything.
func (c *compiler) light(w *object) (*object, *back) {
	out := newObject(w.ptr)
	b := &back{every: true}
	child := func(k string, v any, ptr string) (any, *back) {
		if _, ok := v.(bool); ok && slices.Contains(oneSchema, k) && k != "items" && k != "contains" {
			return v, nil
		}
		x, sub := c.node(v, ptr)
		switch {
		case k == "properties":
		case k == "items" || k == "contains" || k == "prefixItems":
			b.items = append(b.items, sub)
		case k == "additionalProperties":
			b.rest = sub
		case sub != nil:
			b.alts = append(b.alts, sub)
		}
		switch {
		case x != nil:
			return x, sub
		case k == "additionalProperties":
			return false, nil
		}
		return schemaOf(w.ptr, "not", newObject(w.ptr)), nil
	}
	for _, k := range w.keys {
		v, ptr := w.vals[k], join(w.ptr, k)
		m, isMap := v.(*object)
		list, isList := v.([]any)
		switch {
		case slices.Contains(scaffolding, k):
		case !slices.Contains(vocabulary, k) && !slices.Contains(annotations, k):
			c.lose(w.ptr, k, Note, "", "it is not a keyword of JSON Schema and is not sent")
		case k == "required":
			if list := c.wireNames(w, v); len(list) > 0 {
				out.set(k, list)
			}
		case k == "dependentRequired" || slices.Contains(mapSchemas, k):
			if isMap {
				out.set(k, c.lightMap(w, k, m, b, child))
			}
		case slices.Contains(listSchemas, k):
			to := make([]any, len(list))
			for i, x := range list {
				if k == "prefixItems" {
					ptr = fmt.Sprintf("%s/%s/%d", w.ptr, k, i)
				}
				to[i], _ = child(k, x, ptr)
			}
			if isList {
				out.set(k, to)
			}
		case slices.Contains(oneSchema, k):
			x, _ := child(k, v, ptr)
			out.set(k, x)
		case (k == "type" || k == "enum") && isList && len(list) == 0:
			return nil, nil
		case k == "type" && len(list) == 1:
			out.set(k, list[0])
		default:
			out.set(k, v)
		}
	}
	types := typesOf(out.get("type"))
	if c.d.has(PropertiesNeeded) && slices.Contains(types, any("object")) && !out.has("properties") {
		out.set("properties", newObject(w.ptr))
	}
	if c.d.has(ItemsNeeded) && slices.Contains(types, any("array")) && !out.has("items") {
		out.set("items", newObject(w.ptr))
	}
	return out, b
}

// lightMap copies m, the value of k in w, whose members are schemas or lists of names.
func (c *compiler) lightMap(w *object, k string, m *object, b *back,
	child func(k string, v any, ptr string) (any, *back)) *object {
	to := newObject(m.ptr)
	if k == "properties" {
		b.props = map[string]*member{}
	}
	for _, name := range m.keys {
		wire, v, ptr := name, m.vals[name], join(w.ptr, k)
		if k == "properties" || strings.HasPrefix(k, "dependent") {
			wire = c.wireName(join(w.ptr, "properties"), name)
		}
		if k == "dependentRequired" {
			to.set(wire, c.wireNames(w, v))
			continue
		}
		if k == "properties" {
			ptr = join(ptr, name)
		}
		x, sub := child(k, v, ptr)
		to.set(wire, x)
		if k == "properties" {
			b.props[wire] = &member{name: name, back: sub}
		}
	}
	return to
}

// wireName returns the name of a property in the output. ptr is the path of the properties.
func (c *compiler) wireName(ptr, name string) string {
	r := c.d.rule(PropertyNames)
	if r == nil || r.Pattern.MatchString(name) {
		return name
	}
	b := []byte(clip(name, 50))
	for i, x := range b {
		if !(x|0x20 >= 'a' && x|0x20 <= 'z' || x >= '0' && x <= '9' || x == '_' || x == '.' || x == '-') {
			b[i] = '_'
		}
	}
	// The hash distinguishes names that would become equal, and avoids existing names.
	h := fnv.New32a()
	h.Write([]byte(name))
	wire := string(b) + "_" + strconv.FormatUint(uint64(h.Sum32()), 36)
	c.reshaped = true
	c.lose(join(ptr, name), "properties", Reshaped, PropertyNames, "the field is called %s", wire)
	return wire
}

func (c *compiler) wireNames(w *object, v any) []any {
	var out []any
	list, _ := v.([]any)
	for _, x := range list {
		if s, ok := x.(string); ok {
			out = append(out, c.wireName(join(w.ptr, "properties"), s))
		}
	}
	return out
}
