package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// maxDepth is the maximum nesting of an input schema. Real schemas have fewer than twenty levels.
const maxDepth = 200

// object is a JSON object that preserves the order of its members, because models fill in fields in
// the order of the schema, and equal schemas must give equal bytes. Values are *object, []any,
// string, json.Number, bool or nil.
type object struct {
	ptr  string // position in the document as a JSON Pointer; empty means the root
	keys []string
	vals map[string]any
}

func newObject(ptr string) *object { return &object{ptr: ptr, vals: map[string]any{}} }

// schemaOf builds an object from pairs of keyword and value.
func schemaOf(ptr string, pairs ...any) *object {
	o := newObject(ptr)
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) get(key string) any { return o.vals[key] }

func (o *object) has(key string) bool { _, ok := o.vals[key]; return ok }

// set keeps the position of an existing key.
func (o *object) set(key string, v any) {
	if !o.has(key) {
		o.keys = append(o.keys, key)
	}
	o.vals[key] = v
}

func (o *object) remove(keys ...string) {
	for _, key := range keys {
		if o.has(key) {
			delete(o.vals, key)
			o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
		}
	}
}

// clone copies the members, not their values.
func (o *object) clone() *object {
	return &object{ptr: o.ptr, keys: slices.Clone(o.keys), vals: maps.Clone(o.vals)}
}

func (o *object) object(key string) *object { v, _ := o.vals[key].(*object); return v }

func (o *object) list(key string) []any { v, _ := o.vals[key].([]any); return v }

func (o *object) text(key string) string { v, _ := o.vals[key].(string); return v }

// words returns the distinct strings of a list.
func (o *object) words(key string) []string {
	var out []string
	for _, v := range o.list(key) {
		if s, ok := v.(string); ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// parse parses a document. The last value of a repeated member counts, as in encoding/json.
func parse(src []byte) (any, error) {
	if !json.Valid(src) {
		var v any
		return nil, fmt.Errorf("no JSON: %w", json.Unmarshal(src, &v))
	}
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	return parseValue(d, "", 0)
}

func parseValue(d *json.Decoder, ptr string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := newObject(ptr)
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseValue(d, join(ptr, k.(string)), depth+1)
			if err != nil {
				return nil, err
			}
			o.set(k.(string), v)
		}
		_, err = d.Token()
		return o, err

	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d, fmt.Sprintf("%s/%d", ptr, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}

// join adds a name to a JSON Pointer.
func join(ptr, name string) string {
	return ptr + "/" + escape.Replace(name)
}

// The escapes of names in a JSON Pointer.
var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// appendJSON appends v on one line.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case json.Number:
		return append(b, v...)
	case int:
		return fmt.Append(b, v)
	case string:
		return jsonscan.AppendString(b, v)

	case []any:
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, x)
		}
		return append(b, ']')

	case *object:
		b = append(b, '{')
		for i, k := range v.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(jsonscan.AppendString(b, k), ':')
			b = appendJSON(b, v.vals[k])
		}
		return append(b, '}')
	}
	panic(fmt.Sprintf("dialect: a %T is no JSON", v))
}

func show(v any) string { return string(appendJSON(nil, v)) }

// equal reports whether two values are the same JSON, in any order of members. Numbers are compared
// by spelling.
func equal(a, b any) bool {
	switch a := a.(type) {
	case *object:
		b, ok := b.(*object)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for _, k := range a.keys {
			if !b.has(k) || !equal(a.vals[k], b.vals[k]) {
				return false
			}
		}
		return true

	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	}

	switch b.(type) {
	case *object, []any:
		return false
	}
	return a == b
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, ok1 := rat(a)
	y, ok2 := rat(b)
	return ok1 && ok2 && x.Cmp(y) == 0
}
