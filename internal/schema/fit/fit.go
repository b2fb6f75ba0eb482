// Package fit brings arguments and JSON Schemas together: Coerce reads arguments that nearly fit as the ones that were meant, and
// Example makes the smallest arguments that fit, to be shown to a model whose own did not.
//
//	schema    {"properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}
//	wrote     {"City":"Oslo","days":"3"}
//	meant     {"city":"Oslo","days":3}
//	repairs   City: read as city · days: read the text "3" as the number 3
//
// Coercion never guesses. It collects what a value could be read as, keeps the readings that fit the schema in full, and uses
// them only if there is one. These are the readings:
//
//   - text that is JSON, where an object or a list is wanted and text is not;
//   - text that is exactly a number or a boolean, where that is wanted and text is not;
//   - a lone value, where a list of such values is wanted;
//   - a name that differs from one that is wanted in case, hyphens and underscores alone;
//   - null for an optional field that cannot be null: the field is left out;
//   - a word that differs from one of the allowed ones in case and white space alone;
//   - arguments inside {"arguments": …} or the like.
//
// What a schema does not know is never left out, and nothing is ever filled in.
package fit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

const (
	maxSize   = 1 << 20 // bytes of arguments; larger ones are left alone
	maxDepth  = 32      // of nested values and branches
	maxChecks = 2000    // of values against schemas; readings are given up after
)

// Coerce returns the one reading of args under which they fit s, and what makes it differ from them, in short sentences that begin with the
// field. ok is false if there is none, or more than one. Args that fit are returned as they are.
func Coerce(s *jsonschema.Schema, args []byte) (fixed []byte, repairs []string, ok bool) {
	v, ok := decode(args)
	if !ok || len(args) > maxSize || !utf8.Valid(args) {
		return nil, nil, false
	}
	c := coercer{left: maxChecks}
	found := c.texts(flatten(s), v, "", 0)
	if _, object := v.(map[string]any); object {
		found = c.readings(s, v, "", 0)
	}
	if len(found) != 1 || c.left < 0 {
		return nil, nil, false
	}
	if _, object := found[0].value.(map[string]any); !object { // arguments are one, whatever the schema says
		return nil, nil, false
	}
	if len(found[0].notes) == 0 {
		return args, nil, true
	}
	return encode(found[0].value), found[0].notes, true
}

func decode(b []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return v, jsonscan.Valid(b) && d.Decode(&v) == nil && !huge(v)
}

// huge reports whether there is a number in v that a validator would need long for: it reckons with every digit of 1e999999999.
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

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// reading is what a value can be read as.
type reading struct {
	value any
	notes []string // how it differs from what was written
}

// coercer looks for readings. It changes no value that it was given.
type coercer struct{ left int } // how many checks it may still make; below 0: it gave up

func (c *coercer) fits(s *jsonschema.Schema, v any) bool {
	c.left--
	return c.left >= 0 && s.Validate(v) == nil
}

// readings returns the different values that fit s and that v can be read as: v alone if it fits.
func (c *coercer) readings(s *jsonschema.Schema, v any, at string, depth int) []reading {
	if c.left < 0 || depth > maxDepth {
		c.left = -1
		return nil
	}
	if c.fits(s, v) {
		return []reading{{value: v}}
	}
	var out []reading
	add := func(r reading) {
		if !slices.ContainsFunc(out, func(o reading) bool { return reflect.DeepEqual(o.value, r.value) }) {
			out = append(out, r)
		}
	}
	rules := flatten(s)
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

// flatten returns s and all schemas that hold wherever s holds.
func flatten(s *jsonschema.Schema) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	var walk func(s *jsonschema.Schema)
	walk = func(s *jsonschema.Schema) {
		if s == nil || slices.Contains(out, s) {
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

// note words a repair of the field at.
func note(at, format string, args ...any) string {
	if at != "" {
		at += ": "
	}
	return at + fmt.Sprintf(format, args...)
}

func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	n := most
	for s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
