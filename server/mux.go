package server

// mux.go: the addresses of the server.

import (
	"context"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// call is a request to an endpoint of this package.
type call struct {
	*web.Call
	server *Server
}

// as returns the request of another client, such as the client as an approver of another user.
func (c *call) as(who *access.Client) *call {
	other := *c.Call
	other.Client = who
	return &call{&other, c.server}
}

// on converts a handler of this package.
func (s *Server) on(do func(*call) error) func(*web.Call) error {
	return func(c *web.Call) error { return do(&call{c, s}) }
}

// newMux returns the handler of all addresses.
func (s *Server) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for i := range s.routes {
		rt := &s.routes[i]
		if !rt.Hidden { // no list of methods for addresses of other protocols
			methods[rt.Path] = append(methods[rt.Path], rt.Method)
		}
		pattern := strings.TrimSpace(rt.Method + " " + rt.Path)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.web.Serve(w, r, rt) })
	}
	for path, known := range methods {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { wrongMethod(w, r, known) })
	}

	if s.options.MCP != nil {
		mux.HandleFunc("/mcp", s.serveMCP)
	}
	if s.options.Metrics != nil {
		mux.HandleFunc("GET /metrics", s.serveMetrics)
	}
	if s.options.Hooks != nil {
		mux.Handle("/hooks/", s.options.Hooks)
	}
	mux.HandleFunc("/", s.serveRest)
	return mux
}

// wrongMethod answers a request whose address has other methods.
func wrongMethod(w http.ResponseWriter, r *http.Request, known []string) {
	all := strings.Join(known, ", ")
	w.Header().Set("Allow", all)
	web.WriteError(w, runs.Fault("method_not_allowed", r.Method+" is not a method of this address", all))
}

// serveMCP handles /mcp.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	who, fail := s.web.Who(r, api.ScopeTools)
	if fail != nil {
		web.WriteError(w, fail)
		return
	}
	ctx := context.WithValue(store.WithScope(r.Context(), who.Scope), mcpClient{}, who)
	if acts := who.Acts(); acts != nil {
		ctx = caller.With(ctx, *acts)
	}
	s.options.MCP.ServeHTTP(w, r.WithContext(ctx))
}

// serveMetrics handles GET /metrics.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if _, fail := s.web.Who(r, api.ScopeRead); fail != nil {
		web.WriteError(w, fail)
		return
	}
	s.metrics(w, r)
}

// serveRest handles addresses outside the API.
func (s *Server) serveRest(w http.ResponseWriter, r *http.Request) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if s.options.Pages != nil && reads && !strings.HasPrefix(r.URL.Path, "/v1/") {
		w.Header().Del("Content-Security-Policy") // pages set their own
		s.options.Pages.ServeHTTP(w, r)
		return
	}
	web.WriteError(w, runs.Fault("not_found", "there is nothing at this address",
		"GET /openapi.json lists all addresses"))
}
