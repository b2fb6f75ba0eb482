package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/text"
)

// Schema is a tool's input schema, compiled. It may be used concurrently.
type Schema struct {
	full *jsonschema.Schema
	fast *fastSchema    // accepts the plain cases without decoding; nil: none
	any  bool           // the value need not be an object
	doc  map[string]any // what it was compiled from

	meter *meter // of full
	shown shown
}

// EmptyObject is the schema of an object without properties.
const EmptyObject = `{"type":"object","properties":{}}`

// Compile compiles a JSON Schema of draft 2020-12, or the one its $schema names. Formats are checked. Nothing is loaded
// from elsewhere: a $ref out of the schema is an error.
func Compile(src json.RawMessage) (*Schema, error) {
	if len(src) == 0 {
		src = json.RawMessage(EmptyObject)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("want a JSON object, got %s", jsonKind(doc))
	}
	if t, ok := m["type"]; ok && t != "object" {
		return nil, fmt.Errorf(`"type" must be "object", since arguments are an object; got %v`, t)
	}
	return compile(m, false)
}

// CompileOutput compiles the schema of an answer, which may describe any JSON value. object reports
// whether it describes an object.
func CompileOutput(src json.RawMessage) (s *Schema, object bool, err error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		return nil, false, err
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return nil, false, fmt.Errorf("want a JSON object, got %s", jsonKind(doc))
	}
	object = m["type"] == "object"
	s, err = compile(m, !object)
	return s, object, err
}

// compile compiles a schema that was read. With any, what it describes need not be an object.
func compile(m map[string]any, any bool) (*Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, m); err != nil {
		return nil, err
	}
	full, err := c.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	fast := compileFast(m)
	if fast != nil && !any {
		fast.kinds = kindObject // arguments are an object, whether or not the schema says so
	}
	return &Schema{full: full, fast: fast, any: any, doc: m, meter: newMeter(full)}, nil
}

// schemaURL is what a tool's schema is called inside.
const schemaURL = "mem:tool"

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a tool's schema stands alone; %s is not loaded", url)
}

// Fault is one way in which arguments do not fit.
type Fault struct {
	path []string // from the root
	text string   // "expected integer, got string \"ten\""
}

// check reports what is wrong with args; nil when they fit. An error means that args are no JSON object.
func (s *Schema) check(args json.RawMessage) ([]Fault, error) {
	if s.fast != nil && s.fast.accepts(args) {
		return nil, nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err == nil {
		err = repeatedName(args)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := v.(map[string]any); !ok && !s.any {
		return []Fault{{nil, "expected object, got " + describe(v)}}, nil
	}
	if huge := hugeNumbers(v); huge != nil {
		return huge, nil
	}
	if !s.meter.run(len(args), func() { err = s.full.Validate(v) }) {
		return []Fault{{nil, "they cannot be checked in reasonable time: nested values fit none of the allowed forms, and there are too many ways to read them; nest less deeply"}}, nil
	}
	if err == nil {
		return nil, nil
	}
	ve, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return nil, err
	}
	return (&wording{s.doc, v}).faults(ve), nil
}

// repeatedName reports a field that is written twice: a person who approves the call and the tool that runs it might not see
// the same one.
func repeatedName(args []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(args), jsontext.AllowInvalidUTF8(true))
	var se *jsontext.SyntacticError
	if err := d.SkipValue(); errors.As(err, &se) && errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("the field %q is there twice", text.Clip(se.JSONPointer.LastToken(), 80))
	}
	return nil
}

// hugeNumbers finds the numbers that could not be compared with a bound in reasonable time, or at all.
func hugeNumbers(v any) (found []Fault) {
	var at []string // where walk is
	var walk func(v any)
	walk = func(v any) {
		switch x := v.(type) {
		case map[string]any:
			for k, e := range x {
				at = append(at, k)
				walk(e)
				at = at[:len(at)-1]
			}
		case []any:
			for i, e := range x {
				at = append(at, strconv.Itoa(i))
				walk(e)
				at = at[:len(at)-1]
			}
		case json.Number:
			if huge(string(x)) {
				found = append(found, Fault{slices.Clone(at), "expected a number of at most 1000 digits, got " + describe(v)})
			}
		}
	}
	walk(v)
	slices.SortFunc(found, func(a, b Fault) int { return slices.Compare(a.path, b.path) })
	return found
}

func huge(number string) bool {
	digits, exp := number, "0"
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		digits, exp = digits[:i], digits[i+1:]
	}
	n, err := strconv.Atoi(exp)
	return err != nil || n > 1000 || n < -1000 || len(digits) > 1000
}

// Message words faults for the model: at most eight, then how many more.
func Message(fs []Fault) string {
	var b strings.Builder
	for i, f := range fs {
		if i == 8 {
			fmt.Fprintf(&b, "\n- and %d more", len(fs)-i)
			break
		}
		b.WriteString("\n- ")
		if len(f.path) > 0 {
			b.WriteString("field " + path(f.path) + ": ")
		}
		b.WriteString(f.text)
	}
	return b.String()
}

// path renders ["items","0","id"] as items[0].id.
func path(p []string) string {
	var b strings.Builder
	for i, s := range p {
		if _, err := strconv.Atoi(s); err == nil && i > 0 {
			b.WriteString("[" + s + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s)
	}
	return b.String()
}

// at returns the value at p inside v; nil when there is none.
func at(v any, p []string) any {
	for _, s := range p {
		switch x := v.(type) {
		case map[string]any:
			v = x[s]
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// Pointed returns the value at a JSON pointer; nil if there is none.
func Pointed(root any, pointer string) any {
	for token := range jsontext.Pointer(pointer).Tokens() {
		switch x := root.(type) {
		case map[string]any:
			root = x[token]
		case []any:
			root = at(x, []string{token})
		default:
			return nil
		}
	}
	return root
}

func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// describe names the kind of v and shows it, cut short.
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case []any, map[string]any:
		return jsonKind(v)
	}
	return jsonKind(v) + " " + show(v)
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return jsonKind(v)
	}
	return text.Clip(string(b), 80)
}

func list(vs []any) string {
	out := make([]string, 0, len(vs))
	for i, v := range vs {
		if i == 20 {
			out = append(out, fmt.Sprintf("and %d more", len(vs)-i))
			break
		}
		out = append(out, show(v))
	}
	return strings.Join(out, ", ")
}

func nearestOf(got any, want []any) string {
	s, ok := got.(string)
	if !ok {
		return ""
	}
	var words []string
	for _, w := range want {
		if w, ok := w.(string); ok {
			words = append(words, w)
		}
	}
	if n := nearest.Word(s, words); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", n)
	}
	return ""
}

func quoteAll(s []string) string {
	q := make([]string, len(s))
	for i, v := range s {
		q[i] = strconv.Quote(text.Clip(v, 80))
	}
	return strings.Join(q, ", ")
}

func rat(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
