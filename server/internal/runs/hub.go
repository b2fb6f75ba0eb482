package runs

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
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/store"
)

// errParked is the cause with which runs stop when the server stops. It is not ErrCancelled, so
// that they can be resumed.
var errParked = errors.New("the server ends")

// Place identifies a run: its owner and its ID.
type Place struct {
	Who store.Scope
	Id  string
}

// job describes how a run is executed. The metadata stored with a new run is for the process that
// resumes it.
type job struct {
	Agent  *pawl.Agent
	from   *pawl.Result // a new run starts from it and executes its open calls; nil means none
	meta   json.RawMessage
	forget bool   // the run is deleted when it has ended
	story  bool   // the stored events are replayed; the run is not resumed
	thread string // the conversation that the run continues; empty means none
}

// Live is a run that this process executes, or executed recently.
type Live struct {
	Place
	Agent      string
	Feed       *feed
	spent      atomic.Pointer[pawl.Spent] // usage of the steps so far; nil means none
	ctx        context.Context
	cancel     context.CancelCauseFunc
	begun      chan struct{} // closed when the run is in the journal, or could not be started
	Done       chan struct{} // closed when the run has stopped
	StartErr   error         // why the run could not start; set before begun is closed
	story      bool          // a replay; the run is not executed
	Waits      atomic.Bool   // the feed has the end of a pending run, which may now be answered
	Structured bool          // the agent has structured output
	queued     atomic.Bool   // it waits for room: see queue
	Job        job
	by         *access.Client // counts the run; nil means the server itself
	Readers    atomic.Int32   // front ends that receive it
}

// Works reports whether this process executes the run. l may be nil.
func (l *Live) Works() bool {
	return l != nil && !l.story && !Closed(l.Done)
}

// Hub executes runs, one goroutine each.
type Hub struct {
	s       *Service
	base    context.Context // parent of the contexts of all runs
	stop    context.CancelCauseFunc
	Closing chan struct{}
	Drained chan struct{} // closed when no run or call may begin any more: durable.Engine.Drain
	kick    chan struct{} // signals that a run may be ready to be resumed

	Lost, Unstored atomic.Int64 // leases lost, and writes of the journal that failed

	Mu      sync.Mutex
	wg      sync.WaitGroup
	runs    map[Place]*Live
	Working map[string]int // executing runs by tenant
	total   int            // their sum
	stories int            // replays
	Queue   queue
	rested  []*Live         // runs that have stopped, the oldest first
	held    int             // bytes of their feeds
	tries   map[Place]retry // failed attempts to resume runs, for runs found in the last scan
	seats   map[Place]*seat
	lists   map[*list]bool // lists that are watched
	remains int            // deleted runs whose remains are in the files of the journal
}

// seat is where watchers of a pending run wait until it resumes.
type seat struct {
	on chan struct{} // closed when the run resumes
	n  int           // number of watchers
}

type retry struct {
	at   time.Time
	wait time.Duration
}

func NewHub(s *Service) *Hub {
	h := &Hub{s: s, runs: map[Place]*Live{}, Closing: make(chan struct{}), Drained: make(chan struct{}),
		kick: make(chan struct{}, 1), tries: map[Place]retry{}, seats: map[Place]*seat{}, lists: map[*list]bool{},
		Working: map[string]int{}, Queue: queue{size: map[string]int{}, waiting: map[string][]*Live{}}}
	h.base, h.stop = context.WithCancelCause(context.Background())
	return h
}

// GoesOn returns a channel that is closed when a pending run resumes here, and a function to call
// when the channel is no longer needed.
func (h *Hub) GoesOn(l *Live) (on <-chan struct{}, leave func()) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	s := h.seats[l.Place]
	if now := h.runs[l.Place]; now != nil && now != l && !now.story {
		s = &seat{on: make(chan struct{})}
		close(s.on)
	} else if s == nil {
		s = &seat{on: make(chan struct{})}
		h.seats[l.Place] = s
	}
	s.n++
	return s.on, func() {
		h.Mu.Lock()
		defer h.Mu.Unlock()
		s.n--
		if s.n == 0 && h.seats[l.Place] == s {
			delete(h.seats, l.Place)
		}
	}
}

// Find returns a run of this process. Nil means that there is none.
func (h *Hub) Find(p Place) *Live {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.runs[p]
}

// work is the goroutine of a run.
func (h *Hub) work(ctx context.Context, l *Live, msgs []llm.Message) {
	defer l.cancel(nil)
	j := l.Job
	waited := Closed(l.begun) // in the queue
	if waited && !h.mine(ctx, l) {
		h.rest(l, true)
		return
	}
	// parked: another process continues the run. plain: an error after the end adds nothing.
	begun := waited
	ended := false
	parked := false
	plain := false
	runner := h.s.Engine.ReplayEvents(l.Id, j.Agent)
	if !j.story {
		r := h.s.Engine.Runner(l.Id, j.Agent)
		r.Meta = j.meta
		r.From = j.from
		runner = r
		if h.s.O.Around != nil {
			runner = h.s.O.Around(l.Id, BaseName(l.Agent), r)
		}
	}
	for e, err := range h.guarded(l, redact.Runner(runner, h.s.O.Secrets).Stream(ctx, msgs...)) {
		root := e.Run == "run"
		parked = parked || context.Cause(ctx) == errParked || Closed(h.Drained) && root && interrupted(e) ||
			waited && errors.Is(err, durable.ErrLost)
		switch {
		case err != nil && !begun:
			l.StartErr = err
		case parked && (err != nil || root && e.Kind == pawl.EventRunEnded):
			// the run continues in another process, so this is not its end
		case err != nil && plain:
		case err != nil:
			h.fail(l, err)
		default:
			if root && e.Kind == pawl.EventRunEnded {
				ended = true
				plain = e.Error == ""
				l.Waits.Store(e.Result != nil && e.Result.Stop == pawl.StopPending)
				if j.forget { // before its client knows the end
					h.erase(ctx, l)
				}
			}
			l.Feed.put(e)
			if root && e.Kind == pawl.EventStep {
				l.spent.Store(e.Spent)
				h.Tell(l.Place)
			}
		}
		if !begun {
			begun = true
			close(l.begun)
			h.Tell(l.Place)
		}
	}
	if !begun {
		close(l.begun)
	}
	switch {
	case l.story:
	case begun && !ended && context.Cause(ctx) == nil:
		// it would immediately end in the same way again
		h.delay(l.Place)
	}
	h.rest(l, parked)
	h.Tell(l.Place)
	if l.Waits.Load() && !l.story { // an answer may have arrived in the meantime
		h.Wake()
	}
}

// interrupted reports whether e ends a run only in this process.
func interrupted(e pawl.Event) bool {
	return e.Kind == pawl.EventRunEnded && e.Error != "" && e.Result != nil && e.Result.Stop == pawl.StopCancelled
}

// guarded yields the events of a run. A panic in it becomes the error of the run, with the stack in
// the log, since the process serves other runs too. A panic of the consumer passes through.
func (h *Hub) guarded(l *Live, events iter.Seq2[pawl.Event, error]) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		ours := true
		defer func() {
			if !ours {
				return
			}
			if v := recover(); v != nil {
				h.s.O.Log.Error("a run panicked", "run", l.Id, "panic", v, "stack", string(debug.Stack()))
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

// Report logs an error of the work on a run, and counts it.
func (h *Hub) Report(run string, err error) {
	switch {
	case errors.Is(err, durable.ErrChanged):
		h.s.O.Log.Error("a run cannot continue with the present agent", "run", run, "error", h.s.O.Secrets.String(err.Error()))
	case errors.Is(err, durable.ErrLost):
		h.Lost.Add(1)
		h.s.O.Log.Warn("a lease was lost", "run", run, "error", err.Error())
	case errors.Is(err, store.ErrUnavailable):
		h.Unstored.Add(1)
		h.s.O.Log.Warn("the journal is not available", "run", run, "error", err.Error())
	}
}

// erase deletes a run that has ended, for a client that wanted nothing stored.
func (h *Hub) erase(ctx context.Context, l *Live) {
	ctx = context.WithoutCancel(ctx)
	head, err := h.s.O.Journal.JournalRun(ctx, l.Who, l.Id)
	if err == nil && head.State == store.JournalOver {
		err = h.s.O.Journal.DeleteJournal(ctx, l.Who, l.Id)
		h.Drop(l.Place)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		h.s.O.Log.Error("a run that must not be stored", "run", l.Id, "error", err)
	}
}

// Drop removes a run that was deleted.
func (h *Hub) Drop(p Place) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if l := h.runs[p]; l != nil {
		h.forget(l)
	}
}

// fail sends watchers the reason why the run could not continue.
func (h *Hub) fail(l *Live, err error) {
	e := *ToError(err)
	if e.Cause != nil {
		h.s.O.Log.Error("a run cannot be stored", "run", l.Id, "error", e.Cause)
	}
	e.Message = h.s.O.Secrets.String(e.Message)
	data, _ := json.Marshal(map[string]*api.Error{"error": &e}) // text always marshals
	l.Feed.add(kindError, data)
}

// rest keeps the feed of a stopped run for a while, unless the run is gone from this process.
func (h *Hub) rest(l *Live, gone bool) {
	l.Feed.end()
	close(l.Done)
	h.Mu.Lock()
	defer h.Mu.Unlock()
	defer h.dispatch()
	h.count(l, -1)
	switch {
	case h.runs[l.Place] != l: // the run was resumed or deleted
		return
	case l.StartErr != nil || gone:
		delete(h.runs, l.Place)
		return
	}
	h.rested = append(h.rested, l)
	h.held += l.Feed.bytes()
	for h.held > h.s.O.Idle && len(h.rested) > 0 {
		h.forget(h.rested[0])
	}
}

// forget removes a stopped run. The caller holds mu.
func (h *Hub) forget(l *Live) {
	if h.runs[l.Place] == l {
		delete(h.runs, l.Place)
	}
	if i := slices.Index(h.rested, l); i >= 0 {
		h.held -= l.Feed.bytes()
		h.rested = slices.Delete(h.rested, i, i+1)
	}
}

func (h *Hub) Wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// Shut closes c once.
func (h *Hub) Shut(c chan struct{}) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if !Closed(c) {
		close(c)
	}
}

func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Close stops all runs and returns when they have stopped.
func (h *Hub) Close(ctx context.Context) error {
	h.drain()
	h.Shut(h.Closing)
	h.stop(errParked)
	return h.Wait(ctx)
}

// Wait returns when all runs have stopped.
func (h *Hub) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { h.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("runs have not stopped: %w", context.Cause(ctx))
	}
}

// Recover resumes runs without a process until ctx ends: runs of crashed processes, and runs whose
// pending calls were answered while no server was running.
func (h *Hub) Recover(ctx context.Context) {
	tick := time.NewTicker(h.s.O.Recover)
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
func (h *Hub) takeUp(ctx context.Context) {
	runs, err := h.s.Engine.Abandoned(ctx, 1000)
	if err != nil {
		if ctx.Err() == nil {
			h.s.O.Log.Error("looking for abandoned runs", "error", err)
		}
		return
	}
	h.remember(runs)
	for _, run := range runs {
		p := Place{run.Scope, run.ID}
		if h.Find(p).Works() {
			continue
		}
		h.Mu.Lock()
		try, failed := h.tries[p]
		h.Mu.Unlock()
		if failed && h.s.O.Now().Before(try.at) {
			continue
		}
		j, err := h.s.jobOf(ctx, p, cmp.Or(run.Agent, "?"))
		if err == nil {
			_, _, err = h.run(ctx, p, j, nil)
		}
		var e *api.Error
		if errors.As(err, &e) && e.Code == "busy" || ctx.Err() != nil {
			return
		}
		if err != nil {
			h.delay(p)
			if !failed && !errors.Is(err, durable.ErrLost) { // another process was faster
				h.s.O.Log.Warn("a run cannot be resumed", "run", run.ID, "error", err.Error())
			}
		}
	}
}

// remember drops the records of attempts for runs that no longer need them.
func (h *Hub) remember(runs []store.JournalRun) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	was := h.tries
	h.tries = make(map[Place]retry, len(was))
	for _, run := range runs {
		p := Place{run.Scope, run.ID}
		if try, ok := was[p]; ok {
			h.tries[p] = try
		}
	}
}

// delay postpones the next attempt for a run, longer each time.
func (h *Hub) delay(p Place) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	wait := min(max(2*h.tries[p].wait, h.s.O.Recover), 10*time.Minute)
	h.tries[p] = retry{h.s.O.Now().Add(wait), wait}
}
