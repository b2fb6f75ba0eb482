package dialect

import (
	"slices"
	"strings"
)

// root compiles the schema of the arguments, which are always an object.
func (c *compiler) root(o *object) (*object, *back) {
	w, left, entered, st := c.flat(o)
	defer c.close(entered)
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
	w, more := c.withoutAtRoot(w)
	hints = append(hints, more...)
	if c.dialect.has(TypeNeeded) {
		hints = append(hints, c.lost(w, []string{"if", "not"}, Keywords)...)
	}
	if !w.has("properties") {
		w.set("properties", newObject(join(w.ptr, "properties")))
	}

	if c.dialect.has(TypeNeeded) {
		out, b := c.object(w, hints)
		if out == nil {
			c.fail(c.unfit, "", RootObject, "no value fits this required field, so no arguments can fit")
			out = newObject("")
		}
		return out, b
	}
	out, b := c.light(w)
	if out == nil {
		c.fail("", "", RootObject, "no arguments can fit")
		out = newObject("")
	}
	describe(out, hints)
	return out, b
}

// withoutAtRoot replaces the keywords that the dialect does not accept at the root.
func (c *compiler) withoutAtRoot(w *object) (_ *object, hints []string) {
	r := c.dialect.rule(RootWithout)
	if r == nil {
		return w, nil
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if list := w.list(k); list != nil && slices.Contains(r.Words, k) {
			w = w.clone()
			w.remove(k)
			w = c.unite(w, k, list, &hints)
		}
	}
	for _, k := range []string{"enum", "const", "not"} {
		if w.has(k) && slices.Contains(r.Words, k) {
			hints = append(hints, c.lost(w, []string{k}, RootWithout)...)
			w.remove(k)
		}
	}
	return w, hints
}

// union collects the alternatives of a root that are objects.
type union struct {
	named     *object          // the properties of the root itself; nil means none
	forms     map[string][]any // the schemas that alternatives have for each other property
	order     []string         // the names in forms
	need      [][]string       // the required fields of each alternative
	closed    bool             // every alternative refuses fields that it does not name
	evaluates bool             // an alternative says what other fields may be
}

// add adds an alternative whose references are followed.
func (u *union) add(b *object) {
	u.need = append(u.need, b.words("required"))
	more := b.get("additionalProperties")
	u.closed = u.closed && more == false
	takesOthers := b.has("additionalProperties") && more != false
	if takesOthers || b.has("patternProperties") {
		u.evaluates = true
	}

	props := b.object("properties")
	if props == nil {
		return
	}
	for _, name := range props.keys {
		if u.named != nil && u.named.has(name) {
			continue
		}
		if _, ok := u.forms[name]; !ok {
			u.order = append(u.order, name)
		}
		if form := props.vals[name]; !containsValue(u.forms[name], form) {
			u.forms[name] = append(u.forms[name], form)
		}
	}
}

// properties returns the properties of the root, and the properties of alternatives if it allows
// other fields.
func (u *union) properties(w *object) *object {
	props := newObject(join(w.ptr, "properties"))
	if u.named != nil {
		props = u.named.clone()
	}
	if w.get("additionalProperties") == false {
		return props
	}
	for _, name := range u.order {
		if f := u.forms[name]; len(f) == 1 {
			props.set(name, f[0])
		} else {
			props.set(name, schemaOf(join(props.ptr, name), "anyOf", f))
		}
	}
	return props
}

// required returns the fields that the root requires, and the fields that each alternative
// requires.
func (u *union) required(w *object) []any {
	required := w.list("required")
	for _, name := range u.need[0] {
		everywhere := !slices.ContainsFunc(u.need, func(n []string) bool { return !slices.Contains(n, name) })
		if everywhere && !slices.Contains(required, any(name)) {
			required = append(slices.Clone(required), name)
		}
	}
	return required
}

// unite converts alternatives of the root to one object with the properties of all.
func (c *compiler) unite(w *object, keyword string, list []any, hints *[]string) *object {
	u := &union{named: w.object("properties"), forms: map[string][]any{}, closed: true}
	for _, v := range list {
		b, ok := v.(*object)
		switch {
		case ok:
			c.alternative(u, b)
		case v == true:
			u.need = append(u.need, nil)
			u.closed = false
		}
		if c.err != nil {
			return w
		}
	}
	if len(u.need) == 0 {
		c.fail(w.ptr, keyword, RootObject, "no alternative is an object")
		return w
	}

	required := u.required(w)
	w = w.clone()
	w.set("properties", u.properties(w))
	if len(required) > 0 {
		w.set("required", required)
	}
	if u.closed && !w.has("additionalProperties") {
		w.set("additionalProperties", false)
	}
	if u.evaluates {
		w.remove("unevaluatedProperties") // an alternative accepts other fields
	}

	c.lose(w.ptr, keyword, Looser, RootWithout,
		"the fields of the alternatives are sent as one object; which of them go together is not enforced")
	if len(u.order) > 0 && !u.closed {
		c.lose(w.ptr, keyword, Stricter, RootWithout, "a field that only one alternative names has the form that this one gives it")
	}
	if h := choices(u.need, required); h != "" {
		*hints = append(*hints, h)
	}
	return w
}

// alternative adds an alternative of the root to u. An alternative that is no object cannot match.
func (c *compiler) alternative(u *union, b *object) {
	b, _, entered, st := c.flat(b)
	defer c.close(entered)
	if t := b.get("type"); st == never || t != nil && !slices.Contains(typesOf(t), any("object")) {
		return
	}

	for _, k := range []string{"anyOf", "oneOf"} {
		if inner := b.list(k); inner != nil {
			var unused []string
			b = b.clone()
			b.remove(k)
			b = c.unite(b, k, inner, &unused)
		}
	}
	if c.err == nil {
		u.add(b)
	}
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
