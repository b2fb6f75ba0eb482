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
		c := &compiler{d: d, refs: newRefs(root), levels: levels, depth: map[string]int{}, defs: newObject(""),
			defNames: map[string]string{}, backs: map[string]*back{},
			seen: map[Loss]bool{}}
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
}

// compiler applies the rules of one dialect to one schema.
type compiler struct {
	d        *Dialect
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

// outcome is the result of flat.
type outcome int

const (
	fits  outcome = iota
	never         // nothing matches the schema
	cut           // the schema refers to itself and is not followed further
)

// flat follows the references of o and joins its allOf into one schema. left are keywords that
// could not be joined; the caller reports them. entered are references that count as open until
// leave.
func (c *compiler) flat(o *object) (w *object, left []*object, entered []string, st outcome) {
	return c.flatten(o, map[string]bool{})
}

// flatten is flat within a schema that has already followed some references. Following one of them
// again adds nothing.
func (c *compiler) flatten(o *object, following map[string]bool) (w *object, left []*object, entered []string,
	st outcome) {
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

func (c *compiler) leave(entered []string) {
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
	if refOf(o) != "" && onlyAnnotated(o, "$ref", "$dynamicRef", "$recursiveRef") && !c.d.has(RecursionCut) {
		t, p, ok := c.resolve(o)
		if !ok {
			return newObject(ptr), nil
		}
		if target, ok := t.(*object); ok && (!c.d.has(RefsInlined) || c.refs.leadsBack(target, p)) &&
			c.saysMore(target) {
			return c.reference(o, target, p)
		}
	}
	if !c.d.has(TypeNeeded) && refOf(o) != "" && onlyAnnotated(o, "$ref", "$dynamicRef", "$recursiveRef") {
		return c.inline(o, ptr)
	}
	return c.body(o)
}

// body compiles a schema that is not a reference alone.
func (c *compiler) body(o *object) (*object, *back) {
	if !c.d.has(TypeNeeded) {
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

// limits checks the output against the size limits of the dialect.
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
