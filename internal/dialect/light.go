package dialect

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
)

// light copies a schema for a dialect that accepts almost everything.
func (c *compiler) light(w *object) (*object, *back) {
	out, b := newObject(w.ptr), &back{every: true}
	inner := func(v any, at, ptr string) (*object, *back) {
		x, sub := c.node(v, ptr)
		if x == nil {
			x = schemaOf(at, "not", newObject(at))
		}
		return x, sub
	}
	child := func(k string, v any) any {
		x, sub := inner(v, w.ptr, join(w.ptr, k))
		if sub != nil {
			b.alts = append(b.alts, sub)
		}
		return x
	}
	for _, k := range w.keys {
		v := w.vals[k]
		switch {
		case slices.Contains(scaffolding, k):
		case !slices.Contains(vocabulary, k) && !slices.Contains(annotations, k):
			c.lose(w.ptr, k, Note, "", "it is not a keyword of JSON Schema and is not sent")
		case k == "properties":
			props, _ := v.(*object)
			if props == nil {
				continue
			}
			to := newObject(props.ptr)
			b.props = map[string]*member{}
			for _, name := range props.keys {
				x, sub := inner(props.vals[name], props.ptr, join(props.ptr, name))
				wire := c.wireName(props.ptr, name)
				to.set(wire, x)
				b.props[wire] = &member{name: name, back: sub}
			}
			out.set(k, to)
		case k == "required":
			if list := c.wireNames(w, v); len(list) > 0 {
				out.set(k, list)
			}
		case k == "dependentRequired":
			if deps, ok := v.(*object); ok {
				to := newObject(deps.ptr)
				for _, name := range deps.keys {
					to.set(c.wireName(join(w.ptr, "properties"), name), c.wireNames(w, deps.vals[name]))
				}
				out.set(k, to)
			}
		case slices.Contains(mapSchemas, k):
			if m, ok := v.(*object); ok {
				to := newObject(m.ptr)
				for _, name := range m.keys {
					x := child(k, m.vals[name])
					if k == "dependentSchemas" {
						name = c.wireName(join(w.ptr, "properties"), name)
					}
					to.set(name, x)
				}
				out.set(k, to)
			}
		case slices.Contains(listSchemas, k):
			list, ok := v.([]any)
			if !ok {
				continue
			}
			to := make([]any, 0, len(list))
			for i, x := range list {
				if k != "prefixItems" {
					to = append(to, child(k, x))
					continue
				}
				y, sub := inner(x, w.ptr, fmt.Sprintf("%s/%s/%d", w.ptr, k, i))
				b.items = append(b.items, sub)
				to = append(to, y)
			}
			out.set(k, to)
		case k == "items" || k == "contains":
			y, sub := inner(v, w.ptr, join(w.ptr, k))
			b.items = append(b.items, sub)
			out.set(k, y)
		case k == "additionalProperties":
			if _, ok := v.(bool); ok {
				out.set(k, v)
				continue
			}
			y, sub := c.node(v, join(w.ptr, k))
			if y == nil {
				out.set(k, false)
				continue
			}
			b.rest = sub
			out.set(k, y)
		case slices.Contains(oneSchema, k):
			if _, ok := v.(bool); ok {
				out.set(k, v)
				continue
			}
			out.set(k, child(k, v))
		case k == "type" || k == "enum":
			if list, ok := v.([]any); ok && len(list) == 0 {
				return nil, nil
			} else if len(list) == 1 && k == "type" {
				v = list[0]
			}
			out.set(k, v)
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
