package dialect

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// refs resolves references and detects recursive ones.
type refs struct {
	root      *object
	anchors   map[string]any  // by $anchor, $dynamicAnchor and $id
	recursive map[string]bool // results of leadsBack, by path
	looping   map[string]bool // results of loops, by path
}

func newRefs(root *object) *refs {
	r := &refs{root: root, anchors: map[string]any{}, recursive: map[string]bool{}, looping: map[string]bool{}}
	walk(root, func(o *object) {
		for _, k := range []string{"$anchor", "$dynamicAnchor"} {
			if s := o.text(k); s != "" {
				r.anchors["#"+s] = o
			}
		}
		for _, k := range []string{"$id", "id"} {
			if s := o.text(k); s != "" {
				if _, ok := r.anchors[s]; !ok {
					r.anchors[s] = o
				}
			}
		}
	})
	return r
}

// walk calls f for o and every schema inside it.
func walk(v any, f func(*object)) {
	o, ok := v.(*object)
	if !ok {
		return
	}
	f(o)
	each(o, func(v any) any { walk(v, f); return v })
}

// refOf returns the reference of o. It returns "" if it has none.
func refOf(o *object) string {
	for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if s, ok := o.vals[k].(string); ok {
			return cmp.Or(s, "#") // the empty reference means the document
		}
	}
	return ""
}

// resolve returns the target of ref and its path as a JSON Pointer.
func (r *refs) resolve(ref string) (target any, ptr string, err error) {
	if v, ok := r.anchors[ref]; ok {
		return v, v.(*object).ptr, nil
	}

	// A reference may name the schema itself, by its own address.
	id := cmp.Or(r.root.text("$id"), r.root.text("id"))
	if rest, ok := strings.CutPrefix(ref, id); ok && id != "" {
		ref = cmp.Or(rest, "#")
	}
	frag, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, "", fmt.Errorf("%s is not part of the schema, and nothing is loaded from elsewhere", ref)
	}
	if v, ok := r.anchors[ref]; ok {
		return v, v.(*object).ptr, nil
	}
	if s, err := url.PathUnescape(frag); err == nil {
		frag = s
	}
	if frag == "" {
		return r.root, "", nil
	}
	if frag[0] != '/' {
		return nil, "", fmt.Errorf("there is no $anchor %s", frag)
	}

	var v any = r.root
	for name := range strings.SplitSeq(frag[1:], "/") {
		v, ok = step(v, unescape.Replace(name))
		if !ok {
			return nil, "", fmt.Errorf("%s points to nothing", ref)
		}
	}
	switch v := v.(type) {
	case *object:
		return v, v.ptr, nil
	case bool:
		return v, frag, nil
	}
	return nil, "", fmt.Errorf("%s points to something that is not a schema", ref)
}

// step returns the value of v to which a name in a reference leads.
func step(v any, name string) (any, bool) {
	switch v := v.(type) {
	case *object:
		switch {
		case v.has(name):
			return v.get(name), true
		case name == "items" && v.has("prefixItems"):
			return v.get("prefixItems"), true // normalizer.tuple moved it there

		// Draft 7 has definitions where 2020-12 has $defs, and some documents contain both.
		case name == "definitions" && v.has("$defs"):
			return v.get("$defs"), true
		case name == "$defs" && v.has("definitions"):
			return v.get("definitions"), true
		}

	case []any:
		i, err := strconv.Atoi(name)
		if err == nil && 0 <= i && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

// leadsBack reports whether the schema at ptr has a reference, directly or through its references,
// that leads to it again.
func (r *refs) leadsBack(target any, ptr string) bool {
	if back, ok := r.recursive[ptr]; ok {
		return back
	}
	seen := map[string]bool{}
	var visit func(v any) bool
	visit = func(v any) bool {
		found := false
		walk(v, func(o *object) {
			if found || refOf(o) == "" {
				return
			}
			t, p, err := r.resolve(refOf(o))
			if err != nil || seen[p] {
				found = found || p == ptr && err == nil
				return
			}
			if p == ptr {
				found = true
				return
			}
			seen[p] = true
			found = visit(t)
		})
		return found
	}

	r.recursive[ptr] = visit(target)
	return r.recursive[ptr]
}

// loops reports whether the schema at ptr leads back to itself without descending to a property or
// an item, by references and alternatives alone.
func (r *refs) loops(target any, ptr string) bool {
	if loops, ok := r.looping[ptr]; ok {
		return loops
	}
	seen := map[string]bool{}
	var visit func(v any) bool
	visit = func(v any) bool {
		o, ok := v.(*object)
		if !ok {
			return false
		}
		if refOf(o) != "" {
			if t, p, err := r.resolve(refOf(o)); err == nil && !seen[p] {
				seen[p] = true
				if p == ptr || visit(t) {
					return true
				}
			}
		}

		for _, k := range []string{"allOf", "anyOf", "oneOf"} {
			if slices.ContainsFunc(o.list(k), visit) {
				return true
			}
		}
		if slices.ContainsFunc([]string{"not", "if", "then", "else"}, func(k string) bool { return visit(o.get(k)) }) {
			return true
		}
		deps := o.object("dependentSchemas")
		return deps != nil && slices.ContainsFunc(deps.keys, func(k string) bool { return visit(deps.vals[k]) })
	}
	r.looping[ptr] = visit(target)
	return r.looping[ptr]
}

// isName reports whether a part of a path was chosen by the author of the schema: it is neither an
// index nor the keyword of items and properties.
func isName(part string) bool {
	switch part {
	case "", "items", "properties":
		return false
	}
	_, err := strconv.Atoi(part)
	return err != nil
}

// defName derives a name for a definition from its path: the last part that is a name.
func defName(ptr string, taken []string) string {
	parts := strings.Split(ptr, "/")
	name := "root"
	for _, p := range slices.Backward(parts) {
		if isName(p) {
			name = p
			break
		}
	}
	b := []byte(clip(name, 48))
	for i, c := range b {
		if c == '.' || !inWireName(c) {
			b[i] = '_'
		}
	}
	name = string(b)
	for i := 2; slices.Contains(taken, name); i++ {
		name = string(b) + "_" + strconv.Itoa(i)
	}
	return name
}
