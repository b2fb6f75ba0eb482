package dialect

import (
	"encoding/json"
)

// back defines how a value that matches the output becomes a value that matches the original.
type back struct {
	// name of the definition that contains the rules; the other fields are then empty
	ref   string
	props map[string]*member // by their names in the output
	rest  *back              // for additional properties
	// for an array: one for all elements, or several of which the matching one is used
	items []*back
	alts  []*back // alternatives
	every bool    // all alternatives are applied; otherwise the matching one
}

// member is a property.
type member struct {
	name string // name in the original
	null bool   // null stands for an absent property
	only []any  // the allowed values; nil means any value
	back *back
}

// Restore converts arguments that a model wrote for the output schema to arguments for the
// original: a null that stands for an absent field is removed, and fields get their original names.
// Arguments without changes, and text that is not JSON, are returned byte for byte.
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
	b = r.deref(b)
	if b == nil {
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

// pick returns the alternative for which v was written: the one with its fields and its constant
// values.
func (r *restorer) pick(v any, alts []*back) *back {
	if len(alts) == 1 {
		return alts[0]
	}
	best, _ := r.best(v, alts, 0)
	return best
}

// best returns the alternative with the highest score. Nil means that none is possible.
func (r *restorer) best(v any, alts []*back, depth int) (best *back, score int) {
	for _, a := range alts {
		if s, ok := r.score(v, a, depth); ok && (best == nil || s > score) {
			best = a
			score = s
		}
	}
	return best, score
}

// scoreObject is score for an object with a form that has properties.
func (r *restorer) scoreObject(o *object, b *back, depth int) (int, bool) {
	score := 0
	for _, k := range o.keys {
		m := b.props[k]
		v := o.vals[k]
		if m == nil {
			score -= 4
			continue
		}
		if m.only != nil && v != nil && !containsValue(m.only, v) {
			return 0, false
		}

		// A property that is there counts more than what is in it.
		score += 4
		if v == nil {
			continue
		}
		if s, ok := r.score(v, m.back, depth+1); ok && s > 0 {
			score++
		}
	}
	for k := range b.props {
		if !o.has(k) {
			score -= 4
		}
	}
	return score, true
}

// score says how well a value fits a form: more is better, and false means not at all.
func (r *restorer) score(v any, b *back, depth int) (int, bool) {
	b = r.deref(b)
	if b == nil || depth > 8 {
		return 0, b != nil
	}
	if len(b.alts) > 0 && !b.every {
		best, s := r.best(v, b.alts, depth+1)
		return s, best != nil
	}

	switch x := v.(type) {
	case *object:
		if b.props == nil {
			return -1000, b.items == nil
		}
		return r.scoreObject(x, b, depth)

	case []any:
		if len(b.items) == 0 {
			return -1000, b.props == nil
		}
		if len(x) == 0 {
			return 0, true
		}
		_, s := r.best(x[0], b.items, depth+1)
		return s, true
	}
	return 0, b.props == nil && len(b.items) == 0
}
