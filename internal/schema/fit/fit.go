// Package fit reads arguments under a JSON Schema. Coerce repairs arguments that nearly fit.
// Example makes the smallest arguments that fit, to show them to a model whose arguments did not.
//
//	schema    {"properties":{"city":{"type":"string"},"days":{"type":"integer"}}}
//	wrote     {"City":"Oslo","days":"3"}
//	meant     {"city":"Oslo","days":3}
//	repairs   City: read as city · days: read the text "3" as the number 3
//
// Coercion never guesses. It collects the possible readings of a value and keeps the readings that
// fit the whole schema. It uses a reading only if there is exactly one. The readings are:
//
//   - text that is JSON, where the schema allows an object or a list but no text
//   - text that spells exactly a number or a boolean, where the schema allows that but no text
//   - a lone value, where the schema requires a list of such values
//   - a name that differs from a declared name only in case, hyphens and underscores
//   - null for an optional field that cannot be null: the field is dropped
//   - a word that differs from an allowed word only in case and white space
//   - arguments in {"arguments": …} or a similar wrapper
//
// Coercion never drops unknown fields and never fills in values.
package fit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-go/pawl/internal/jsonform"
)

const (
	maxSize   = 1 << 20 // bytes of arguments; larger arguments are not repaired
	maxDepth  = 32      // of nested values and branches
	maxChecks = 2000    // of values against schemas; Coerce then gives up
	maxRules  = 256     // that apply to one value; Coerce does not see the others
)

// Coerce returns the only reading of args that fits s, and its differences from args, in short
// sentences that begin with the field. ok is false if there is no reading, or more than one. Args
// that fit are returned unchanged. Coerce calls spend before each piece of work; a panic of spend
// ends it.
func Coerce(s *jsonschema.Schema, args []byte, spend func(steps int)) (fixed []byte, repairs []string, ok bool) {
	v, ok := decode(args)
	if !ok || len(args) > maxSize || !utf8.Valid(args) {
		return nil, nil, false
	}
	c := coercer{left: maxChecks, spend: spend}
	found := c.texts(flatten(s), v, "", 0)
	if _, object := v.(map[string]any); object {
		found = c.readings(s, v, "", 0)
	}
	if len(found) != 1 || c.left < 0 {
		return nil, nil, false
	}
	// Arguments are an object, even if the schema allows more.
	if _, object := found[0].value.(map[string]any); !object {
		return nil, nil, false
	}
	if len(found[0].notes) == 0 {
		return args, nil, true
	}
	fixed, err := jsonform.Marshal(found[0].value)
	return fixed, found[0].notes, err == nil
}

func decode(b []byte) (v any, ok bool) {
	v, err := jsonform.Value(b)
	return v, err == nil && !huge(v)
}

// huge reports whether v contains a number that would keep a validator busy for long: the validator
// computes every digit of 1e999999999.
func huge(v any) bool {
	switch v := v.(type) {
	case json.Number:
		e := strings.IndexAny(string(v), "eE")
		return len(v) > 1000 || e >= 0 && len(v)-e > 5
	case []any:
		return slices.ContainsFunc(v, huge)
	case map[string]any:
		for _, m := range v {
			if huge(m) {
				return true
			}
		}
	}
	return false
}

// reading is one possible interpretation of a value.
type reading struct {
	value any
	notes []string // its differences from the original
}

// coercer looks for readings. It never changes its input.
type coercer struct {
	left  int // the number of checks left; below 0 means that it gave up
	spend func(steps int)
}

func (c *coercer) fits(s *jsonschema.Schema, v any) bool {
	c.left--
	return c.left >= 0 && s.Validate(v) == nil
}

// readings returns the different values that fit s and that v can be read as. It returns only v if
// v fits.
func (c *coercer) readings(s *jsonschema.Schema, v any, at string, depth int) []reading {
	if c.left < 0 || depth > maxDepth {
		c.left = -1
		return nil
	}
	if c.fits(s, v) {
		return []reading{{value: v}}
	}
	var out []reading
	// Two readings that are equal are one: a repair needs exactly one meaning.
	add := func(r reading) {
		c.spend(len(out) * length(r.value))
		if !slices.ContainsFunc(out, func(o reading) bool { return reflect.DeepEqual(o.value, r.value) }) {
			out = append(out, r)
		}
	}
	rules := flatten(s)
	c.spend(len(rules) * (len(rules)/32 + length(v)))
	for _, r := range c.rewrites(rules, v, at, depth) {
		if c.fits(s, r.value) {
			add(r)
			continue
		}
		for _, rule := range rules {
			for _, branch := range slices.Concat(rule.AnyOf, rule.OneOf) {
				for _, b := range c.readings(branch, r.value, at, depth+1) {
					if c.fits(s, b.value) {
						add(reading{b.value, slices.Concat(r.notes, b.notes)})
					}
				}
			}
		}
		if c.left < 0 {
			return nil
		}
	}
	for _, text := range c.texts(rules, v, at, depth) {
		add(text)
	}
	return out
}

// flatten returns s and all schemas that always apply together with s.
func flatten(s *jsonschema.Schema) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	var walk func(s *jsonschema.Schema)
	walk = func(s *jsonschema.Schema) {
		if s == nil || len(out) == maxRules || slices.Contains(out, s) {
			return
		}
		out = append(out, s)
		walk(s.Ref)
		for _, a := range s.AllOf {
			walk(a)
		}
	}
	walk(s)
	return out
}

// length returns the number of fields or items of v, or 1.
func length(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return 1 + len(v)
	case []any:
		return 1 + len(v)
	}
	return 1
}

// note describes a repair of the field at.
func note(at, format string, args ...any) string {
	if at != "" {
		at += ": "
	}
	return at + fmt.Sprintf(format, args...)
}
