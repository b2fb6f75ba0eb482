package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// object reads the members of v as rules require. A member without a reading stays unchanged.
func (c *coercer) object(rules []*jsonschema.Schema, v map[string]any, at string, depth int) reading {
	out := maps.Clone(v)
	notes := rename(rules, out, at, closed(rules))
	for _, name := range slices.Sorted(maps.Keys(out)) {
		subs, _ := members(rules, name)
		where := join(at, name)
		// Models write null for an argument that they leave out.
		if out[name] == nil && optional(rules, name) &&
			slices.ContainsFunc(subs, func(s *jsonschema.Schema) bool { return !c.fits(s, nil) }) {
			delete(out, name)
			notes = append(notes, note(where, "left out, since it was null"))
			continue
		}

		if r, ok := c.one(subs, out[name], where, depth); ok {
			out[name] = r.value
			notes = append(notes, r.notes...)
		}
	}
	return reading{out, notes}
}

// one returns the single reading of v that fits all of subs.
func (c *coercer) one(subs []*jsonschema.Schema, v any, at string, depth int) (reading, bool) {
	unfit := slices.DeleteFunc(slices.Clone(subs), func(s *jsonschema.Schema) bool { return c.fits(s, v) })
	if len(unfit) != 1 {
		return reading{}, false
	}
	found := c.readings(unfit[0], v, at, depth+1)
	if len(found) != 1 {
		return reading{}, false
	}
	return found[0], !slices.ContainsFunc(subs, func(s *jsonschema.Schema) bool { return !c.fits(s, found[0].value) })
}

// members returns the schemas that apply to the member name, and whether the name is declared.
func members(rules []*jsonschema.Schema, name string) (subs []*jsonschema.Schema, declared bool) {
	for _, r := range rules {
		known := false
		if s := r.Properties[name]; s != nil {
			subs = append(subs, s)
			known = true
		}
		for pattern, s := range r.PatternProperties {
			if pattern.MatchString(name) {
				subs = append(subs, s)
				known = true
			}
		}
		// Per rule: JSON Schema's additionalProperties sees only the properties of its own schema.
		if s, ok := r.AdditionalProperties.(*jsonschema.Schema); ok && !known {
			subs = append(subs, s)
		}
		declared = declared || known
	}
	return subs, declared
}

// optional reports whether rules name a member and do not require it.
func optional(rules []*jsonschema.Schema, name string) bool {
	listed := slices.ContainsFunc(rules, func(r *jsonschema.Schema) bool { return r.Properties[name] != nil })
	return listed && !required(rules, name)
}

func required(rules []*jsonschema.Schema, name string) bool {
	return slices.ContainsFunc(rules, func(r *jsonschema.Schema) bool { return slices.Contains(r.Required, name) })
}

// closed reports whether rules reject undeclared names.
func closed(rules []*jsonschema.Schema) bool {
	return slices.ContainsFunc(rules, func(r *jsonschema.Schema) bool {
		if r.AdditionalProperties == false {
			return true
		}
		u := r.UnevaluatedProperties
		return u != nil && u.Bool != nil && !*u.Bool
	})
}

// rename gives members of v the declared names from which they differ only in case, hyphens and
// underscores. It considers required names, and with optional all names.
func rename(rules []*jsonschema.Schema, v map[string]any, at string, optional bool) (notes []string) {
	wrote := map[string][]string{} // by folded name
	for name := range v {
		if _, declared := members(rules, name); !declared {
			wrote[fold(name)] = append(wrote[fold(name)], name)
		}
	}
	if len(wrote) == 0 {
		return nil
	}

	// Two names of either side with the same folded form are not renamed: it is not clear which.
	meant := map[string][]string{}
	for _, r := range rules {
		for name := range r.Properties {
			if f := fold(name); len(meant[f]) < 2 && !slices.Contains(meant[f], name) {
				meant[f] = append(meant[f], name)
			}
		}
	}

	for _, f := range slices.Sorted(maps.Keys(wrote)) {
		if len(wrote[f]) != 1 || len(meant[f]) != 1 {
			continue
		}
		from := wrote[f][0]
		to := meant[f][0]
		if _, there := v[to]; there || !optional && !required(rules, to) {
			continue
		}
		v[to] = v[from]
		delete(v, from)
		notes = append(notes, note(join(at, from), "read as %s", to))
	}
	return notes
}

func fold(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- .", r) {
			return -1
		}
		return r
	}, name))
}

// wrappers are the names under which models nest all arguments.
var wrappers = []string{"arguments", "parameters", "args", "params", "input"}

// unwrapped reads {"arguments": {…}} as its content, at the root, if no argument has that name.
func (c *coercer) unwrapped(rules []*jsonschema.Schema, v map[string]any, at string, depth int) (reading, bool) {
	if at != "" || depth > 0 || len(v) != 1 {
		return reading{}, false
	}
	for name, inner := range v {
		_, declared := members(rules, name)
		_, isObject := inner.(map[string]any)
		_, isText := inner.(string)
		if declared || !slices.Contains(wrappers, name) {
			break
		}
		if !isObject && !isText {
			break
		}

		found := c.texts(rules, inner, "", depth+1)
		if isObject {
			found = c.readings(rules[0], inner, "", depth+1)
		}
		// Two readings of the content would be a guess.
		if len(found) != 1 {
			break
		}
		note := fmt.Sprintf("took the arguments out of %q", name)
		return reading{found[0].value, append([]string{note}, found[0].notes...)}, true
	}
	return reading{}, false
}

// list reads the elements of v as rules require.
func (c *coercer) list(rules []*jsonschema.Schema, v []any, at string, depth int) reading {
	out := slices.Clone(v)
	var notes []string
	for i := range out {
		if r, ok := c.one(itemRules(rules, i), out[i], fmt.Sprintf("%s[%d]", at, i), depth); ok {
			out[i] = r.value
			notes = append(notes, r.notes...)
		}
	}
	return reading{out, notes}
}

// itemRules returns the schemas that apply to element i.
func itemRules(rules []*jsonschema.Schema, i int) (subs []*jsonschema.Schema) {
	add := func(v any) {
		if s, ok := v.(*jsonschema.Schema); ok && s != nil {
			subs = append(subs, s)
		}
	}
	for _, r := range rules {
		tuple := r.PrefixItems
		rest := any(r.Items2020)
		// Drafts before 2020-12 write tuples as a list in items, with the rest in additionalItems.
		if list, ok := r.Items.([]*jsonschema.Schema); ok {
			tuple = list
			rest = r.AdditionalItems
		} else if r.Items != nil {
			rest = r.Items
		}
		if i < len(tuple) {
			add(tuple[i])
		} else {
			add(rest)
		}
	}
	return subs
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
