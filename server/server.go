package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/gate"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// Options are what a Server is made of. Agents and Journal are required.
type Options struct {
	Agents  []*pawl.Agent    // what runs; each has a name of its own. They approve what they want to have approved by their middleware: it then waits
	Journal store.Journal    // keeps the runs
	Secrets *redact.Redactor // hidden in all that is sent; nil: nothing

	Tokens  []Token  // who may do what; none: everybody who reaches it may do everything
	Hosts   []string // names that the Host header may have beside this machine's own
	Origins []string // of web pages that may be clients, beside this machine's own: https://app.example.com

	Schedules store.Schedules // listed; nil: none
	MCP       http.Handler    // answers at /mcp, behind the gate and the scope tools; nil: nothing there
	Metrics   http.Handler    // answers GET /metrics, with the scope read; nil: nothing there
	Pages     http.Handler    // answers GET for all that is no part of the API, without a token: pages for people, which ask for one themselves. nil: nothing there

	MaxBody    int64         // of a request, in bytes; 0: 4 MiB
	MaxConns   int           // connections at once; those past it wait to be let in; 0: 4096
	MaxStreams int           // of all clients at once; those past it are refused; 0: 2000
	MaxRuns    int           // that work at once; those past it are refused, those of other processes left to others; 0: 1000
	Fragments  int           // bytes of fragments that are kept of each run for slow readers; 0: 256 KiB
	Idle       int           // bytes of ended runs that are kept, so that watching them asks no journal; 0: 64 MiB
	Wait       time.Duration // for a client to send its body, or to take what it is sent; 0: 30 s
	Beat       time.Duration // between signs of life in silent streams; 0: 15 s
	Recover    time.Duration // between looks for runs that nobody works on; 0: 5 s
	Grace      time.Duration // for runs and streams to stop when the server ends; 0: 10 s

	// Around wraps what carries out a run, innermost, so that it is told as it was: telemetry. The agent is named as it is served. Nil: nothing.
	Around func(id, agent string, r pawl.Runner) pawl.Runner

	Lease time.Duration // durable.Engine.Lease
	Log   *slog.Logger  // what went wrong with nobody to tell; nil: nothing
	Now   func() time.Time
}

// Server serves agents. New makes one; it may be used concurrently. Close it.
type Server struct {
	o        Options
	engine   *durable.Engine
	agents   map[string]*pawl.Agent
	clients  []*client
	anybody  *client
	everyone *client // counts what all have together
	mux      *http.ServeMux
	routes   []route
	hub      *hub
}

var _ http.Handler = (*Server)(nil)

// New makes a server. Nothing runs yet: Serve takes up what was left, too.
func New(o Options) (*Server, error) {
	def(&o.MaxBody, 4<<20)
	def(&o.MaxConns, 4096)
	def(&o.MaxStreams, 2000)
	def(&o.MaxRuns, 1000)
	def(&o.Fragments, 256<<10)
	def(&o.Idle, 64<<20)
	def(&o.Wait, 30*time.Second)
	def(&o.Beat, 15*time.Second)
	def(&o.Recover, 5*time.Second)
	def(&o.Grace, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, agents: map[string]*pawl.Agent{}, anybody: everybody(), everyone: everybody()}
	switch {
	case o.Journal == nil:
		return nil, errors.New("server.Options.Journal is nil")
	case len(o.Agents) == 0:
		return nil, errors.New("server.Options.Agents is empty")
	}
	for _, a := range o.Agents {
		switch {
		case a == nil || a.Name == "":
			return nil, errors.New("an agent that is served needs a name")
		case s.agents[a.Name] != nil:
			return nil, fmt.Errorf("two agents are named %q", a.Name)
		}
		s.agents[a.Name] = a
	}
	for i := range o.Tokens {
		if err := o.Tokens[i].check(); err != nil {
			return nil, fmt.Errorf("token %q: %w", o.Tokens[i].Name, err)
		}
		s.clients = append(s.clients, newClient(o.Tokens[i]))
	}
	s.engine = &durable.Engine{Journal: o.Journal, Lease: o.Lease}
	s.hub = newHub(s)
	s.routes = s.table()
	s.mux = s.muxOf(s.routes)
	return s, nil
}

// def sets what was left out.
func def[T comparable](v *T, to T) {
	var none T
	if *v == none {
		*v = to
	}
}

// Serve serves until ctx ends, and goes on with runs that nobody works on. Then it takes no more requests, and leaves its runs where the next process takes them up; it
// returns nil when all have stopped. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: s.o.Wait, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug)}
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { served <- srv.Serve(limited(l, s.o.MaxConns)) })
	recovering, stop := context.WithCancel(ctx)
	wg.Go(func() { s.hub.recover(recovering) })
	defer wg.Wait()
	defer stop()
	select {
	case err := <-served:
		return errors.Join(err, s.close())
	case <-ctx.Done():
	}
	err := s.close()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Grace)
	defer cancel()
	return errors.Join(err, srv.Shutdown(late), srv.Close())
}

func (s *Server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Grace)
	defer cancel()
	return s.Close(ctx)
}

// Close begins no more runs, ends streams, stops what runs so that another process can go on with it, and waits for that while ctx lives. Serve does it by itself.
func (s *Server) Close(ctx context.Context) error { return s.hub.close(ctx) }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.o.Log.Error("a handler panicked", "path", r.URL.Path, "panic", v)
			writeError(w, fault("failed", "the server made a mistake", "")) // does nothing where an answer was begun
		}
	}()
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	s.bound(w, r)
	origin := r.Header.Get("Origin")
	switch {
	case !gate.Host(r.Host, s.o.Hosts):
		writeError(w, fault("wrong_host", "this name of the server is not known to it", "name it when the server is started (--host)"))
		return
	case !gate.Origin(origin, s.o.Origins) && !own(origin, r.Host):
		writeError(w, fault("wrong_origin", "pages of this origin may not use this server", "name it when the server is started (--origin)"))
		return
	}
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, Idempotency-Key")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	s.mux.ServeHTTP(w, r)
}

// own reports whether a page of this origin came from the server itself, by a name of it that is known.
func own(origin, host string) bool {
	return strings.EqualFold(origin, "http://"+host) || strings.EqualFold(origin, "https://"+host)
}

// bound gives the client its time to send the body, and the body its size.
func (s *Server) bound(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	rc := http.NewResponseController(w)
	if rc.SetReadDeadline(time.Now().Add(s.o.Wait)) == nil {
		r.Body = &timed{ReadCloser: http.MaxBytesReader(w, r.Body, s.o.MaxBody), rc: rc}
	} else {
		r.Body = http.MaxBytesReader(w, r.Body, s.o.MaxBody)
	}
}

// timed is a body that must come in time; when it has, the connection may be silent again.
type timed struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *timed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// who says whose request it is, and whether he may do it.
func (s *Server) who(r *http.Request, scope Scope, or ...Scope) (*client, *Error) {
	c := s.anybody
	if len(s.clients) > 0 {
		token := gate.Token(r.Header.Get("Authorization"))
		if token == "" {
			return nil, fault("no_token", "a token is needed", "send Authorization: Bearer TOKEN")
		}
		if c = find(s.clients, token); c == nil {
			return nil, fault("wrong_token", "nobody has this token", "")
		}
	}
	if !c.may(scope) && !slices.ContainsFunc(or, func(o Scope) bool { return o != "" && c.may(o) }) {
		return nil, fault("wrong_scope", fmt.Sprintf("the token of %s may not do this", c.Name), "it needs the scope "+string(scope))
	}
	if wait := c.take(s.o.Now()); wait > 0 {
		e := fault("too_many", fmt.Sprintf("the token of %s may send %d requests a minute", c.Name, c.PerMinute), "")
		e.after = wait
		return nil, e
	}
	return c, nil
}
