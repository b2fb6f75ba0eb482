package agentfile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/agentfile/agentframework"
)

// Schema returns the JSON Schema of a document, for editors. It is made from the types and
// describes a document alone: keys, types of values and bounds. Check covers names of tools and
// variables.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[Agent](), "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "An agent of pawl"
	s = bothForms(s)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		panic(err) // of maps, texts and numbers alone
	}
	return out.Bytes()
}

// bothForms is the schema of both forms: a document says which it is.
func bothForms(native object) object {
	out := object{
		"$schema": native["$schema"],
		"title":   native["title"],
		"type":    "object",
		"if":      object{"anyOf": []object{{"required": []string{"apiVersion"}}, {"required": []string{"kind"}}}},
		"then":    schemaOfStruct(reflect.TypeFor[agentframework.Document]()),
		"else":    native,
	}
	delete(native, "$schema")
	delete(native, "title")
	return out
}

type object = map[string]any

// schemer is a form that says what it is written as.
type schemer interface{ schema() object }

// schemaOf is the schema of values of type t in a field with this tag.
func schemaOf(t reflect.Type, tag reflect.StructTag) object {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := reflect.New(t).Interface().(schemer); ok {
		return s.schema()
	}

	switch {
	case t == jsonType:
		return object{}
	case t == reflect.TypeFor[agentframework.Node]():
		return object{"type": "object"}
	case t == durationType:
		return object{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$|\$\{`}
	case t == effectType:
		return object{"enum": effectWords()}
	}

	switch t.Kind() {
	case reflect.String:
		if list := tag.Get("enum"); list != "" {
			return object{"anyOf": []object{{"enum": strings.Split(list, ",")}, variable()}}
		}
		return object{"type": "string"}
	case reflect.Bool:
		return object{"anyOf": []object{{"type": "boolean"}, variable()}}
	case reflect.Int:
		return object{"anyOf": []object{bounded(object{"type": "integer"}, tag), variable()}}
	case reflect.Float64:
		return object{"anyOf": []object{bounded(object{"type": "number"}, tag), variable()}}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem(), tag)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem(), "")}
	case reflect.Struct:
		return schemaOfStruct(t)
	}
	return object{}
}

// schemaOfStruct is the schema of an object with the keys of a struct, and no others.
func schemaOfStruct(t reflect.Type) object {
	properties := object{}
	var required []string
	for _, f := range fieldsOf(t) {
		s := schemaOf(f.Type, f.Tag)
		if doc := meaning(t, f); doc != "" {
			s["description"] = doc
		}
		properties[keyOf(f)] = s
		if isRequired(f) {
			required = append(required, keyOf(f))
		}
	}
	if strings.HasSuffix(t.PkgPath(), "/tools/outside") {
		required = requiredOutside[t.Name()]
	}

	s := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// boundWords are the words of JSON Schema for the bounds in a tag.
var boundWords = map[string]string{"min": "minimum", "max": "maximum", "above": "exclusiveMinimum"}

// variable is the schema of a text in which a variable stands for a value of another kind.
func variable() object { return object{"type": "string", "pattern": `\$\{`} }

// bounded adds the bounds in a tag.
func bounded(s object, tag reflect.StructTag) object {
	for name, word := range boundWords {
		if f, err := strconv.ParseFloat(tag.Get(name), 64); err == nil {
			s[word] = f
		}
	}
	return s
}

func (*Models) schema() object {
	one := (*Model)(nil).schema()
	return object{"anyOf": []object{one, {"type": "array", "items": one, "minItems": 1}}}
}

func (*Model) schema() object {
	return object{"anyOf": []object{{"type": "string"}, schemaOfStruct(reflect.TypeFor[Model]())}}
}

func (*Tool) schema() object {
	one := schemaOfStruct(reflect.TypeFor[Tool]())
	one["minProperties"] = 1
	one["maxProperties"] = 1
	return object{"anyOf": []object{{"enum": SetNames()}, variable(), one}}
}

func (*Choice) schema() object {
	list := object{"type": "array", "items": object{"type": "string"}, "minItems": 1}
	return object{"anyOf": []object{{"type": "string"}, list}}
}

func (*Output) schema() object { return object{"type": []string{"string", "object"}} }

func (*History) schema() object {
	one := schemaOfStruct(reflect.TypeFor[History]())
	one["minProperties"] = 1
	one["maxProperties"] = 1
	return object{"anyOf": []object{{"enum": []string{"window", "all", "current_trace"}}, one}}
}

// requiredOutside are the required keys of package outside's definitions, whose types have no such
// tag.
var requiredOutside = map[string][]string{
	"Command": {"name", "description", "run"},
	"HTTP":    {"name", "description", "url"},
	"OpenAPI": {"spec"},
}
