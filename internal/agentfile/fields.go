package agentfile

// fields.go: reflection over the structs of keys: fields by key, their meaning in keys.txt,
// examples and kinds of values.

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/agentfile/agentframework"
	"github.com/pawl-go/pawl/tools/outside"
)

// fieldsOf are the fields of a struct that have a key.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		if name := keyOf(f); f.IsExported() && name != "" && name != "-" {
			fields = append(fields, f)
		}
	}
	return fields
}

func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func fieldNamed(fields []reflect.StructField, name string) int {
	return slices.IndexFunc(fields, func(f reflect.StructField) bool { return keyOf(f) == name })
}

func names(fields []reflect.StructField) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = keyOf(f)
	}
	return out
}

// example is a value to begin with.
func example(f reflect.StructField) string {
	switch keyOf(f) {
	case "agent", "name":
		return "NAME"
	case "model":
		return "openai:gpt-6.1-terra"
	case "run":
		return "[./program]"
	}
	return "…"
}

// jsonType is the type of a key that takes any value.
var jsonType = reflect.TypeFor[outside.JSON]()

// wanter is a type with a form of its own in a file. wanted describes the form.
type wanter interface {
	wanted() string
}

// wanted says in words what a value of type t is written as.
func wanted(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if w, ok := reflect.New(t).Interface().(wanter); ok {
		return w.wanted()
	}
	if k, ok := reflect.New(t).Interface().(agentframework.Keeper); ok {
		return k.Wanted()
	}
	switch {
	case t == reflect.TypeFor[outside.Duration]():
		return "a time such as 10s or 1m30s"
	case t == jsonType:
		return "any value"
	case t.String() == "pawl.Effect":
		return "one of unstated, write, idempotent, read, pure, compose"
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return fmt.Sprintf("a %s", t)
}

//go:embed keys.txt
var keysText string

// meaning returns what a key means: its line in keys.txt, which is made from the comment of the
// field.
func meaning(t reflect.Type, f reflect.StructField) string {
	_, section, _ := strings.Cut(keysText, "\n["+strings.TrimPrefix(t.String(), "agentfile.")+"]\n")
	section, _, _ = strings.Cut(section, "\n\n")
	_, text, _ := strings.Cut("\n"+section, "\n"+keyOf(f)+"\t")
	text, _, _ = strings.Cut(text, "\n")
	return text
}
