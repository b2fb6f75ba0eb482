package durable

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// gather is the time that a record waits for others in the same commit, if no goroutine waits for
// that record alone.
const gather = 2 * time.Millisecond

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

// record returns a record. v must have a JSON form.
func (s *session) record(kind, key string, v any) (store.Record, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return store.Record{}, fmt.Errorf("%s: %w", key, err)
	}
	return store.Record{
		Key:     key,
		Kind:    kind,
		At:      s.engine.clock(),
		Elapsed: time.Since(s.began),
		Body:    body,
	}, nil
}

// add puts a record into the next commit.
func (s *session) add(kind, key string, v any) error {
	r, err := s.record(kind, key, v)
	if err != nil {
		return s.fail(err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.queue = append(s.queue, r)
	s.added++
	if kind == record.KindReply {
		s.h.RepliedAt[llm.Key(key)] = r.At
	}
	return nil
}

// soon starts a commit within a short time.
func (s *session) soon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(gather, func() { s.flush(nil) })
	} else {
		s.timer.Reset(gather)
	}
}

// flush returns when all added records are on disk. Callers that arrive during a commit share the
// next one.
func (s *session) flush(change *store.JournalChange) error {
	s.mu.Lock()
	n := s.added
	s.mu.Unlock()
	return s.flushTo(n, change)
}

// flushTo returns when the first n added records are on disk.
func (s *session) flushTo(n int, change *store.JournalChange) error {
	s.committing <- struct{}{}
	defer func() { <-s.committing }()

	s.mu.Lock()
	stored := len(s.queue) == 0 || s.added-len(s.queue) >= n
	if s.err != nil || change == nil && stored {
		defer s.mu.Unlock()
		return s.err
	}
	queue := s.queue
	s.queue = nil
	s.mu.Unlock()

	if change != nil {
		change.Seen = s.seen
		if s.late && change.State == store.JournalWaiting {
			change.State = store.JournalOpen
		}
	} else {
		change = s.progress(queue)
	}

	last, err := s.write(change, queue)
	if err != nil {
		return s.fail(fmt.Errorf("journal: %w", err))
	}

	switch {
	case change != nil && change.Release:
	case last > s.seen+int64(len(queue)): // others have written, too
		ctx, cancel := patient()
		defer cancel()
		s.look(ctx)
	default:
		s.seen = last
	}
	return nil
}

// progress returns the change of state with the first new step of a run that had stopped: if this
// process dies, another one resumes the run. Nil means no change. The caller holds committing.
func (s *session) progress(queue []store.Record) *store.JournalChange {
	isStep := func(r store.Record) bool { return r.Kind != record.KindTrace && r.Kind != record.KindQuestion }
	if !s.stopped || !slices.ContainsFunc(queue, isStep) {
		return nil
	}
	s.stopped = false
	return &store.JournalChange{State: store.JournalOpen}
}

// patient returns the context of a write, which ignores that the run is cancelled.
func patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

// write appends records and change. It holds them while the database is not available, and writes
// them again for Engine.Retry or until the run is cancelled, so that the outcome of a call that has
// ended is not lost. The caller holds committing.
func (s *session) write(change *store.JournalChange, queue []store.Record) (last int64, err error) {
	until := time.Now().Add(cmp.Or(s.engine.Retry, 20*time.Second))
	pause := 20 * time.Millisecond
	for again := false; ; again = true {
		last, err = s.writeOnce(change, queue, again)
		switch {
		case errors.Is(err, store.ErrConflict):
			return 0, fmt.Errorf("%w: %w", ErrLost, err)
		case !errors.Is(err, store.ErrUnavailable), !time.Now().Before(until):
			return last, err
		}
		s.engine.report(s.id, err)
		select {
		case <-s.gone:
			return 0, err
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		}
	}
}

// writeOnce appends records and change. again means that an earlier attempt has failed. It may have
// written them nevertheless, and the lease may have expired since.
func (s *session) writeOnce(change *store.JournalChange, queue []store.Record, again bool) (int64, error) {
	ctx, cancel := patient()
	defer cancel()
	now := time.Now()
	j := s.engine.Journal
	last, err := j.AppendJournal(ctx, s.lease, change, queue...)
	if !again {
		return last, err
	}

	// The earlier attempt was stored if this process has written its last record.
	if errors.Is(err, store.ErrConflict) {
		stored, readErr := j.JournalRecords(ctx, s.lease.Scope, s.id, s.seen)
		if readErr != nil {
			return 0, readErr
		}
		for _, r := range stored {
			if len(queue) > 0 && r.Key == queue[len(queue)-1].Key && r.Fence == s.lease.Fence {
				last = stored[len(stored)-1].Seq
				err = nil
			}
		}
	}

	if err == nil && (change == nil || !change.Release) {
		_, err = j.RenewJournal(ctx, s.lease, s.engine.clock().Add(s.engine.lease()))
		if err == nil {
			s.renewed = now
		}
	}
	return last, err
}

// look reads the records from outside. The caller holds committing.
func (s *session) look(ctx context.Context) {
	records, err := s.engine.Journal.JournalRecords(ctx, s.lease.Scope, s.id, s.seen)
	if err != nil {
		return // the next commit looks again, because seen is unchanged
	}
	for _, r := range records {
		s.seen = r.Seq
		if r.Fence != 0 {
			continue
		}
		switch r.Kind {
		case record.KindCancel:
			s.cancel(pawl.ErrCancelled)
		case record.KindMessage:
			s.mu.Lock()
			_ = s.h.Apply(r) // one more message, or none
			s.mu.Unlock()
		case record.KindDecision:
			s.late = true
		}
	}
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

// ours reports whether the lease certainly still belongs to this session.
func (s *session) ours() error {
	s.committing <- struct{}{}
	defer func() { <-s.committing }()
	if d := time.Since(s.renewed); d >= s.engine.lease() {
		return s.fail(fmt.Errorf("%w: the lease was not renewed for %v", ErrLost, d.Round(time.Millisecond)))
	}
	return nil
}

// beat renews the lease until the session ends, and drains the run.
func (s *session) beat() {
	t := time.NewTicker(s.engine.lease() / 3)
	drain := s.engine.Drain
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-drain:
			drain = nil
			s.drain()
			continue
		case <-t.C:
		}
		if err := s.renew(); errors.Is(err, store.ErrConflict) {
			_ = s.fail(fmt.Errorf("%w: %w", ErrLost, err))
			return
		} else if err != nil {
			// It may be temporary. If it is not, ours reports it before a call starts.
			s.engine.report(s.id, err)
		}
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
	s.renewed = now
	if head.Records > s.seen {
		s.look(ctx)
	}
	return nil
}

// close ends the session. Other processes resume the run unless end was called.
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
	_ = s.flush(nil) // a record that cannot be stored is made again
	s.endChanged(s.failed())
	if s.ended {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), s.engine.lease())
	defer cancel()
	_, _ = s.engine.Journal.RenewJournal(ctx, s.lease, time.Time{}) // otherwise the lease expires
}

// end stores the reason of the stop, and releases the lease.
func (s *session) end(res *pawl.Result, text string) error {
	if s.only {
		return nil
	}
	if err := s.failed(); err != nil {
		return err
	}

	body := record.End{
		Stop:    res.Stop,
		Limit:   res.Limit,
		Cause:   res.Cause,
		Error:   text,
		Spent:   res.Spent,
		Pending: res.Pending,
		Values:  res.Values,
		Output:  res.Output,
		Answer:  res.Answer,
	}
	s.mu.Lock()
	body.Failed = maps.Clone(s.broken)
	s.mu.Unlock()
	if err := s.add(record.KindEnd, fmt.Sprintf("end/%d", s.lease.Fence), body); err != nil {
		return err
	}
	s.rest()

	summary, err := json.Marshal(Summary{
		Stop:    res.Stop,
		Cause:   res.Cause,
		Spent:   res.Spent,
		Pending: len(res.Pending),
		Unknown: unknownOf(res.Pending),
	})
	if err != nil {
		return err
	}
	err = s.flush(&store.JournalChange{State: stateOf(res, text), Summary: summary, Release: true})
	s.ended = err == nil
	return err
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

// Summary is the progress of a run: JournalRun.Summary.
type Summary struct {
	Stop    pawl.StopReason `json:"stop"`
	Code    string          `json:"code,omitzero"` // "changed": failed with ErrChanged
	Cause   string          `json:"cause,omitzero"`
	Spent   pawl.Spent      `json:"spent"`
	Pending int             `json:"pending,omitzero"` // pending calls
	Unknown int             `json:"unknown,omitzero"` // pending calls whose outcome is unknown
}

func unknownOf(all []pawl.PendingCall) (n int) {
	for i := range all {
		if all[i].Outcome == pawl.OutcomeUnknown {
			n++
		}
	}
	return n
}

// stateOf returns the state of a run after a stop. text is Event.Error of its end.
func stateOf(res *pawl.Result, text string) string {
	switch res.Stop.Class() {
	case pawl.ClassWaiting:
		return store.JournalWaiting
	case pawl.ClassCancelled:
		if text != "" {
			return store.JournalOpen // the process ends, not the run
		}
	case pawl.ClassFailed:
		// A resumed run would repeat itself again.
		if res.Stop != pawl.StopStalled {
			return store.JournalFailed
		}
	}
	return store.JournalOver
}

func newOwner() string { return rand.Text() }
