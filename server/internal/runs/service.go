// Package runs executes the runs of a server. It starts, queues, watches, answers, resumes and
// stops them, and knows no protocol: it does not import net/http.
//
//	Start, Create, Answer ──▶ hub: one goroutine a run ──▶ durable.Engine ──▶ agent
//	                              │ events, encoded once
//	                              ▼
//	                            feed ◀── Live.Events, Live.Read: each reader at its own position
//
// A run is in the journal before its caller gets a Live. It continues without readers. A run that
// finds no room waits in the queue and in the journal. When the server stops, runs are parked, and
// another process resumes them; Recover finds the runs of crashed processes.
//
// A Caller says in whose name a method acts, and what that client may do. Errors for clients are
// *api.Error; ToError converts all others.
package runs

// service.go: Service, its options and its callers.

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/store"
)

// Options are the parts of a Service. Agents and Journal are required, and limits and times have no
// defaults here.
type Options struct {
	Agents  []*pawl.Agent // each has a unique name
	Journal store.Journal
	// Memories are compacted with the files of the journal. Nil means none.
	Memories store.Memories
	Secrets  *redact.Redactor // nil means none
	// Sides are server.Side by the agent's name.
	Sides map[string]Side
	// Around wraps the Runner of each run, innermost. Nil means no wrapper.
	Around func(id, agent string, r pawl.Runner) pawl.Runner
	Lease  time.Duration // durable.Engine.Lease

	MaxRuns    int // limits the runs that execute concurrently
	TenantRuns int // limits the runs of one tenant; 0 means no limit
	Queue      int // limits the runs that wait for room; 0 means no queue
	Tenants    int // number of tenants; with more than one, each may have half of the queue
	Fragments  int // bytes of fragments stored of each run for slow readers
	Idle       int // bytes of stopped runs held in memory

	Probe   time.Duration // see breaker.every
	Recover time.Duration // interval of scans for runs without a process
	Log     *slog.Logger
	Now     func() time.Time
}

// Service executes the runs of a server. It stores them, and resumes runs of other processes. It
// is safe for concurrent use.
type Service struct {
	options Options
	agents  map[string]*pawl.Agent
	engine  *durable.Engine
	hub     *hub
	started time.Time
}

// New returns a Service. It executes no runs yet; Recover resumes interrupted ones.
func New(o Options) *Service {
	s := &Service{options: o, agents: map[string]*pawl.Agent{}, started: o.Now()}
	for _, a := range o.Agents {
		s.agents[a.Name] = a
	}
	s.hub = newHub(s)
	s.engine = &durable.Engine{
		Journal: o.Journal,
		Lease:   o.Lease,
		Agents:  s.families(),
		Look:    lookEvery,
		Drain:   s.hub.drained,
		Report:  s.hub.report,
	}
	return s
}

// Caller is who acts on runs. Each protocol makes it from its client.
type Caller struct {
	Scope    store.Scope // the owner of the runs
	Name     string      // recorded with decisions
	Identity string      // recorded with decisions: llm.Decision.Identity
	Rights   access.Rights
	// Acts is the one in whose name the tools of a run act. Nil means the one of the run before.
	Acts *caller.Caller
	// Slot takes one of the caller's concurrent runs, until release is called. Nil means no limit.
	Slot func() (release func(), err error)
}

// in returns ctx with the scope of the caller, and with the one in whose name tools act.
func (c Caller) in(ctx context.Context) context.Context {
	if c.Acts != nil {
		ctx = caller.With(ctx, *c.Acts)
	}
	return store.WithScope(ctx, c.Scope)
}

// Started returns when the Service began. What the journal has from before is of another process.
func (s *Service) Started() time.Time { return s.started }

// Recover resumes runs without a process until ctx ends: runs of crashed processes, and runs whose
// pending calls were answered while no server was running.
func (s *Service) Recover(ctx context.Context) { s.hub.recover(ctx) }

// Drain starts no more runs and calls, lets the calls in progress end, and stops each run that has
// none. It returns nil when all runs have stopped, and an error if ctx ends before that.
func (s *Service) Drain(ctx context.Context) error {
	s.hub.closeOnce(s.hub.drained)
	return s.hub.wait(ctx)
}

// Close stops all runs so that another process can resume them. It returns nil when they have
// stopped, and an error if ctx ends before that.
func (s *Service) Close(ctx context.Context) error { return s.hub.close(ctx) }

// IsDraining reports whether no run or call may begin any more.
func (s *Service) IsDraining() bool { return isClosed(s.hub.drained) }

// IsClosing reports whether runs are being stopped.
func (s *Service) IsClosing() bool { return isClosed(s.hub.closing) }

// Closing is closed when runs are being stopped.
func (s *Service) Closing() <-chan struct{} { return s.hub.closing }

// Counts are numbers of this process.
type Counts struct {
	Working    int   // runs that execute
	Queued     int   // runs that wait for room
	Away       int   // models whose provider is away
	LeasesLost int64 // runs that another process has taken over
	Unstored   int64 // writes of the journal that failed
}

// Counts returns the numbers of this process.
func (s *Service) Counts() Counts {
	away := s.hub.breakers.open()
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return Counts{
		Away:       away,
		Working:    s.hub.total,
		Queued:     s.hub.queue.total,
		LeasesLost: s.hub.lost.Load(),
		Unstored:   s.hub.unstored.Load(),
	}
}
