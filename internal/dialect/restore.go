package dialect

import (
	"encoding/json"
	"slices"
)

// back says how a value that fits what was sent becomes one that fits the original.
type back struct {
	ref   string             // the name of a definition that says it; the rest is empty then
	props map[string]*member // by their sent names
	rest  *back              // of properties without a name
	items []*back            // of an array: one for all, or several of which the one that fits is taken
	alts  []*back            // alternatives
	every bool               // all alternatives are followed; otherwise the one that fits
}

// member is a property.
type member struct {
	name string // in the original
	null bool   // null stands for a property that is left out
	only []any  // the values that it may have; nil: not restricted
	back *back
}

// Restore turns arguments that a model wrote for the sent schema into arguments as the original wants them: null, where it stands
// for a field that is left out, is taken out, and fields get back their names. Arguments that need none of it, and what is no JSON,
// come back as they are, byte for byte.
func (c *Compiled) Restore(args json.RawMessage) json.RawMessage {
	if c.back == nil {
		return args
	}
	v, err := parse(args)
	if err != nil {
		return args
	}
	r := restorer{defs: c.defs}
	v = r.value(v, c.back)
	if !r.changed {
		return args
	}
	return appendJSON(nil, v)
}

type restorer struct {
	defs    map[string]*back
	changed bool
}

func (r *restorer) deref(b *back) *back {
	for i := 0; b != nil && b.ref != "" && i < 100; i++ {
		b = r.defs[b.ref]
	}
	return b
}

func (r *restorer) value(v any, b *back) any {
	if b = r.deref(b); b == nil {
		return v
	}
	if len(b.alts) > 0 {
		if b.every {
			for _, a := range b.alts {
				v = r.value(v, a)
			}
		} else if a := r.pick(v, b.alts); a != nil {
			return r.value(v, a)
		}
	}
	switch x := v.(type) {
	case *object:
		return r.object(x, b)
	case []any:
		if len(b.items) == 0 {
			return v
		}
		out := make([]any, len(x))
		for i, y := range x {
			out[i] = r.value(y, r.pick(y, b.items))
		}
		return out
	}
	return v
}

func (r *restorer) object(o *object, b *back) any {
	if b.props == nil && b.rest == nil {
		return o
	}
	out := newObject(o.ptr)
	for _, k := range o.keys {
		v := o.vals[k]
		m := b.props[k]
		switch {
		case m == nil:
			out.set(k, r.value(v, b.rest))
		case v == nil && m.null:
			r.changed = true
		default:
			if m.name != k {
				r.changed = true
			}
			out.set(m.name, r.value(v, m.back))
		}
	}
	return out
}

// pick returns the alternative that v was written for: the one with its fields and its fixed values.
func (r *restorer) pick(v any, alts []*back) *back {
	if len(alts) == 1 {
		return alts[0]
	}
	var best *back
	most := -1 << 30
	for _, a := range alts {
		if s, ok := r.score(v, a, 0); ok && s > most {
			best, most = a, s
		}
	}
	return best
}

func (r *restorer) score(v any, b *back, depth int) (int, bool) {
	if b = r.deref(b); b == nil || depth > 8 {
		return 0, b != nil
	}
	if len(b.alts) > 0 && !b.every {
		best, found := 0, false
		for _, a := range b.alts {
			if s, ok := r.score(v, a, depth+1); ok && (!found || s > best) {
				best, found = s, true
			}
		}
		return best, found
	}
	switch x := v.(type) {
	case *object:
		if b.props == nil {
			return -1000, b.items == nil
		}
		score := 0
		for _, k := range x.keys {
			m := b.props[k]
			if m == nil {
				score -= 4
				continue
			}
			if m.only != nil && x.vals[k] != nil && !slices.ContainsFunc(m.only, func(u any) bool { return equal(u, x.vals[k]) }) {
				return 0, false
			}
			score += 4
			if y := x.vals[k]; y != nil {
				if s, ok := r.score(y, m.back, depth+1); ok && s > 0 {
					score++
				}
			}
		}
		for k := range b.props {
			if !x.has(k) {
				score -= 4
			}
		}
		return score, true
	case []any:
		if len(b.items) == 0 {
			return -1000, b.props == nil
		}
		if len(x) == 0 {
			return 0, true
		}
		best, found := 0, false
		for _, i := range b.items {
			if s, ok := r.score(x[0], i, depth+1); ok && (!found || s > best) {
				best, found = s, true
			}
		}
		return best, true
	}
	return 0, b.props == nil && len(b.items) == 0
}
