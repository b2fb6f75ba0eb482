// Package schema compiles the JSON Schemas of tools and outputs, validates arguments, repairs
// arguments that can mean only one thing, and describes faults in words for the model.
//
//	Compile ──▶ Schema ──▶ Arguments(tool, args)
//	                         ├─ fast path: accepts plain cases from the bytes
//	                         ├─ full validator, bounded by a meter
//	                         ├─ repair: syntax (jsonrepair), then values (fit.Coerce)
//	                         └─ Message: the faults, with the nearest allowed values
//
// The validator is santhosh-tekuri/jsonschema. Package fit holds the repairs of values.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/text"
)

// Schema is a compiled JSON Schema of a tool's arguments or of an output. It is safe for concurrent
// use.
type Schema struct {
	full *jsonschema.Schema
	fast *fastSchema    // accepts plain cases without decoding; nil means none
	any  bool           // the value need not be an object
	doc  map[string]any // the source

	meter *meter // counts the steps of full
	shown shown
}

// EmptyObject is the schema of an object without properties.
const EmptyObject = `{"type":"object","properties":{}}`

// Compile compiles a JSON Schema of draft 2020-12, or of the draft that its $schema names. Formats
// are checked. Nothing is loaded from outside the schema: an external $ref is an error.
func Compile(src json.RawMessage) (*Schema, error) {
	if len(src) == 0 {
		src = json.RawMessage(EmptyObject)
	}
	m, err := bounded(src)
	if err != nil {
		return nil, err
	}
	if t, ok := m["type"]; ok && t != "object" {
		return nil, fmt.Errorf(`"type" must be "object", since arguments are an object; got %v`, t)
	}
	s, err := admitted(m, false)
	return s, cmp.Or(err, bare(m), misplaced(m))
}

// bare returns an error for a schema that is the object of its properties: {"city":{"type":…}}. It
// has such members and annotations only, so that it would accept all arguments.
func bare(m map[string]any) error {
	found := ""
	for name := range m {
		s, _ := m[name].(map[string]any)
		switch {
		case s["type"] != nil && !isKeyword(name):
			found = max(found, name)
		case !slices.Contains([]string{"$schema", "$id", "$comment", "title", "description"}, name):
			return nil
		}
	}
	if found == "" {
		return nil
	}
	return fmt.Errorf(`%q is no keyword; an argument stands in "properties": {"type":"object","properties":{%[1]q:…}}`, found)
}

// plain returns the first fault of a schema that is none, in one line: "at '/type': value must be
// one of 'array', …". Other errors stay as they are.
func plain(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var fault *jsonschema.ValidationError
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &fault) {
		return err
	}
	for len(fault.Causes) > 0 {
		fault = fault.Causes[0]
	}
	return errors.New(fault.Error())
}

// misplaced returns an error for a closed object ("additionalProperties" is false) whose schema
// names properties that are not in "properties": required ones, which no arguments can have, and
// schemas that stand at the top. A closed object without properties is correct: it is the schema of
// a tool without arguments.
func misplaced(m map[string]any) error {
	if m["additionalProperties"] != false || m["patternProperties"] != nil {
		return nil
	}

	properties, _ := m["properties"].(map[string]any)
	required, _ := m["required"].([]any)
	for _, r := range required {
		if name, _ := r.(string); properties[name] == nil {
			return fmt.Errorf(`"required" names %q, which "properties" does not have, and "additionalProperties" is false, `+
				`so no object fits; put it into "properties"`, name)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(m)) {
		s, _ := m[name].(map[string]any)
		if _, typed := s["type"].(string); typed && !isKeyword(name) {
			return fmt.Errorf(`%q is no keyword, and "additionalProperties" is false; `+
				`if it is an argument, put it into "properties"`, name)
		}
	}
	return nil
}

// isKeyword reports whether a member with a schema in it has a meaning: by JSON Schema, or, as an
// extension, to another program.
func isKeyword(name string) bool {
	return slices.Contains(schemaKeywords, name) || strings.HasPrefix(name, "x-")
}

// schemaKeywords are the keywords of an object whose value is a schema or contains schemas by name.
var schemaKeywords = strings.Fields("$defs definitions properties patternProperties dependentSchemas dependencies " +
	"propertyNames unevaluatedProperties unevaluatedItems items contains contentSchema not if then else " +
	"default const example")

// CompileOutput compiles the schema of an answer, which may describe any JSON value. object reports
// whether it describes an object.
func CompileOutput(src json.RawMessage) (s *Schema, object bool, err error) {
	m, err := bounded(src)
	if err != nil {
		return nil, false, err
	}
	object = m["type"] == "object"
	s, err = admitted(m, !object)
	return s, object, cmp.Or(err, misplaced(m))
}

// compile compiles a decoded schema. With any, the described value need not be an object.
func compile(doc map[string]any, any bool) (*Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	m := newMeter()
	c.UseRegexpEngine(m.compile)
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	full, err := c.Compile(schemaURL)
	if m.refused != nil {
		return nil, m.refused
	}
	if err != nil {
		return nil, plain(err)
	}
	all := nodes(full)
	// Before install: same follows references, and would not end in a schema that refers to itself.
	if err := chained(all); err != nil {
		return nil, err
	}
	for _, s := range all {
		m.unevaluated = m.unevaluated || s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil
		m.install(s)
	}
	src, _ := json.Marshal(doc) // it was decoded from JSON
	fast := compileFast(src)
	if fast != nil && !any { // arguments are an object, even if the schema does not say so
		fast.kinds = []jsonscan.Kind{jsonscan.Object}
	}
	return &Schema{full: full, fast: fast, any: any, doc: doc, meter: m}, nil
}

// schemaURL is the internal address of a tool's schema.
const schemaURL = "mem:///tool"

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a tool's schema stands alone; %s is not loaded", url)
}

// Fault is one reason why arguments do not fit.
type Fault struct {
	path []string // from the root
	text string   // "expected integer, got string \"ten\""
}

// check returns the faults of args, or nil if they fit. The error means that args are not a JSON
// object.
func (s *Schema) check(e *effort, args json.RawMessage) ([]Fault, error) {
	if s.fast != nil && s.fast.accepts(args) {
		return nil, nil
	}

	// Before anything is decoded: hostile arguments must not cost more than reading them once.
	n, deep := measure(args)
	if n > maxValues || deep > maxArgsDepth {
		e.over = true
		return []Fault{{nil, fmt.Sprintf("they have about %d values, %d deep; at most %d, %d deep, can be checked",
			n, deep, maxValues, maxArgsDepth)}}, nil
	}
	e.price = 1 + deep/16

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
	// Before the validator, which computes with exact fractions.
	if huge := hugeNumbers(v, nil); huge != nil {
		return huge, nil
	}

	var faults []Fault
	ran := s.meter.run(e, func() {
		var ve *jsonschema.ValidationError
		err = s.full.Validate(v)
		if errors.As(err, &ve) {
			faults = (&wording{s.doc, v, e}).faults(ve)
			err = nil
		}
	})
	switch {
	case errors.Is(ran, errTooMuch):
		return []Fault{{nil, "they cannot be checked in reasonable time: there is too much in them for this schema, " +
			"or there are too many ways to read nested values; send less at once, and nest less deeply"}}, nil
	case errors.Is(ran, errEnded):
		return []Fault{{nil, "the run ended before they were checked"}}, nil
	case ran != nil:
		return []Fault{{nil, "they cannot be checked: the schema of the tool has a fault"}}, nil
	}
	return faults, err
}

// repeatedName returns an error for a field that occurs twice: the person who approves the call and
// the tool might read different values.
func repeatedName(args []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(args), jsontext.AllowInvalidUTF8(true))
	var se *jsontext.SyntacticError
	if err := d.SkipValue(); errors.As(err, &se) && errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("the field %q is there twice", text.Clip(se.JSONPointer.LastToken(), 80))
	}
	return nil
}

// hugeNumbers finds the numbers that cannot be compared with a bound in reasonable time, or at all.
func hugeNumbers(v any, at []string) (found []Fault) {
	switch x := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			found = append(found, hugeNumbers(x[k], append(at, k))...)
		}
	case []any:
		for i, e := range x {
			found = append(found, hugeNumbers(e, append(at, strconv.Itoa(i)))...)
		}
	case json.Number:
		// The validator computes with exact fractions: 1e999999999 would fill the memory.
		digits, exp, ok := exponent(string(x))
		if !ok || digits > 1000 || max(exp, -exp) > 1000 {
			return []Fault{{slices.Clone(at), "expected a number of at most 1000 digits, got " + describe(v)}}
		}
	}
	return found
}

// Message describes faults for the model: at most eight, then the number of the others.
func Message(fs []Fault) string {
	var b strings.Builder
	for i, f := range fs {
		if i == 8 {
			fmt.Fprintf(&b, "\n- and %d more", len(fs)-i)
			break
		}
		b.WriteString("\n- ")
		if len(f.path) > 0 {
			b.WriteString("field " + FieldPath(f.path) + ": ")
		}
		b.WriteString(f.text)
	}
	return b.String()
}

// FieldPath renders ["items","0","id"] as items[0].id.
func FieldPath(p []string) string {
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

// at returns the value at p in v, or nil if there is none.
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

// Pointed returns the value at a JSON pointer, or nil if there is none.
func Pointed(root any, pointer string) any {
	return at(root, slices.Collect(jsontext.Pointer(pointer).Tokens()))
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

// describe names the kind of v and shows v, shortened.
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
	switch x := v.(type) {
	case string:
		v = x[:min(len(x), 400)] // the rest would be clipped
	case []any, map[string]any:
		if extent(v) > 1000 {
			return "a large " + jsonKind(v)
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return jsonKind(v)
	}
	return text.Clip(string(b), 80)
}

func list(vs []any) string {
	out := make([]string, min(len(vs), 21))
	for i := range out {
		out[i] = show(vs[i])
	}
	return text.First(out, 20, fmt.Sprintf(", and %d more", len(vs)-20))
}

// maxWords is the number of words among which the nearest one is looked for.
const maxWords = 1000

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
	if len(words) > maxWords {
		return ""
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
