package runs

// live.go: Live, a run of this process, for any number of readers.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// ErrElsewhere ends the events of a run that another process continues.
var ErrElsewhere = errors.New("another process continues the run")

// readBytes is the approximate number of bytes that Events reads at once.
const readBytes = 64 << 10

// place identifies a run: its owner and its ID.
type place struct {
	scope store.Scope
	id    string
}

// job describes how a run is executed.
type job struct {
	agent  *pawl.Agent
	from   *pawl.Result    // a new run starts from it and executes its open calls; nil means none
	meta   json.RawMessage // of a new run, for the process that resumes it
	forget bool            // the run is deleted when it has ended
	replay bool            // the stored events are replayed; the run is not resumed
	follow bool            // of a replay: another process executes the run
	thread string          // the conversation that the run continues; empty means none
}

// Live is a run that this process executes, or executed recently. Any number of readers may follow
// it.
type Live struct {
	place
	job     job
	feed    *feed
	ctx     context.Context
	cancel  context.CancelCauseFunc
	release func() // of the caller's slot

	begun    chan struct{} // closed when the run is in the journal, or could not be started
	startErr error         // why the run could not start; set before begun is closed
	done     chan struct{} // closed when the run has stopped

	spent   atomic.Pointer[pawl.Spent] // usage of the steps so far; nil means none
	pending atomic.Bool                // the run has stopped with questions
	fence   atomic.Int64               // of a pending run: JournalRun.Fence when it stopped
	ended   atomic.Bool                // the journal has the end, and readers may know it
	queued  atomic.Bool                // it waits for room: see queue
	gate    gate

	// The stored events have been repeated, and a call or a request begins.
	executes atomic.Bool

	// Of a run that waits for the provider of its model: see outage.go.
	published published             // by the goroutine of the run alone
	away      atomic.Pointer[waits] // the present outage; nil means none
	suspended atomic.Bool           // it has no goroutine until retry; changed under hub.mu
	follows   atomic.Bool           // another process executes it now
	timer     *time.Timer           // of retry; guarded by hub.mu
	next      time.Time             // when the run is due; guarded by hub.mu
}

// ID returns the ID of the run.
func (l *Live) ID() string { return l.id }

// Agent returns the name of its agent.
func (l *Live) Agent() string { return l.job.agent.Name }

// Structured reports whether the agent has structured output.
func (l *Live) Structured() bool { return len(l.job.agent.Output) > 0 }

// Tools returns the tools of the run, and of its client.
func (l *Live) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	return pawl.Toolsets(l.job.agent.Tools).Tools(ctx)
}

// Done is closed when the run has stopped, and the journal has its end.
func (l *Live) Done() <-chan struct{} { return l.done }

// Pending reports whether the run has stopped with pending calls, so that it may continue.
func (l *Live) Pending() bool { return l.pending.Load() }

// works reports whether this process executes the run, or will when its provider is back. l may be
// nil.
func (l *Live) works() bool {
	return l != nil && !l.replays() && !isClosed(l.done)
}

// replays reports whether the run is replayed or followed, and not executed.
func (l *Live) replays() bool { return l.job.replay || l.follows.Load() }

// isSuspended reports whether the run waits here for its next attempt. l may be nil.
func (l *Live) isSuspended() bool { return l != nil && l.suspended.Load() }

// isEnding reports whether this process still executes a run whose end is in the journal: nothing
// changes this end any more. l may be nil.
func (l *Live) isEnding() bool { return l.works() && l.ended.Load() }

// Await returns when the run has stopped, as Wait does, or with an *api.Error when the provider of
// its model has been away for the time hold. 0 means that it waits as long as the run needs.
func (l *Live) Await(ctx context.Context, hold time.Duration) error {
	if l == nil {
		return nil
	}
	for came := time.Now(); ; {
		_, _, more := l.feed.read(l.feed.last(), 0)
		timer, err := l.Patience(came, hold)
		if err != nil {
			return err
		}
		select {
		case <-l.done:
			return nil
		case <-more:
		case <-timer:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// observe records what an event says about the provider: it is away, or it has answered.
func (l *Live) observe(e pawl.Event) {
	if isOutage(e) {
		w := &waits{began: time.Now()}
		if json.Unmarshal(e.Data, &w.Waiting) != nil {
			return
		}
		if before := l.away.Load(); before != nil {
			w.began = before.began
		}
		l.away.Store(w)
		return
	}

	switch e.Kind {
	case pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventResponseReceived, pawl.EventRunEnded:
		if e.Run == "run" {
			l.away.Store(nil)
		}
	}
}

// Patience returns a channel that has a value when a reader that came at a time stops waiting for
// the provider of the run, and nil if the provider is not away. The error is that the time is over.
// d is Reading.Hold.
func (l *Live) Patience(came time.Time, d time.Duration) (<-chan time.Time, error) {
	w := l.away.Load()
	if w == nil || d <= 0 {
		return nil, nil
	}
	since := came
	if w.began.After(since) {
		since = w.began
	}
	left := time.Until(since.Add(d))
	if left <= 0 {
		return nil, l.outage(w)
	}
	return time.After(left), nil
}

// outage returns the error for a client that does not wait any longer.
func (l *Live) outage(w *waits) *api.Error {
	e := Fault("outage", fmt.Sprintf("the run %s is %s; it goes on by itself", l.id, w.String()),
		"GET /v1/runs/"+l.id+" shows it")
	e.Run = l.id
	e.RetryAfter = max(1, int(math.Ceil(time.Until(w.Next).Seconds())))
	return e
}

// Wait returns when the run has stopped, and the journal has its end. l may be nil.
func (l *Live) Wait(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitBegun returns when the run is in the journal, or with the reason why it is not.
func (l *Live) waitBegun(ctx context.Context) error {
	select {
	case <-l.begun:
		return l.startErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AddReader counts a reader until leave is called, which returns the number of the others.
func (l *Live) AddReader() (leave func() (others int)) {
	l.gate.enter()
	return l.gate.leave
}

// Readers returns the number of readers.
func (l *Live) Readers() int { return l.gate.count() }

// Hold lets no call and no request of the run begin until it has a reader. It does nothing while it
// has one. l may be nil: the run is not executed here.
func (l *Live) Hold() {
	if l != nil {
		l.gate.hold()
	}
}

// LetGo ends Hold. l may be nil.
func (l *Live) LetGo() {
	if l != nil {
		l.gate.letGo()
	}
}

// Read returns the encoded events after a position, up to about max bytes. ended means that nothing
// follows them. If there is nothing to return, more is closed when there is.
func (l *Live) Read(after int64, max int) (batch []Entry, ended bool, more <-chan struct{}) {
	return l.feed.read(after, max)
}

// EventID returns the ID of a position for clients: Last-Event-ID.
func (l *Live) EventID(position int64) string { return l.feed.id(position) }

// Position returns the position that an ID refers to. It returns 0 for an ID of another attempt or
// process: the reader then gets all events, beginning with a notice about this.
func (l *Live) Position(eventID string) int64 { return l.feed.position(eventID) }

// Reading says how Events waits for events.
type Reading struct {
	Stored bool             // end with the last event so far; a replay ends with the run
	Hold   time.Duration    // see Live.Await; 0 means no limit
	Tick   <-chan time.Time // while there are no events, each tick calls Beat; nil means none
	Beat   func()
}

// Events yields the events of the run from its beginning, until it ends or asks something. The last
// error is ErrElsewhere if another process continues the run; the run itself ends with its event.
func (l *Live) Events(ctx context.Context, how Reading) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		came := time.Now()
		for after := int64(0); ; {
			batch, ended, more := l.feed.read(after, readBytes)
			for _, e := range batch {
				after = e.Position
				ev, err := e.event()
				if !yield(ev, err) || err != nil {
					return
				}
			}

			switch {
			case len(batch) > 0:
				continue
			case ended:
				yield(pawl.Event{}, ErrElsewhere)
				return
			case how.Stored && (!l.replays() || l.away.Load() != nil):
				return
			}
			timer, err := l.Patience(came, how.Hold)
			if err != nil {
				yield(pawl.Event{}, err)
				return
			}
			select {
			case <-more:
			case <-timer:
			case <-how.Tick:
				how.Beat()
			case <-ctx.Done():
				yield(pawl.Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

// event decodes an entry. It returns an error for an entry that says why the run could not
// continue.
func (e Entry) event() (ev pawl.Event, err error) {
	if e.Kind != kindError {
		return ev, json.Unmarshal(e.Data, &ev)
	}
	var f struct{ Error api.Error }
	if err := json.Unmarshal(e.Data, &f); err != nil {
		return ev, err
	}
	return ev, Fault(f.Error.Code, f.Error.Message, f.Error.Hint)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
