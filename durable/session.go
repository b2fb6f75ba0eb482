package durable

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// session is one process at work on a run: it holds the lease, what was kept before, and what is to be kept.
type session struct {
	engine *Engine
	id     string
	lease  store.Lease
	began  time.Time // when the lease was taken
	h      *history  // as it was then; what comes from outside is added
	only   bool      // nothing new may happen: the run is over, or is being looked at
	played *Played   // what was compared; nil: this is no Replay
	story  bool      // it is only told: what waited waits
	cancel context.CancelCauseFunc
	roots  int // agents bound outside of calls

	committing chan struct{} // has room for the one who writes
	seen       int64         // records known of; guarded by committing
	renewed    time.Time     // guarded by committing
	late       bool          // something came from outside that the run did not have; guarded by committing

	mu      sync.Mutex
	queue   []store.Record
	timer   *time.Timer
	err     error // why nothing more can be kept
	waiters map[llm.Key]*gate

	digested map[*llm.ToolSpec]string // the tools so far; guarded by mu

	stop  chan struct{} // ends the heartbeat
	ended bool          // the end was kept, and the lease given up with it
	done  sync.WaitGroup
}

// gather is how long a record waits for others that may go to disk with it, when nobody waits for it alone.
const gather = 2 * time.Millisecond

var errOver = errors.New("the run is over")

// start makes a session of a lease. h is the history until now.
func (e *Engine) start(ctx context.Context, l store.Lease, h *history) (*session, context.Context) {
	s := &session{engine: e, id: l.Run, lease: l, began: time.Now(), renewed: time.Now(), h: h, seen: int64(len(h.records)), waiters: map[llm.Key]*gate{}, digested: map[*llm.ToolSpec]string{}, committing: make(chan struct{}, 1), stop: make(chan struct{})}
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.only = l.Fence == 0
	if !s.only {
		if at := pawl.TraceOf(ctx); at != "" {
			_ = s.add(kindTrace, fmt.Sprintf("%s/%d", kindTrace, l.Fence), traceBody{at}) // with the next commit
		}
		s.done.Go(s.beat)
	}
	outer := pawl.InboxOf(ctx)
	ctx = pawl.WithInbox(ctx, &inbox{s, outer})
	return s, pawl.WithEngine(ctx, s, l.Run)
}

// record makes a record; v has a JSON form.
func (s *session) record(kind, key string, v any) (store.Record, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return store.Record{}, fmt.Errorf("%s: %w", key, err)
	}
	return store.Record{Key: key, Kind: kind, At: s.engine.clock(), Elapsed: time.Since(s.began), Body: body}, nil
}

// add has something kept with the next commit.
func (s *session) add(kind, key string, v any) error {
	r, err := s.record(kind, key, v)
	if err != nil {
		return s.fail(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.queue = append(s.queue, r)
		if kind == kindReply {
			s.h.replied[llm.Key(key)] = r.At
		}
	}
	return s.err
}

// soon sees to it that what was added is on disk before long.
func (s *session) soon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(gather, func() { s.flush(nil) })
	} else {
		s.timer.Reset(gather)
	}
}

// flush returns when all that was added before is on disk. Those who come while one writes share the next commit.
func (s *session) flush(change *store.JournalChange) error {
	s.committing <- struct{}{}
	defer func() { <-s.committing }()
	s.mu.Lock()
	queue, err := s.queue, s.err
	s.queue = nil
	s.mu.Unlock()
	if err != nil || len(queue) == 0 && change == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // also when the run was cancelled
	defer cancel()
	last, err := s.engine.Journal.AppendJournal(ctx, s.lease, change, queue...)
	if err != nil {
		if errors.Is(err, store.ErrConflict) {
			err = fmt.Errorf("%w: %w", ErrLost, err)
		}
		return s.fail(fmt.Errorf("journal: %w", err))
	}
	outside := last > s.seen+int64(len(queue))
	switch {
	case outside && change != nil:
		s.late = true // it is too late to look
	case outside:
		s.look(ctx)
	}
	s.seen = max(s.seen, last)
	return nil
}

// look takes in what came from outside. committing is held.
func (s *session) look(ctx context.Context) {
	records, err := s.engine.Journal.JournalRecords(ctx, s.lease.Scope, s.id, s.seen)
	if err != nil {
		return // the next commit will say what is wrong, if anything is
	}
	for _, r := range records {
		s.seen = r.Seq
		if r.Fence != 0 {
			continue
		}
		switch r.Kind {
		case kindCancel:
			s.cancel(pawl.ErrCancelled)
		case kindMessage:
			s.mu.Lock()
			_ = s.h.take(r) // it is one more message, or none
			s.mu.Unlock()
		case kindDecision:
			s.late = true
		}
	}
}

// fail ends the run because err: nothing more is kept, and nothing begun.
func (s *session) fail(err error) error {
	s.mu.Lock()
	if s.err == nil {
		s.err, s.queue = err, nil
	}
	err = s.err
	s.mu.Unlock()
	s.cancel(err)
	return err
}

func (s *session) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// live is called before something happens that was not kept. It ends the context where nothing may.
func (s *session) live() {
	switch {
	case s.h.cancel:
		s.cancel(pawl.ErrCancelled)
	case s.only && s.h.end != nil && s.h.end.Stop == pawl.StopCancelled:
		s.cancel(pawl.ErrCancelled)
	case s.only && s.h.end != nil && s.h.end.Stop == pawl.StopLimit:
		s.cancel(pawl.ErrTime)
	case s.only:
		_ = s.fail(errOver)
	}
}

// ours reports whether the lease cannot have passed to somebody else.
func (s *session) ours() error {
	s.committing <- struct{}{}
	defer func() { <-s.committing }()
	if d := time.Since(s.renewed); d >= s.engine.lease() {
		return s.fail(fmt.Errorf("%w: the lease was not renewed for %v", ErrLost, d.Round(time.Millisecond)))
	}
	return nil
}

// beat renews the lease until the session ends.
func (s *session) beat() {
	t := time.NewTicker(s.engine.lease() / 3)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
		}
		if err := s.renew(); errors.Is(err, store.ErrConflict) {
			_ = s.fail(fmt.Errorf("%w: %w", ErrLost, err))
			return
		} // another error may pass; if it does not, ours says so before anything is begun
	}
}

func (s *session) renew() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.engine.lease())
	defer cancel()
	s.committing <- struct{}{}
	defer func() { <-s.committing }()
	now := time.Now()
	head, err := s.engine.Journal.RenewJournal(ctx, s.lease, s.engine.clock().Add(s.engine.lease()))
	if err != nil {
		return err
	}
	if s.renewed = now; head.Records > s.seen {
		s.look(ctx)
	}
	return nil
}

// close ends the session. What was not ended by end is left for others.
func (s *session) close() {
	if s.only {
		s.cancel(nil)
		return
	}
	defer s.cancel(nil)
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	if s.ended {
		return
	}
	s.rest()
	_ = s.flush(nil) // what was added; if it cannot be kept, it is made again
	ctx, cancel := context.WithTimeout(context.Background(), s.engine.lease())
	defer cancel()
	_, _ = s.engine.Journal.RenewJournal(ctx, s.lease, time.Time{}) // else the lease runs out
}

// end keeps why the run stopped, and gives the lease up.
func (s *session) end(res *pawl.Result, text string) error {
	if s.only {
		return nil
	}
	if err := s.failed(); err != nil {
		return err
	}
	body := endBody{Stop: res.Stop, Cause: res.Cause, Error: text, Spent: res.Spent, Pending: res.Pending, Values: res.Values, Output: res.Output}
	if err := s.add(kindEnd, fmt.Sprintf("end/%d", s.lease.Fence), body); err != nil {
		return err
	}
	s.rest()
	summary, err := json.Marshal(Summary{Stop: res.Stop, Cause: res.Cause, Spent: res.Spent, Pending: len(res.Pending)})
	if err != nil {
		return err
	}
	state := stateOf(res, text)
	if err := s.flush(&store.JournalChange{State: state, Summary: summary, Release: true}); err != nil {
		return err
	}
	s.ended = true
	if s.late && state == store.JournalWaiting { // an answer came before the question was put
		return s.engine.Journal.AppendOutside(context.Background(), s.lease.Scope, s.id, store.JournalOpen)
	}
	return nil
}

// rest ends the heartbeat.
func (s *session) rest() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.done.Wait()
}

// Summary is what a run came to so far: JournalRun.Summary.
type Summary struct {
	Stop    pawl.Stop  `json:"stop"`
	Cause   string     `json:"cause,omitzero"`
	Spent   pawl.Spent `json:"spent"`
	Pending int        `json:"pending,omitzero"` // calls that wait
}

// stateOf is the state that a run is left in.
func stateOf(res *pawl.Result, text string) string {
	switch {
	case res.Stop == pawl.StopPending:
		return store.JournalWaiting
	case res.Stop == pawl.StopFailed:
		return store.JournalFailed
	case res.Stop == pawl.StopCancelled && text != "":
		return store.JournalOpen // this process ends, not the run
	}
	return store.JournalOver
}

// active is how long the run was worked on before this session.
func (h *history) active() (d time.Duration) {
	for _, s := range h.spent {
		d += time.Duration(max(s.elapsed, 0))
	}
	return d
}

func newOwner() string { return rand.Text() }
