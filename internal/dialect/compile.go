package dialect

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// maxNodes bounds what inlined references may grow to.
const maxNodes = 20000

// Compile says schema in the dialect. nil stands for an object without properties. Types and older drafts are read as Normalize
// reads them; what would change the meaning of valid JSON Schema (nullable, an enum of another type) is not. An error is an *Error: the schema cannot be said.
func (d *Dialect) Compile(schema json.RawMessage) (*Compiled, error) {
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	// Recursion that must be cut is cut as late as the size allows.
	for levels := 2; ; levels-- {
		v, err := parse(schema)
		if err != nil {
			return nil, &Error{Dialect: d.Name, Why: err.Error()}
		}
		root, ok := v.(*object)
		if !ok {
			return nil, &Error{Dialect: d.Name, Why: fmt.Sprintf("a schema of arguments is an object, got %s", clip(show(v), 40))}
		}
		n := normalizer{}
		n.schema(root)
		c := &compiler{d: d, refs: newRefs(root), levels: levels, depth: map[string]int{}, defs: newObject(""), defNames: map[string]string{}, backs: map[string]*back{},
			seen: map[Loss]bool{}}
		out, b := c.root(root)
		if c.nodes > maxNodes && levels > 0 && d.has(RecursionCut) {
			continue
		}
		if c.err == nil {
			c.limits(out)
		}
		if c.err != nil {
			return nil, c.err
		}
		if len(c.defs.keys) > 0 {
			out.set("$defs", c.defs)
		}
		res := &Compiled{Schema: appendJSON(nil, out), Losses: c.losses}
		if c.reshaped {
			res.back, res.defs = b, c.backs
		}
		return res, nil
	}
}

// compiler carries out the rules of one dialect on one schema.
type compiler struct {
	d        *Dialect
	refs     *refs
	losses   []Loss
	seen     map[Loss]bool // by path, keyword and kind
	err      *Error        // the first; what is made after it is not used
	nodes    int
	levels   int            // how often a recursive schema is inlined in itself where recursion is cut
	depth    map[string]int // how often each is being inlined now
	defs     *object        // what is sent as $defs
	defNames map[string]string
	backs    map[string]*back // of defs
	reshaped bool             // Restore has something to do
	unfit    string           // the last required field that takes no value
}

func (c *compiler) lose(ptr, keyword string, kind Kind, t Trait, format string, args ...any) {
	key := Loss{Path: ptr, Keyword: keyword, Kind: kind}
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	c.losses = append(c.losses, Loss{ptr, keyword, kind, fmt.Sprintf(format, args...), c.d.source(t)})
}

func (c *compiler) fail(ptr, keyword string, t Trait, format string, args ...any) {
	if c.err == nil {
		c.err = &Error{c.d.Name, ptr, keyword, fmt.Sprintf(format, args...), c.d.source(t)}
	}
}

// outcome says what flat found.
type outcome int

const (
	fits  outcome = iota
	never         // nothing fits the schema
	cut           // the schema goes on inside itself, and is not followed further
)

// flat follows the references of o and joins its allOf into one schema. left are keywords that found no place; the caller
// reports them. entered are references that count as under way until leave.
func (c *compiler) flat(o *object) (w *object, left []*object, entered []string, st outcome) {
	return c.flatten(o, map[string]bool{})
}

// flatten is flat within a schema that has followed some references: to follow one again says nothing new.
func (c *compiler) flatten(o *object, following map[string]bool) (w *object, left []*object, entered []string, st outcome) {
	w = o.clone()
	for {
		if refOf(w) != "" {
			t, ptr, ok := c.resolve(w)
			if !ok {
				return w, left, entered, fits
			}
			w = w.clone()
			w.remove("$ref", "$dynamicRef", "$recursiveRef")
			if following[ptr] {
				continue
			}
			following[ptr] = true
			target, ok := t.(*object)
			if !ok {
				if t == false {
					return w, left, entered, never
				}
				continue
			}
			if c.d.has(RecursionCut) && c.refs.leadsBack(target, ptr) {
				if c.depth[ptr] >= c.levels {
					w = both(w, target)
					return w, left, entered, cut
				}
				c.depth[ptr]++
				entered = append(entered, ptr)
			}
			w = c.join(w, target)
			continue
		}
		all := w.list("allOf")
		if all == nil {
			return w, left, entered, st
		}
		w = w.clone()
		w.remove("allOf")
		for _, v := range all {
			b, ok := v.(*object)
			if !ok {
				if v == false {
					return w, left, entered, never
				}
				continue
			}
			b, more, in, s := c.flatten(b, following)
			left, entered = append(left, more...), append(entered, in...)
			if c.err != nil {
				return newObject(o.ptr), left, entered, fits
			}
			if s != fits {
				return both(w, b), left, entered, s
			}
			if len(all) == 1 && onlyAnnotated(w) {
				w = c.join(w, b)
			} else {
				w = both(w, b)
			}
			for _, v := range w.list("allOf") {
				left = append(left, v.(*object))
			}
			w.remove("allOf")
		}
	}
}

// join is both for a schema and the target of its reference: what they say of themselves is the nearer one's, and paths of what
// only the target says are the target's.
func (c *compiler) join(w, target *object) *object {
	if onlyAnnotated(w) {
		out := target.clone()
		for _, k := range w.keys {
			if slices.Contains(annotations, k) {
				out.set(k, w.vals[k])
			}
		}
		return out
	}
	return both(w, target)
}

func (c *compiler) leave(entered []string) {
	for _, ptr := range entered {
		c.depth[ptr]--
	}
}

// root makes the schema of the arguments, which are always an object.
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
	without := c.d.rule(RootWithout).Words
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

// unite says alternatives of the root as one object that has the properties of all.
func (c *compiler) unite(w *object, keyword string, list []any, hints *[]string) *object {
	props := newObject(join(w.ptr, "properties"))
	base := w.object("properties")
	if base != nil {
		props = base.clone()
	}
	var need [][]string // what each alternative requires
	forms := map[string][]any{}
	var order []string
	closed, partial, objects, evaluates := true, false, 0, false
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
		if !slices.Contains(required, any(name)) && !slices.ContainsFunc(need, func(n []string) bool { return !slices.Contains(n, name) }) {
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
		w.remove("unevaluatedProperties") // an alternative lets other fields pass
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

// choices words which sets of fields may be given; "" when that says nothing.
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

// node makes the schema of a value; nil when nothing fits. ptr is its place where v has none of its own.
func (c *compiler) node(v any, ptr string) (*object, *back) {
	if c.nodes++; c.nodes > maxNodes {
		c.fail(ptr, "$ref", RefsInlined, "with its references inlined it has more than %d parts", maxNodes)
	}
	if c.err != nil {
		return newObject(ptr), nil
	}
	o, ok := v.(*object)
	if !ok {
		if v == false {
			return nil, nil
		}
		o = newObject(ptr)
	}
	if refOf(o) != "" && onlyAnnotated(o, "$ref", "$dynamicRef", "$recursiveRef") && !c.d.has(RecursionCut) {
		t, p, ok := c.resolve(o)
		if !ok {
			return newObject(ptr), nil
		}
		if target, ok := t.(*object); ok && (!c.d.has(RefsInlined) || c.refs.leadsBack(target, p)) && c.saysMore(target) {
			return c.reference(o, target, p)
		}
	}
	if !c.d.has(TypeNeeded) {
		if refOf(o) == "" {
			return c.light(o)
		}
		if onlyAnnotated(o, "$ref", "$dynamicRef", "$recursiveRef") {
			return c.inline(o, ptr)
		}
		return c.light(beside(o))
	}
	w, left, entered, st := c.flat(o)
	defer c.leave(entered)
	switch st {
	case never:
		return nil, nil
	case cut:
		return c.cut(w), nil
	}
	return c.typed(w, left)
}

// inline puts the target of a reference that stands alone in its place.
func (c *compiler) inline(o *object, ptr string) (*object, *back) {
	t, _, ok := c.resolve(o)
	if !ok {
		return newObject(ptr), nil
	}
	w := o.clone()
	w.remove("$ref", "$dynamicRef", "$recursiveRef")
	if t == false {
		return nil, nil
	}
	if target, ok := t.(*object); ok {
		w = c.join(w, target)
	}
	return c.node(w, ptr)
}

// resolve returns what o refers to, and its place; false after an error.
func (c *compiler) resolve(o *object) (any, string, bool) {
	t, ptr, err := c.refs.resolve(refOf(o))
	switch {
	case err != nil:
		c.fail(o.ptr, "$ref", RefsTop, "%v", err)
		return nil, "", false
	case c.refs.loops(t, ptr):
		c.fail(o.ptr, "$ref", "", "it leads back to itself without a step inside, so nothing can be checked against it")
		return nil, "", false
	}
	return t, ptr, true
}

// beside returns o with its reference in an allOf, where it stands alone.
func beside(o *object) *object {
	if refOf(o) == "" {
		return o
	}
	w := o.clone()
	w.remove("$ref", "$dynamicRef", "$recursiveRef")
	w.set("allOf", append([]any{schemaOf(o.ptr, "$ref", refOf(o))}, o.list("allOf")...))
	return w
}

// saysMore reports whether a definition is more than a reference to another one.
func (c *compiler) saysMore(o *object) bool { return refOf(o) == "" || !onlyAnnotated(o, "$ref") }

// reference sends a $ref, and its target among the definitions.
func (c *compiler) reference(o, target *object, ptr string) (*object, *back) {
	name, ok := c.defNames[ptr]
	if !ok {
		name = defName(ptr, c.defs.keys)
		c.defNames[ptr] = name
		c.defs.set(name, newObject(ptr)) // holds the place while the target is made
		out, b := c.defined(target)
		if out == nil {
			c.fail(ptr, "$ref", TypeNeeded, "nothing fits the definition")
			out = newObject(ptr)
		}
		c.defs.set(name, out)
		c.backs[name] = b
	}
	ref := schemaOf(o.ptr, "$ref", "#/$defs/"+name)
	b := &back{ref: name}
	if !c.d.has(TypeNeeded) {
		for _, k := range o.keys {
			if slices.Contains(annotations, k) {
				ref.set(k, o.vals[k])
			}
		}
		return ref, b
	}
	text, title := c.annotate(o, nil)
	if text == "" && title == "" {
		return ref, b
	}
	if c.d.has(RefAlone) {
		ref = schemaOf(o.ptr, "anyOf", []any{ref})
	}
	if title != "" {
		ref.set("title", title)
	}
	if text != "" {
		ref.set("description", text)
	}
	return ref, b
}

func (c *compiler) defined(target *object) (*object, *back) {
	if !c.d.has(TypeNeeded) {
		return c.light(beside(target))
	}
	w, left, entered, st := c.flat(target)
	defer c.leave(entered)
	if st == never {
		return nil, nil
	}
	return c.typed(w, left)
}

// light copies a schema for a dialect that takes nearly everything.
func (c *compiler) light(w *object) (*object, *back) {
	out, b := newObject(w.ptr), &back{every: true}
	child := func(k string, v any) any {
		x, sub := c.node(v, join(w.ptr, k))
		if sub != nil {
			b.alts = append(b.alts, sub)
		}
		if x == nil {
			return schemaOf(w.ptr, "not", newObject(w.ptr))
		}
		return x
	}
	for _, k := range w.keys {
		v := w.vals[k]
		switch {
		case slices.Contains(scaffolding, k):
		case !slices.Contains(vocabulary, k) && !slices.Contains(annotations, k):
			c.lose(w.ptr, k, Note, "", "it is no keyword of JSON Schema and is not sent")
		case k == "properties":
			props, _ := v.(*object)
			if props == nil {
				continue
			}
			to := newObject(props.ptr)
			b.props = map[string]*member{}
			for _, name := range props.keys {
				x, sub := c.node(props.vals[name], join(props.ptr, name))
				if x == nil {
					x = schemaOf(props.ptr, "not", newObject(props.ptr))
				}
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
				y, sub := c.node(x, fmt.Sprintf("%s/%s/%d", w.ptr, k, i))
				if y == nil {
					y = schemaOf(w.ptr, "not", newObject(w.ptr))
				}
				b.items = append(b.items, sub)
				to = append(to, y)
			}
			out.set(k, to)
		case k == "items" || k == "contains":
			y, sub := c.node(v, join(w.ptr, k))
			if y == nil {
				y = schemaOf(w.ptr, "not", newObject(w.ptr))
			}
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
		case k == "type":
			if list, ok := v.([]any); ok && len(list) == 1 {
				v = list[0]
			} else if ok && len(list) == 0 {
				return nil, nil
			}
			out.set(k, v)
		case k == "enum":
			if list, ok := v.([]any); ok && len(list) == 0 {
				return nil, nil
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

// wireName returns the name of a property as it is sent. ptr is the place of the properties.
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
	// The hash keeps names apart that would become equal, and from names that are there.
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

// limits checks what is sent against the sizes that the dialect allows.
func (c *compiler) limits(out *object) {
	most := func(t Trait) int {
		if r := c.d.rule(t); r != nil {
			return r.Limit
		}
		return 0
	}
	var props, enums, chars, deepest int
	var visit func(v any, depth int)
	visit = func(v any, depth int) {
		o, ok := v.(*object)
		if !ok {
			return
		}
		if o.has("properties") || o.has("items") {
			depth++
			deepest = max(deepest, depth)
		}
		if p := o.object("properties"); p != nil {
			props += len(p.keys)
			for _, k := range p.keys {
				chars += len(k)
			}
		}
		if list := o.list("enum"); list != nil {
			size := 0
			for _, v := range list {
				size += len(show(v))
			}
			enums, chars = enums+len(list), chars+size
			if m := most(MaxEnumText); m > 0 && len(list) > 250 && size > m {
				c.fail(o.ptr, "enum", MaxEnumText, "the %d values have %d characters, at most %d are taken", len(list), size, m)
			}
		}
		each(o, func(v any) any { visit(v, depth); return v })
	}
	visit(out, 0)
	for _, name := range c.defs.keys {
		chars += len(name)
		visit(c.defs.vals[name], 0)
	}
	for _, l := range []struct {
		t    Trait
		n    int
		what string
	}{{MaxDepth, deepest, "levels of nesting"}, {MaxProperties, props, "properties"}, {MaxEnum, enums, "enum values"}, {MaxText, chars, "characters of names and values"}} {
		if m := most(l.t); m > 0 && l.n > m {
			c.fail("", "", l.t, "it has %d %s, at most %d are taken", l.n, l.what, m)
		}
	}
}
