package agentfile

// fields.go: reflection over the structs of keys: fields by key, their meaning in keys.txt,
// examples and kinds of values.

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile/agentframework"
	"github.com/pawl-go/pawl/tools/outside"
)

// The types of values that are written as text.
var (
	durationType = reflect.TypeFor[outside.Duration]()
	effectType   = reflect.TypeFor[pawl.Effect]()
)

// effectWords returns the words for effects of tools.
func effectWords() (words []string) {
	for e := pawl.EffectUnstated; e <= pawl.EffectCompose; e++ {
		words = append(words, e.String())
	}
	return words
}

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
	switch own := reflect.New(t).Interface().(type) {
	case wanter:
		return own.wanted()
	case agentframework.Keeper:
		return own.Wanted()
	}

	switch t {
	case durationType:
		return "a time such as 10s or 1m30s"
	case jsonType:
		return "any value"
	case effectType:
		return "one of " + strings.Join(effectWords(), ", ")
	}
	if word := kindWords[t.Kind()]; word != "" {
		return word
	}
	return fmt.Sprintf("a %s", t)
}

// kindWords are the words for values of Go's own kinds.
var kindWords = map[reflect.Kind]string{
	reflect.String:  "a text",
	reflect.Bool:    "true or false",
	reflect.Int:     "a whole number",
	reflect.Float64: "a number",
	reflect.Slice:   "a list",
	reflect.Map:     "an object",
	reflect.Struct:  "an object",
}

//go:embed keys.txt
var keysText string

// meaning returns what a key means: its line in keys.txt, which is made from the comment of the
// field. Empty means that the file does not have it.
func meaning(t reflect.Type, f reflect.StructField) string {
	_, section, _ := strings.Cut(keysText, "\n["+strings.TrimPrefix(t.String(), "agentfile.")+"]\n")
	section, _, _ = strings.Cut(section, "\n\n")
	_, text, _ := strings.Cut("\n"+section, "\n"+keyOf(f)+"\t")
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// value returns what n points to; 0 for nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
