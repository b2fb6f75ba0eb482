package durable

// commit.go: puts the records of a session on disk, and reads those that came from outside.

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

// gather is the time that a record waits for others in the same commit, if no goroutine waits for
// that record alone.
const gather = 2 * time.Millisecond

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
