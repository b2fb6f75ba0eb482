package mcp

import (
	"context"
	"net/http"
	"sync"
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

	// User says whose request it is, where several clients are told apart before they come here: the session that one begins is not found by others. Nil: all are one.
	User func(r *http.Request) string
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
	sessions, single := &rooms{server: h.sdk, next: serve(false), user: o.User, used: map[string]*room{}}, serve(true)
	return &door{options: *o, next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= roundTrips {
			single.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})}, nil
}

// maxSessions is how many clients of the protocols with sessions are served at a time, about: those that begin at once may be a few more.
const maxSessions = 256

// rooms bound the number of sessions. A new one takes the place of the one that nobody has used for longest.
type rooms struct {
	server *sdk.Server
	next   http.Handler
	user   func(r *http.Request) string // nil: all are one

	mu   sync.Mutex
	used map[string]*room // by session
}

// room is what is known of the use of a session.
type room struct {
	user string    // whose it is
	busy int       // requests that are at work; a client that listens has one
	last time.Time // when the last one ended
}

// ServeHTTP refuses a new session when all that there are are in use, and somebody else's session always.
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
	s.next.ServeHTTP(w, r)
}

// lobby notes whose session it is that an answer begins, before the client can know of it.
type lobby struct {
	http.ResponseWriter
	rooms *rooms
	user  string
}

// note is called when the answer begins.
func (l *lobby) note() {
	if id := l.Header().Get("Mcp-Session-Id"); id != "" {
		if leave := l.rooms.begin(id, l.user); leave != nil {
			leave()
		}
	}
}

// WriteHeader begins the answer.
func (l *lobby) WriteHeader(status int) {
	l.note()
	l.ResponseWriter.WriteHeader(status)
}

// Write begins it, too, where nobody has.
func (l *lobby) Write(p []byte) (int, error) {
	l.note()
	return l.ResponseWriter.Write(p)
}

// Flush sends what there is.
func (l *lobby) Flush() {
	l.note()
	_ = http.NewResponseController(l.ResponseWriter).Flush() // where it cannot be, it is sent later
}

// Unwrap gives a response controller what is inside.
func (l *lobby) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// begin notes that a user's session is at work, until the returned function is called; nil: it is somebody else's.
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
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.busy--
		u.last = time.Now()
	}
}

// makeRoom closes the session that was idle longest where there are too many, and reports whether there is room for another.
func (s *rooms) makeRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[string]*sdk.ServerSession{}
	var idle *sdk.ServerSession
	var since time.Time
	for c := range s.server.Sessions() {
		if c.ID() == "" { // of the protocol without sessions
			continue
		}
		open[c.ID()] = c
		u := s.used[c.ID()]
		if u == nil { // it has begun and done nothing yet
			u = &room{}
		}
		if u.busy == 0 && (idle == nil || u.last.Before(since)) {
			idle, since = c, u.last
		}
	}
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
