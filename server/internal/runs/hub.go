package runs

// hub.go: hub, the runs of this process: admits them, starts them, and stops them with the server.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// errParked is the cause with which runs stop when the server stops. It is not ErrCancelled, so
// that they can be resumed.
var errParked = errors.New("the server ends")

// hub executes runs, one goroutine each. The life of a run in this process:
//
//	run ──▶ start ──▶ work ──▶ rest: it has stopped, and its events stay in memory for readers
//	 │        ▲                  └──▶ forget: other runs need the memory, or it is resumed
//	 └──▶ enqueue ──▶ dispatch: there is room
//	           └──▶ abandon: the server stops, and the next process finds the run in the journal
//
// drop forgets a run that was deleted, or that another process has changed. erase deletes the run
// of a client that wants nothing stored.
type hub struct {
	service *Service
	base    context.Context // parent of the contexts of all runs
	stop    context.CancelCauseFunc
	closing chan struct{} // closed when runs are being stopped
	drained chan struct{} // closed when no run or call may begin any more: durable.Engine.Drain
	kick    chan struct{} // signals that a run may be ready to be resumed
	wg      sync.WaitGroup

	lost     atomic.Int64 // leases
	unstored atomic.Int64 // writes of the journal that failed

	breakers breakers // of the models

	suspect atomic.Pointer[place] // the suspect that executes: see resumeFound; nil means none

	// mu guards these fields.
	mu      sync.Mutex
	runs    map[place]*Live   // runs that wait or execute, and runs in rested
	working map[string]int    // executing runs by tenant
	total   int               // their sum
	replays int               // runs whose stored events are read
	queue   queue             // runs that wait for room
	rested  []*Live           // runs that have stopped, the oldest first
	held    int               // bytes of their feeds
	tries   map[place]backoff // failed attempts to resume runs, for runs found in the last scan
	seats   map[place]*seat   // of pending runs with readers
	watches map[*Watch]bool   // of lists
	remains int               // deletions whose remains are in the files of the stores
}

func newHub(s *Service) *hub {
	h := &hub{
		service: s,
		closing: make(chan struct{}),
		drained: make(chan struct{}),
		kick:    make(chan struct{}, 1),
		runs:    map[place]*Live{},
		working: map[string]int{},
		queue:   newQueue(),
		tries:   map[place]backoff{},
		seats:   map[place]*seat{},
		watches: map[*Watch]bool{},
	}
	h.breakers = breakers{every: s.options.Probe, answered: h.answered, all: map[string]*breaker{}}
	h.base, h.stop = context.WithCancelCause(context.Background())
	return h
}

// find returns a run of this process. Nil means that there is none.
func (h *hub) find(p place) *Live {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[p]
}

// run starts or resumes a run, and returns when that is in the journal. It returns false with a run
// that is already executing. A nil slot means no limit.
func (h *hub) run(ctx context.Context, p place, j job, slot func() (func(), error),
	msgs ...llm.Message) (l *Live, started bool, err error) {
	h.mu.Lock()

	// A run whose end is published is about to stop, and the caller needs the next attempt: it has
	// answered the questions, or resumes what has failed. An attempt for no caller is about to fail
	// if the tools need one.
	for l := h.runs[p]; h.mustStop(ctx, l); l = h.runs[p] {
		h.mu.Unlock()
		if err := l.Wait(ctx); err != nil {
			return nil, false, err
		}
		h.mu.Lock()
	}

	old := h.runs[p]
	readable := old != nil && j.replay
	if old.works() || readable {
		h.mu.Unlock()
		return old, false, old.waitBegun(ctx)
	}
	room, release, err := h.admit(p.scope.Tenant, j.replay, slot)
	if err != nil {
		h.mu.Unlock()
		return nil, false, err
	}

	if old != nil {
		h.forget(old)
	}
	l = h.newLive(p, j, release, h.actor(ctx, p, old))
	h.runs[p] = l
	if !j.replay {
		h.wakeWatchers(p)
	}

	// A run that waits is stored without the lock. Its place in the queue is reserved, so that no
	// later run of the tenant starts before it.
	if !room {
		h.queue.reserve(p.scope.Tenant)
		l.queued.Store(true)
		h.mu.Unlock()
		h.enqueue(l, msgs)
		return l, true, l.startErr
	}
	h.start(l, msgs)
	h.mu.Unlock()
	return l, true, l.waitBegun(ctx)
}

// mustStop reports whether a run stops soon, and a caller needs its next attempt.
func (h *hub) mustStop(ctx context.Context, l *Live) bool {
	if !l.works() || l.isSuspended() {
		return false
	}
	return l.isEnding() || h.lacksOwner(ctx, l)
}

// newLive returns a run with contexts of its own, which do not end with the request that starts it.
// acts is the one in whose name its tools act; nil means none.
func (h *hub) newLive(p place, j job, release func(), acts *caller.Caller) *Live {
	l := &Live{
		place:   p,
		job:     j,
		feed:    newFeed(h.service.options.Fragments),
		release: sync.OnceFunc(release),
		begun:   make(chan struct{}),
		done:    make(chan struct{}),
	}
	scoped := pawl.WithRunOptions(store.WithScope(h.base, p.scope), pawl.RunOptions{Thread: j.thread})
	if acts != nil {
		scoped = caller.With(scoped, *acts)
	}
	l.ctx, l.cancel = context.WithCancelCause(scoped)
	return l
}

// actor returns the one in whose name the tools of a run act: the client of the request in ctx, if
// the run is its own, or else the one of the run's last attempt in this process. A person who
// decides the calls of another user lends that run no credentials.
func (h *hub) actor(ctx context.Context, p place, old *Live) *caller.Caller {
	if c, ok := caller.From(ctx); ok && c.Tenant == p.scope.Tenant && c.User == p.scope.User {
		return &c
	}
	if old == nil {
		return nil
	}
	if c, ok := caller.From(old.ctx); ok {
		return &c
	}
	return nil
}

// lacksOwner reports whether an attempt acts for no caller, although its tools need one, and ctx
// has the request of the owner.
func (h *hub) lacksOwner(ctx context.Context, l *Live) bool {
	if _, acts := caller.From(l.ctx); acts || h.actor(ctx, l.place, nil) == nil {
		return false
	}
	return slices.ContainsFunc(l.job.agent.Tools, func(set pawl.Toolset) bool {
		s, ok := set.(interface{ NeedsCaller() bool })
		return ok && s.NeedsCaller()
	})
}

// admit reports whether a run may start at once, or else wait, and takes its slot. The error is for
// a run that may do neither. The caller holds mu.
func (h *hub) admit(tenant string, replay bool, slot func() (func(), error)) (room bool, release func(), err error) {
	room = h.hasRoom(tenant, replay)
	if e := h.refuse(tenant, replay, room); e != nil {
		return false, nil, e
	}
	if slot == nil {
		return room, func() {}, nil
	}
	release, err = slot()
	return room, release, err
}

// hasRoom reports whether a run may start at once. The caller holds mu.
func (h *hub) hasRoom(tenant string, replay bool) bool {
	if replay {
		return h.replays < h.service.options.MaxRuns
	}
	return h.total < h.service.options.MaxRuns && h.mayRun(tenant) && h.queue.size[tenant] == 0
}

// mayRun reports whether a tenant may execute another run. The caller holds mu.
func (h *hub) mayRun(tenant string) bool {
	return h.service.options.TenantRuns == 0 || h.working[tenant] < h.service.options.TenantRuns
}

// refuse returns the error for a run that can neither start nor wait. The caller holds mu.
func (h *hub) refuse(tenant string, replay, room bool) *api.Error {
	o := &h.service.options
	switch {
	case isClosed(h.drained):
		e := Fault("busy", "the server is stopping", "try again later")
		e.RetryAfter = 1
		return e

	case room || !replay && h.mayWait(tenant):
		return nil
	}
	e := Fault("busy", fmt.Sprintf("at most %d runs can execute concurrently, and %d can wait", o.MaxRuns, o.Queue),
		"try again later")
	e.RetryAfter = 1
	return e
}

// mayWait reports whether the queue has room for a run of a tenant. With several tenants, each may
// have half of it. The caller holds mu.
func (h *hub) mayWait(tenant string) bool {
	o := &h.service.options
	if h.queue.total >= o.Queue {
		return false
	}
	return o.Tenants <= 1 || h.queue.size[tenant] < (o.Queue+1)/2
}

// start executes a run. The caller holds mu.
func (h *hub) start(l *Live, msgs []llm.Message) {
	h.count(l, 1)
	h.wg.Go(func() {
		h.work(l, msgs)
		l.release()
	})
}

// count adds n to the numbers of executing runs. The caller holds mu.
func (h *hub) count(l *Live, n int) {
	if l.replays() {
		h.replays += n
		return
	}
	tenant := l.scope.Tenant
	h.total += n
	h.working[tenant] += n
	if h.working[tenant] == 0 {
		delete(h.working, tenant)
	}
}

// enqueue stores a new run in the journal, or finds it there, and lets it wait.
func (h *hub) enqueue(l *Live, msgs []llm.Message) {
	var err error
	if len(msgs) > 0 || l.job.from != nil {
		r := h.service.engine.Runner(l.id, l.job.agent)
		r.Meta = l.job.meta
		r.From = l.job.from
		err = r.Enqueue(l.ctx, msgs...)
		l.job.from = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()

	l.startErr = err
	close(l.begun)
	h.queue.push(l)
	if err != nil || isClosed(h.drained) {
		h.abandon(l)
	}
	h.dispatch()
}

// dispatch starts waiting runs while there is room. The caller holds mu.
func (h *hub) dispatch() {
	for h.total < h.service.options.MaxRuns && !isClosed(h.drained) {
		l := h.queue.pop(h.mayRun)
		if l == nil {
			return
		}
		l.queued.Store(false)
		h.start(l, nil)
	}
}

// startQueued starts a waiting run that is cancelled, and therefore needs no room. It reports
// whether the run was waiting.
func (h *hub) startQueued(l *Live) bool {
	if l.isSuspended() {
		h.retry(l, retryCancelled)
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !l.queued.Load() || !isClosed(l.begun) {
		return false
	}
	h.queue.remove(l)
	l.queued.Store(false)
	h.start(l, nil)
	return true
}

// drain starts no more runs and calls, and abandons the waiting runs to the next process.
func (h *hub) drain() {
	h.closeOnce(h.drained)
	h.mu.Lock()
	defer h.mu.Unlock()
	anyTenant := func(string) bool { return true }
	for l := h.queue.first(anyTenant); l != nil; l = h.queue.first(anyTenant) {
		h.abandon(l)
	}
	for _, l := range slices.Clone(h.rested) {
		if l.isSuspended() {
			h.forget(l)
		}
	}
}

// abandon removes a waiting run from this process. The caller holds mu.
func (h *hub) abandon(l *Live) {
	h.queue.remove(l)
	l.queued.Store(false)
	l.cancel(nil)
	l.feed.finish()
	close(l.done)
	if h.runs[l.place] == l {
		delete(h.runs, l.place)
	}
	l.release()
}

// isOurs reports whether a run that has waited is still to be executed here: another process may
// have found it in the journal.
func (h *hub) isOurs(ctx context.Context, l *Live) bool {
	head, err := h.service.options.Journal.JournalRun(ctx, l.scope, l.id)
	if err != nil {
		return true // its execution finds out
	}
	return head.State == store.JournalOpen && !isLeased(head, h.service.options.Now())
}

// rest ends a run in this process, and keeps its feed for a while. gone means that another process
// has the run.
func (h *hub) rest(l *Live, gone bool) {
	close(l.done) // before readers know that the feed is whole, and ask for the state of the run
	l.feed.finish()

	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(l, -1)
	defer h.dispatch() // there is room for another one

	switch {
	case h.runs[l.place] != l: // the run was resumed or deleted, or could not start
		return
	case gone:
		delete(h.runs, l.place)
		return
	}

	h.retain(l)
}

// retain keeps a stopped run while there is memory: readers that come soon after the end get the
// events with their fragments, and readers of a suspended run get the rest. The caller holds mu.
func (h *hub) retain(l *Live) {
	h.rested = append(h.rested, l)
	h.held += l.feed.bytes()
	for h.held > h.service.options.Idle && len(h.rested) > 0 {
		h.forget(h.rested[0])
	}
}

// forget removes a stopped run. The caller holds mu.
func (h *hub) forget(l *Live) {
	if h.runs[l.place] == l {
		delete(h.runs, l.place)
	}
	h.unrest(l)
	if l.isSuspended() {
		h.dismiss(l)
	}
}

// dismiss ends a suspended run in this process. Its readers get ErrElsewhere. The caller holds mu.
func (h *hub) dismiss(l *Live) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.suspended.Store(false)
	l.cancel(nil)
	close(l.done)
	l.feed.finish()
}

// unrest undoes retain. The caller holds mu.
func (h *hub) unrest(l *Live) {
	if i := slices.Index(h.rested, l); i >= 0 {
		h.held -= l.feed.bytes()
		h.rested = slices.Delete(h.rested, i, i+1)
	}
}

// remove removes a run that could not start, or that another process has resumed.
func (h *hub) remove(l *Live) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(l)
}

// drop removes a run that was deleted.
func (h *hub) drop(p place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.runs[p]; l != nil {
		h.forget(l)
	}
}

// closeOnce closes c, unless it is closed.
func (h *hub) closeOnce(c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !isClosed(c) {
		close(c)
	}
}

// close stops all runs and returns when they have stopped.
func (h *hub) close(ctx context.Context) error {
	h.drain()
	h.closeOnce(h.closing)
	h.stop(errParked)
	return h.wait(ctx)
}

// wait returns when all runs have stopped.
func (h *hub) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { h.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("runs have not stopped: %w", context.Cause(ctx))
	}
}

// report logs an error of the execution of a run, and counts it.
func (h *hub) report(run string, err error) {
	log := h.service.options.Log
	text := err.Error()
	switch {
	case errors.Is(err, durable.ErrChanged):
		text = h.service.options.Secrets.String(text)
		log.Error("a run cannot continue with the present agent", "run", run, "error", text)
	case errors.Is(err, durable.ErrLost):
		h.lost.Add(1)
		log.Warn("a lease was lost", "run", run, "error", text)
	case errors.Is(err, store.ErrUnavailable):
		h.unstored.Add(1)
		log.Warn("the journal is not available", "run", run, "error", text)
	case errors.Is(err, durable.ErrClock):
		log.Error("the clocks of the servers differ: set them, since leases hold by them", "run", run, "error", text)
	}
}
