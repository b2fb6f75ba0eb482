package server

// openapi.go: makes the OpenAPI document from the table of endpoints.

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/web"
)

// document handles GET /openapi.json.
func (c *call) document() error {
	b, err := json.MarshalIndent(c.server.openAPI(), "", "  ")
	if err != nil {
		return err
	}
	web.WriteBytes(c.Writer, http.StatusOK, b)
	return nil
}

type object = map[string]any

// openAPI generates the OpenAPI document from the table of endpoints.
func (s *Server) openAPI() object {
	f := &forms{all: object{}, types: map[string]reflect.Type{}}
	paths := map[string]object{}
	for i := range s.routes {
		rt := &s.routes[i]
		if rt.Hidden {
			continue
		}
		if paths[rt.Path] == nil {
			paths[rt.Path] = object{}
		}
		paths[rt.Path][strings.ToLower(rt.Method)] = f.operation(rt)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title":       "pawl",
			"version":     "1",
			"description": "Agents over HTTP. docs/server.md has the story, docs/events.md the events.",
		},
		"paths":    paths,
		"security": []object{{"token": []string{}}},
		"components": object{
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"schemas":         f.all,
		},
	}
}

// operation returns the description of an endpoint.
func (f *forms) operation(rt *web.Route) object {
	op := object{
		"summary":     rt.Does,
		"operationId": operationID(rt),
		"responses":   f.responses(rt),
	}
	if params := parameters(rt); params != nil {
		op["parameters"] = params
	}
	if rt.In != nil {
		op["requestBody"] = object{"required": true, "content": f.jsonOf(reflect.TypeOf(rt.In))}
	}
	if rt.Scope == "" {
		op["security"] = []object{}
	} else {
		op["description"] = "Needs the scope " + string(rt.Scope) + "."
	}
	return op
}

// parameters returns the parameters of the path and the query. Nil means that there are none.
func parameters(rt *web.Route) (params []object) {
	text := object{"type": "string"}
	for part := range strings.SplitSeq(rt.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, object{
				"name":     strings.TrimSuffix(name, "}"),
				"in":       "path",
				"required": true,
				"schema":   text,
			})
		}
	}
	for _, q := range rt.Query {
		params = append(params, object{
			"name":        q.Name,
			"in":          "query",
			"description": q.Does,
			"schema":      text,
		})
	}
	return params
}

// responses returns the responses of an endpoint.
func (f *forms) responses(rt *web.Route) object {
	content := object{}
	if rt.Out != nil {
		content = f.jsonOf(reflect.TypeOf(rt.Out))
	}
	if rt.Stream {
		content["text/event-stream"] = object{"schema": object{"type": "string"}}
	}
	done := object{"description": "Done."}
	if len(content) > 0 {
		done["content"] = content
	}

	failure := object{
		"type":       "object",
		"properties": object{"error": f.schemaOf(reflect.TypeFor[api.Error]())},
		"required":   []string{"error"},
	}
	all := object{
		"200": done,
		"default": object{
			"description": "It failed: the code decides the status.",
			"content":     object{"application/json": object{"schema": failure}},
		},
	}
	if rt.Status != 0 {
		all[strconv.Itoa(rt.Status)] = done
	}
	return all
}

// jsonOf returns the content that is a JSON value of a type.
func (f *forms) jsonOf(t reflect.Type) object {
	return object{"application/json": object{"schema": f.schemaOf(t)}}
}

// operationID returns the name of an endpoint.
func operationID(rt *web.Route) string {
	name := strings.ToLower(rt.Method)
	separates := func(r rune) bool { return strings.ContainsRune("/.{}_", r) }
	for part := range strings.FieldsFuncSeq(rt.Path, separates) {
		if part != "v1" {
			name += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return name
}

// forms holds the schemas of named types.
type forms struct {
	all   object
	types map[string]reflect.Type
}

// schemaOf returns the schema of a type, derived from the rules of encoding/json and from the doc
// tags.
func (f *forms) schemaOf(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[pawl.Effect](), reflect.TypeFor[llm.Author]():
		return object{"type": "string"}
	}

	switch t.Kind() {
	case reflect.Pointer:
		return f.schemaOf(t.Elem())
	case reflect.Struct:
		return f.named(t)
	case reflect.Map:
		return object{"type": "object", "additionalProperties": f.schemaOf(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // base64
			return object{"type": "string"}
		}
		return object{"type": "array", "items": f.schemaOf(t.Elem())}

	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint8:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	}
	return object{}
}

// schemaNames holds the names of schemas that differ from the names of their types. The names of
// schemas are part of the API.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[pawl.PendingCall]():    "Waiting",
	reflect.TypeFor[journal.LedgerEntry](): "Effect",
	reflect.TypeFor[api.SteerRequest]():    "Say",
	reflect.TypeFor[api.CallResult]():      "Given",
	reflect.TypeFor[api.PendingRun]():      "Asked",
	reflect.TypeFor[llm.Source]():          "LabelSource",
}

//go:embed fields.txt
var fieldsText string

// meaning returns the meaning of a field: its doc tag, or its line in fields.txt.
func meaning(t reflect.Type, key string, tag reflect.StructTag) string {
	if does := tag.Get("doc"); does != "" {
		return does
	}
	switch t.PkgPath() {
	case reflect.TypeFor[api.Run]().PkgPath():
		return meaningOf(t.Name(), key)
	case reflect.TypeFor[pawl.Answer]().PkgPath():
		return meaningOf("pawl."+t.Name(), key)
	}
	return ""
}

// meaningOf returns the meaning of a field in fields.txt. Empty means that it has none.
func meaningOf(name, key string) string {
	_, section, _ := strings.Cut(fieldsText, "\n["+name+"]\n")
	section, _, _ = strings.Cut(section, "\n\n")
	_, text, _ := strings.Cut("\n"+section, "\n"+key+"\t")
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// named adds a struct to the components and returns a reference to it.
func (f *forms) named(t reflect.Type) object {
	name := cmp.Or(schemaNames[t], t.Name())
	ref := object{"$ref": "#/components/schemas/" + name}
	switch f.types[name] {
	case t:
		return ref
	case nil:
		f.types[name] = t // it may refer to itself
	default:
		panic("server: two types of the API are named " + name)
	}

	marshaler := reflect.TypeFor[json.Marshaler]()
	if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		f.all[name] = object{"type": "object", "description": "pawl." + name + ", in its JSON form."}
		return ref
	}
	f.all[name] = f.structOf(t)
	return ref
}

// structOf returns the schema of a struct by its fields.
func (f *forms) structOf(t reflect.Type) object {
	props := object{}
	required := []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		key, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key == "-" || !field.IsExported() {
			continue
		}

		schema := f.schemaOf(field.Type)
		if does := meaning(t, key, field.Tag); does != "" {
			if _, is := schema["$ref"]; is { // which has no other members
				schema = object{"allOf": []object{schema}}
			}
			schema["description"] = does
		}
		props[key] = schema
		if !strings.Contains(rest, "omit") {
			required = append(required, key)
		}
	}

	schema := object{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}
