package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl/internal/jsonform"
)

// Decode decodes JSON in a form of pawl: names are exact, and unknown names are errors. Repeated
// names are errors in the forms of pawl, but not within arguments, results and schemas.
func Decode(b []byte, into any) error {
	return json.Unmarshal(b, into, jsonform.Strict)
}

// Repeated returns a name that occurs twice in the object b. It returns "" if there is none, or if
// b is not an object.
func Repeated(b []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(b), jsonform.Lenient)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return ""
	}

	seen := map[string]bool{}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		name := t.String() // before the next read, which reuses the memory of the token
		if err != nil || d.SkipValue() != nil {
			return ""
		}
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// JSONFault describes a JSON error for the author of the JSON: the line or the field, the value
// found, and the value expected.
func JSONFault(b []byte, err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		text := syntax.Err.Error()
		if errors.Is(syntax.Err, io.ErrUnexpectedEOF) || errors.Is(syntax.Err, io.EOF) {
			text = "it ends too early"
		}
		offset := max(0, min(int(syntax.ByteOffset), len(b)))
		return fmt.Sprintf("line %d: %s", 1+bytes.Count(b[:offset], []byte("\n")), text)
	}
	where, what := located(err)
	if where == "" {
		return what
	}
	return where + ": " + what
}

// located returns the field with the error, as in messages[2].parts, and the description of the
// error.
func located(err error) (where, what string) {
	e, ok := err.(*json.SemanticError)
	if !ok {
		return "", plainFault(err)
	}

	pointer := e.JSONPointer
	isBytes := e.GoType != nil && e.GoType.Kind() == reflect.Slice
	switch {
	case e.Err == json.ErrUnknownName:
		name := pointer.LastToken()
		return field(pointer.Parent()), fmt.Sprintf("unknown name %q%s", name, known(e.GoType))
	case e.Err == nil:
		return field(pointer), fmt.Sprintf("got %s, want %s", kindOf(e.JSONKind), wanted(e.GoType))
	case isBytes && strings.Contains(e.Err.Error(), "base64"):
		return field(pointer), "this is not base64"
	}

	// A type that decodes itself, such as a message, has an error of its own with a field in it.
	inner, what := located(e.Err)
	if inner != "" {
		what = inner + ": " + what
	}
	return field(pointer), what
}

// plainFault returns the text of an error without the words of the JSON package. The field of an
// error within it stays where the text has that error.
func plainFault(err error) string {
	inner := errors.Unwrap(err)
	var deep *json.SemanticError
	if inner == nil || !errors.As(inner, &deep) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	where, what := located(inner)
	return strings.Replace(err.Error(), inner.Error(), strings.TrimPrefix(where+": ", ": ")+what, 1)
}

// field returns a JSON pointer in the form messages[2].parts.
func field(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		switch {
		case strings.Trim(token, "0123456789") == "":
			b.WriteString("[" + token + "]")
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	return b.String()
}

// known lists the JSON names of a struct type.
func known(t reflect.Type) string {
	if t == nil || t.Kind() != reflect.Struct {
		return ""
	}
	var names []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return strings.TrimSuffix("; known: "+strings.Join(names, ", "), "; known: ")
}

// words name the kinds of JSON values.
var words = map[jsontext.Kind]string{
	'{': "an object",
	'[': "a list",
	'"': "a text",
	'0': "a number",
	't': "true or false",
	'f': "true or false",
	'n': "null",
}

func kindOf(k jsontext.Kind) string { return cmp.Or(words[k], "something else") }

// kinds are the kinds of JSON values that types of Go hold.
var kinds = map[reflect.Kind]jsontext.Kind{
	reflect.Slice:   '[',
	reflect.Array:   '[',
	reflect.Struct:  '{',
	reflect.Map:     '{',
	reflect.String:  '"',
	reflect.Bool:    't',
	reflect.Int:     '0',
	reflect.Int64:   '0',
	reflect.Float64: '0',
}

// wanted names the kind of JSON value that a type holds.
func wanted(t reflect.Type) string {
	if t == nil {
		return kindOf(0)
	}
	return kindOf(kinds[t.Kind()])
}
