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
		switch c {
		case '-', '_', ' ', '.':
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

	// what is in the value
	m := marksOfFields(s, root, depth)
	for _, name := range []string{"items", "additionalProperties", "prefixItems", "unevaluatedProperties", "contains"} {
		m = m.join(markOf(s[name], root, depth+1).asEach())
		list, _ := s[name].([]any)
		for _, e := range list {
			m = m.join(markOf(e, root, depth+1).asEach())
		}
	}

	// other schemas of the value itself
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

// marksOfFields returns the marks of the properties of a schema.
func marksOfFields(s, root map[string]any, depth int) (m *mark) {
	properties, _ := s["properties"].(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(properties)) {
		if f := markOf(properties[field], root, depth+1); f != nil {
			m = m.join(&mark{fields: map[string]*mark{foldName(field): f}})
		}
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		m = m.join(markOf(patterns[pattern], root, depth+1).asEach())
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

// inside returns the mark of a field, or of an item if name is "".
func (m *mark) inside(name string) *mark {
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
	if x == nil || len(b) == 0 {
		return b
	}
	if m == nil && !x.mayOccur(b) {
		return b
	}

	w := newWriter(x, b)
	err := w.value(m, m)
	whole := err == nil && len(bytes.TrimSpace(b[w.in.InputOffset():])) == 0
	switch {
	case !whole && m != nil: // the place of marked values is unknown
		return json.RawMessage(secret.Mask)
	case !whole:
		return json.RawMessage(x.text(string(b)))
	case !w.changed:
		return b
	}
	return bytes.TrimSuffix(w.copy.Bytes(), []byte("\n"))
}

// mayOccur reports whether JSON has a secret, or an escape that may hide one.
func (x *redaction) mayOccur(b json.RawMessage) bool {
	switch {
	case x.find == nil:
		return false
	case bytes.Contains(b, []byte(`\u`)), bytes.Contains(b, []byte(`\/`)):
		return true
	}
	return x.find.Find(string(b))
}

// jsonWriter copies one JSON value without secrets.
type jsonWriter struct {
	*redaction
	in      *jsontext.Decoder
	out     *jsontext.Encoder
	copy    bytes.Buffer // what was written to out
	changed bool
	// learned is called with each text that a mark hides. Nil means no call.
	learned func(string)
}

func newWriter(x *redaction, b json.RawMessage) *jsonWriter {
	w := &jsonWriter{redaction: x, in: jsontext.NewDecoder(bytes.NewReader(b), jsonform.Lenient)}
	w.out = jsontext.NewEncoder(&w.copy, jsonform.Lenient)
	return w
}

// value copies the next value. root is the mark of the whole value if this is the whole value,
// which may have a wrapper around it. Otherwise root is nil.
func (w *jsonWriter) value(m, root *mark) error {
	kind := w.in.PeekKind()
	nested := kind == '{' || kind == '['
	switch {
	case m != nil && (m.whole || !nested):
		// A field is secret here, but the value is no object: it may be an object as text, or a
		// lone value.
		return w.hide()
	case nested:
		return w.members(m, root)
	case kind == '"':
		t, err := w.in.ReadToken()
		if err != nil {
			return err
		}
		return w.string(t.String())
	}

	v, err := w.in.ReadValue()
	if err != nil {
		return err
	}
	if w.find.Find(string(v)) {
		w.changed = true
		return w.out.WriteToken(jsontext.String(secret.Mask))
	}
	return w.out.WriteValue(v)
}

// members copies an object or a list.
func (w *jsonWriter) members(m, root *mark) error {
	open, err := w.in.ReadToken()
	if err != nil {
		return err
	}
	if err := w.out.WriteToken(open); err != nil {
		return err
	}
	object := open.Kind() == '{'
	for w.in.PeekKind() != '}' && w.in.PeekKind() != ']' {
		if object {
			err = w.field(m, root)
		} else {
			err = w.item(m)
		}
		if err != nil {
			return err
		}
	}
	end, err := w.in.ReadToken()
	if err != nil {
		return err
	}
	return w.out.WriteToken(end)
}

// item copies an item of a list.
func (w *jsonWriter) item(m *mark) error {
	inner := m.inside("")
	if inner == nil {
		inner = m // a list where an object is expected
	}
	return w.value(inner, nil)
}

// field copies a member of an object.
func (w *jsonWriter) field(m, root *mark) error {
	t, err := w.in.ReadToken()
	if err != nil {
		return err
	}
	name := t.String()
	if err := w.string(name); err != nil {
		return err
	}

	inner := m.inside(name)
	if inner == nil && root != nil && w.wraps(name) {
		return w.value(root, root)
	}
	return w.value(inner, nil)
}

// wraps reports whether the next value is what a wrapper holds that the pipeline removes, as in
// {"arguments": {…}}.
func (w *jsonWriter) wraps(name string) bool {
	kind := w.in.PeekKind()
	return (kind == '{' || kind == '"') && wrapper(name)
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
	return w.out.WriteToken(jsontext.String(hidden))
}

// hide writes a Mask in place of the next value.
func (w *jsonWriter) hide() error {
	v, err := w.in.ReadValue()
	if err != nil {
		return err
	}
	// Texts within the hidden value are hidden in later texts too, where a model repeats them.
	if w.learned != nil {
		var inner any
		if json.Unmarshal(v, &inner) == nil {
			texts(inner, w.learned)
		}
	}
	w.changed = true
	// null is no secret, and says that the argument is absent.
	if string(v) == "null" {
		return w.out.WriteValue(v)
	}
	return w.out.WriteToken(jsontext.String(secret.Mask))
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
	w := newWriter(x, b)
	w.learned = func(s string) { found = append(found, s) }
	_ = w.value(m, m) // invalid JSON is hidden as a whole
	return found
}
