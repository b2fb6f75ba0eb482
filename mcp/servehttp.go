package mcp

import (
	"context"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl/internal/gate"
)

// maxBody is how long a message of a client may be.
const maxBody = 4 << 20

// HTTPOptions say who may speak with a Service over HTTP. The zero value lets programs on this machine in, and no web page of another origin.
type HTTPOptions struct {
	Token   string   // wanted as Authorization: Bearer; "": none
	Hosts   []string // names that the Host header may have beside this machine's own; a page that points its name here is refused
	Origins []string // that the Origin header may have beside this machine's own: https://app.example.com
}

// Handler serves MCP clients over streamable HTTP, in the protocols with sessions and in the one without. When ctx ends, its sessions
// are closed. o may be nil.
func (s *Service) Handler(ctx context.Context, o *HTTPOptions) (http.Handler, error) {
	h, err := s.host(ctx)
	if err != nil {
		return nil, err
	}
	if o == nil {
		o = new(HTTPOptions)
	}
	serve := func(stateless bool) http.Handler {
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return h.sdk }, &sdk.StreamableHTTPOptions{
			Stateless: stateless, SessionTimeout: 30 * time.Minute, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: stateless,
			DisableLocalhostProtection: true, // door has its own, which knows of Hosts
		})
	}
	context.AfterFunc(ctx, func() {
		for c := range h.sdk.Sessions() {
			c.Close()
		}
	})
	sessions, single := serve(false), serve(true)
	return &door{options: *o, next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= roundTrips {
			single.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})}, nil
}

// door lets in whoever may speak.
type door struct {
	options HTTPOptions
	next    http.Handler
}

// ServeHTTP refuses requests from other pages and without the token.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !gate.Host(r.Host, d.options.Hosts):
		http.Error(w, "the host "+show(clip(r.Host, 100))+" is not served here", http.StatusForbidden)
	case !gate.Origin(r.Header.Get("Origin"), d.options.Origins):
		http.Error(w, "pages of this origin may not speak with this server", http.StatusForbidden)
	case d.options.Token != "" && !gate.Same(gate.Token(r.Header.Get("Authorization")), d.options.Token):
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcp"`)
		http.Error(w, "a token is needed", http.StatusUnauthorized)
	default:
		d.next.ServeHTTP(w, r)
	}
}
