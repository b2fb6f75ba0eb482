package fit

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-go/pawl/internal/jsonrepair"
	"github.com/pawl-go/pawl/internal/text"
)

// wanted is the set of types that all rules allow. An empty set means that no rule states a type.
type wanted []string

func types(rules []*jsonschema.Schema) (out wanted) {
	for _, r := range rules {
		if r.Types == nil {
			continue
		}
		these := r.Types.ToStrings()
		if out == nil {
			out = these
			continue
		}
		out = slices.DeleteFunc(out, func(t string) bool { return !slices.Contains(these, t) })
	}
	return out
}

func (w wanted) has(kinds ...string) bool {
	return slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(w, k) })
}

// rewrites returns the possible readings of v under rules, with changes in v or of v itself. Not
// all of them fit.
func (c *coercer) rewrites(rules []*jsonschema.Schema, v any, at string, depth int) []reading {
	want := types(rules)
	var out []reading
	switch v := v.(type) {
	case map[string]any:
		out = append(out, c.object(rules, v, at, depth))
		if r, ok := c.unwrapped(rules, v, at, depth); ok {
			out = append(out, r)
		}
	case []any:
		out = append(out, c.list(rules, v, at, depth))
	case string:
		out = append(out, reading{value: v})
		out = append(out, scalars(want, rules, v, at)...)
		out = append(out, words(rules, v, at)...)
	default:
		out = append(out, reading{value: v})
	}

	// A text with commas or spaces could be one item or several, so that it stays unchanged.
	if want.has("array") && loneItem(rules, want, v) {
		r := c.list(rules, []any{v}, at, depth)
		r.notes = append([]string{note(at, "put the lone value in a list")}, r.notes...)
		if !manyWords(rules, r.value) {
			out = append(out, r)
		}
	}
	return out
}

// loneItem reports whether v may be the only item of a list that rules allow.
func loneItem(rules []*jsonschema.Schema, want wanted, v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		empty := strings.TrimSpace(v) == ""
		wholeList := jsonText(v) && !want.has("string")
		return !empty && !wholeList
	case []any:
		// A list that does not fit is not a reason to read it as an item of a list.
		return slices.ContainsFunc(itemRules(rules, 0),
			func(s *jsonschema.Schema) bool { return types(flatten(s)).has("array") })
	}
	return true
}

// manyWords reports whether a list of one string may have been meant as several strings.
func manyWords(rules []*jsonschema.Schema, list any) bool {
	s, ok := list.([]any)[0].(string)
	if !ok || !strings.ContainsAny(s, ",;|\n") {
		return false
	}
	for _, item := range itemRules(rules, 0) {
		for _, r := range flatten(item) {
			if r.Enum != nil || r.Const != nil {
				return false
			}
		}
	}
	return true
}

// scalars reads text as the number or the boolean that it spells exactly.
func scalars(want wanted, rules []*jsonschema.Schema, s, at string) (out []reading) {
	listed := slices.ContainsFunc(rules, func(r *jsonschema.Schema) bool { return r.Enum != nil || r.Const != nil })
	switch {
	case want.has("string"):
		return nil
	case want == nil && !listed: // any type is allowed, text among them
		return nil
	}

	number := func(n string) {
		how := note(at, "read the text %q as the number %s", text.Clip(s, 60), n)
		out = append(out, reading{json.Number(n), []string{how}})
	}
	if isNumber(s) {
		whole, fraction, _ := strings.Cut(s, ".")
		integral := strings.Trim(fraction, "0") == "" && !strings.ContainsAny(whole, "eE")
		switch {
		case want == nil || want.has("number"):
			number(s)
		// 12.0 is an integer in JSON Schema and for no decoder of Go.
		case want.has("integer") && integral:
			number(whole)
		}
	}

	if want == nil || want.has("boolean") {
		switch strings.ToLower(s) {
		case "true":
			out = append(out, reading{true, []string{note(at, "read the text %q as true", s)}})
		case "false":
			out = append(out, reading{false, []string{note(at, "read the text %q as false", s)}})
		}
	}
	return out
}

// isNumber reports whether s is exactly one JSON number, of a plausible size.
func isNumber(s string) bool {
	const longest = 32
	switch {
	case len(s) == 0 || len(s) > longest:
		return false
	case s[0] != '-' && (s[0] < '0' || s[0] > '9'): // another value, or a space
		return false
	case !json.Valid([]byte(s)) || strings.TrimSpace(s) != s:
		return false
	}

	e := strings.IndexAny(s, "eE")
	return e < 0 || len(s)-e <= 5
}

// words reads text as the allowed word that differs only in case and white space.
func words(rules []*jsonschema.Schema, s, at string) (out []reading) {
	for _, r := range rules {
		var allowed []any
		if r.Enum != nil {
			allowed = r.Enum.Values
		} else if r.Const != nil {
			allowed = []any{*r.Const}
		}
		for _, a := range allowed {
			if w, ok := a.(string); ok && w != s && strings.EqualFold(spaced(w), spaced(s)) {
				out = append(out, reading{w, []string{note(at, "read %q as %q", text.Clip(s, 60), text.Clip(w, 60))}})
			}
		}
	}
	return out
}

func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// jsonText reports whether s looks like an object or a list.
func jsonText(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && (s[0] == '{' || s[0] == '[')
}

// texts reads text as the JSON that it contains, if text is not allowed.
func (c *coercer) texts(rules []*jsonschema.Schema, v any, at string, depth int) (out []reading) {
	s, ok := v.(string)
	want := types(rules)
	switch {
	case !ok || want.has("string"): // it is right as text
		return nil
	case at != "" && !jsonText(s):
		return nil
	case at == "" && want == nil: // the arguments themselves, sent as text
	case !want.has("object", "array"):
		return nil
	}

	fixed, notes, err := jsonrepair.Repair([]byte(s))
	if err != nil {
		return nil
	}
	inner, ok := decode(fixed)
	// A text that reads as itself would be read for ever.
	if _, same := inner.(string); !ok || same && inner == v {
		return nil
	}
	for i, n := range notes {
		notes[i] = note(at, "%s", n)
	}
	notes = append([]string{note(at, "read the text as the JSON that it is")}, notes...)
	for _, r := range c.readings(rules[0], inner, at, depth+1) {
		out = append(out, reading{r.value, slices.Concat(notes, r.notes)})
	}
	return out
}
