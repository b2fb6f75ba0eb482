package dialect

import (
	"encoding/json"
	"slices"
	"strings"
)

// Unchecked removes the regular expressions of a schema that check refuses, and returns them with
// their reasons. A description names each, so that a model still follows it. The result accepts
// everything that the schema accepts: where a removed expression would make a schema stricter (in
// not, if and oneOf), that keyword is removed or weakened too. A schema without such an expression
// is returned unchanged.
func Unchecked(schema json.RawMessage, check func(pattern string) error) (json.RawMessage, []Change, error) {
	v, err := parse(schema)
	if err != nil {
		return nil, nil, err
	}
	o, ok := v.(*object)
	if !ok {
		return schema, nil, nil
	}

	u := unchecker{check: check}
	if !u.refusesAny(o) {
		return schema, nil, nil
	}
	u.schema(o)
	return appendJSON(nil, o), u.changes, nil
}

// unchecker removes patterns from a tree in place.
type unchecker struct {
	check   func(pattern string) error
	changes []Change
}

// refusesAny reports whether a schema has a pattern that is refused.
func (u *unchecker) refusesAny(o *object) bool {
	if p, ok := o.get("pattern").(string); ok && u.check(p) != nil {
		return true
	}
	if named := o.object("patternProperties"); named != nil {
		for _, p := range named.keys {
			if u.check(p) != nil {
				return true
			}
		}
	}
	found := false
	each(o, func(v any) any {
		if inner, ok := v.(*object); ok && !found {
			found = u.refusesAny(inner)
		}
		return v
	})
	return found
}

// mayRefuse reports whether a value of a keyword has a pattern that is refused, here or behind a
// reference.
func (u *unchecker) mayRefuse(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, u.mayRefuse)
	case *object:
		return strings.Contains(show(v), `ref":`) || u.refusesAny(v)
	}
	return false
}

// schema removes the patterns of one schema and of the schemas in it.
func (u *unchecker) schema(o *object) {
	u.negations(o)

	if p, ok := o.get("pattern").(string); ok {
		if err := u.check(p); err != nil {
			u.change(o, p, err)
			describe(o, []string{hint("pattern", p)})
			o.remove("pattern")
		}
	}
	u.names(o)

	each(o, func(v any) any {
		if inner, ok := v.(*object); ok {
			u.schema(inner)
		}
		return v
	})
}

// negations weakens the keywords in which a weaker schema accepts less.
func (u *unchecker) negations(o *object) {
	weak := func(keyword string) bool {
		if !u.mayRefuse(o.get(keyword)) {
			return false
		}
		u.changes = append(u.changes, Change{o.ptr, keyword + " is not checked here, because of a pattern in it"})
		return true
	}

	if weak("not") {
		describe(o, []string{hint("not", o.get("not"))})
		o.remove("not")
	}
	if weak("if") {
		o.remove("if", "then", "else")
	}
	if weak("oneOf") {
		list := o.get("oneOf")
		o.remove("oneOf")
		if !o.has("anyOf") {
			o.set("anyOf", list)
		}
	}
	if o.has("maxContains") && weak("contains") {
		o.remove("maxContains")
	}
}

// names removes refused patterns of field names. Fields with such names are then of any kind.
func (u *unchecker) names(o *object) {
	named := o.object("patternProperties")
	if named == nil {
		return
	}
	for _, p := range slices.Clone(named.keys) {
		err := u.check(p)
		if err == nil {
			continue
		}
		u.change(o, p, err)
		describe(o, []string{"fields whose names match " + clip(p, 120)})
		named.remove(p)
		o.remove("additionalProperties", "unevaluatedProperties")
	}
	if len(named.keys) == 0 {
		o.remove("patternProperties")
	}
}

func (u *unchecker) change(o *object, pattern string, err error) {
	text := "the pattern " + clip(pattern, 120) + " is not checked here: " + clip(err.Error(), 120)
	u.changes = append(u.changes, Change{o.ptr, text})
}
