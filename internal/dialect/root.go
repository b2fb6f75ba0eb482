package dialect

import (
	"slices"
	"strings"
)

// root compiles the schema of the arguments, which are always an object.
func (c *compiler) root(o *object) (*object, *back) {
	w, left, entered, st := c.flat(o)
	defer c.leave(entered)
	if st == never {
		c.fail("", "", RootObject, "no arguments can fit")
	}
	var hints []string
	for _, l := range left {
		hints = append(hints, c.lost(l, l.keys, RootWithout)...)
	}
	if t := w.get("type"); t != nil && !slices.Contains(typesOf(t), any("object")) {
		c.fail("", "type", RootObject, "arguments are an object, the schema wants %s", show(t))
	}
	w.set("type", "object")
	var without []string
	if r := c.d.rule(RootWithout); r != nil {
		without = r.Words
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if list := w.list(k); list != nil && slices.Contains(without, k) {
			w = w.clone()
			w.remove(k)
			w = c.unite(w, k, list, &hints)
		}
	}
	for _, k := range []string{"enum", "const", "not"} {
		if w.has(k) && slices.Contains(without, k) {
			hints = append(hints, c.lost(w, []string{k}, RootWithout)...)
			w.remove(k)
		}
	}
	if c.d.has(TypeNeeded) {
		hints = append(hints, c.lost(w, []string{"if", "not"}, Keywords)...)
	}
	if !w.has("properties") {
		w.set("properties", newObject(join(w.ptr, "properties")))
	}
	if c.d.has(TypeNeeded) {
		out, b := c.object(w, hints)
		if out == nil {
			c.fail(c.unfit, "", RootObject, "no value fits this required field, so no arguments can fit")
			out = newObject("")
		}
		return out, b
	}
	out, b := c.light(w)
	describe(out, hints)
	return out, b
}

// unite converts alternatives of the root to one object with the properties of all.
func (c *compiler) unite(w *object, keyword string, list []any, hints *[]string) *object {
	props := newObject(join(w.ptr, "properties"))
	base := w.object("properties")
	if base != nil {
		props = base.clone()
	}
	var need [][]string // the required fields of each alternative
	forms := map[string][]any{}
	var order []string
	closed := true
	partial := false
	objects := 0
	evaluates := false
	for _, v := range list {
		b, ok := v.(*object)
		if !ok {
			if v == true {
				need, closed, objects = append(need, nil), false, objects+1
			}
			continue
		}
		b, _, entered, st := c.flat(b)
		if t := b.get("type"); st == never || t != nil && !slices.Contains(typesOf(t), any("object")) {
			c.leave(entered)
			continue
		}
		for _, k := range []string{"anyOf", "oneOf"} {
			if inner := b.list(k); inner != nil {
				var unused []string
				b = b.clone()
				b.remove(k)
				b = c.unite(b, k, inner, &unused)
			}
		}
		if c.err != nil {
			c.leave(entered)
			return w
		}
		c.leave(entered)
		objects++
		need = append(need, b.words("required"))
		closed = closed && b.get("additionalProperties") == false
		evaluates = evaluates || b.has("patternProperties") || b.has("additionalProperties") && b.get("additionalProperties") != false
		p := b.object("properties")
		if p == nil {
			continue
		}
		for _, name := range p.keys {
			if base != nil && base.has(name) {
				continue
			}
			if _, ok := forms[name]; !ok {
				order = append(order, name)
			}
			if !slices.ContainsFunc(forms[name], func(u any) bool { return equal(u, p.vals[name]) }) {
				forms[name] = append(forms[name], p.vals[name])
			}
			partial = true
		}
	}
	if objects == 0 {
		c.fail(w.ptr, keyword, RootObject, "no alternative is an object")
		return w
	}
	if w.get("additionalProperties") != false {
		for _, name := range order {
			if f := forms[name]; len(f) == 1 {
				props.set(name, f[0])
			} else {
				props.set(name, schemaOf(join(props.ptr, name), "anyOf", f))
			}
		}
	}
	required := w.list("required")
	for _, name := range need[0] {
		if !slices.Contains(required, any(name)) &&
			!slices.ContainsFunc(need, func(n []string) bool { return !slices.Contains(n, name) }) {
			required = append(slices.Clone(required), name)
		}
	}
	w = w.clone()
	w.set("properties", props)
	if len(required) > 0 {
		w.set("required", required)
	}
	if closed && !w.has("additionalProperties") {
		w.set("additionalProperties", false)
	}
	if evaluates {
		w.remove("unevaluatedProperties") // an alternative accepts other fields
	}
	c.lose(w.ptr, keyword, Looser, RootWithout, "the fields of the alternatives are sent as one object; which of them go together is not enforced")
	if partial && !closed {
		c.lose(w.ptr, keyword, Stricter, RootWithout, "a field that only one alternative names has the form that this one gives it")
	}
	if h := choices(need, required); h != "" {
		*hints = append(*hints, h)
	}
	return w
}

// choices describes the allowed sets of fields. It returns "" if there is no restriction.
func choices(need [][]string, required []any) string {
	var sets []string
	for _, n := range need {
		n = slices.DeleteFunc(slices.Clone(n), func(s string) bool { return slices.Contains(required, any(s)) })
		if s := strings.Join(n, " and "); s != "" && !slices.Contains(sets, s) {
			sets = append(sets, s)
		} else if s == "" {
			return ""
		}
	}
	if len(sets) < 2 {
		return ""
	}
	return "give " + strings.Join(sets, ", or ")
}
