package server

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
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/openai"
	"github.com/pawl-go/pawl/server/internal/web"
)

// document handles GET /openapi.json.
func (c *call) document() error {
	b, err := json.MarshalIndent(c.S.openAPI(), "", "  ")
	if err != nil {
		return err
	}
	web.WriteBytes(c.W, http.StatusOK, b)
	return nil
}

// openAPI generates the OpenAPI document from the table of endpoints.
func (s *Server) openAPI() openai.Object {
	f := &forms{all: openai.Object{}, types: map[string]reflect.Type{}}
	paths := map[string]openai.Object{}
	failed := openai.Object{"description": "It failed: the status is that of the code.", "content": openai.Object{"application/json": openai.Object{"schema": openai.Object{"type": "object", "properties": openai.Object{"error": f.of(reflect.TypeFor[api.Error]())}, "required": []string{"error"}}}}}
	for _, rt := range s.routes {
		op := openai.Object{"summary": rt.Does, "operationId": operation(rt)}
		var params []openai.Object
		for part := range strings.SplitSeq(rt.Path, "/") {
			if name, ok := strings.CutPrefix(part, "{"); ok {
				params = append(params, openai.Object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": openai.Object{"type": "string"}})
			}
		}
		for _, q := range rt.Query {
			params = append(params, openai.Object{"name": q.Name, "in": "query", "description": q.Does, "schema": openai.Object{"type": "string"}})
		}
		if params != nil {
			op["parameters"] = params
		}
		if rt.In != nil {
			op["requestBody"] = openai.Object{"required": true, "content": openai.Object{"application/json": openai.Object{"schema": f.of(reflect.TypeOf(rt.In))}}}
		}
		content := openai.Object{}
		if rt.Out != nil {
			content["application/json"] = openai.Object{"schema": f.of(reflect.TypeOf(rt.Out))}
		}
		if rt.Stream {
			content["text/event-stream"] = openai.Object{"schema": openai.Object{"type": "string"}}
		}
		done := openai.Object{"description": "Done."}
		if len(content) > 0 {
			done["content"] = content
		}
		responses := openai.Object{"200": done, "default": failed}
		if rt.Status != 0 {
			responses[strconv.Itoa(rt.Status)] = done
		}
		op["responses"] = responses
		if rt.Scope == "" {
			op["security"] = []openai.Object{}
		} else {
			op["description"] = "Needs the scope " + string(rt.Scope) + "."
		}
		if paths[rt.Path] == nil {
			paths[rt.Path] = openai.Object{}
		}
		paths[rt.Path][strings.ToLower(rt.Method)] = op
	}
	return openai.Object{"openapi": "3.1.0", "info": openai.Object{"title": "pawl", "version": "1", "description": "Agents over HTTP. docs/server.md has the story, docs/events.md the events."}, "paths": paths,
		"security":   []openai.Object{{"token": []string{}}},
		"components": openai.Object{"securitySchemes": openai.Object{"token": openai.Object{"type": "http", "scheme": "bearer"}}, "schemas": f.all}}
}

func operation(rt web.Route) string {
	name := strings.ToLower(rt.Method)
	for part := range strings.FieldsFuncSeq(rt.Path,
		func(r rune) bool { return r == '/' || r == '.' || r == '{' || r == '}' || r == '_' }) {
		if part != "v1" {
			name += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return name
}

// forms holds the schemas of named types.
type forms struct {
	all   openai.Object
	types map[string]reflect.Type
}

// of returns the schema of a type, derived from the rules of encoding/json and from the doc tags.
func (f *forms) of(t reflect.Type) openai.Object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return openai.Object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return openai.Object{}
	case reflect.TypeFor[pawl.Effect]():
		return openai.Object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return f.of(t.Elem())
	case reflect.String:
		return openai.Object{"type": "string"}
	case reflect.Bool:
		return openai.Object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint8:
		return openai.Object{"type": "integer"}
	case reflect.Float64:
		return openai.Object{"type": "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return openai.Object{"type": "string"}
		}
		return openai.Object{"type": "array", "items": f.of(t.Elem())}
	case reflect.Map:
		return openai.Object{"type": "object", "additionalProperties": f.of(t.Elem())}
	case reflect.Struct:
		return f.named(t)
	}
	return openai.Object{}
}

// schemaNames holds the names of schemas that differ from the names of their types. The names of
// schemas are part of the API.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[pawl.PendingCall]():    "Waiting",
	reflect.TypeFor[journal.LedgerEntry](): "Effect",
	reflect.TypeFor[SteerRequest]():        "Say",
	reflect.TypeFor[api.CallResult]():      "Given",
	reflect.TypeFor[PendingRun]():          "Asked",
}

//go:embed fields.txt
var fieldsText string

// meaning returns the meaning of a field: its doc tag, or its line in fields.txt.
func meaning(t reflect.Type, key string, tag reflect.StructTag) string {
	if does := tag.Get("doc"); does != "" {
		return does
	}
	if !strings.Contains(t.PkgPath(), "/pawl/server") {
		return ""
	}
	_, section, _ := strings.Cut(fieldsText, "\n["+t.Name()+"]\n")
	section, _, _ = strings.Cut(section, "\n\n")
	_, text, _ := strings.Cut("\n"+section, "\n"+key+"\t")
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// named adds a struct to the components and returns a reference to it.
func (f *forms) named(t reflect.Type) openai.Object {
	name := cmp.Or(schemaNames[t], t.Name())
	ref := openai.Object{"$ref": "#/components/schemas/" + name}
	switch f.types[name] {
	case t:
		return ref
	case nil:
		f.types[name] = t // it may refer to itself
	default:
		panic("server: two types of the API are named " + name)
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		f.all[name] = openai.Object{"type": "object", "description": "pawl." + name + ", in its JSON form."}
		return ref
	}
	props := openai.Object{}
	required := []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		key, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key == "-" || !field.IsExported() {
			continue
		}
		s := f.of(field.Type)
		if does := meaning(t, key, field.Tag); does != "" {
			if _, is := s["$ref"]; is {
				s = openai.Object{"allOf": []openai.Object{s}}
			}
			s["description"] = does
		}
		props[key] = s
		if !strings.Contains(rest, "omit") {
			required = append(required, key)
		}
	}
	f.all[name] = openai.Object{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		f.all[name].(openai.Object)["required"] = required
	}
	return ref
}
