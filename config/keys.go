package config

// keys.go: reads keys.txt, the meaning of each key.

import (
	_ "embed"
	"reflect"
	"strings"
)

//go:embed keys.txt
var keysText string

// meaning returns what a key means: its doc tag, or its line in keys.txt.
func meaning(t reflect.Type, f reflect.StructField) string {
	if doc := f.Tag.Get("doc"); doc != "" {
		return doc
	}
	_, section, _ := strings.Cut(keysText, "\n["+strings.TrimPrefix(t.String(), "config.")+"]\n")
	section, _, _ = strings.Cut(section, "\n\n")
	_, text, _ := strings.Cut("\n"+section, "\n"+keyOf(f)+"\t")
	text, _, _ = strings.Cut(text, "\n")
	return text
}
