package redact

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/schema"
	"github.com/pawl-go/pawl/redact/internal/secret"
)

// mark marks the secret arguments of a tool.
type mark struct {
	whole  bool             // this value is secret
	fields map[string]*mark // by folded name
	each   *mark            // the items of a list, and other fields of an object
}

// marksOf returns the marks of tools by their folded names. Tools without marks are absent.
func marksOf(tools []*pawl.Tool) map[string]*mark {
	marks := map[string]*mark{}
	for _, t := range tools {
		if !bytes.Contains(t.Input, []byte(`writeOnly`)) && !bytes.Contains(t.Input, []byte(`x-secret`)) {
			continue
		}
		var root map[string]any
		if json.Unmarshal(t.Input, &root) != nil {
			continue
		}
		if m := markOf(root, root, 0); m != nil {
			marks[foldName(t.Name)] = m
		}
	}
	return marks
}

// foldName maps names to one spelling if the pipeline may treat them as equal.
func foldName(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c == ' ' || c == '.' {
			return -1
		}
		return c
	}, strings.ToLower(s))
}

// markOf returns the marks below a schema, or nil if there are none.
func markOf(from any, root map[string]any, depth int) *mark {
	s, ok := from.(map[string]any)
	if !ok || depth > 16 {
		return nil
	}
	if s["writeOnly"] == true || s["x-secret"] == true {
		return &mark{whole: true}
	}
	var m *mark
	for _, name := range []string{"properties", "patternProperties"} {
		props, _ := s[name].(map[string]any)
		for _, field := range slices.Sorted(maps.Keys(props)) {
			if f := markOf(props[field], root, depth+1); f != nil && name == "properties" {
				m = m.join(&mark{fields: map[string]*mark{foldName(field): f}})
			} else {
				m = m.join(f.asEach())
			}
		}
	}
	for _, name := range []string{"items", "additionalProperties", "prefixItems", "unevaluatedProperties", "contains"} {
		m = m.join(markOf(s[name], root, depth+1).asEach())
		if list, ok := s[name].([]any); ok {
			for _, e := range list {
				m = m.join(markOf(e, root, depth+1).asEach())
			}
		}
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[name].([]any)
		for _, e := range list {
			m = m.join(markOf(e, root, depth+1))
		}
	}
	for _, name := range []string{"then", "else", "if"} {
		m = m.join(markOf(s[name], root, depth+1))
	}
	if ref, ok := s["$ref"].(string); ok && strings.HasPrefix(ref, "#") {
		m = m.join(markOf(schema.Pointed(root, ref[1:]), root, depth+1))
	}
	return m
}

func (m *mark) asEach() *mark {
	if m == nil {
		return nil
	}
	return &mark{each: m}
}

// join returns the union of the marks m and o.
func (m *mark) join(o *mark) *mark {
	switch {
	case m == nil:
		return o
	case o == nil:
		return m
	}
	out := &mark{whole: m.whole || o.whole, each: m.each.join(o.each), fields: maps.Clone(m.fields)}
	for name, f := range o.fields {
		if out.fields == nil {
			out.fields = map[string]*mark{}
		}
		out.fields[name] = out.fields[name].join(f)
	}
	return out
}

// of returns the mark of a field, or of an item if name is "".
func (m *mark) of(name string) *mark {
	if m == nil || m.whole {
		return m
	}
	if f := m.fields[foldName(name)]; f != nil && name != "" {
		return f
	}
	return m.each
}

func (x *redaction) mark(marks map[string]*mark) {
	all := maps.Clone(x.marks)
	for name, m := range marks {
		if all == nil {
			all = map[string]*mark{}
		}
		all[name] = all[name].join(m)
	}
	x.marks = all
}

// markOf returns the marks of a tool's arguments.
func (x *redaction) markOf(tool string) *mark {
	if x == nil || len(x.marks) == 0 {
		return nil
	}
	return x.marks[foldName(tool)]
}

// json returns b without secrets and without the values that m marks.
func (x *redaction) json(b json.RawMessage, m *mark) json.RawMessage {
	if x == nil || len(b) == 0 || m == nil &&
		(x.find == nil || !bytes.Contains(b, []byte(`\u`)) && !bytes.Contains(b, []byte(`\/`)) && !x.find.Find(string(b))) {
		return b
	}
	w := jsonWriter{redaction: x, d: jsontext.NewDecoder(bytes.NewReader(b), jsonform.Lenient)}
	w.e = jsontext.NewEncoder(&w.out, jsonform.Lenient)
	if err := w.value(m, m); err != nil || len(bytes.TrimSpace(b[w.d.InputOffset():])) > 0 {
		if m != nil { // the place of marked values is unknown
			return json.RawMessage(secret.Mask)
		}
		return json.RawMessage(x.text(string(b)))
	}
	if !w.changed {
		return b
	}
	return bytes.TrimSuffix(w.out.Bytes(), []byte("\n"))
}

// jsonWriter copies one JSON value without secrets.
type jsonWriter struct {
	*redaction
	d       *jsontext.Decoder
	e       *jsontext.Encoder
	out     bytes.Buffer
	changed bool
	// learned is called with each text that a mark hides. Nil means no call.
	learned func(string)
}

// value copies the next value. root is the mark of the whole value if this is the whole value,
// which may have a wrapper around it. Otherwise root is nil.
func (w *jsonWriter) value(m, root *mark) error {
	if m != nil && (m.whole || w.d.PeekKind() != '{' && w.d.PeekKind() != '[') {
		// A field is secret here, but the value is no object: it may be an object as text, or a
		// lone value.
		return w.hide()
	}
	switch w.d.PeekKind() {
	case '{', '[':
		open, err := w.d.ReadToken()
		if err != nil {
			return err
		}
		object := open.Kind() == '{'
		if err := w.e.WriteToken(open); err != nil {
			return err
		}
		for w.d.PeekKind() != '}' && w.d.PeekKind() != ']' {
			name := ""
			if object {
				t, err := w.d.ReadToken()
				if err != nil {
					return err
				}
				name = t.String()
				if err := w.string(name); err != nil {
					return err
				}
			}
			inner, wrapped := m.of(name), (*mark)(nil)
			if !object && inner == nil {
				inner = m // a list where an object is expected
			}
			if object && inner == nil && root != nil && (w.d.PeekKind() == '{' || w.d.PeekKind() == '"') &&
				wrapper(name) {
				// {"arguments": {…}}, a wrapper that the pipeline removes.
				inner = root
				wrapped = root
			}
			if err := w.value(inner, wrapped); err != nil {
				return err
			}
		}
		end, err := w.d.ReadToken()
		if err != nil {
			return err
		}
		return w.e.WriteToken(end)
	case '"':
		t, err := w.d.ReadToken()
		if err != nil {
			return err
		}
		return w.string(t.String())
	}
	v, err := w.d.ReadValue()
	if err != nil {
		return err
	}
	if w.find.Find(string(v)) {
		w.changed = true
		return w.e.WriteToken(jsontext.String(secret.Mask))
	}
	return w.e.WriteValue(v)
}

func wrapper(name string) bool {
	switch foldName(name) {
	case "arguments", "args", "parameters", "params", "input", "kwargs":
		return true
	}
	return false
}

func (w *jsonWriter) string(s string) error {
	hidden := w.text(s)
	w.changed = w.changed || hidden != s
	return w.e.WriteToken(jsontext.String(hidden))
}

// hide writes a Mask in place of the next value.
func (w *jsonWriter) hide() error {
	v, err := w.d.ReadValue()
	if err != nil {
		return err
	}
	if w.learned != nil {
		var inner any
		if json.Unmarshal(v, &inner) == nil {
			texts(inner, w.learned)
		}
	}
	w.changed = true
	if string(v) == "null" {
		return w.e.WriteValue(v)
	}
	return w.e.WriteToken(jsontext.String(secret.Mask))
}

// texts calls f with every text in v.
func texts(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
		var inner any // arguments as text
		if strings.HasPrefix(strings.TrimSpace(v), "{") && json.Unmarshal([]byte(v), &inner) == nil {
			texts(inner, f)
		}
	case []any:
		for _, e := range v {
			texts(e, f)
		}
	case map[string]any:
		for _, e := range v {
			texts(e, f)
		}
	}
}

// secretsIn returns the texts in b that m hides.
func (x *redaction) secretsIn(b json.RawMessage, m *mark) (found []string) {
	w := jsonWriter{redaction: x, d: jsontext.NewDecoder(bytes.NewReader(b), jsonform.Lenient),
		learned: func(s string) { found = append(found, s) }}
	w.e = jsontext.NewEncoder(&w.out, jsonform.Lenient)
	_ = w.value(m, m) // invalid JSON is hidden as a whole
	return found
}
