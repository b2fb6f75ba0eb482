package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
)

// maxNodes is the maximum number of nodes after references are inlined.
const maxNodes = 20000

// Compile converts schema to the dialect. A nil schema means an object without properties. Types
// and older drafts are read as by Normalize, except that nothing is read differently from valid
// JSON Schema (nullable, an enum of another type). An error is an *Error: the schema cannot be
// expressed.
func (d *Dialect) Compile(schema json.RawMessage) (*Compiled, error) { return d.compile(schema, false) }

// CompileValue is Compile for the schema of any value, not only an object, for places where a
// provider accepts one.
func (d *Dialect) CompileValue(schema json.RawMessage) (*Compiled, error) {
	return d.compile(schema, true)
}

func (d *Dialect) compile(schema json.RawMessage, value bool) (*Compiled, error) {
	load()
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	// Recursion that must be cut is cut at the deepest level that the size limit permits.
	for levels := 2; ; levels-- {
		v, err := parse(schema)
		if err != nil {
			return nil, &Error{Dialect: d.Name, Why: err.Error()}
		}
		root, ok := v.(*object)
		if !ok {
			return nil, &Error{Dialect: d.Name, Why: fmt.Sprintf("a schema is an object, got %s", clip(show(v), 40))}
		}
		n := normalizer{}
		n.schema(root)

		c := newCompiler(d, root, levels)
		var out *object
		var b *back
		if value && !slices.Contains(typesOf(root.get("type")), any("object")) {
			out, b = c.node(root, "")
			if out == nil {
				return nil, &Error{Dialect: d.Name, Why: "no value can fit"}
			}
		} else {
			out, b = c.root(root)
		}

		if c.nodes > maxNodes && levels > 0 && d.has(RecursionCut) {
			continue
		}
		return c.compiled(out, b)
	}
}

// compiled returns the result of a compilation. It is an error if something could not be expressed,
// or the output is larger than the provider takes.
func (c *compiler) compiled(out *object, b *back) (*Compiled, error) {
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
		res.back = b
		res.defs = c.backs
	}
	return res, nil
}

// compiler applies the rules of one dialect to one schema.
type compiler struct {
	dialect  *Dialect
	refs     *refs
	losses   []Loss
	seen     map[Loss]bool // by path, keyword and kind
	err      *Error        // the first error; later output is not used
	nodes    int
	levels   int            // how often a recursive schema is inlined in itself if recursion is cut
	depth    map[string]int // current inlining depth of each schema
	defs     *object        // sent as $defs
	defNames map[string]string
	backs    map[string]*back // of defs
	reshaped bool             // Restore has work to do
	unfit    string           // the last required field that accepts no value
}

func newCompiler(d *Dialect, root *object, levels int) *compiler {
	return &compiler{
		dialect:  d,
		refs:     newRefs(root),
		seen:     map[Loss]bool{},
		levels:   levels,
		depth:    map[string]int{},
		defs:     newObject(""),
		defNames: map[string]string{},
		backs:    map[string]*back{},
	}
}

func (c *compiler) lose(ptr, keyword string, kind Kind, t Trait, format string, args ...any) {
	key := Loss{Path: ptr, Keyword: keyword, Kind: kind}
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	c.losses = append(c.losses, Loss{ptr, keyword, kind, fmt.Sprintf(format, args...), c.dialect.source(t)})
}

func (c *compiler) fail(ptr, keyword string, t Trait, format string, args ...any) {
	if c.err == nil {
		c.err = &Error{c.dialect.Name, ptr, keyword, fmt.Sprintf(format, args...), c.dialect.source(t)}
	}
}

// outcome is the result of flat.
type outcome int

const (
	fits  outcome = iota
	never         // nothing matches the schema
	cut           // the schema refers to itself and is not followed further
)

// flat follows the references of o and joins its allOf into one schema. left are keywords that
// could not be joined; the caller reports them. entered are references that count as open until
// close.
func (c *compiler) flat(o *object) (w *object, left []*object, entered []string, st outcome) {
	return c.flatten(o, map[string]bool{})
}

// flatten is flat within a schema that has already followed some references. Following one of them
// again adds nothing.
func (c *compiler) flatten(o *object, following map[string]bool) (w *object, left []*object, entered []string,
	st outcome) {
	w = o.clone()
	for {
		switch {
		case refOf(w) != "":
			var in []string
			w, in, st = c.follow(w, following)
			entered = append(entered, in...)

		case w.list("allOf") != nil:
			var more []*object
			var in []string
			w, more, in, st = c.joinAll(w, following)
			left = append(left, more...)
			entered = append(entered, in...)

		default:
			return w, left, entered, fits
		}

		if c.err != nil {
			return w, left, entered, fits
		}
		if st != fits {
			return w, left, entered, st
		}
	}
}

// follow replaces the reference of w by its target. The results are as of flat.
func (c *compiler) follow(w *object, following map[string]bool) (_ *object, entered []string, st outcome) {
	t, ptr, ok := c.resolve(w)
	if !ok {
		return w, nil, fits
	}
	w = w.clone()
	w.remove("$ref", "$dynamicRef", "$recursiveRef")
	if following[ptr] {
		return w, nil, fits
	}
	following[ptr] = true

	target, ok := t.(*object)
	switch {
	case t == false:
		return w, nil, never
	case !ok:
		return w, nil, fits
	}

	if c.dialect.has(RecursionCut) && c.refs.leadsBack(target, ptr) {
		if c.depth[ptr] >= c.levels {
			return both(w, target), nil, cut
		}
		c.depth[ptr]++
		entered = []string{ptr}
	}
	return c.join(w, target), entered, fits
}

// joinAll joins the schemas of w's allOf into w. The results are as of flat.
func (c *compiler) joinAll(w *object, following map[string]bool) (_ *object, left []*object, entered []string,
	st outcome) {
	all := w.list("allOf")
	w = w.clone()
	w.remove("allOf")
	for _, v := range all {
		b, ok := v.(*object)
		switch {
		case v == false:
			return w, left, entered, never
		case !ok: // true, which says nothing
			continue
		}

		b, more, in, s := c.flatten(b, following)
		left = append(left, more...)
		entered = append(entered, in...)
		if c.err != nil {
			return newObject(w.ptr), left, entered, fits
		}
		if s != fits {
			return both(w, b), left, entered, s
		}

		// allOf with one schema is how programs write annotations next to a reference.
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
	return w, left, entered, fits
}

// join is both for a schema and the target of its reference. Annotations of the schema take
// precedence, and the paths of keywords that only the target has are the target's.
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

// close ends the references that flat entered.
func (c *compiler) close(entered []string) {
	for _, ptr := range entered {
		c.depth[ptr]--
	}
}

// node compiles the schema of a value. It returns nil if no value matches. ptr is its path if v has
// none.
func (c *compiler) node(v any, ptr string) (*object, *back) {
	c.nodes++
	if c.nodes > maxNodes {
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

	alone := refOf(o) != "" && onlyAnnotated(o, "$ref", "$dynamicRef", "$recursiveRef")
	if alone && !c.dialect.has(RecursionCut) {
		t, p, ok := c.resolve(o)
		if !ok {
			return newObject(ptr), nil
		}
		// What refers to itself has no end when it is inlined, so it is a definition in each
		// dialect.
		if target, ok := t.(*object); ok {
			mayInline := c.dialect.has(RefsInlined) && !c.refs.leadsBack(target, p)
			if !mayInline && c.saysMore(target) {
				return c.reference(o, target, p)
			}
		}
	}
	if alone && !c.dialect.has(TypeNeeded) {
		return c.inline(o, ptr)
	}
	return c.body(o)
}

// body compiles a schema that is not a reference alone.
func (c *compiler) body(o *object) (*object, *back) {
	if !c.dialect.has(TypeNeeded) {
		return c.light(beside(o))
	}
	w, left, entered, st := c.flat(o)
	defer c.close(entered)
	switch st {
	case never:
		return nil, nil
	case cut:
		return c.cut(w), nil
	}
	return c.typed(w, left)
}

// inline replaces a reference without siblings by its target.
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

// resolve returns the target of o's reference and its path. It returns false after an error.
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

// beside returns o with its reference in an allOf if it has no siblings.
func beside(o *object) *object {
	if refOf(o) == "" {
		return o
	}
	w := o.clone()
	w.remove("$ref", "$dynamicRef", "$recursiveRef")
	w.set("allOf", append([]any{schemaOf(o.ptr, "$ref", refOf(o))}, o.list("allOf")...))
	return w
}

// saysMore reports whether a definition is more than a reference to another definition.
func (c *compiler) saysMore(o *object) bool { return refOf(o) == "" || !onlyAnnotated(o, "$ref") }

// reference emits a $ref, and adds its target to the definitions.
func (c *compiler) reference(o, target *object, ptr string) (*object, *back) {
	name, ok := c.defNames[ptr]
	if !ok {
		name = defName(ptr, c.defs.keys)
		c.defNames[ptr] = name
		c.defs.set(name, newObject(ptr)) // reserves the name while the target is compiled
		out, b := c.body(target)
		if out == nil {
			c.fail(ptr, "$ref", TypeNeeded, "nothing fits the definition")
			out = newObject(ptr)
		}
		c.defs.set(name, out)
		c.backs[name] = b
	}

	ref := schemaOf(o.ptr, "$ref", "#/$defs/"+name)
	b := &back{ref: name}
	if !c.dialect.has(TypeNeeded) {
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
	if c.dialect.has(RefAlone) {
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

// limits checks the output against the size limits of the dialect.
func (c *compiler) limits(out *object) {
	s := size{compiler: c}
	s.visit(out, 0)
	for _, name := range c.defs.keys {
		s.text += len(name)
		s.visit(c.defs.vals[name], 0)
	}

	c.limit(MaxDepth, s.depth, "levels of nesting")
	c.limit(MaxProperties, s.properties, "properties")
	c.limit(MaxEnum, s.values, "enum values")
	c.limit(MaxText, s.text, "characters of names and values")
}

// limit checks that the output has at most as much of something as the provider takes.
func (c *compiler) limit(t Trait, n int, what string) {
	if m := c.most(t); m > 0 && n > m {
		c.fail("", "", t, "it has %d %s, at most %d are taken", n, what, m)
	}
}

// most returns the limit of a trait. 0 means none.
func (c *compiler) most(t Trait) int {
	if r := c.dialect.rule(t); r != nil {
		return r.Limit
	}
	return 0
}

// size is what providers limit in a schema.
type size struct {
	compiler   *compiler
	depth      int // of the deepest object or array
	properties int
	values     int // of enums
	text       int // bytes of the names and of the values
}

// visit adds the schema v, which stands depth levels deep.
func (s *size) visit(v any, depth int) {
	o, ok := v.(*object)
	if !ok {
		return
	}
	if o.has("properties") || o.has("items") {
		depth++
		s.depth = max(s.depth, depth)
	}
	if p := o.object("properties"); p != nil {
		s.properties += len(p.keys)
		for _, k := range p.keys {
			s.text += len(k)
		}
	}
	if list := o.list("enum"); list != nil {
		s.enum(o, list)
	}
	each(o, func(v any) any { s.visit(v, depth); return v })
}

// enum adds the values of an enum. Their own text is limited only if there are more than 250.
func (s *size) enum(o *object, list []any) {
	text := 0
	for _, v := range list {
		text += len(show(v))
	}
	s.values += len(list)
	s.text += text

	c := s.compiler
	if m := c.most(MaxEnumText); m > 0 && len(list) > 250 && text > m {
		c.fail(o.ptr, "enum", MaxEnumText, "the %d values have %d characters, at most %d are taken",
			len(list), text, m)
	}
}
