package server

// hub.go: executes runs, resumes interrupted ones, and stops them when the server stops.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// errParked is the cause with which runs stop when the server stops. It is not ErrCancelled, so
// that they can be resumed.
var errParked = errors.New("the server ends")

// place identifies a run: its owner and its ID.
type place struct {
	who store.Scope
	id  string
}

// job describes how a run is executed. The metadata stored with a new run is for the process that
// resumes it.
type job struct {
	agent  *pawl.Agent
	from   *pawl.Result // a new run starts from it and executes its open calls; nil means none
	meta   json.RawMessage
	forget bool   // the run is deleted when it has ended
	story  bool   // the stored events are replayed; the run is not resumed
	thread string // the conversation that the run continues; empty means none
}

// live is a run that this process executes, or executed recently.
type live struct {
	place
	agent      string
	feed       *feed
	spent      atomic.Pointer[pawl.Spent] // usage of the steps so far; nil means none
	ctx        context.Context
	cancel     context.CancelCauseFunc
	begun      chan struct{} // closed when the run is in the journal, or could not be started
	done       chan struct{} // closed when the run has stopped
	err        error         // why the run could not start; set before begun is closed
	story      bool          // a replay; the run is not executed
	waits      atomic.Bool   // the feed has the end of a pending run, which may now be answered
	structured bool          // the agent has structured output
	queued     atomic.Bool   // it waits for room: see queue
	job        job
	by         *client      // counts the run; nil means the server itself
	readers    atomic.Int32 // front ends that receive it
}

// works reports whether this process executes the run. l may be nil.
func (l *live) works() bool {
	return l != nil && !l.story && !closed(l.done)
}

// hub executes runs, one goroutine each.
type hub struct {
	s       *Server
	base    context.Context // parent of the contexts of all runs
	stop    context.CancelCauseFunc
	closing chan struct{}
	drained chan struct{} // closed when no run or call may begin any more: durable.Engine.Drain
	kick    chan struct{} // signals that a run may be ready to be resumed

	lost, unstored atomic.Int64 // leases lost, and writes of the journal that failed

	mu      sync.Mutex
	wg      sync.WaitGroup
	runs    map[place]*live
	working map[string]int // executing runs by tenant
	total   int            // their sum
	stories int            // replays
	queue   queue
	rested  []*live           // runs that have stopped, the oldest first
	held    int               // bytes of their feeds
	tries   map[place]backoff // failed attempts to resume runs, for runs found in the last scan
	seats   map[place]*seat
	lists   map[*list]bool // lists that are watched
	remains int            // deleted runs whose remains are in the files of the journal
}

// seat is where watchers of a pending run wait until it resumes.
type seat struct {
	on chan struct{} // closed when the run resumes
	n  int           // number of watchers
}

type backoff struct {
	at   time.Time
	wait time.Duration
}

func newHub(s *Server) *hub {
	h := &hub{s: s, runs: map[place]*live{}, closing: make(chan struct{}), drained: make(chan struct{}),
		kick: make(chan struct{}, 1), tries: map[place]backoff{}, seats: map[place]*seat{}, lists: map[*list]bool{},
		working: map[string]int{}, queue: queue{size: map[string]int{}, waiting: map[string][]*live{}}}
	h.base, h.stop = context.WithCancelCause(context.Background())
	return h
}

// goesOn returns a channel that is closed when a pending run resumes here, and a function to call
// when the channel is no longer needed.
func (h *hub) goesOn(l *live) (on <-chan struct{}, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[l.place]
	if now := h.runs[l.place]; now != nil && now != l && !now.story {
		s = &seat{on: make(chan struct{})}
		close(s.on)
	} else if s == nil {
		s = &seat{on: make(chan struct{})}
		h.seats[l.place] = s
	}
	s.n++
	return s.on, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		s.n--
		if s.n == 0 && h.seats[l.place] == s {
			delete(h.seats, l.place)
		}
	}
}

// find returns a run of this process. Nil means that there is none.
func (h *hub) find(p place) *live {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[p]
}

// work is the goroutine of a run.
func (h *hub) work(ctx context.Context, l *live, msgs []llm.Message) {
	defer l.cancel(nil)
	j := l.job
	waited := closed(l.begun) // in the queue
	if waited && !h.mine(ctx, l) {
		h.rest(l, true)
		return
	}
	// parked: another process continues the run. plain: an error after the end adds nothing.
	begun := waited
	ended := false
	parked := false
	plain := false
	runner := h.s.engine.ReplayEvents(l.id, j.agent)
	if !j.story {
		r := h.s.engine.Runner(l.id, j.agent)
		r.Meta = j.meta
		r.From = j.from
		runner = r
		if h.s.o.Around != nil {
			runner = h.s.o.Around(l.id, baseName(l.agent), r)
		}
	}
	for e, err := range h.guarded(l, redact.Runner(runner, h.s.o.Secrets).Stream(ctx, msgs...)) {
		root := e.Run == "run"
		parked = parked || context.Cause(ctx) == errParked || closed(h.drained) && root && interrupted(e) ||
			waited && errors.Is(err, durable.ErrLost)
		switch {
		case err != nil && !begun:
			l.err = err
		case parked && (err != nil || root && e.Kind == pawl.EventRunEnded):
			// the run continues in another process, so this is not its end
		case err != nil && plain:
		case err != nil:
			h.fail(l, err)
		default:
			if root && e.Kind == pawl.EventRunEnded {
				ended = true
				plain = e.Error == ""
				l.waits.Store(e.Result != nil && e.Result.Stop == pawl.StopPending)
				if j.forget { // before its client knows the end
					h.erase(ctx, l)
				}
			}
			l.feed.put(e)
			if root && e.Kind == pawl.EventStep {
				l.spent.Store(e.Spent)
				h.tell(l.place)
			}
		}
		if !begun {
			begun = true
			close(l.begun)
			h.tell(l.place)
		}
	}
	if !begun {
		close(l.begun)
	}
	switch {
	case l.story:
	case begun && !ended && context.Cause(ctx) == nil:
		// it would immediately end in the same way again
		h.delay(l.place)
	}
	h.rest(l, parked)
	h.tell(l.place)
	if l.waits.Load() && !l.story { // an answer may have arrived in the meantime
		h.wake()
	}
}

// interrupted reports whether e ends a run only in this process.
func interrupted(e pawl.Event) bool {
	return e.Kind == pawl.EventRunEnded && e.Error != "" && e.Result != nil && e.Result.Stop == pawl.StopCancelled
}

// guarded yields the events of a run. A panic in it becomes the error of the run, with the stack in
// the log, since the process serves other runs too. A panic of the consumer passes through.
func (h *hub) guarded(l *live, events iter.Seq2[pawl.Event, error]) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		ours := true
		defer func() {
			if !ours {
				return
			}
			if v := recover(); v != nil {
				h.s.o.Log.Error("a run panicked", "run", l.id, "panic", v, "stack", string(debug.Stack()))
				yield(pawl.Event{}, errors.New("the run failed unexpectedly; the server's log has the reason"))
			}
		}()
		for e, err := range events {
			ours = false
			if !yield(e, err) {
				return
			}
			ours = true
		}
	}
}

// report logs an error of the work on a run, and counts it.
func (h *hub) report(run string, err error) {
	switch {
	case errors.Is(err, durable.ErrChanged):
		h.s.o.Log.Error("a run cannot continue with the present agent", "run", run, "error", h.s.o.Secrets.String(err.Error()))
	case errors.Is(err, durable.ErrLost):
		h.lost.Add(1)
		h.s.o.Log.Warn("a lease was lost", "run", run, "error", err.Error())
	case errors.Is(err, store.ErrUnavailable):
		h.unstored.Add(1)
		h.s.o.Log.Warn("the journal is not available", "run", run, "error", err.Error())
	}
}

// erase deletes a run that has ended, for a client that wanted nothing stored.
func (h *hub) erase(ctx context.Context, l *live) {
	ctx = context.WithoutCancel(ctx)
	head, err := h.s.o.Journal.JournalRun(ctx, l.who, l.id)
	if err == nil && head.State == store.JournalOver {
		err = h.s.o.Journal.DeleteJournal(ctx, l.who, l.id)
		h.drop(l.place)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		h.s.o.Log.Error("a run that must not be stored", "run", l.id, "error", err)
	}
}

// drop removes a run that was deleted.
func (h *hub) drop(p place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.runs[p]; l != nil {
		h.forget(l)
	}
}

// fail sends watchers the reason why the run could not continue.
func (h *hub) fail(l *live, err error) {
	e := *toError(err)
	if e.cause != nil {
		h.s.o.Log.Error("a run cannot be stored", "run", l.id, "error", e.cause)
	}
	e.Message = h.s.o.Secrets.String(e.Message)
	data, _ := json.Marshal(map[string]*Error{"error": &e}) // text always marshals
	l.feed.add(kindError, data)
}

// rest keeps the feed of a stopped run for a while, unless the run is gone from this process.
func (h *hub) rest(l *live, gone bool) {
	l.feed.end()
	close(l.done)
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.dispatch()
	h.count(l, -1)
	switch {
	case h.runs[l.place] != l: // the run was resumed or deleted
		return
	case l.err != nil || gone:
		delete(h.runs, l.place)
		return
	}
	h.rested = append(h.rested, l)
	h.held += l.feed.bytes()
	for h.held > h.s.o.Idle && len(h.rested) > 0 {
		h.forget(h.rested[0])
	}
}

// forget removes a stopped run. The caller holds mu.
func (h *hub) forget(l *live) {
	if h.runs[l.place] == l {
		delete(h.runs, l.place)
	}
	if i := slices.Index(h.rested, l); i >= 0 {
		h.held -= l.feed.bytes()
		h.rested = slices.Delete(h.rested, i, i+1)
	}
}

func (h *hub) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// shut closes c once.
func (h *hub) shut(c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !closed(c) {
		close(c)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// close stops all runs and returns when they have stopped.
func (h *hub) close(ctx context.Context) error {
	h.drain()
	h.shut(h.closing)
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

// recover resumes runs without a process until ctx ends: runs of crashed processes, and runs whose
// pending calls were answered while no server was running.
func (h *hub) recover(ctx context.Context) {
	tick := time.NewTicker(h.s.o.Recover)
	defer tick.Stop()
	for {
		h.takeUp(ctx)
		select {
		case <-tick.C:
		case <-h.kick:
		case <-ctx.Done():
			return
		}
	}
}

// takeUp scans once.
func (h *hub) takeUp(ctx context.Context) {
	runs, err := h.s.engine.Abandoned(ctx, 1000)
	if err != nil {
		if ctx.Err() == nil {
			h.s.o.Log.Error("looking for abandoned runs", "error", err)
		}
		return
	}
	h.remember(runs)
	for _, run := range runs {
		p := place{run.Scope, run.ID}
		if h.find(p).works() {
			continue
		}
		h.mu.Lock()
		try, failed := h.tries[p]
		h.mu.Unlock()
		if failed && h.s.o.Now().Before(try.at) {
			continue
		}
		j, err := h.s.jobOf(ctx, p, cmp.Or(run.Agent, "?"))
		if err == nil {
			_, _, err = h.run(ctx, p, j, nil)
		}
		var e *Error
		if errors.As(err, &e) && e.Code == "busy" || ctx.Err() != nil {
			return
		}
		if err != nil {
			h.delay(p)
			if !failed && !errors.Is(err, durable.ErrLost) { // another process was faster
				h.s.o.Log.Warn("a run cannot be resumed", "run", run.ID, "error", err.Error())
			}
		}
	}
}

// remember drops the records of attempts for runs that no longer need them.
func (h *hub) remember(runs []store.JournalRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.tries
	h.tries = make(map[place]backoff, len(was))
	for _, run := range runs {
		p := place{run.Scope, run.ID}
		if try, ok := was[p]; ok {
			h.tries[p] = try
		}
	}
}

// delay postpones the next attempt for a run, longer each time.
func (h *hub) delay(p place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := min(max(2*h.tries[p].wait, h.s.o.Recover), 10*time.Minute)
	h.tries[p] = backoff{h.s.o.Now().Add(wait), wait}
}
