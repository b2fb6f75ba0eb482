package main

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
)

// fault describes a JSON error for the author of the JSON: the line or the field, the value found,
// and the value expected.
func fault(b []byte, err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		text := syntax.Err.Error()
		if errors.Is(syntax.Err, io.ErrUnexpectedEOF) || errors.Is(syntax.Err, io.EOF) {
			text = "it ends too early"
		}
		offset := max(0, min(int(syntax.ByteOffset), len(b)))
		return fmt.Sprintf("line %d: %s", 1+bytes.Count(b[:offset], []byte("\n")), text)
	}
	e, ok := err.(*json.SemanticError)
	if !ok {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	at := e.JSONPointer
	what := ""
	switch {
	case e.Err == json.ErrUnknownName:
		at, what = at.Parent(), fmt.Sprintf("unknown name %q%s", at.LastToken(), known(e.GoType))
	case e.Err == nil:
		what = fmt.Sprintf("got %s, want %s", kinds[e.JSONKind], wanted(e.GoType))
	default:
		what = fault(b, e.Err)
	}
	where := ""
	for token := range at.Tokens() {
		if strings.Trim(token, "0123456789") == "" {
			where += "[" + token + "]"
		} else {
			where += "." + token
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(where+": "+what, ": "), ".")
}

// known lists the JSON names of a struct type.
func known(t reflect.Type) string {
	if t == nil || t.Kind() != reflect.Struct {
		return ""
	}
	text := ""
	separator := "; known: "
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			text, separator = text+separator+name, ", "
		}
	}
	return text
}

// kinds name the kinds of JSON values.
var kinds = map[jsontext.Kind]string{'{': "an object", '[': "a list", '"': "a text", '0': "a number",
	't': "true or false", 'f': "true or false", 'n': "null"}

// wanted names the kind of JSON value that a type holds.
func wanted(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	kind := map[reflect.Kind]jsontext.Kind{reflect.Slice: '[', reflect.Array: '[', reflect.Struct: '{',
		reflect.Map: '{', reflect.String: '"', reflect.Bool: 't', reflect.Int: '0', reflect.Int64: '0',
		reflect.Float64: '0'}[t.Kind()]
	return cmp.Or(kinds[kind], "something else")
}
