package durable

// session.go: session, which stands between the loop of a run and its journal.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/internal/runtrace"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// session is the work of one process on a run. It holds the lease, the stored records, and the
// records to store.
//
// Two locks guard it. committing is held during a write, which may last as long as Engine.Retry; mu
// is held for moments. A goroutine that needs both takes committing first.
type session struct {
	engine *Engine
	id     string
	lease  store.Lease
	began  time.Time    // the start of the lease
	core   *pawl.Engine // the engine of the run and of its nested runs

	// history is what was stored when the session began. The run reads it without a lock. What is
	// added later is guarded by mu: RepliedAt, Incoming and Received.
	history *record.History

	readOnly      bool // nothing is stored: the run has ended, or is replayed
	eventsOnly    bool // ReplayEvents: pending calls stay pending
	comparesBytes bool // Replay: requests are built again, and compared as bytes
	bytesCompared int  // requests that were compared as bytes

	cancel    context.CancelCauseFunc
	cancelled <-chan struct{} // closed when the run is cancelled

	// committing holds a value while one goroutine writes. It guards these fields.
	committing chan struct{}
	seen       int64 // the number of known records
	late       bool  // an answer came from outside that the run does not have
	stopped    bool  // the run had stopped before this session, which has stored no step yet

	// mu guards these fields.
	mu       sync.Mutex
	queue    []store.Record             // not on disk yet
	added    int                        // the number of records that were added
	renewed  time.Time                  // the last renewal of the lease
	timer    *time.Timer                // of commitSoon; nil before its first use
	err      error                      // the reason why no record can be stored any more
	steps    map[llm.Key]*step          // of the calls that execute
	failures map[llm.Key]record.Failure // requests of this attempt without a reply
	digested map[*llm.ToolSpec]string   // the tools so far
	roots    int                        // agents bound outside of calls
	outage   outage                     // of the provider

	calls calls // in progress

	gate func(ctx context.Context) error // Runner.Gate; nil means open

	stop  chan struct{}  // closed to end the heartbeat
	beats sync.WaitGroup // of the heartbeat
	ended bool           // the end is stored, and the lease released with it
}

// errOver is the error of a session that stores nothing, where its records end.
var errOver = errors.New("the run is over")

// start returns a session with the lease l, and the context in which the agents of the run find it.
// h is the history so far. A lease without a Fence means a session that stores nothing.
func (e *Engine) start(ctx context.Context, l store.Lease, h *record.History) (*session, context.Context) {
	now := time.Now()
	s := &session{
		engine:     e,
		id:         l.Run,
		lease:      l,
		began:      now,
		history:    h,
		readOnly:   l.Fence == 0,
		committing: make(chan struct{}, 1),
		seen:       int64(len(h.Records)),
		renewed:    now,
		stopped:    h.End != nil,
		steps:      map[llm.Key]*step{},
		digested:   map[*llm.ToolSpec]string{},
		stop:       make(chan struct{}),
	}
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.cancelled = ctx.Done()
	s.calls = calls{inProgress: map[llm.Key]bool{}, stop: s.cancel}

	if !s.readOnly {
		s.recordTrace(ctx)
		s.beats.Go(s.heartbeat)
	}

	// The loop of the run asks this session for models, executors, intents and messages.
	s.core = &pawl.Engine{Run: l.Run, Bind: s.bind, Replays: true, Begin: s.begin, Store: s.store, Intend: s.intend}
	in := &inbox{s, pawl.RunOptionsFrom(ctx).Messages}
	return s, pawl.WithRunOptions(ctx, pawl.RunOptions{Engine: s.core, Messages: in})
}

// recordTrace adds the position of the attempt in a trace to the next commit.
func (s *session) recordTrace(ctx context.Context) {
	at := runtrace.Of(ctx)
	if at == "" {
		return
	}
	key := fmt.Sprintf("%s/%d", record.KindTrace, s.lease.Fence)
	_ = s.add(record.KindTrace, key, record.Trace{Traceparent: at}) // an error has ended the run
}

// fail ends the run because of err: no record is stored and no call starts any more. It returns the
// first error with which it was called.
func (s *session) fail(err error) error {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
		s.queue = nil
	}
	err = s.err
	s.mu.Unlock()

	if first {
		s.engine.report(s.id, err)
	}
	s.cancel(err)
	return err
}

// failed returns the error of fail. Nil means that the session stores records.
func (s *session) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// leavePast is called where the stored part of a run ends, before an event that is not stored yet.
// It ends the context of the run if no new event may occur.
func (s *session) leavePast() {
	if !s.readOnly {
		if s.history.Cancelled {
			s.cancel(pawl.ErrCancelled)
		}
		return
	}

	end := s.history.End
	switch {
	// The run has ended here. A cancellation without an end has not reached it yet.
	case end != nil && end.Stop.Class() == pawl.ClassCancelled:
		s.cancel(pawl.ErrCancelled)
	case end != nil && end.Limit == "time":
		s.cancel(pawl.ErrTime)

	case s.history.AtLimit() && !s.eventsOnly:
		_ = s.fail(limited(s.history, s.id))
	default:
		_ = s.fail(errOver)
	}
}

// mayBegin returns when a call or a request may begin: see Runner.Gate.
func (s *session) mayBegin(ctx context.Context) error {
	if s.gate == nil {
		return nil
	}
	return s.gate(ctx)
}
