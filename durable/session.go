package durable

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
type session struct {
	engine *Engine
	id     string
	lease  store.Lease
	began  time.Time       // the start of the lease
	h      *record.History // from the start of the lease, with additions from outside
	only   bool            // no new record: the run has ended, or is only read
	played *Played         // the comparisons; nil if this is no Replay
	story  bool            // events only: pending calls stay pending
	core   *pawl.Engine    // the engine of the run and of its nested runs
	cancel context.CancelCauseFunc
	gone   <-chan struct{} // closed when the run is cancelled
	roots  int             // agents bound outside of calls

	committing chan struct{} // holds a value while one goroutine writes
	seen       int64         // the number of known records; guarded by committing
	renewed    time.Time     // guarded by committing
	// late means that an answer came from outside that the run does not have. It is guarded by
	// committing.
	late bool
	// stopped means that the run had stopped before this session, which has stored no step yet. It
	// is guarded by committing.
	stopped bool

	mu      sync.Mutex
	queue   []store.Record // not on disk yet
	added   int            // the number of records that were added
	timer   *time.Timer
	err     error // the reason why no record can be stored any more
	waiters map[llm.Key]*gate
	broken  map[llm.Key]record.Failure // requests of this attempt without a reply

	draining bool             // Engine.Drain is closed; guarded by mu
	acting   map[llm.Key]bool // calls in progress that are not Compose; guarded by mu

	digested map[*llm.ToolSpec]string // the tools so far; guarded by mu

	stop  chan struct{} // ends the heartbeat
	ended bool          // the end is stored, and the lease released with it
	done  sync.WaitGroup
}

var errOver = errors.New("the run is over")

// start returns a session with a lease. h is the history so far.
func (e *Engine) start(ctx context.Context, l store.Lease, h *record.History) (*session, context.Context) {
	now := time.Now()
	s := &session{
		engine:     e,
		id:         l.Run,
		lease:      l,
		began:      now,
		h:          h,
		only:       l.Fence == 0,
		committing: make(chan struct{}, 1),
		seen:       int64(len(h.Records)),
		renewed:    now,
		stopped:    h.End != nil,
		waiters:    map[llm.Key]*gate{},
		acting:     map[llm.Key]bool{},
		digested:   map[*llm.ToolSpec]string{},
		stop:       make(chan struct{}),
	}
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.gone = ctx.Done()
	if !s.only {
		if at := runtrace.Of(ctx); at != "" {
			// With the next commit.
			_ = s.add(record.KindTrace, fmt.Sprintf("%s/%d", record.KindTrace, l.Fence), record.Trace{Traceparent: at})
		}
		s.done.Go(s.beat)
	}

	outer := pawl.MessageSourceFrom(ctx)
	ctx = store.WithRun(pawl.WithMessages(ctx, &inbox{s, outer}), l.Run)
	s.core = &pawl.Engine{Run: l.Run, Bind: s.bind, Replays: true, Intend: s.intend}
	return s, pawl.WithEngine(ctx, s.core)
}

// fail ends the run because of err: no record is stored and no call starts any more.
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

func (s *session) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// live is called before an event that is not stored yet. It ends the context if no new event may
// occur.
func (s *session) live() {
	end := s.h.End
	switch {
	case !s.only:
		if s.h.Cancelled {
			s.cancel(pawl.ErrCancelled)
		}

	// The run has ended here. A cancellation without an end has not reached it yet.
	case end != nil && end.Stop.Class() == pawl.ClassCancelled:
		s.cancel(pawl.ErrCancelled)
	case end != nil && end.Limit == "time":
		s.cancel(pawl.ErrTime)
	case s.h.AtLimit() && !s.story:
		_ = s.fail(limited(s.h, s.id))
	default:
		_ = s.fail(errOver)
	}
}
