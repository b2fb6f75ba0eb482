package outside_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/tools/outside"
)

// openapi creates the tools for a document. more is added to the definition.
func openapi(t *testing.T, doc, more string) (*outside.Set, error) {
	t.Helper()
	o := options()
	o.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(o.Dir, "api.yaml"), []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	defs, err := outside.Parse([]byte("[{openapi: {spec: api.yaml" + more + "}}]"))
	if err != nil {
		t.Fatal(err)
	}
	return outside.New(defs, o)
}

// listed returns the tools of a set, one per line.
func listed(t *testing.T, s *outside.Set) string {
	t.Helper()
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, tool := range tools {
		fmt.Fprintf(&b, "%s %s %s\n", tool.Name, tool.Effect, tool.Input)
	}
	return b.String()
}

const pets = `
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: "http://HOST/{stage}/", variables: {stage: {default: v1}}}]
paths:
  /pets/{petId}:
    parameters:
      - {$ref: '#/components/parameters/PetId'}
    get:
      operationId: getPet
      summary: Reads a pet.
      parameters:
        - {name: fields, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: filter, in: query, style: deepObject, schema: {type: object, additionalProperties: {type: string}}}
        - {name: tag, in: query, schema: {type: array, items: {type: string}}}
        - {name: "where[x]", in: query, content: {application/json: {schema: {type: object}}}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: Authorization, in: header, required: true, schema: {type: string}}
        - {name: x-api-key, in: header, required: true, schema: {type: string}}
        - {name: Accept, in: header, schema: {type: string}}
        - {name: session, in: cookie, schema: {type: string}}
    put:
      operationId: put-pet
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
    delete: {deprecated: true}
    head: {operationId: getPet}
  /pets:
    post:
      operationId: addPet
      description: Adds a pet.
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {name: {type: string}, n: {type: integer}}}}}}
    patch:
      operationId: upload
      requestBody: {required: true, content: {multipart/form-data: {schema: {type: object}}}}
  /far:
    get: {operationId: far, parameters: [{name: a, in: query, schema: {$ref: 'other.yaml#/A'}}]}
    put: {operationId: gone, parameters: [{$ref: '#/components/parameters/Gone'}]}
    post: {operationId: cookie, parameters: [{name: c, in: cookie, required: true, schema: {type: string}}]}
    patch: {operationId: look, parameters: [{name: c, in: query, schema: {type: string, pattern: '(?=a)'}}]}
  /far/{x}:
    get: {operationId: unnamed}
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-API-Key}}
  parameters:
    PetId: {name: petId, in: path, required: true, description: Which pet., schema: {type: integer, format: int64, minimum: 0, exclusiveMinimum: true}}
  schemas:
    Pet:
      type: object
      required: [name, id]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, nullable: true, example: Rex}
        example: {type: string}
        parent: {$ref: '#/components/schemas/Pet', description: not seen in 3.0}
        kind: {$ref: '#/components/schemas/Kind'}
    Kind: {type: string, nullable: true, enum: [cat, dog]}
`

func TestOpenAPI(t *testing.T) {
	host, last := server(t, nil)
	s, err := openapi(t, strings.ReplaceAll(pets, "HOST", host), ", headers: {X-API-Key: '${API_TOKEN}'}, base_url: 'http://"+host+"/v1/'")
	if err != nil {
		t.Fatal(err)
	}
	pet := `"$defs":{"Kind":{"enum":["cat","dog",null],"type":["string","null"]},"Pet":{"properties":{"example":{"type":"string"},"kind":{"$ref":"#/$defs/Kind"},"name":{"type":["string","null"]},"parent":{"$ref":"#/$defs/Pet"}},"required":["name"],"type":"object"}},`
	id := `"petId":{"description":"Which pet.","exclusiveMinimum":0,"format":"int64","type":"integer"}`
	if diff := cmp.Diff(listed(t, s), `addPet write {"additionalProperties":false,"properties":{"body":{"properties":{"n":{"type":"integer"},"name":{"type":"string"}},"type":"object"}},"type":"object"}
getPet read {"additionalProperties":false,"properties":{"X-Trace":{"type":"string"},"fields":{"items":{"type":"string"},"type":"array"},"filter":{"additionalProperties":{"type":"string"},"type":"object"},`+id+`,"tag":{"items":{"type":"string"},"type":"array"},"where_x":{"type":"object"}},"required":["petId"],"type":"object"}
put_pet idempotent {`+pet+`"additionalProperties":false,"properties":{"body":{"$ref":"#/$defs/Pet"},`+id+`},"required":["petId","body"],"type":"object"}
delete_pets_petId idempotent {"additionalProperties":false,"properties":{`+id+`},"required":["petId"],"type":"object"}
`); diff != "" {
		t.Errorf("tools (-got +want):\n%s", diff)
	}
	var left []string
	for _, l := range s.LeftOut() {
		left = append(left, l.String())
	}
	if diff := cmp.Diff(left, []string{
		"GET /far: parameter a: other.yaml#/A is in another document; combine the documents first",
		"POST /far: parameter c: it belongs to a cookie that cannot be set",
		"PUT /far: parameter #/components/parameters/Gone: the parameter does not exist, or it belongs to \"nowhere\"",
		left[3], // the text of package regexp
		"GET /far/{x}: {x} stands in its path, and no parameter has that name",
		"PATCH /pets: request body: its content is neither JSON nor a simple form nor text: multipart/form-data",
		"HEAD /pets/{petId}: GET /pets/{petId} has the same name, getPet",
	}); diff != "" || !strings.HasPrefix(left[3], "PATCH /far: ") || !strings.Contains(left[3], "(?=a)") {
		t.Errorf("left out (-got +want):\n%s\n%s", diff, left[3])
	}
	want(t, call(t, s, "getPet", `{"petId":7,"fields":["a,b","c"],"filter":{"k&":"v="},"tag":["x","y"],"where_x":{"n":1.0},"X-Trace":"t"}`), pawl.OutcomeOK)
	if diff := cmp.Diff([]string{last.method, last.uri, last.header.Get("X-Trace"), last.header.Get("X-Api-Key"), last.body}, []string{"GET",
		"/v1/pets/7?fields=a%2Cb,c&filter%5Bk%26%5D=v%3D&tag=x&tag=y&where%5Bx%5D=%7B%22n%22%3A1.0%7D", "t", "token-123456", ""}); diff != "" {
		t.Errorf("get (-got +want):\n%s", diff)
	}
	want(t, call(t, s, "put_pet", `{"petId":7,"body":{"name":null,"parent":{"name":"Max","kind":"dog"}}}`), pawl.OutcomeOK)
	if diff := cmp.Diff([]string{last.method, last.body, last.header.Get("Content-Type")},
		[]string{"PUT", `{"name":null,"parent":{"kind":"dog","name":"Max"}}`, "application/json"}); diff != "" || last.header.Get("Idempotency-Key") == "" {
		t.Errorf("put (-got +want):\n%s", diff)
	}
	want(t, call(t, s, "put_pet", `{"petId":7,"body":{"name":"a","parent":{"kind":"dog"}}}`), pawl.OutcomeInvalid, "name")
	want(t, call(t, s, "addPet", `{"body":{"name":"a b&c","n":2}}`), pawl.OutcomeOK)
	if diff := cmp.Diff([]string{last.uri, last.body, last.header.Get("Content-Type")}, []string{"/v1/pets", "n=2&name=a+b%26c", "application/x-www-form-urlencoded"}); diff != "" {
		t.Errorf("post (-got +want):\n%s", diff)
	}
}

func TestOpenAPIChoice(t *testing.T) {
	for more, want := range map[string]string{
		", include: ['*Pet']":                              "addPet getPet",
		", include: ['GET *', addPet], exclude: ['*far*']": "addPet getPet",
		", include: [getPet], prefix: pets_":               "pets_getPet",
		", include: [pets_getPet], prefix: pets_":          "pets_getPet",
	} {
		s, err := openapi(t, strings.ReplaceAll(pets, "HOST", "pets.example"), more)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for line := range strings.Lines(listed(t, s)) {
			name, _, _ := strings.Cut(line, " ")
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
}

func TestOpenAPIConcurrent(t *testing.T) {
	for more, want := range map[string]bool{"": false, ", concurrent: true": true} {
		s, err := openapi(t, strings.ReplaceAll(pets, "HOST", "pets.example"), more)
		if err != nil {
			t.Fatal(err)
		}
		tools, err := s.Tools(t.Context())
		if err != nil || len(tools) == 0 {
			t.Fatal(tools, err)
		}
		for _, tool := range tools {
			if tool.Concurrent != want {
				t.Errorf("%q: %s has Concurrent %v", more, tool.Name, tool.Concurrent)
			}
		}
	}
}

// A server named by the document opens no private network. A server named by the definition does.
func TestOpenAPIServer(t *testing.T) {
	host, last := server(t, nil)
	doc := strings.ReplaceAll(pets, "HOST", host)
	for more, outcome := range map[string]pawl.Outcome{"": pawl.OutcomeError, ", allow: ['" + host +
		"']": pawl.OutcomeOK, ", base_url: 'http://" + host + "/v2'": pawl.OutcomeOK} {
		s, err := openapi(t, doc, ", include: [getPet]"+more)
		if err != nil {
			t.Fatal(err)
		}
		*last = seen{}
		x := call(t, s, "getPet", `{"petId":1}`)
		if x.Outcome != outcome || (last.uri != "") != (outcome == pawl.OutcomeOK) {
			t.Errorf("%q: %s %s; asked for %q", more, x.Outcome, x.Result.Text(), last.uri)
		}
	}
}

// Headers are for the document's server. An operation with another server does not get them.
func TestOpenAPIElsewhere(t *testing.T) {
	doc := "openapi: 3.1.0\nservers: [{url: 'https://api.example/v1'}]\npaths: {/a: {get: {operationId: here}, put: {operationId: there, servers: [{url: 'https://evil.example'}]}}}"
	s, err := openapi(t, doc, ", headers: {X-Key: '${API_TOKEN}'}")
	if err != nil {
		t.Fatal(err)
	}
	if tools, _ := s.Tools(t.Context()); len(tools) != 1 || len(s.LeftOut()) != 1 ||
		!strings.Contains(s.LeftOut()[0].String(), "PUT /a: its server is evil.example, and headers are for the document's server") {
		t.Errorf("%d tools, left out %v", len(tools), s.LeftOut())
	}
	if s, err = openapi(t, doc, ""); err != nil || len(s.LeftOut()) != 0 {
		t.Errorf("without headers: %v, left out %v", err, s.LeftOut())
	}
	if s, err = openapi(t, doc, ", headers: {X-Key: '${API_TOKEN}'}, base_url: 'https://api.example/v2'"); err != nil || len(s.LeftOut()) != 0 {
		t.Errorf("with a base_url: %v, left out %v", err, s.LeftOut())
	}
}

func TestOpenAPIErrors(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                      "not an OpenAPI document",
		"[1]":                                   "not an OpenAPI document",
		"swagger: '2.0'":                        "Swagger 2.0",
		"openapi: 4":                            `openapi is "": want 3.0 or 3.1`,
		"openapi: 3.1.0":                        "none of the 0 operations is selected",
		"openapi: 3.1.0\npaths: {/a: {get: 1}}": "operations is selected",
		"a: [":                                  "line 1",
		"x: &x [1,1,1,1]\na: {? *x : 1}":        "line 2: a name must be a plain text",
	} {
		if _, err := openapi(t, doc, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", doc, err, want)
		}
	}
	for doc, want := range map[string]string{
		"openapi: 3.1.0\npaths: {/a: {get: {}}}":                                                                                                      "which is not a complete address: set base_url",
		"openapi: 3.1.0\nservers: [{url: /v1}]\npaths: {/a: {get: {}}}":                                                                               "which is not a complete address: set base_url",
		"openapi: 3.1.0\nservers: [{url: 'http://u:p@h.example'}]\npaths: {/a: {get: {}}}":                                                            "a name or a password",
		"openapi: 3.1.0\nservers: [{url: 'http://h.example'}]\npaths: {/a/../b: {get: {}}}":                                                           `a segment ".."`,
		"openapi: 3.1.0\nservers: [{url: 'http://h.example'}]\npaths: {/a: {get: {parameters: [{name: a, in: query, schema: {$dynamicRef: '#x'}}]}}}": "resolved when it is used",
		"openapi: 3.1.0\nservers: [{url: 'http://h.example'}]\npaths: {/a: {get: {parameters: [{name: a, in: query, schema: 7}]}}}":                   "a schema is an object; got 7",
		"openapi: 3.1.0\nservers: [{url: 'http://h.example'}]\npaths: {/a: {get: {parameters: [{name: a, in: query, schema: {type: text}}]}}}":        "",
		"openapi: 3.1.0\nservers: [{url: 'http://h.example'}]\npaths: {/a: {get: {parameters: [{name: a, in: query, schema: {$ref: '#/x'}}]}}}":       "#/x points to nothing",
	} {
		s, err := openapi(t, doc, "")
		if err != nil || len(s.LeftOut()) != 1 || !strings.Contains(s.LeftOut()[0].Reason, want) {
			t.Errorf("%q: %v, left out %v, want %q", doc, err, s, want)
		}
	}
}

// Large, deep or cyclic documents are read within limits.
func TestOpenAPIBounds(t *testing.T) {
	soak.Sequential(t)
	head := `{"openapi":"3.1.0","servers":[{"url":"https://api.example"}],`
	op := func(ref string) string {
		return `"paths":{"/ok":{"get":{"operationId":"ok"}},"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/` + ref + `"}}}}}}},`
	}
	var chain, wide bytes.Buffer
	for i := range 8000 {
		fmt.Fprintf(&chain, `"S%d":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/S%d"},"d":{"type":"string","description":"%s"}}},`, i, i+1, strings.Repeat("x", 100))
	}
	chain.WriteString(`"S8000":{"type":"string"}`)
	for i := range 3000 {
		fmt.Fprintf(&wide, `"W%d":{"type":"string","description":"%s"},`, i, strings.Repeat("y", 300))
	}
	deep := strings.Repeat(`{"properties":{"a":`, 2000) + `{}` + strings.Repeat(`}}`, 2000)
	cases := []struct{ name, doc, want string }{
		{"chain", head + op("S0") + `"components":{"schemas":{` + chain.String() + `}}}`, "its schema is too large"},
		{"wide", head + op("W") + `"components":{"schemas":{"W":{"type":"object","properties":{` + strings.TrimSuffix(wide.String(), ",") + `}}}}}`, "its schema has more than 131072 bytes"},
		{"deep", head + op("D") + `"components":{"schemas":{"D":` + deep + `}}}`, "64 deep"},
		{"circle", head + op("A") + `"components":{"schemas":{"A":{"$ref":"#/components/schemas/B"},"B":{"$ref":"#/components/schemas/A"}}}}`, ""},
	}
	for _, c := range cases {
		started := time.Now()
		s, err := openapi(t, c.doc, "")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		t.Logf("%s: %d bytes read in %v, left out %v", c.name, len(c.doc), time.Since(started).Round(time.Millisecond), s.LeftOut())
		// a schema that only refers to itself accepts anything or nothing, and ends
		if c.name == "circle" {
			call(t, s, "ok", `{}`)
			if strings.Contains(listed(t, s), "\na ") || strings.HasPrefix(listed(t, s), "a ") {
				call(t, s, "a", `{"body":1}`)
			}
			continue
		}
		if tools, _ := s.Tools(t.Context()); len(tools) != 1 || len(s.LeftOut()) != 1 ||
			!strings.Contains(s.LeftOut()[0].Reason, c.want) {
			t.Errorf("%s: %d tools, left out %v", c.name, len(tools), s.LeftOut())
		}
	}
	// More operations than a model can choose from are an error and not cut silently.
	var many strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&many, `"/p%d/{id}":{"get":{"operationId":"op%d","description":"%s","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}]}},`, i, i, strings.Repeat("z", 500))
	}
	doc := head + `"paths":{` + strings.TrimSuffix(many.String(), ",") + `}}`
	if _, err := openapi(t, doc, ""); err == nil || !strings.Contains(err.Error(), "9000 operations are selected; at most 128 are allowed") {
		t.Errorf("of %d bytes: %v", len(doc), err)
	}
	started := time.Now()
	s, err := openapi(t, doc, ", include: ['op12*'], exclude: ['op1234']")
	if err != nil {
		t.Fatal(err)
	}
	if tools, _ := s.Tools(t.Context()); len(tools) != 110 {
		t.Errorf("%d tools", len(tools))
	}
	t.Logf("%d bytes, %d of 9000 operations in %v", len(doc), 110, time.Since(started).Round(time.Millisecond))
	// A small YAML file cannot expand to much data.
	bomb := "openapi: 3.1.0\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+p+",", 10), ",") + "]\n"
	}
	if _, err := openapi(t, bomb, ""); err == nil || !strings.Contains(err.Error(), "it is too large") {
		t.Errorf("of a bomb: %v", err)
	}
}

func TestOpenAPIModern(t *testing.T) {
	doc := `{"openapi":"3.1.0","servers":[{"url":"https://api.example"}],"paths":{"/a":{"get":{"parameters":[
		{"name":"id","in":"query","schema":{"type":["string","null"],"examples":["x"],"x-y":1,"const":"a","minLength":1}},
		{"name":"id","in":"header","schema":{"$ref":"#/components/schemas/T","description":"beside"}},
		{"name":"list","in":"query","style":"pipeDelimited","schema":true}]}}},
		"components":{"schemas":{"T":{"type":"object","properties":{"type":{"type":"string"},"required":{"type":"boolean"}}}}}}`
	s, err := openapi(t, doc, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(listed(t, s), `get_a read {"$defs":{"T":{"properties":{"required":{"type":"boolean"},"type":{"type":"string"}},"type":"object"}},"additionalProperties":false,"properties":{`+
		`"id":{"const":"a","minLength":1,"type":["string","null"]},"id_header":{"$ref":"#/$defs/T","description":"beside"},"list":true},"type":"object"}`+"\n"); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	tools, _ := s.Tools(t.Context())
	if b, err := json.Marshal(tools[0].Description); err != nil || string(b) != `"GET /a"` {
		t.Errorf("description %s", b)
	}
}

// A document is foreign input: for any content, reading it ends, and the tools can be offered.
func FuzzOpenAPI(f *testing.F) {
	f.Add(strings.ReplaceAll(pets, "HOST", "pets.example"))
	f.Add(`{"openapi":"3.1.0","servers":[{"url":"https://h.example"}],"paths":{"/{a}":{"get":{"parameters":[{"$ref":"#/paths/~1{a}/get/parameters/0"}]}}}}`)
	f.Add("openapi: 3.1.0\npaths: &p {/a: {get: {requestBody: {content: {text/plain: {}}}}}, <<: *p}")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, doc string) {
		if err := os.WriteFile(filepath.Join(dir, "api.yaml"), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		o := options()
		o.Dir = dir
		s, err := outside.New([]outside.Definition{{OpenAPI: &outside.OpenAPI{Spec: "api.yaml"}}}, o)
		if err != nil {
			return
		}
		tools, _ := s.Tools(t.Context())
		for _, tool := range tools {
			if err := tool.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(comment)
	f.Add(`[{"http":{"name":"a","description":"d","url":"https://e.example/{x}?a={y}","body":{"z":["{x}!"]}}}]`)
	f.Add("- command: {name: a, description: d, run: [date], env: [A=b], timeout: 1s}")
	f.Fuzz(func(t *testing.T, text string) {
		defs, err := outside.Parse([]byte(text))
		if err != nil {
			return
		}
		o := options()
		o.Run = starts(func(context.Context) (outside.Exit, error) { return outside.Exit{}, nil })
		if _, err := outside.New(defs, o); err != nil && strings.Contains(err.Error(), "token-123456") {
			t.Errorf("the error has a secret in it: %v", err)
		}
	})
}
