package server

// server.go: Server, its life, and the checks before each request.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/gate"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// Server serves agents. New creates it. It is safe for concurrent use. Close it after use.
type Server struct {
	options Options
	journal store.Journal
	runs    *runs.Service
	web     *web.Server
	mux     *http.ServeMux
	routes  []web.Route
	stats   stats
	probe   probe
	clients clientCounts
}

var _ http.Handler = (*Server)(nil)

// New returns a server of agents, whose runs are in the journal. Each agent has a unique name; its
// middleware decides which calls need approval, and these calls are then pending. Nil options mean
// the defaults. The server does not execute runs yet. Serve also resumes interrupted runs; in an
// application's own http.Server, Recover does.
func New(agents []*pawl.Agent, journal store.Journal, o *Options) (*Server, error) {
	s := &Server{options: o.withDefaults(), journal: journal}
	switch {
	case journal == nil:
		return nil, errors.New("the server has no journal")
	case len(s.options.Access.Tokens) > 0 && s.options.Access.Authenticate != nil:
		return nil, errors.New("server.Access has both Tokens and Authenticate: one of them decides")
	}
	if err := s.options.negative(); err != nil {
		return nil, err
	}
	if err := checkAgents(agents); err != nil {
		return nil, err
	}
	for name, about := range s.options.Front.About {
		if err := runs.Side(about.Side).Check(); err != nil {
			return nil, fmt.Errorf("server.About of %s: %w", name, err)
		}
	}
	clients, err := access.New(s.options.Access.Tokens)
	if err != nil {
		return nil, err
	}

	s.runs = s.newRuns(agents, clients)
	s.web = s.newWeb(clients)
	s.routes = s.table()
	s.mux = s.newMux()
	return s, nil
}

// checkAgents returns an error if the server cannot serve the agents.
func checkAgents(agents []*pawl.Agent) error {
	if len(agents) == 0 {
		return errors.New("the server has no agents")
	}
	known := map[string]bool{}
	for _, a := range agents {
		switch {
		case a == nil || a.Name == "":
			return errors.New("an agent that is served needs a name")
		case known[a.Name]:
			return fmt.Errorf("two agents are named %q", a.Name)
		case a.Model == nil:
			return fmt.Errorf("agent %q: Model: the agent has no model; set one", a.Name)
		}
		known[a.Name] = true
	}
	return nil
}

// newRuns returns the service that executes the runs.
func (s *Server) newRuns(agents []*pawl.Agent, clients *access.Clients) *runs.Service {
	sides := map[string]runs.Side{}
	for name, about := range s.options.Front.About {
		sides[name] = runs.Side(about.Side)
	}
	tenants := clients.Tenants()
	if s.options.Access.Authenticate != nil {
		tenants = 2 // at least
	}

	return runs.New(runs.Options{
		Agents:     agents,
		Journal:    s.journal,
		Memories:   s.options.Memories,
		Secrets:    s.options.Secrets,
		Sides:      sides,
		Around:     s.options.Around,
		Lease:      s.options.Times.Lease,
		MaxRuns:    s.options.Limits.Runs,
		TenantRuns: s.options.Limits.TenantRuns,
		Queue:      s.options.Limits.Queue,
		Tenants:    tenants,
		Fragments:  s.options.Limits.Fragments,
		Idle:       s.options.Limits.Idle,
		Recover:    s.options.Times.Recover,
		Probe:      s.options.Times.Probe,
		Log:        s.options.Log,
		Now:        s.options.Now,
	})
}

// newWeb returns what requests need.
func (s *Server) newWeb(clients *access.Clients) *web.Server {
	about := map[string]web.About{}
	for name, a := range s.options.Front.About {
		about[name] = web.About{Title: a.Title, Description: a.Description, Window: a.Window}
	}
	return &web.Server{
		Runs:         s.runs,
		Clients:      clients,
		Everyone:     access.NewClient(api.Token{Streams: s.options.Limits.Streams}),
		Secrets:      s.options.Secrets,
		Log:          s.options.Log,
		Now:          s.options.Now,
		Authenticate: s.options.Access.Authenticate,
		Proxies:      s.options.Access.Proxies,
		MaxStreams:   s.options.Limits.Streams,
		Beat:         s.options.Times.Beat,
		Wait:         s.options.Times.Wait,
		Reconnect:    s.options.Times.Reconnect,
		Outage:       s.options.Times.Outage,
		OnDisconnect: s.options.Front.OnDisconnect,
		About:        about,
	}
}

// Queued returns the number of runs that wait in this process for room to execute.
func (s *Server) Queued() int { return s.runs.Counts().Queued }

// Export returns a run without secrets. The run belongs to the scope in ctx (store.WithScope).
func (s *Server) Export(ctx context.Context, id string) (*journal.Export, error) {
	return s.runs.Export(ctx, id)
}

// Serve serves until ctx ends and resumes runs without a process. Then it calls Drain for the time
// of Times.Drain, during which it still answers requests, and Close. It returns nil when all runs
// have stopped. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s,
		ConnContext:       withConn,
		ReadHeaderTimeout: min(s.options.Times.Wait, 10*time.Second),
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug),
	}
	addressConns := max(s.options.Limits.AddressConns, 0)
	served := make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		served <- srv.Serve(limited(l, s.options.Limits.Conns, addressConns, s.options.Access.Proxies))
	})

	recovering, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { s.Recover(recovering) })

	select {
	case err := <-served:
		return errors.Join(err, s.close())
	case <-ctx.Done():
	}

	// Requests are still answered: clients learn of the ends of their runs.
	s.drainInTime(ctx)
	err := s.close()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Times.Grace)
	defer cancel()
	return errors.Join(err, srv.Shutdown(late), srv.Close())
}

// drainInTime is Drain for the time of Times.Drain.
func (s *Server) drainInTime(ctx context.Context) {
	limit := s.options.Times.Drain
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if s.Drain(drain) != nil && limit > 0 {
		s.options.Log.Warn("calls in progress are cut: they have not ended in time", "drain", limit)
	}
}

// close is Close for the time of Times.Grace.
func (s *Server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.options.Times.Grace)
	defer cancel()
	return s.Close(ctx)
}

// Recover resumes runs without a process until ctx ends: runs of processes that died or stopped,
// and runs whose pending calls were answered meanwhile. It looks for them at once, and then every
// Times.Recover. Serve calls it by itself; a server that is mounted in an application needs it.
func (s *Server) Recover(ctx context.Context) { s.runs.Recover(ctx) }

// Drain starts no more runs and calls, lets the calls in progress end, and stops each run that has
// none, so that another process can resume it at once. Requests of models are cut. It returns nil
// when all runs have stopped, and an error if ctx ends before that; Close stops the others then.
func (s *Server) Drain(ctx context.Context) error { return s.runs.Drain(ctx) }

// Close starts no more runs, ends streams and stops all runs so that another process can resume
// them. It waits for that until ctx ends. Serve calls it by itself.
func (s *Server) Close(ctx context.Context) error { return s.runs.Close(ctx) }

// ServeHTTP handles a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, byProxy := s.web.Forward(r)
	defer s.recoverPanic(w, r)
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	s.boundBody(w, r)
	defer markBusy(r.Context(), false)
	if byProxy {
		release, ok := s.clients.acquire(web.NetworkOf(r), max(s.options.Limits.AddressConns, 0))
		if !ok {
			e := runs.Fault("too_many", "the address "+r.RemoteAddr+" has its limit of requests at once", "")
			e.RetryAfter = 1
			web.WriteError(w, e)
			return
		}
		defer release()
	}

	// Before anything else: a page of another site reaches a local server under a name of its own,
	// which resolves to this machine.
	origin := r.Header.Get("Origin")
	switch {
	case !gate.Host(r.Host, s.options.Access.Hosts):
		web.WriteError(w, runs.Fault("wrong_host", "the server does not know this name",
			"name it when the server is started (--host)"))
		return
	case !gate.Origin(origin, r.Host, s.options.Access.Origins):
		web.WriteError(w, runs.Fault("wrong_origin", "pages of this origin may not use this server",
			"name it when the server is started (--origin)"))
		return
	}
	if origin != "" && gate.Preflight(h, r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// recoverPanic logs a panic of a handler, since the process serves other requests too.
func (s *Server) recoverPanic(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	s.options.Log.Error("a handler panicked", "path", r.URL.Path, "client", r.RemoteAddr, "panic", v)
	// has no effect if a response has begun
	web.WriteError(w, runs.Fault("failed", "the server failed", ""))
}

// boundBody limits the time to send the body and its size.
func (s *Server) boundBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		markBusy(r.Context(), true)
		return
	}
	rc := http.NewResponseController(w)
	r.Body = http.MaxBytesReader(w, r.Body, s.options.Limits.Body)
	if rc.SetReadDeadline(time.Now().Add(s.options.Times.Wait)) == nil {
		r.Body = &timedBody{ReadCloser: r.Body, rc: rc, ctx: r.Context()}
	}
}

// timedBody is a body that must arrive within a time limit. Once it has arrived, the connection is
// busy and may be silent.
type timedBody struct {
	io.ReadCloser
	rc  *http.ResponseController
	ctx context.Context
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.rc.SetReadDeadline(time.Time{})
		markBusy(b.ctx, true)
	}
	return n, err
}
