package outside_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is a received request.
type seen struct {
	method, uri, body string
	header            http.Header
}

// server records its requests and responds as a test wants.
func server(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (host string, last *seen) {
	t.Helper()
	last = new(seen)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*last = seen{r.Method, r.RequestURI, string(b), r.Header}
		if answer != nil {
			answer(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"ok":true}`)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return strings.TrimPrefix(s.URL, "http://"), last
}

func direct(*http.Request) (*url.URL, error) { return nil, nil }

// options returns the options of the tests: the environment has one token.
func options() *outside.Options {
	return &outside.Options{Proxy: direct, Run: outside.Exec, Getenv: func(name string) string {
		return map[string]string{"API_TOKEN": "token-123456", "BAD_TOKEN": "two\r\nX-Lines: 1", "PATH": "/usr/bin:/bin", "GREETING": "hello"}[name]
	}}
}

// set creates the tools for a text.
func set(t *testing.T, o *outside.Options, text string) *outside.Set {
	t.Helper()
	defs, err := outside.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := outside.New(defs, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call executes a call through the whole pipeline.
func call(t *testing.T, s pawl.Toolset, name, args string) pawl.Execution {
	t.Helper()
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var reg pawl.Registry
	if err := reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return reg.Execute(t.Context(), name, json.RawMessage(args))
}

func want(t *testing.T, x pawl.Execution, outcome pawl.Outcome, texts ...string) {
	t.Helper()
	if x.Outcome != outcome {
		t.Errorf("outcome %s, want %s: %s", x.Outcome, outcome, x.Result.Text())
	}
	for _, text := range texts {
		if !strings.Contains(x.Result.Text(), text) {
			t.Errorf("the result has no %q: %s", text, x.Result.Text())
		}
	}
}

// A fault in a file of definitions is reported with its position.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "there is nothing in it",
		"tools: []":                         "there are no tools in it",
		"[]":                                "there are no tools in it",
		"a: [":                              "line 1",
		"tools:\n- {http: {nam: x}}":        "line 2: there is no field nam (did you mean name?)",
		"tools:\n- {htp: {}}":               "line 2: there is no field htp (did you mean http?)",
		"tools:\n- {http: {zzzz: x}}":       "line 2: there is no field zzzz; there are name, description, input, method, url",
		"tools:\n- {command: {run: date}}":  "line 2: want a list, got str",
		"tools:\n- {http: {timeout: soon}}": `"soon" is not a duration`,
		"tools:\n- {http: {timeout: -1s}}":  "is not a duration",
		"tools:\n- {http: {effect: reads}}": `unknown effect "reads"`,
		"tools: []\n---\ntools: []":         "second document",
		"tools:\n- {http: {body: {? {a: b} : c}}}":             "a name must be a plain text",
		"tools:\n- http: {body: {a: 1, a: 2}}":                 "line 2: a occurs twice",
		"tools:\n- {http: {body: .inf}}":                       ".inf is not a JSON number",
		"{\"tools\":\n[{\"http\":\n{\"nam\":\"x\"}}]}":         "line 3: there is no field nam (did you mean name?)",
		"{\"tools\":\n[{\"command\":\n{\"run\":\"x\"}}]}":      "line 3: tools.command.run: want a list, got string",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]": "there is no field a",
	} {
		if _, err := outside.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// YAML and JSON give the same definitions.
func TestParseForms(t *testing.T) {
	y := "tools:\n- http: {name: a, description: d, url: 'https://e.example/{x}', timeout: 5s, concurrent: true, effect: read, body: {n: 1.50, s: '{x}', l: [true, null]}}\n"
	defs, err := outside.Parse([]byte(y))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"tools": defs})
	if err != nil {
		t.Fatal(err)
	}
	again, err := outside.Parse(b)
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	c, _ := json.Marshal(map[string]any{"tools": again})
	if string(b) != string(c) || !strings.Contains(string(b), `"body":{"l":[true,null],"n":1.50,"s":"{x}"}`) ||
		!strings.Contains(string(b), `"effect":"read","concurrent":true,"timeout":"5s"`) {
		t.Errorf("first  %s\nsecond %s", b, c)
	}
}

// A fault in a definition is reported with its name.
func TestDefinitionErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[{}]": "tools[0]: want one of command, http, openapi and a2a, got 0",
		"[{http: {name: 'a b', description: d, url: 'https://e.example/'}}]":                                                           `name "a b": want a letter`,
		"[{http: {name: a, url: 'https://e.example/'}}]":                                                                               "description is empty",
		"[{http: {name: a, description: d, url: '/x'}}]":                                                                               "want a whole address",
		"[{http: {name: a, description: d, url: 'ftp://e.example/x'}}]":                                                                "want a whole address",
		"[{http: {name: a, description: d, url: 'https://{host}/x'}}]":                                                                 "no argument can stand in the host",
		"[{http: {name: a, description: d, url: 'https://e.example:{port}/x'}}]":                                                       "no argument can stand in the host",
		"[{http: {name: a, description: d, url: 'https://u:p@e.example/x'}}]":                                                          "a name or a password in it",
		"[{http: {name: a, description: d, url: 'https://e.example/../{x}'}}]":                                                         `a segment ".."`,
		"[{http: {name: a, description: d, url: 'https://e.example/?{x}=1'}}]":                                                         "no argument can stand in it",
		"[{http: {name: a, description: d, url: 'https://e.example/${API_TOKEN}'}}]":                                                   "variables of the environment are for headers",
		"[{http: {name: a, description: d, method: TRACE, url: 'https://e.example/'}}]":                                                `method "TRACE"`,
		"[{http: {name: a, description: d, method: GET, body: {}, url: 'https://e.example/'}}]":                                        "a GET request has none",
		"[{http: {name: a, description: d, url: 'https://e.example/', headers: {Host: x}}}]":                                           `"Host" cannot be set`,
		"[{http: {name: a, description: d, url: 'https://e.example/', headers: {'A B': x}}}]":                                          `"A B" cannot be set`,
		"[{http: {name: a, description: d, url: 'https://e.example/', headers: {A: \"x\\r\\nB: y\"}}}]":                                "not one line",
		"[{http: {name: a, description: d, url: 'https://e.example/', headers: {A: '${NO_TOKEN}'}}}]":                                  "the variable NO_TOKEN of the environment is not set",
		"[{http: {name: a, description: d, url: 'https://e.example/', headers: {A: '${BAD_TOKEN}'}}}]":                                 "BAD_TOKEN has a character",
		"[{http: {name: a, description: d, url: 'https://e.example/', result: items}}]":                                                "not a JSON Pointer",
		"[{http: {name: a, description: d, url: 'https://e.example/', allow: ['*']}}]":                                                 "want a host",
		"[{http: {name: a, description: d, url: 'https://e.example/{x}', input: {type: object, properties: {y: {}}}}}]":                "{x} is not an argument of input; {{x}} is the literal text",
		"[{http: {name: a, description: d, url: 'https://e.example/{x}', input: {type: object, properties: {x: {}}}}}]":                "{x} occurs in the path, so it must be required",
		"[{http: {name: a, description: d, url: 'https://e.example/', input: {type: string}}}]":                                        `"type" must be "object"`,
		"[{http: {name: a, description: d, url: 'https://e.example/', input: [1]}}]":                                                   "want a JSON Schema of an object",
		"[{command: {name: a, description: d}}]":                                                                                       "run is empty",
		"[{command: {name: a, description: d, run: [date], env: ['A B']}}]":                                                            `env "A B"`,
		"[{openapi: {spec: 'https://e.example/openapi.json'}}]":                                                                        "spec is an address",
		"[{openapi: {spec: gone.yaml}}]":                                                                                               "openapi gone.yaml: no such file",
		"[{http: {name: a, description: d, url: 'https://e.example/'}}, {http: {name: a, description: d, url: 'https://e.example/'}}]": "two tools are named a",
	} {
		defs, err := outside.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err = outside.New(defs, options()); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "two\r") {
			t.Errorf("%s:\n%v, want %q", text, err, want)
		}
	}
}

// The example on the documentation page is correct.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/outside.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml tools.yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	defs, err := outside.Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(o.Dir, "shop.yaml"), []byte("openapi: 3.1.0\npaths: {/pets: {get: {operationId: listPet}, delete: {operationId: deletePet}}, /store/x: {get: {}, put: {}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Getenv = func(name string) string { return "value of " + name }
	s, err := outside.New(defs, o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	tools, _ := s.Tools(t.Context())
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "count_words issue_close shop_listPet shop_get_store_x" {
		t.Errorf("its tools are %s", got)
	}
}

func Example() {
	defs, err := outside.Parse([]byte(`
tools:
  - http:
      name: issue_get
      description: Reads one issue of a repository.
      url: https://api.example.com/repos/{owner}/{repo}/issues
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := outside.New(defs, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	tools, _ := set.Tools(context.Background())
	fmt.Println(tools[0].Name, tools[0].Effect, strings.ReplaceAll(string(tools[0].Input), ",", ",\n"))
	args := json.RawMessage(`{"owner":"pawl-go","repo":"../../admin"}`)
	x := pawl.Toolsets{tools[0]}.Execute(context.Background(), llm.ToolCall{Name: "issue_get", Args: args})
	fmt.Println(strings.ReplaceAll(x.Result.Text(), ": ", ":\n"))
	// Output:
	// issue_get read {"additionalProperties":false,
	// "properties":{"owner":{"type":"string"},
	// "repo":{"type":"string"}},
	// "required":["owner",
	// "repo"],
	// "type":"object"}
	// repo has a segment "..", which leads to another place:
	// give the name of one thing, not a path to it
}
