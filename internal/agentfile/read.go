package agentfile

import (
	"cmp"
	"encoding"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/agentfile/agentframework"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/tools/outside"
)

// report adds a finding at a node.
func (r *reading) report(code Code, n *yaml.Node, path, hint, format string, args ...any) {
	f := finding(code, path, hint, format, args...)
	f.Line = n.Line
	f.Column = n.Column
	r.found(f)
}

// reading is the state of reading one file. It continues after a fault, so that all are reported at
// once.
type reading struct {
	file     string
	dir      string
	env      func(string) string
	findings Findings
	expanded map[*yaml.Node]*expanded
	places   places   // of the agent that is being read
	chain    []string // the files that lead to this one, as workers
	secrets  []secret // values that no output may show
	declared []string // variables that models may read
}

// mostFindings is the maximum of findings in one file.
const mostFindings = 100

// found adds a finding, unless it was found before: nodes behind an alias are read several times.
func (r *reading) found(f *Finding) {
	f.File = r.file
	same := func(g *Finding) bool { return f.Line > 0 && f.saysAs(g) }
	if len(r.findings) < mostFindings && !slices.ContainsFunc(r.findings, same) {
		r.findings = append(r.findings, f)
	}
}

// form is what reads itself from a node: values that can be written in several ways.
type form interface {
	read(r *reading, n *yaml.Node, path string)
}

var (
	formType = reflect.TypeFor[form]()
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value reads n into v.
func (r *reading) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if _, there := r.places[path]; !there {
		r.places[path] = place{n.Line, n.Column}
	}
	n = real(n)
	if k, ok := v.Addr().Interface().(agentframework.Keeper); ok && k.Keep(n) {
		return
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		r.report(CodeWrongType, n, path, "leave the key out for the default", "want %s, got nothing", wanted(v.Type()))
		return
	}
	if v.Kind() == reflect.Pointer && !v.Type().Implements(formType) {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}

	switch {
	case v.Type() == jsonType:
		r.json(n, v, path)
	case v.Kind() == reflect.Pointer: // a form
		v.Set(reflect.New(v.Type().Elem()))
		v.Interface().(form).read(r, n, path)
	case v.CanAddr() && v.Addr().Type().Implements(formType):
		v.Addr().Interface().(form).read(r, n, path)
	case v.CanAddr() && v.Addr().Type().Implements(textType):
		if r.text(n, v, path) {
			r.bounded(n, v, path, tag)
		}
	default:
		r.plain(n, v, path, tag)
	}
}

// plain reads a value of one of Go's own kinds.
func (r *reading) plain(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	switch v.Kind() {
	case reflect.Struct:
		r.object(n, v, path)
	case reflect.Slice:
		r.list(n, v, path, tag)
	case reflect.Map:
		r.mapping(n, v, path)
	default:
		if r.scalar(n, v, path) {
			r.bounded(n, v, path, tag)
		}
	}
}

// list reads a list into a slice. The tag of its field holds for each entry.
func (r *reading) list(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, v.Type(), path)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		r.value(c, out.Index(i), index(path, i), tag)
	}
	v.Set(out)
}

// mapping reads an object with free keys into a map.
func (r *reading) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, v.Type(), path)
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for key, value := range r.pairs(n, path) {
		one := reflect.New(v.Type().Elem()).Elem()
		if value.Kind != yaml.ScalarNode {
			r.places[path+"."+key.Value] = place{key.Line, key.Column}
		}
		r.value(value, one, path+"."+key.Value, "")
		v.SetMapIndex(reflect.ValueOf(key.Value), one)
	}
}

// pairs returns the keys of an object with their values. A key that is a duplicate or not a text is
// reported and left out.
func (r *reading) pairs(n *yaml.Node, path string) func(func(*yaml.Node, *yaml.Node) bool) {
	return func(yield func(*yaml.Node, *yaml.Node) bool) {
		seen := map[string]int{} // the line of each key
		for i := 0; i+1 < len(n.Content); i += 2 {
			written := n.Content[i]
			key := real(written)
			first, twice := seen[key.Value]
			switch {
			case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
				r.report(CodeWrongType, written, path,
					"keys are plain texts; << is not read: repeat what belongs here", "this is no key")
				continue
			case twice:
				r.report(CodeDuplicateKey, written, join(path, key.Value), "remove one of them",
					"%s is a duplicate; first in line %d", key.Value, first)
				continue
			}
			seen[key.Value] = written.Line
			if !yield(key, n.Content[i+1]) {
				return
			}
		}
	}
}

// object reads a struct by the names in its yaml tags.
func (r *reading) object(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, v.Type(), path)
		return
	}

	fields := fieldsOf(v.Type())
	stated := map[string]bool{}
	for key, value := range r.pairs(n, path) {
		i := fieldNamed(fields, key.Value)
		if i < 0 {
			hint := cmp.Or(elsewhere(fields, key.Value), nearest.Hint(key.Value, names(fields)))
			r.report(CodeUnknownKey, key, join(path, key.Value), hint, "there is no key %q", cut(key.Value))
			continue
		}
		stated[key.Value] = true
		r.field(key, value, fields[i], v.FieldByIndex(fields[i].Index), join(path, key.Value))
	}

	for _, f := range fields {
		if name := keyOf(f); isRequired(f) && !stated[name] {
			r.report(CodeMissingKey, n, path, name+": "+example(f), "the key %s is missing", name)
		}
	}
}

// field reads the value of a key into the field f, which is into.
func (r *reading) field(key, value *yaml.Node, f reflect.StructField, into reflect.Value, path string) {
	r.places[path] = place{key.Line, key.Column}
	if value.Kind == yaml.ScalarNode {
		r.places[path] = place{value.Line, value.Column}
	}

	before := len(r.findings)
	r.value(value, into, path, f.Tag)
	isEmpty := f.Type.Kind() == reflect.String && into.String() == ""
	if isRequired(f) && isEmpty && len(r.findings) == before {
		r.report(CodeBadValue, value, path, key.Value+": "+example(f), "%s is empty", key.Value)
	}
}

// isRequired reports whether the key of a field must be there.
func isRequired(f reflect.StructField) bool { return f.Tag.Get("required") != "" }

// frameworkKeys are keys of files of the form agent.framework/v2 alone.
var frameworkKeys = map[string]bool{"spec": true, "metadata": true, "kind": true}

// otherWords are what keys are called by others.
var otherWords = map[string]string{
	"system":        "instructions",
	"system_prompt": "instructions",
	"prompt":        "instructions",
	"name":          "agent",
	"mcp":           "mcp_servers",
	"servers":       "mcp_servers",
	"fallbacks":     "model",
	"memory":        "store",
	"side_model":    "side: {model: PROVIDER:NAME}",
	"database":      "store",
	"base_url":      "model: {name: PROVIDER:NAME, base_url: URL}",
	"key_env":       "model: {name: PROVIDER:NAME, key_env: NAME}",
}

// elsewhere returns a hint for a key that belongs to another object of an agent, or has another
// name there. An empty hint means that neither is known.
func elsewhere(fields []reflect.StructField, key string) string {
	if fieldNamed(fields, "agent") < 0 || nearest.Word(key, names(fields)) != "" {
		return ""
	}
	if frameworkKeys[key] {
		return "the file is of the form agent.framework/v2 if it begins with apiVersion: agent.framework/v2"
	}
	if word := otherWords[key]; word != "" {
		return "did you mean " + word + "?"
	}
	for _, f := range fields {
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct && fieldNamed(fieldsOf(t), key) >= 0 {
			return "it belongs into " + keyOf(f) + ": {" + key + ": …}"
		}
	}
	return ""
}

// said is the text of a scalar, with its variables replaced, and the text that findings show.
func (r *reading) said(n *yaml.Node, path string) (text, shown string) {
	if e := r.expanded[n]; e != nil {
		return n.Value, e.written
	}
	e := r.expand(n, path)
	if e == nil {
		return n.Value, n.Value
	}
	r.expanded[n] = e

	if !isServerHeader(path) {
		for _, field := range e.callers {
			r.report(CodeBadVariable, n, path, callerHint, "%s cannot stand here", cut(field))
		}
	}
	for i, name := range e.names {
		if slices.Contains(r.declared, name) {
			continue // models may read it
		}
		if keyLike(name) || keyLike(path) || handedOn(path) {
			r.secrets = append(r.secrets, secret{name, e.values[i]})
		}
	}
	return n.Value, e.written
}

// callerHint says where a field of the caller, such as ${caller.token}, can stand instead.
const callerHint = "in a header of an http, openapi or a2a tool or an MCP server it stands for the caller of the " +
	"run; $${ writes ${ itself"

// isServerHeader reports whether the value at path is a header of an MCP server.
func isServerHeader(path string) bool {
	return strings.HasPrefix(path, "mcp_servers.") && strings.Contains(path, ".headers.")
}

// scalar reads a text, a number or a truth value. It reports whether it could.
func (r *reading) scalar(n *yaml.Node, v reflect.Value, path string) bool {
	if n.Kind != yaml.ScalarNode {
		r.wrong(n, v.Type(), path)
		return false
	}

	tag := n.ShortTag() // of the text as written
	text, shown := r.said(n, path)
	s := scalar{text: text, tag: tag, open: shown != text}
	if v.Kind() == reflect.Int && s.isTooLarge() {
		r.report(CodeBadValue, n, path, "", "%s is out of range", cut(shown))
		return false
	}
	if !s.into(v) {
		r.wrong(n, v.Type(), path)
		return false
	}
	return true
}

// scalar is a scalar of a file with its variables expanded.
type scalar struct {
	text string
	tag  string // the type by YAML's rules, such as !!int
	open bool   // a variable stands in it, so that the text alone says the type
}

// isTooLarge reports whether s is written as a whole number and none that a field can have.
func (s scalar) isTooLarge() bool {
	_, err := s.whole()
	return s.tag == "!!int" && err != nil
}

func (s scalar) whole() (int64, error) {
	return strconv.ParseInt(strings.ReplaceAll(s.text, "_", ""), 0, 32)
}

// into sets v to the value of s, if s has the type of v.
func (s scalar) into(v reflect.Value) bool {
	if !s.fits(v.Kind()) {
		return false
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(s.text)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(strings.ToLower(s.text))
		v.SetBool(b)
	case reflect.Int:
		var i int64
		i, err = s.whole()
		v.SetInt(i)
	case reflect.Float64:
		var f float64
		f, err = s.number()
		v.SetFloat(f)
	}
	return err == nil
}

// fits reports whether s may be a value of a kind. A variable may stand for a number, although YAML
// wants it in quotes between braces.
func (s scalar) fits(k reflect.Kind) bool {
	switch k {
	case reflect.String:
		return s.tag == "!!str" || s.tag == "!!timestamp"
	case reflect.Bool:
		return s.tag == "!!bool" || s.open
	case reflect.Int:
		return s.tag == "!!int" || s.open
	case reflect.Float64:
		return s.tag == "!!float" || s.tag == "!!int" || s.open
	}
	return false
}

// number returns the finite number that s is.
func (s scalar) number() (float64, error) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(s.text, "_", ""), 64)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, strconv.ErrRange
	}
	return f, err
}

// text reads what has a form of its own as text: a duration, an effect.
func (r *reading) text(n *yaml.Node, v reflect.Value, path string) bool {
	if n.Kind != yaml.ScalarNode {
		r.wrong(n, v.Type(), path)
		return false
	}
	text, shown := r.said(n, path)
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
		r.report(CodeBadValue, n, path, "want "+wanted(v.Type()), "%q cannot be read", cut(shown))
		return false
	}
	return true
}

// json reads any value as JSON: a schema, a body.
func (r *reading) json(n *yaml.Node, v reflect.Value, path string) {
	if !r.texts(n, path) {
		return
	}
	err := v.Addr().Interface().(*outside.JSON).UnmarshalYAML(n)
	if err == nil {
		return
	}

	f := &Finding{Code: CodeWrongType, Path: path, Line: n.Line, Column: n.Column, Message: err.Error()}
	if m := yamlLine.FindStringSubmatch(f.Message); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		f.Message = m[2]
		f.Column = 1
	}
	r.found(f)
}

// texts expands the variables in all texts below n. An expanded value is a text, even if it looks
// like a number.
func (r *reading) texts(n *yaml.Node, path string) bool {
	n = real(n)
	if n.Kind == yaml.ScalarNode {
		before := len(r.findings)
		if _, shown := r.said(n, path); shown != n.Value {
			n.Tag = "!!str"
			n.Style = yaml.DoubleQuotedStyle
		}
		return len(r.findings) == before
	}

	ok := true
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 { // a key
			continue
		}
		ok = r.texts(c, path) && ok
	}
	return ok
}

// real follows an alias.
func real(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}
