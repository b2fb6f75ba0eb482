package durable

// commit.go: puts the records of a session on disk, and reads the records from outside.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

const (
	// defaultRetry is what Engine.Retry of 0 means.
	defaultRetry = 20 * time.Second

	// firstPause is the time between two attempts to write. It doubles up to longestPause.
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

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

// add puts a record into the next commit. The error is why no record can be stored any more.
func (s *session) add(kind, key string, v any) error {
	_, err := s.enqueue(kind, key, v)
	return err
}

// enqueue is add, and returns the number of added records: see flushTo.
func (s *session) enqueue(kind, key string, v any) (added int, err error) {
	r, err := s.record(kind, key, v)
	if err != nil {
		return 0, s.fail(err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.queue = append(s.queue, r)
	s.added++
	if kind == record.KindReply {
		s.outage = outage{replied: true}
		s.history.RepliedAt[llm.Key(key)] = r.At
	}
	return s.added, nil
}

// isQueued reports whether one of the first n added records still waits for a commit.
func (s *session) isQueued(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return n > s.added-len(s.queue)
}

// commitSoon starts a commit within a short time.
func (s *session) commitSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(gather, func() { s.flush(nil) })
	} else {
		s.timer.Reset(gather)
	}
}

// flush returns when all added records are on disk. Callers that arrive during a commit share the
// next one. change is stored with the records, and also without any; nil means no change.
func (s *session) flush(change *store.JournalChange) error {
	s.mu.Lock()
	n := s.added
	s.mu.Unlock()
	return s.flushTo(n, change)
}

// flushTo is flush for the first n added records.
func (s *session) flushTo(n int, change *store.JournalChange) error {
	s.committing <- struct{}{}
	defer func() { <-s.committing }()

	queue, err := s.takeQueue(n, change != nil)
	switch {
	case err != nil:
		return err
	case len(queue) == 0 && change == nil:
		return nil
	}

	if change == nil {
		change = s.progress(queue)
	} else {
		s.complete(change)
	}
	last, err := s.write(change, queue)
	if err != nil {
		return s.fail(fmt.Errorf("journal: %w", err))
	}

	// Records are numbered without a gap, so that a larger number means records of others.
	released := change != nil && change.Release
	othersWrote := last > s.seen+int64(len(queue))
	switch {
	case released: // the run belongs to the next process
	case othersWrote:
		ctx, cancel := patient()
		defer cancel()
		s.readOutside(ctx)
	default:
		s.seen = last
	}
	return nil
}

// takeQueue empties the queue and returns its records. If the first n added records are on disk
// already, it returns none, unless all are wanted.
func (s *session) takeQueue(n int, all bool) ([]store.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	onDisk := s.added - len(s.queue)
	if onDisk >= n && !all {
		return nil, nil
	}

	// The position in a trace is no progress: a process that dies after it has stored nothing else
	// leaves a lease that has lapsed.
	isTrace := func(r store.Record) bool { return r.Kind == record.KindTrace }
	if !all && !slices.ContainsFunc(s.queue, func(r store.Record) bool { return !isTrace(r) }) {
		return nil, nil
	}

	queue := s.queue
	s.queue = nil
	return queue, nil
}

// complete sets what the caller of flush does not know: the records that the change is based on. A
// run that got an answer before its stop was stored does not wait. The caller holds committing.
func (s *session) complete(change *store.JournalChange) {
	change.Seen = s.seen
	if s.late && change.State == store.JournalWaiting {
		change.State = store.JournalOpen
	}
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
	until := time.Now().Add(cmp.Or(s.engine.Retry, defaultRetry))
	last, err = s.writeOnce(change, queue)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		switch {
		case errors.Is(err, store.ErrConflict):
			return 0, fmt.Errorf("%w: %w", ErrLost, err)
		case !errors.Is(err, store.ErrUnavailable):
			return last, err
		case !time.Now().Before(until):
			return last, err
		}

		s.engine.report(s.id, err)
		select {
		case <-s.cancelled:
			return 0, err
		case <-time.After(pause):
		}
		last, err = s.writeAgain(change, queue)
	}
}

// writeOnce appends records and change, and returns the number of the last record.
func (s *session) writeOnce(change *store.JournalChange, queue []store.Record) (last int64, err error) {
	ctx, cancel := patient()
	defer cancel()
	return s.engine.Journal.AppendJournal(ctx, s.lease, change, queue...)
}

// writeAgain is writeOnce after an attempt that has failed. That attempt may have written the
// records nevertheless, and the lease may have expired since.
func (s *session) writeAgain(change *store.JournalChange, queue []store.Record) (last int64, err error) {
	began := time.Now()
	last, err = s.writeOnce(change, queue)
	if errors.Is(err, store.ErrConflict) {
		stored, wasWritten, readErr := s.lastWritten(queue)
		switch {
		case readErr != nil:
			return 0, readErr
		case wasWritten:
			last = stored
			err = nil
		}
	}
	if err != nil || change != nil && change.Release {
		return last, err
	}

	// A record is rejected by its fence alone: the write also succeeds if the lease has expired and
	// no process has claimed it. The run goes on only with a lease that is valid.
	ctx, cancel := patient()
	defer cancel()
	_, err = s.engine.Journal.RenewJournal(ctx, s.lease, s.engine.clock().Add(s.engine.lease()))
	if err == nil {
		s.setRenewed(began)
	}
	return last, err
}

// lastWritten reports whether this session has written queue, whose last record then has its fence,
// and returns the number of the last record in the journal.
func (s *session) lastWritten(queue []store.Record) (last int64, written bool, err error) {
	ctx, cancel := patient()
	defer cancel()
	stored, err := s.engine.Journal.JournalRecords(ctx, s.lease.Scope, s.id, s.seen)
	if err != nil || len(stored) == 0 || len(queue) == 0 {
		return 0, false, err
	}

	key := queue[len(queue)-1].Key
	written = slices.ContainsFunc(stored, func(r store.Record) bool {
		return r.Key == key && r.Fence == s.lease.Fence
	})
	return stored[len(stored)-1].Seq, written, nil
}

// readOutside reads the records that others have written: cancellations, messages and answers. The
// caller holds committing.
func (s *session) readOutside(ctx context.Context) {
	records, err := s.engine.Journal.JournalRecords(ctx, s.lease.Scope, s.id, s.seen)
	if err != nil {
		return // the next commit looks again, because seen is unchanged
	}
	for _, r := range records {
		s.seen = r.Seq
		if r.Fence != 0 {
			continue // this session wrote it
		}

		switch r.Kind {
		case record.KindCancel:
			s.cancel(pawl.ErrCancelled)
		case record.KindMessage:
			s.mu.Lock()
			_ = s.history.Apply(r) // one more message, or none
			s.mu.Unlock()
		case record.KindDecision: // for the next session
			s.late = true
		}
	}
}
