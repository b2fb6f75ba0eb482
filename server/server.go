package server

import (
	"cmp"
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
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/gate"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
)

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
	svc := &runs.Service{O: runs.Options{Agents: o.Agents, Journal: o.Journal, Memories: o.Memories, Secrets: o.Secrets,
		MaxRuns: o.MaxRuns, Queue: o.Queue, TenantRuns: o.TenantRuns, Fragments: o.Fragments, Idle: o.Idle, Wait: o.Wait,
		Beat: o.Beat, Recover: o.Recover, Reconnect: o.Reconnect, About: o.About, OnDisconnect: o.OnDisconnect,
		HideReasoning: o.HideReasoning, ShowCalls: o.ShowCalls, Around: o.Around, Log: o.Log, Now: o.Now,
		MaxStreams: o.MaxStreams}, Started: o.Now(), Agents: map[string]*pawl.Agent{}}
	s := &Server{Server: &web.Server{Service: svc, Anybody: access.Everybody(), Everyone: access.Everybody(), Authenticate: o.Authenticate}, o: o}
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
		case s.Agents[a.Name] != nil:
			return nil, fmt.Errorf("two agents are named %q", a.Name)
		case a.Model == nil:
			return nil, fmt.Errorf("agent %q: Model: the agent has no model; set one", a.Name)
		}
		s.Agents[a.Name] = a
	}
	tenants := map[string]bool{}
	for i := range o.Tokens {
		if err := o.Tokens[i].Check(); err != nil {
			return nil, fmt.Errorf("token %q: %w", o.Tokens[i].Name, err)
		}
		s.Clients = append(s.Clients, access.NewClient(o.Tokens[i]))
		tenants[o.Tokens[i].Tenant] = true
	}
	s.Tenants = len(tenants)
	if o.Authenticate != nil {
		s.Tenants = 2 // at least
	}
	s.Hub = runs.NewHub(svc)
	access.Approvers(s.Clients)
	s.Engine = &durable.Engine{Journal: o.Journal, Lease: o.Lease, Drain: s.Hub.Drained, Report: s.Hub.Report}
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
	srv := &http.Server{Handler: s, ConnContext: withConn, ReadHeaderTimeout: min(s.O.Wait, 10*time.Second),
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.O.Log.Handler(), slog.LevelDebug)}
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { served <- srv.Serve(limited(l, s.o.MaxConns, max(s.o.AddressConns, 0))) })
	recovering, stop := context.WithCancel(ctx)
	wg.Go(func() { s.Hub.Recover(recovering) })
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
		s.O.Log.Warn("calls in progress are cut: they have not ended in time", "drain", s.o.Drain)
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
	s.Hub.Shut(s.Hub.Drained)
	return s.Hub.Wait(ctx)
}

// Close starts no more runs, ends streams and stops all runs so that another process can resume
// them. It waits for that until ctx ends. Serve calls it by itself.
func (s *Server) Close(ctx context.Context) error { return s.Hub.Close(ctx) }

// ServeHTTP handles a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.O.Log.Error("a handler panicked", "path", r.URL.Path, "panic", v)
			// has no effect if a response has begun
			web.WriteError(w, runs.Fault("failed", "the server failed", ""))
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
		web.WriteError(w, runs.Fault("wrong_host", "the server does not know this name", "name it when the server is started (--host)"))
		return
	case !gate.Origin(origin, r.Host, s.o.Origins):
		web.WriteError(w, runs.Fault("wrong_origin", "pages of this origin may not use this server", "name it when the server is started (--origin)"))
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
	if rc.SetReadDeadline(time.Now().Add(s.O.Wait)) == nil {
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
