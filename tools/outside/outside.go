// Package outside makes tools of what is not Go: a program, a request to an API, the operations of an OpenAPI document. They are defined as plain
// data, in YAML or JSON:
//
//	tools:
//	  - command:
//	      name: count_words
//	      description: Counts the words of a text.
//	      input: {type: object, properties: {text: {type: string}}, required: [text]}
//	      run: [./count.py]          # the arguments of the call as JSON on standard input, the result on standard output
//	      effect: pure
//	  - http:
//	      name: issue_get
//	      description: Reads one issue of a repository.
//	      url: https://api.example.com/repos/{owner}/{repo}/issues/{number}
//	      headers: {Authorization: "Bearer ${ISSUES_TOKEN}"}
//	      result: /title             # a JSON Pointer into the answer
//	  - openapi:
//	      spec: petstore.yaml
//	      include: ["pet_*", "GET /store/*"]
//
// Parse reads them strictly: a field that there is not is an error with its line. New makes the tools:
//
//	file ──Parse──▶ []Definition ──New──▶ *Set, a pawl.Toolset
//
// Whoever writes a definition is trusted, what a model writes is not. {name} in a template stands for an argument of the call, escaped for its place: it
// can change neither scheme nor host nor the segments of the path, nor begin another header or another field of the query. ${NAME} in
// a header stands for a variable of the environment, which the model never sees. Requests go through the guard of http_fetch: what is not public is refused
// unless the definition names it. Programs get the environment that the definition lists and no other, and run only where Options has a Runner.
package outside

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"

	"github.com/pawl-go/pawl"
)

// Options are what New can be told. Nil and the zero value run no programs.
type Options struct {
	Run Runner // runs programs; nil: command tools are refused. Sandboxed makes one; Exec is one without a sandbox
	Dir string // where relative paths of definitions begin; "": the current directory

	Allow []string // what may be reached although it is not public, beside what definitions allow; the forms of tools/http

	Getenv func(string) string                                          // nil: os.Getenv
	Proxy  func(*http.Request) (*url.URL, error)                        // nil: HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error) // nil: the system's resolver
}

// Set is the tools that were made. It may be used concurrently.
type Set struct {
	tools   []*pawl.Tool
	left    []LeftOut
	secrets []string
}

var _ pawl.Toolset = (*Set)(nil)

// LeftOut is an operation of an OpenAPI document of which no tool could be made.
type LeftOut struct {
	Operation string // "POST /pets"
	Reason    string
}

// String returns both in a line.
func (l LeftOut) String() string { return l.Operation + ": " + l.Reason }

// New makes the tools of definitions. The error says which definition is wrong, and how; an operation of an OpenAPI document that cannot be a tool is no
// error, but LeftOut.
func New(defs []Definition, opts *Options) (*Set, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	s := new(Set)
	m := &maker{opts: o, set: s}
	for i, d := range defs {
		if err := m.add(d); err != nil {
			return nil, fmt.Errorf("tools[%d]: %w", i, err)
		}
	}
	seen := map[string]bool{}
	for _, t := range s.tools {
		if seen[t.Name] {
			return nil, fmt.Errorf("two tools are named %s: rename one, or give an openapi definition a prefix", t.Name)
		}
		seen[t.Name] = true
	}
	return s, nil
}

// Tools returns the tools in the order of their definitions.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) { return s.tools, nil }

// LeftOut returns what could be no tool, in the order of the documents.
func (s *Set) LeftOut() []LeftOut { return s.left }

// Secrets returns what came from the environment into headers, so that a program can hide it: see pawl.Redactor.
func (s *Set) Secrets() []string { return s.secrets }

// maker makes the tools of one Set.
type maker struct {
	opts Options
	set  *Set
}

func (m *maker) add(d Definition) error {
	n := 0
	for _, there := range []bool{d.Command != nil, d.HTTP != nil, d.OpenAPI != nil} {
		if there {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("want one of command, http and openapi, got %d of them", n)
	}
	switch {
	case d.Command != nil:
		t, err := m.command(d.Command)
		if err != nil {
			return fmt.Errorf("command %s: %w", d.Command.Name, err)
		}
		m.set.tools = append(m.set.tools, t)
	case d.HTTP != nil:
		t, err := m.http(d.HTTP)
		if err != nil {
			return fmt.Errorf("http %s: %w", d.HTTP.Name, err)
		}
		m.set.tools = append(m.set.tools, t)
	default:
		tools, err := m.openapi(d.OpenAPI)
		if err != nil {
			return fmt.Errorf("openapi %s: %w", d.OpenAPI.Spec, err)
		}
		m.set.tools = append(m.set.tools, tools...)
	}
	return nil
}
