package server

// call.go: the endpoints' common part: routing, the body, parameters and the JSON response of a
// request.

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// route is an endpoint. The OpenAPI document is generated from the table of routes.
type route struct {
	method, path string
	scope        Scope
	or           Scope  // an alternative scope; the handler checks further
	does         string // description for the document
	query        []param
	in, out      any  // values of the request and response types; nil means no body
	status       int  // status of success; 0 means 200
	stream       bool // may answer with events
	loose        bool // OpenAI's API: its form of errors, and unknown fields are ignored
	open         bool // a protocol of front ends: unknown fields are ignored
	do           func(c *call) error
}

type param struct{ name, does string }

// call is a request in progress.
type call struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	client *client
	route  *route
	run    string   // the ID in the path of a run; "" in other paths
	body   [32]byte // SHA-256 of the body that was read
}

// ctx returns the request's context with the scope of the client.
func (c *call) ctx() context.Context {
	return store.WithScope(c.r.Context(), c.client.scope())
}

// muxOf returns the handler of the routes.
func (s *Server) muxOf(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for i := range routes {
		rt := &routes[i]
		methods[rt.path] = append(methods[rt.path], rt.method)
		mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, rt) })
	}
	for path, known := range methods {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(known, ", "))
			writeError(w, fault("method_not_allowed", r.Method+" is not a method of this address", strings.Join(known, ", ")))
		})
	}
	if s.o.A2A != nil {
		s.muxA2A(mux)
	}
	if s.o.MCP != nil {
		mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
			who, fail := s.who(r, ScopeTools)
			if fail != nil {
				writeError(w, fail)
				return
			}
			ctx := context.WithValue(store.WithScope(r.Context(), who.scope()), asker{}, who)
			s.o.MCP.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	if s.o.Metrics != nil {
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
			if _, fail := s.who(r, ScopeRead); fail != nil {
				writeError(w, fail)
				return
			}
			s.metrics(w, r)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.o.Pages != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
			!strings.HasPrefix(r.URL.Path, "/v1/") {
			w.Header().Del("Content-Security-Policy") // pages set their own
			s.o.Pages.ServeHTTP(w, r)
			return
		}
		c := &call{s: s, w: w, r: r}
		switch r.URL.Path {
		case "/v1/embeddings":
			c.openAIError(fault("not_found", "agents have no embeddings", "ask the provider of an embedding model"))
		case "/v1/completions":
			c.openAIError(fault("not_found", "agents answer conversations only", "POST /v1/chat/completions"))
		default:
			writeError(w, fault("not_found", "there is nothing at this address", "GET /openapi.json lists all addresses"))
		}
	})
	return mux
}

// answer authenticates the client and calls the handler.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, rt *route) {
	who, fail := s.who(r, rt.scope, rt.or)
	if rt.scope == "" && fail != nil {
		who = s.anybody
		fail = nil // no token is required
	}
	c := &call{s: s, w: w, r: r, client: who, route: rt}
	if strings.HasPrefix(rt.path, "/v1/runs/{id}") && fail == nil {
		c.run = r.PathValue("id")
		if err := store.CheckID(c.run); err != nil {
			fail = badRequest(err.Error(), "")
		}
	}
	if fail == nil {
		if err := rt.do(c); err != nil {
			fail = toError(err)
		}
	}
	switch {
	case fail == nil:
	case rt.loose:
		c.openAIError(fail)
	default:
		fail.Message = s.o.Secrets.String(fail.Message)
		writeError(w, fail)
	}
	if fail != nil && (fail.cause != nil || fail.Status == http.StatusInternalServerError) {
		s.o.Log.Error("a request failed", "path", r.URL.Path, "error", cmp.Or(fail.cause, error(fail)))
	}
}

// read decodes the body, which must be one JSON value that matches v.
func (c *call) read(v any) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" { // this rejects every form of a web page
		return fault("unsupported_media", "the body must be JSON", "send Content-Type: application/json")
	}
	b, err := io.ReadAll(c.r.Body)
	if err != nil {
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
			return fault("timeout", "the body did not arrive in time", "")
		}
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return badRequest("the body broke off", "")
	}
	c.body = sha256.Sum256(b)
	d := json.NewDecoder(bytes.NewReader(b))
	if !c.route.loose && !c.route.open {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return badRequest("the body: "+plainly(err), "GET /openapi.json describes the form")
	}
	if _, err := d.Token(); err != io.EOF {
		return badRequest("the body has more than one JSON value", "")
	}
	return nil
}

// misfit matches what encoding/json says of a value of another type: what precedes, the value, the
// field, the Go type and the place.
var misfit = regexp.MustCompile(`^(.*?)json: cannot unmarshal (?:JSON )?(\w+) into Go (?:struct field \w+\.(\S+) of type |value of type )?(.+?)(?: within "(.*)")?$`)

// plainly returns the text of a decoding error without names of Go.
func plainly(err error) string {
	m := misfit.FindStringSubmatch(err.Error())
	if m == nil {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	want := "an object"
	kind := strings.TrimPrefix(m[4], "*")
	switch {
	case kind == "string":
		want = "text"
	case kind == "bool":
		want = "true or false"
	case strings.HasPrefix(kind, "[]"):
		want = "a list"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "float"):
		want = "a number"
	}
	at := cmp.Or(m[3], strings.ReplaceAll(strings.Trim(m[5], "/"), "/", "."))
	if at != "" {
		at += ": "
	}
	return m[1] + at + "JSON of the type " + m[2] + " stands where " + want + " is expected"
}

// write sends v without secrets.
func (c *call) write(status int, v any) error {
	b, err := c.s.marshal(v)
	if err == nil {
		writeBytes(c.w, status, b)
	}
	return err
}

// marshal returns v as JSON without secrets.
func (s *Server) marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return s.o.Secrets.JSON(b), err
}

// params returns the query. A parameter that is not in names is an error.
func (c *call) params(names ...string) (url.Values, error) {
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query: "+err.Error(), "")
	}
	for name := range q {
		if !slices.Contains(names, name) {
			return nil, badRequest("the query has no "+strconv.Quote(name), "it has "+strings.Join(names, ", "))
		}
	}
	return q, nil
}

// page returns the query, which may have the parameters others, after and limit, and the page that
// the last two select.
func (c *call) page(others ...string) (q url.Values, p store.Page, err error) {
	q, err = c.params(append(others, "after", "limit")...)
	if err != nil {
		return nil, p, err
	}
	p.After = q.Get("after")
	if v := q.Get("limit"); v != "" {
		p.Limit, err = strconv.Atoi(v)
		if err != nil || p.Limit < 1 || p.Limit > 1000 {
			return nil, p, badRequest("limit must be a number from 1 to 1000", "")
		}
	}
	return q, p, nil
}

// newest returns the agent called name, or the one of the agents NAME@VERSION with the largest
// number as its version. Nil means that there is none.
func (s *Server) newest(name string) (best *pawl.Agent) {
	if a := s.agents[name]; a != nil {
		return a
	}
	version := func(a *pawl.Agent) int {
		n, _ := strconv.Atoi(a.Name[len(name)+1:]) // another text is 0
		return n
	}
	for _, a := range s.o.Agents {
		if strings.HasPrefix(a.Name, name+"@") && (best == nil || version(a) > version(best)) {
			best = a
		}
	}
	return best
}

// agent returns the agent with that name. An empty name means the only agent. NAME means the newest
// of the agents NAME@VERSION.
func (s *Server) agent(name string) (*pawl.Agent, error) {
	if base, ok := strings.CutSuffix(name, callSuffix); ok && s.newest(base) != nil {
		return toolAgent(s.newest(base)), nil
	}
	if base, ok := strings.CutSuffix(name, sideSuffix); ok {
		a, err := s.agent(base)
		if err != nil {
			return nil, err
		}
		return s.sideAgent(a), nil
	}
	if a := s.newest(name); a != nil {
		return a, nil
	}
	if name == "" && len(s.o.Agents) == 1 {
		return s.o.Agents[0], nil
	}
	var names []string
	for _, a := range s.o.Agents {
		names = append(names, a.Name)
	}
	if name == "" {
		return nil, badRequest("there are several agents, and none is named", "agent is one of "+strings.Join(names, ", "))
	}
	return nil, fault("not_found", "there is no agent "+strconv.Quote(name), "there is "+strings.Join(names, ", "))
}
