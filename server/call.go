package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/server/internal/a2a"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/openai"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// muxOf returns the handler of the routes.
func (s *Server) muxOf(routes []web.Route) *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for i := range routes {
		rt := &routes[i]
		methods[rt.Path] = append(methods[rt.Path], rt.Method)
		mux.HandleFunc(rt.Method+" "+rt.Path, func(w http.ResponseWriter, r *http.Request) { s.Answer(w, r, rt) })
	}
	for path, known := range methods {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(known, ", "))
			web.WriteError(w, runs.Fault("method_not_allowed", r.Method+" is not a method of this address", strings.Join(known, ", ")))
		})
	}
	if s.o.A2A != nil {
		(&a2a.Handler{Server: s.Server, Options: *s.o.A2A}).MuxA2A(mux)
	}
	if s.o.MCP != nil {
		mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
			who, fail := s.Who(r, access.ScopeTools)
			if fail != nil {
				web.WriteError(w, fail)
				return
			}
			ctx := context.WithValue(store.WithScope(r.Context(), who.Scope()), asker{}, who)
			s.o.MCP.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	if s.o.Metrics != nil {
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
			if _, fail := s.Who(r, access.ScopeRead); fail != nil {
				web.WriteError(w, fail)
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
		c := &web.Call{Caller: &runs.Caller{S: s.Service, Context: r.Context()}, Web: s.Server, W: w, R: r}
		switch r.URL.Path {
		case "/v1/embeddings":
			openai.WriteError(c, runs.Fault("not_found", "agents have no embeddings", "ask the provider of an embedding model"))
		case "/v1/completions":
			openai.WriteError(c, runs.Fault("not_found", "agents answer conversations only", "POST /v1/chat/completions"))
		default:
			web.WriteError(w, runs.Fault("not_found", "there is nothing at this address", "GET /openapi.json lists all addresses"))
		}
	})
	return mux
}
