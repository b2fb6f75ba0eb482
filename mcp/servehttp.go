package mcp

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl/internal/gate"
)

// maxBody is the maximum size of a client's message.
const maxBody = 4 << 20

// HTTPOptions control the access to a Service over HTTP. The zero value admits programs on this
// machine, and no web page of another origin.
type HTTPOptions struct {
	Token string // required as Authorization: Bearer; empty means no token
	// Hosts lists the valid names in the Host header, in addition to this machine's own. Any other
	// Host is refused, so that a web page cannot rebind its name to this address.
	Hosts []string
	// Origins lists the valid values of the Origin header, in addition to this machine's own, such
	// as https://app.example.com.
	Origins []string

	// Poll is the time after which the response of a call ends, before a proxy would cut it. The
	// client (of protocol 2025-11-25) polls for the rest. 0 means 30 s.
	Poll time.Duration

	// User returns the user of a request, if clients were authenticated before. A session is
	// accessible only to the user who started it. Nil means that all clients are one user.
	User func(r *http.Request) string
}

// Handler serves MCP clients over streamable HTTP, in the protocols with sessions and in the
// protocol without. When ctx ends, its sessions are closed. o may be nil.
func (s *Service) Handler(ctx context.Context, o *HTTPOptions) (http.Handler, error) {
	h, err := s.host(ctx)
	if err != nil {
		return nil, err
	}
	o = cmp.Or(o, new(HTTPOptions))
	h.every = cmp.Or(max(o.Poll, 0), 30*time.Second)
	store := sdk.NewMemoryEventStore(nil)
	serve := func(stateless bool) http.Handler {
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return h.sdk },
			&sdk.StreamableHTTPOptions{
				Stateless: stateless, SessionTimeout: 30 * time.Minute, MaxRequestBodyBytes: maxBody,
				PropagateRequestCancellation: stateless, EventStore: store,
				// type door has its own protection, which uses Hosts
				DisableLocalhostProtection: true,
			})
	}
	context.AfterFunc(ctx, func() {
		for c := range h.sdk.Sessions() {
			c.Close()
		}
	})
	sessions := &rooms{store: store, server: h.sdk, next: serve(false), user: o.User, used: map[string]*room{}}
	single := serve(true)
	return &door{options: *o, next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= roundTrips {
			single.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})}, nil
}

// maxSessions is the approximate maximum number of concurrent sessions; sessions that start
// simultaneously may exceed it slightly.
const maxSessions = 256

// forgetAfter is the number of requests of a session after which stored responses are deleted.
const forgetAfter = 10_000

// rooms limits the number of sessions. A new session replaces the session that has been idle
// longest.
type rooms struct {
	store  sdk.EventStore
	server *sdk.Server
	next   http.Handler
	user   func(r *http.Request) string // nil means that all clients are one user

	mu   sync.Mutex
	used map[string]*room // by session
}

// room is the usage of a session.
type room struct {
	user     string    // owner of the session
	busy     int       // requests in progress; a listening client has one
	requests int       // so far
	last     time.Time // when the last request ended
}

// ServeHTTP refuses a new session if all sessions are in use, and always refuses a session of
// another user.
func (s *rooms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	user := ""
	if s.user != nil {
		user = s.user(r)
	}
	if id == "" {
		if r.Method == http.MethodPost && !s.makeRoom() {
			w.Header().Set("Retry-After", "60")
			http.Error(w, "there are too many sessions", http.StatusServiceUnavailable)
			return
		}
		s.next.ServeHTTP(&lobby{ResponseWriter: w, rooms: s, user: user}, r)
		return
	}
	leave := s.begin(id, user)
	if leave == nil {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	defer leave()
	for c := range s.server.Sessions() { // all requests of a session have its version
		if p := c.InitializeParams(); c.ID() == id && p != nil && slices.Contains(sdk.SupportedProtocolVersions(),
			p.ProtocolVersion) {
			r.Header.Set("Mcp-Protocol-Version", p.ProtocolVersion)
		}
	}
	s.next.ServeHTTP(w, r)
}

// lobby records the owner of a session when the response that starts it begins, before the client
// learns of the session.
type lobby struct {
	http.ResponseWriter
	rooms *rooms
	user  string
}

// note is called when the response begins.
func (l *lobby) note() {
	if id := l.Header().Get("Mcp-Session-Id"); id != "" {
		if leave := l.rooms.begin(id, l.user); leave != nil {
			leave()
		}
	}
}

// WriteHeader begins the response.
func (l *lobby) WriteHeader(status int) {
	l.note()
	l.ResponseWriter.WriteHeader(status)
}

// Write begins the response if necessary.
func (l *lobby) Write(p []byte) (int, error) {
	l.note()
	return l.ResponseWriter.Write(p)
}

// Unwrap returns the underlying writer for a ResponseController.
func (l *lobby) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// begin records that a user's session is in use until the returned function is called. Nil means
// that the session belongs to another user.
func (s *rooms) begin(id, user string) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used[id]
	if u == nil {
		u = &room{user: user}
		s.used[id] = u
	}
	if u.user != user {
		return nil
	}
	u.busy++
	// nothing but this request and a listening client
	u.requests++
	if u.requests%forgetAfter == 0 && u.busy <= 2 {
		_ = s.store.SessionClosed(context.Background(), id) // in memory
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.busy--
		u.last = time.Now()
	}
}

// makeRoom closes the session that has been idle longest if there are too many, and reports whether
// there is room for another.
func (s *rooms) makeRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	open := map[string]*sdk.ServerSession{}
	var idle *sdk.ServerSession
	var since time.Time
	for c := range s.server.Sessions() {
		if c.ID() == "" {
			continue // a protocol without sessions
		}
		open[c.ID()] = c
		u := s.used[c.ID()]
		if u == nil {
			u = &room{} // it has started and was not used yet
		}
		if u.busy == 0 && (idle == nil || u.last.Before(since)) {
			idle = c
			since = u.last
		}
	}

	// Sessions that ended by themselves are forgotten.
	for id, u := range s.used {
		if open[id] == nil && u.busy == 0 {
			delete(s.used, id)
		}
	}

	if len(open) < maxSessions {
		return true
	}
	if idle == nil {
		return false
	}
	idle.Close()
	return true
}

// door checks who may access the service.
type door struct {
	options HTTPOptions
	next    http.Handler
}

// ServeHTTP refuses requests from foreign origins and requests without the token.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	switch {
	case !gate.Host(r.Host, d.options.Hosts):
		http.Error(w, "the host "+show(clip(r.Host, 100))+" is not served here", http.StatusForbidden)
	case !gate.Origin(origin, r.Host, d.options.Origins):
		http.Error(w, "pages of this origin may not speak with this server", http.StatusForbidden)
	case origin != "" && gate.Preflight(w.Header(), r):
		w.WriteHeader(http.StatusNoContent)
	case d.options.Token != "" && !gate.Same(gate.Token(r.Header.Get("Authorization")), d.options.Token):
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcp"`)
		http.Error(w, "a token is needed", http.StatusUnauthorized)
	default:
		d.next.ServeHTTP(w, r)
	}
}
