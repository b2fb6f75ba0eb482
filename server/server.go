package server

// server.go: Server and Options; the checks before an endpoint: origin, token, rate and size.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/gate"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// Options are the parts of a Server. Agents and Journal are required.
type Options struct {
	// Agents are the agents to serve; each has a unique name. Their middleware decides which calls
	// need approval, and these calls are then pending.
	Agents  []*pawl.Agent
	Journal store.Journal    // stores the runs
	Secrets *redact.Redactor // redacted in everything that is sent; nil means none

	Tokens []Token // permissions of clients; empty means that every client has all permissions
	// Authenticate returns the client of a request, in place of Tokens, for a server within an
	// application that has sessions: the name, scopes, tenant, user, groups and limits. Token and
	// SHA256 are ignored, and Approves names users only. Its error is the answer 401.
	Authenticate func(*http.Request) (Token, error)
	Hosts        []string // valid names in the Host header, in addition to this machine's own
	// Origins lists the origins of web pages that may be clients, in addition to this machine's
	// own, such as https://app.example.com.
	Origins []string

	Schedules store.Schedules // schedules to list; nil means none
	Memories  store.Memories  // memories to list, confirm and forget; nil means none
	// MCP handles /mcp, behind authentication with the scope tools. Nil means not found.
	MCP     http.Handler
	A2A     *A2A         // offers the agents by the A2A protocol; nil means not found
	Metrics http.Handler // handles GET /metrics, with the scope read; nil means not found
	// Pages handles GET requests outside the API without a token. It serves pages for people, which
	// ask for a token themselves. Nil means not found.
	Pages http.Handler

	MaxBody int64 // limit for a request in bytes; 0 means 4 MiB
	// MaxConns limits the concurrent connections. Beyond it, a connection without a request under
	// way is closed for a new one, or the new one waits. 0 means 4096.
	MaxConns int
	// AddressConns limits the connections from one address, or one /64 of IPv6; addresses of this
	// machine have no limit of their own. 0 means half of MaxConns, and less than 0 means no limit,
	// for a server behind a proxy on another machine.
	AddressConns int
	// MaxStreams limits the concurrent streams of all clients. Further ones are refused. 0 means
	// 2000.
	MaxStreams int
	// MaxRuns limits the runs that execute concurrently. Further ones wait in the queue. 0 means
	// 1000.
	MaxRuns int
	// Queue limits the runs that wait for room. They are in the journal, so that none is lost, and
	// tenants take turns. With Tokens of several tenants, one tenant may have half of the queue.
	// Further requests are refused, and runs of other processes are not resumed. 0 means no queue.
	Queue      int
	TenantRuns int // limits the runs of a tenant that execute concurrently; 0 means no limit
	Fragments  int // bytes of fragments stored of each run for slow readers; 0 means 256 KiB
	// Idle is the number of bytes of stopped runs held in memory, so that watching them needs no
	// journal. 0 means 64 MiB.
	Idle    int
	Wait    time.Duration // time for a client to send its body, or to receive data; 0 means 30 s
	Beat    time.Duration // interval of heartbeats in silent streams; 0 means 10 s
	Recover time.Duration // interval of scans for runs without a process; 0 means 5 s
	// Drain is the time that Serve gives calls in progress to end when its context ends. 0 means
	// 30 s, and less than 0 means none.
	Drain time.Duration
	Grace time.Duration // time for runs and streams to stop after that; 0 means 10 s

	// OnDisconnect says for an agent what happens to a run whose client has disconnected:
	// "continue" completes it, "cancel" cancels it after Reconnect; "" means cancel for OpenAI's
	// endpoints, and continue for the endpoints of front ends. The header X-Pawl-Disconnect of a
	// request overrides it.
	OnDisconnect map[string]string
	About        map[string]About // what clients are shown of an agent, by its name
	// HideReasoning leaves the reasoning of models out of Chat Completions, where it is the field
	// reasoning_content. ShowCalls adds a line for each call of the agent's own tools to it.
	HideReasoning, ShowCalls bool

	Reconnect time.Duration // time for such a client to repeat its request; 0 means 5 s

	// Around wraps the Runner of each run, innermost, so that it sees unredacted events; it serves
	// telemetry. agent is the name under which the agent is served. Nil means no wrapper.
	Around func(id, agent string, r pawl.Runner) pawl.Runner

	Lease time.Duration // durable.Engine.Lease
	// Log receives errors that belong to no request. Nil means that they are dropped.
	Log *slog.Logger
	Now func() time.Time
}

// Server serves agents. New creates it. It is safe for concurrent use. Close it after use.
type Server struct {
	o        Options
	engine   *durable.Engine
	agents   map[string]*pawl.Agent
	clients  []*client
	anybody  *client
	everyone *client // counts the usage of all clients together
	mux      *http.ServeMux
	routes   []route
	hub      *hub
	stats    stats
	probe    probe
	window   window
	started  time.Time
	tenants  int      // in Tokens
	signedIn signedIn // clients of Options.Authenticate
}

var _ http.Handler = (*Server)(nil)

// New returns a server. It does not execute runs yet. Serve also resumes interrupted runs.
func New(o Options) (*Server, error) {
	def(&o.MaxBody, 4<<20)
	def(&o.MaxConns, 4096)
	def(&o.AddressConns, (o.MaxConns+1)/2)
	def(&o.MaxStreams, 2000)
	def(&o.MaxRuns, 1000)
	def(&o.Fragments, 256<<10)
	def(&o.Idle, 64<<20)
	def(&o.Wait, 30*time.Second)
	def(&o.Beat, 10*time.Second)
	def(&o.Recover, 5*time.Second)
	def(&o.Drain, 30*time.Second)
	def(&o.Grace, 10*time.Second)
	def(&o.Reconnect, 5*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, started: o.Now(), agents: map[string]*pawl.Agent{}, anybody: everybody(), everyone: everybody()}
	switch {
	case o.Journal == nil:
		return nil, errors.New("server.Options.Journal is nil")
	case len(o.Tokens) > 0 && o.Authenticate != nil:
		return nil, errors.New("server.Options has both Tokens and Authenticate: one of them decides")
	case len(o.Agents) == 0:
		return nil, errors.New("server.Options.Agents is empty")
	}
	for _, a := range o.Agents {
		switch {
		case a == nil || a.Name == "":
			return nil, errors.New("an agent that is served needs a name")
		case s.agents[a.Name] != nil:
			return nil, fmt.Errorf("two agents are named %q", a.Name)
		case a.Model == nil:
			return nil, fmt.Errorf("agent %q: Model: the agent has no model; set one", a.Name)
		}
		s.agents[a.Name] = a
	}
	tenants := map[string]bool{}
	for i := range o.Tokens {
		if err := o.Tokens[i].check(); err != nil {
			return nil, fmt.Errorf("token %q: %w", o.Tokens[i].Name, err)
		}
		s.clients = append(s.clients, newClient(o.Tokens[i]))
		tenants[o.Tokens[i].Tenant] = true
	}
	s.tenants = len(tenants)
	if o.Authenticate != nil {
		s.tenants = 2 // at least
	}
	s.hub = newHub(s)
	approvers(s.clients)
	s.engine = &durable.Engine{Journal: o.Journal, Lease: o.Lease, Drain: s.hub.drained, Report: s.hub.report}
	s.routes = s.table()
	s.mux = s.muxOf(s.routes)
	return s, nil
}

// def sets a default.
func def[T comparable](v *T, to T) {
	var none T
	if *v == none {
		*v = to
	}
}

// Serve serves until ctx ends and resumes runs without a process. Then it calls Drain for the time
// of Options.Drain, during which it still answers requests, and Close. It returns nil when all runs
// have stopped. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s, ConnContext: withConn, ReadHeaderTimeout: min(s.o.Wait, 10*time.Second),
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug)}
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { served <- srv.Serve(limited(l, s.o.MaxConns, max(s.o.AddressConns, 0))) })
	recovering, stop := context.WithCancel(ctx)
	wg.Go(func() { s.hub.recover(recovering) })
	defer wg.Wait()
	defer stop()
	select {
	case err := <-served:
		return errors.Join(err, s.close())
	case <-ctx.Done():
	}
	drain, ended := context.WithTimeout(context.WithoutCancel(ctx), s.o.Drain)
	defer ended()
	if s.Drain(drain) != nil && s.o.Drain > 0 {
		s.o.Log.Warn("calls in progress are cut: they have not ended in time", "drain", s.o.Drain)
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

// Drain starts no more runs and calls, lets the calls in progress end, and stops each run that has
// none, so that another process can resume it at once. Requests of models are cut. It returns nil
// when all runs have stopped, and an error if ctx ends before that; Close stops the others then.
func (s *Server) Drain(ctx context.Context) error {
	s.hub.shut(s.hub.drained)
	return s.hub.wait(ctx)
}

// Close starts no more runs, ends streams and stops all runs so that another process can resume
// them. It waits for that until ctx ends. Serve calls it by itself.
func (s *Server) Close(ctx context.Context) error { return s.hub.close(ctx) }

// ServeHTTP handles a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.o.Log.Error("a handler panicked", "path", r.URL.Path, "panic", v)
			// has no effect if a response has begun
			writeError(w, fault("failed", "the server failed", ""))
		}
	}()
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	s.bound(w, r)
	defer busy(r.Context(), false)
	origin := r.Header.Get("Origin")
	switch {
	case !gate.Host(r.Host, s.o.Hosts):
		writeError(w, fault("wrong_host", "the server does not know this name", "name it when the server is started (--host)"))
		return
	case !gate.Origin(origin, r.Host, s.o.Origins):
		writeError(w, fault("wrong_origin", "pages of this origin may not use this server", "name it when the server is started (--origin)"))
		return
	}
	if origin != "" && gate.Preflight(h, r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// bound limits the time to send the body and its size.
func (s *Server) bound(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		busy(r.Context(), true)
		return
	}
	rc := http.NewResponseController(w)
	r.Body = http.MaxBytesReader(w, r.Body, s.o.MaxBody)
	if rc.SetReadDeadline(time.Now().Add(s.o.Wait)) == nil {
		r.Body = &timed{ReadCloser: r.Body, rc: rc, ctx: r.Context()}
	}
}

// timed is a body that must arrive within a time limit. Once it has arrived, the connection is busy
// and may be silent.
type timed struct {
	io.ReadCloser
	rc  *http.ResponseController
	ctx context.Context
}

func (b *timed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.rc.SetReadDeadline(time.Time{})
		busy(b.ctx, true)
	}
	return n, err
}

// who returns the client of a request if it has the permission.
func (s *Server) who(r *http.Request, scope Scope, or ...Scope) (*client, *Error) {
	c := s.anybody
	if s.o.Authenticate != nil {
		t, err := s.o.Authenticate(r)
		if err == nil {
			c, err = s.signedIn.client(t)
		}
		if err != nil {
			return nil, fault("wrong_token", s.o.Secrets.String(err.Error()), "")
		}
	} else if len(s.clients) > 0 {
		token := gate.Token(r.Header.Get("Authorization"))
		if token == "" {
			return nil, fault("no_token", "a token is needed", "send Authorization: Bearer TOKEN")
		}
		c = find(s.clients, token)
		if c == nil {
			return nil, fault("wrong_token", "the token is unknown", "")
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
