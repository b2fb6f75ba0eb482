package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

// marks.go: what was sent, in the journal. A mark is the head of a run without records in a scope
// of its own, and is never changed. The journal refuses a second mark with the same ID, so of
// several processes one sends an event. The marks of an event, in their order:
//
//	EVENT-CHANNEL-try-1      written before the first attempt
//	EVENT-CHANNEL-failed-1   after an attempt that did not reach the receiver
//	EVENT-CHANNEL-try-2      the next attempt
//	EVENT-CHANNEL-sent       after the last attempt
//
// An attempt without a mark after it was interrupted. It is repeated if the receiver recognises
// the event; otherwise it may have arrived, and the error says so.

// marksScope is the scope of marks. No client has it.
var marksScope = store.Scope{Tenant: "pawl/notify", User: "marks"}

const (
	maxTries = 5
	// interruptedAfter is the time after which an attempt without an end was interrupted.
	interruptedAfter = time.Minute
)

// writeMark writes a mark. It returns false if the mark exists.
func writeMark(ctx context.Context, j store.Journal, id string) (bool, error) {
	head := store.JournalRun{ID: id, Agent: "notify", State: store.JournalOver}
	_, err := j.BeginJournal(ctx, marksScope, head, "", time.Time{})
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// readMark returns when a mark was written. The zero time means that there is none.
func readMark(ctx context.Context, j store.Journal, id string) (time.Time, error) {
	head, err := j.JournalRun(ctx, marksScope, id)
	if errors.Is(err, store.ErrNotFound) {
		return time.Time{}, nil
	}
	return head.Created, err
}

// deliver sends an event through a channel, once. It returns true if nothing is left to be done:
// the event was sent, or was dropped after maxTries attempts. An attempt that has begun is
// completed and recorded, also if ctx ends.
func (w *Watcher) deliver(ctx context.Context, c Channel, e *Event) (bool, error) {
	ctx = context.WithoutCancel(ctx)
	prefix := e.ID + "-" + c.Name + "-"
	at, err := readMark(ctx, w.journal, prefix+"sent")
	if err != nil || !at.IsZero() {
		return err == nil, err
	}

	n, err := w.claim(ctx, prefix, c)
	if n == 0 || err != nil {
		return false, about(c, e, err)
	}
	sending, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	err = about(c, e, w.sendBy(sending, c, e))
	unknown := errors.Is(err, ErrUnknown)
	switch {
	case err != nil && !unknown && n < maxTries:
		_, failed := writeMark(ctx, w.journal, fmt.Sprintf("%sfailed-%d", prefix, n))
		return false, errors.Join(err, failed)
	case unknown && c.Idempotent && n < maxTries:
		return false, err // the attempt counts as interrupted, and is repeated
	}
	unmarked := w.done(ctx, prefix)
	return unmarked == nil, errors.Join(err, unmarked)
}

// sendBy sends an event through a channel, with an approval link that names the channel.
func (w *Watcher) sendBy(ctx context.Context, c Channel, e *Event) error {
	if e.Question == nil || w.Links == nil || w.Address == "" {
		return c.Send(ctx, e)
	}
	linked := *e
	linked.Answer = w.Address + w.Links.Path(e, c.Name)
	return c.Send(ctx, &linked)
}

// done records that an event is not sent again.
func (w *Watcher) done(ctx context.Context, prefix string) error {
	_, err := writeMark(ctx, w.journal, prefix+"sent")
	return err
}

// claim returns the number of the attempt that this process makes. 0 means none.
func (w *Watcher) claim(ctx context.Context, prefix string, c Channel) (int, error) {
	const dropped = "%w; it is not sent again"
	for n := 1; n <= maxTries; n++ {
		try := fmt.Sprintf("%stry-%d", prefix, n)
		mine, err := writeMark(ctx, w.journal, try)
		if mine || err != nil {
			return n, err
		}
		failed, err := readMark(ctx, w.journal, fmt.Sprintf("%sfailed-%d", prefix, n))
		switch {
		case err != nil:
			return 0, err
		case time.Since(failed) < scanEvery/2:
			return 0, nil // the scan came early, because another run has stopped
		case !failed.IsZero():
			continue
		}

		// The attempt has no end: another process makes it, or it was interrupted.
		begun, err := readMark(ctx, w.journal, try)
		switch {
		case err != nil:
			return 0, err
		case time.Since(begun) < interruptedAfter:
			return 0, nil
		case !c.Idempotent:
			return 0, errors.Join(fmt.Errorf(dropped, ErrUnknown), w.done(ctx, prefix))
		}
	}
	return 0, errors.Join(fmt.Errorf(dropped, ErrUnknown), w.done(ctx, prefix))
}

// about returns an error of a channel with the event.
func about(c Channel, e *Event, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("notify: %s: run %s: %w", c.Name, e.Run, err)
}
