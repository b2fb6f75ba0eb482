package dialect

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// light copies a schema for a dialect that accepts almost everything. It returns nil if no value
// matches.
func (c *compiler) light(w *object) (*object, *back) {
	l := &lightCopy{compiler: c, from: w, out: newObject(w.ptr), back: &back{every: true}}
	for _, k := range w.keys {
		if !l.keyword(k, w.vals[k]) {
			return nil, nil
		}
	}

	// Some servers refuse an object without properties, or an array without items.
	types := typesOf(l.out.get("type"))
	if c.dialect.has(PropertiesNeeded) && slices.Contains(types, any("object")) && !l.out.has("properties") {
		l.out.set("properties", newObject(w.ptr))
	}
	if c.dialect.has(ItemsNeeded) && slices.Contains(types, any("array")) && !l.out.has("items") {
		l.out.set("items", newObject(w.ptr))
	}
	return l.out, l.back
}

// lightCopy is one schema while light copies it.
type lightCopy struct {
	*compiler
	from *object
	out  *object
	back *back
}

// keyword copies the keyword k with the value v. It returns false if no value matches the schema.
func (l *lightCopy) keyword(k string, v any) bool {
	list, isList := v.([]any)
	switch {
	case slices.Contains(scaffolding, k): // references are resolved

	case !isKeyword(k):
		l.lose(l.from.ptr, k, Note, "", "it is not a keyword of JSON Schema and is not sent")

	case k == "required":
		if names := l.wireNames(l.from, v); len(names) > 0 {
			l.out.set(k, names)
		}

	case k == "dependentRequired" || slices.Contains(mapSchemas, k):
		if m, ok := v.(*object); ok {
			l.out.set(k, l.members(k, m))
		}

	case slices.Contains(listSchemas, k):
		if isList {
			l.out.set(k, l.elements(k, list))
		}

	case slices.Contains(oneSchema, k):
		x, _ := l.child(k, v, join(l.from.ptr, k))
		l.out.set(k, x)

	case isList && (k == "type" || k == "enum"):
		if len(list) == 0 {
			return false
		}
		if k == "type" && len(list) == 1 {
			v = list[0]
		}
		l.out.set(k, v)

	default:
		l.out.set(k, v)
	}
	return true
}

// child copies v, a schema in the value of the keyword k. A schema that nothing matches stays one.
func (l *lightCopy) child(k string, v any, ptr string) (any, *back) {
	// items and contains have a way back to record, even if they are true.
	isRecorded := k == "items" || k == "contains"
	if _, ok := v.(bool); ok && slices.Contains(oneSchema, k) && !isRecorded {
		return v, nil
	}
	x, sub := l.node(v, ptr)
	switch {
	case k == "properties": // members records it by name
	case k == "items" || k == "contains" || k == "prefixItems":
		l.back.items = append(l.back.items, sub)
	case k == "additionalProperties":
		l.back.rest = sub
	case sub != nil:
		l.back.alts = append(l.back.alts, sub)
	}

	switch {
	case x != nil:
		return x, sub
	case k == "additionalProperties":
		return false, nil
	}
	return schemaOf(l.from.ptr, "not", newObject(l.from.ptr)), nil
}

// elements copies the schemas in the list of the keyword k.
func (l *lightCopy) elements(k string, list []any) []any {
	to := make([]any, len(list))
	ptr := join(l.from.ptr, k)
	for i, x := range list {
		if k == "prefixItems" {
			ptr = fmt.Sprintf("%s/%s/%d", l.from.ptr, k, i)
		}
		to[i], _ = l.child(k, x, ptr)
	}
	return to
}

// members copies m, the value of the keyword k, whose members are schemas or lists of names.
func (l *lightCopy) members(k string, m *object) *object {
	to := newObject(m.ptr)
	// The members of some keywords have the names of properties.
	ofProperties := k == "properties" || strings.HasPrefix(k, "dependent")
	if k == "properties" {
		l.back.props = map[string]*member{}
	}

	for _, name := range m.keys {
		wire := name
		if ofProperties {
			wire = l.wireName(join(l.from.ptr, "properties"), name)
		}

		v := m.vals[name]
		ptr := join(l.from.ptr, k)
		switch k {
		case "dependentRequired":
			to.set(wire, l.wireNames(l.from, v))
		case "properties":
			x, sub := l.child(k, v, join(ptr, name))
			to.set(wire, x)
			l.back.props[wire] = &member{name: name, back: sub}
		default:
			x, _ := l.child(k, v, ptr)
			to.set(wire, x)
		}
	}
	return to
}

// wireName returns the name of a property in the output. ptr is the path of the properties.
func (c *compiler) wireName(ptr, name string) string {
	r := c.dialect.rule(PropertyNames)
	if r == nil || r.Pattern.MatchString(name) {
		return name
	}

	b := []byte(clip(name, 50))
	for i, x := range b {
		if !inWireName(x) {
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

// inWireName reports whether providers accept the byte in the name of a property.
func inWireName(x byte) bool {
	switch {
	case 'a' <= x|0x20 && x|0x20 <= 'z', '0' <= x && x <= '9':
		return true
	}
	return x == '_' || x == '.' || x == '-'
}

// wireNames returns the names of v, the value of required, in the output.
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
