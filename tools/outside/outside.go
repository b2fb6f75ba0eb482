// Package outside creates tools that are not written in Go: a program, a request to an API, or the
// operations of an OpenAPI document. They are defined as plain data, in YAML or JSON:
//
//	tools:
//	  - command:
//	      name: count_words
//	      description: Counts the words of a text.
//	      input: {type: object, properties: {text: {type: string}}, required: [text]}
//	      run: [./count.py]      # arguments as JSON on standard input, result on standard output
//	      effect: pure
//	  - http:
//	      name: issue_get
//	      description: Reads one issue of a repository.
//	      url: https://api.example.com/repos/{owner}/{repo}/issues/{number}
//	      headers: {Authorization: "Bearer ${ISSUES_TOKEN}"}
//	      result: /title             # a JSON Pointer into the response
//	  - openapi:
//	      spec: petstore.yaml
//	      include: ["pet_*", "GET /store/*"]
//
// Parse reads them strictly: an unknown field is an error with its line. New creates the tools:
//
//	file ──Parse──▶ []Definition ──New──▶ *Set, a pawl.Toolset
//
// The author of a definition is trusted; the model is not. {name} in a template stands for an
// argument of the call, escaped for its position. It cannot change the scheme, the host or the
// segments of the path, and cannot begin another header or another field of the query. ${NAME} in a
// header stands for an environment variable, which the model never sees, and ${caller.token} for
// the credential of the caller of the run: see package caller. Requests go through the guard of
// http_fetch: addresses that are not public are refused unless the definition names them. Programs
// get the environment that the definition lists and no other, and run only if Options has a Runner.
package outside

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"

	"github.com/pawl-go/pawl"
)

// Options are the options of New. Nil and the zero value run no programs.
type Options struct {
	// Run runs programs. Nil means that command tools are refused. Sandboxed returns a Runner with
	// a sandbox; Exec is a Runner without one.
	Run Runner
	Dir string // base of relative paths in definitions; empty means the current directory

	// Allow lists hosts that may be reached although they are not public, in addition to those in
	// definitions, in the forms of tools/http.
	Allow []string

	// Header returns headers for a request of an http, openapi or a2a tool, in addition to the
	// headers of its definition: the credentials of the caller, which it finds in the context of
	// the call (caller.From, or a value of the program's own). With an error the call is refused,
	// nothing is sent, and the model reads the error. The values are hidden in what the server
	// answers. Nil means none.
	Header func(ctx context.Context) (http.Header, error)

	Getenv func(string) string // nil means os.Getenv
	// A nil Proxy means HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment.
	Proxy func(*http.Request) (*url.URL, error)
	// A nil Lookup means the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Set holds the created tools. It is safe for concurrent use.
type Set struct {
	tools      []*pawl.Tool
	left       []LeftOut
	secrets    []string
	forCallers []string
}

var _ pawl.Toolset = (*Set)(nil)

// LeftOut is an operation of an OpenAPI document for which no tool could be created.
type LeftOut struct {
	Operation string // "POST /pets"
	Reason    string // why, in a sentence
}

// String returns operation and reason on one line.
func (l LeftOut) String() string { return l.Operation + ": " + l.Reason }

// New creates the tools for definitions. The error says which definition is wrong, and why. An
// operation of an OpenAPI document that cannot become a tool is not an error; LeftOut lists it.
func New(defs []Definition, opts *Options) (*Set, error) {
	o := *cmp.Or(opts, new(Options))
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

// LeftOut returns the operations that could not become tools, in the order of the documents.
func (s *Set) LeftOut() []LeftOut { return s.left }

// Secrets returns the values that headers took from the environment, so that a program can redact
// them: see redact.Redactor.
func (s *Set) Secrets() []string { return s.secrets }

// ForCallers returns the names of the tools that act in the name of the caller of a run, because a
// header of their definitions stands for it, as ${caller.token} does. In a run without a caller
// their calls are refused.
func (s *Set) ForCallers() []string { return s.forCallers }

// maker creates the tools of one Set.
type maker struct {
	opts Options
	set  *Set
}

func (m *maker) add(d Definition) error {
	n := 0
	for _, there := range []bool{d.Command != nil, d.HTTP != nil, d.OpenAPI != nil, d.A2A != nil} {
		if there {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("want one of command, http, openapi and a2a, got %d of them", n)
	}

	made := make([]*pawl.Tool, 1)
	what := ""
	var err error
	switch {
	case d.Command != nil:
		what = "command " + d.Command.Name
		made[0], err = m.command(d.Command)
	case d.HTTP != nil:
		what = "http " + d.HTTP.Name
		made[0], _, err = m.http(d.HTTP)
	case d.A2A != nil:
		what = "a2a " + d.A2A.Name
		made[0], err = m.a2a(d.A2A)
	default:
		what = "openapi " + d.OpenAPI.Spec
		made, err = m.openapi(d.OpenAPI)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}

	m.set.tools = append(m.set.tools, made...)
	if d.namesCaller() {
		for _, t := range made {
			m.set.forCallers = append(m.set.forCallers, t.Name)
		}
	}
	return nil
}
