package runs

// change.go: cancels, deletes, steers and forks runs.

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// settleTime is how long Settle waits for a run.
const settleTime = 2 * time.Second

// Cancel cancels a run. It returns a nil Live if the run has ended, or if there is no room to watch
// it. A run of another process stops there within a second or two. It is idempotent.
func (s *Service) Cancel(ctx context.Context, c Caller, id string) (*Live, error) {
	head, err := s.Head(ctx, c, id)
	if err != nil || isOver(head) {
		return nil, err
	}
	if err := s.engine.Cancel(c.in(ctx), id); err != nil {
		return nil, err
	}

	l := s.hub.find(place{c.Scope, id})
	if l.isEnding() {
		if err := l.Wait(ctx); err != nil {
			return nil, err
		}
		head, err = s.Head(ctx, c, id)
		if err != nil || isOver(head) {
			return nil, err
		}
	}

	// A waiting run needs no room to end, and its end is in the journal like any other.
	if l.works() {
		if !s.hub.startQueued(l) {
			l.cancel(pawl.ErrCancelled)
		}
		return l, nil
	}

	// The process that executes it, or will, sees the cancellation.
	l, err = s.resumeOrFollow(ctx, c, head)
	if isBusy(err) {
		return nil, nil
	}
	return l, err
}

// Settle waits until a run has stopped, up to two seconds. l may be nil.
func Settle(ctx context.Context, l *Live) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_ = l.Wait(ctx)
}

// Delete deletes a run with all its data. A run that is executing must be cancelled first.
func (s *Service) Delete(ctx context.Context, c Caller, id string) error {
	head, err := s.Head(ctx, c, id)
	if err != nil {
		return err
	}
	p := place{c.Scope, id}
	if s.hub.find(p).works() || head.State == store.JournalOpen {
		return Fault("conflict", "the run "+id+" is at work", "POST /v1/runs/"+id+"/cancel ends it")
	}
	if err := s.options.Journal.DeleteJournal(c.in(ctx), p.scope, p.id); err != nil {
		return err
	}
	s.hub.drop(p)
	s.Compact()
	return nil
}

// Steer sends messages of the user to a run, which adds them to its next request.
func (s *Service) Steer(ctx context.Context, c Caller, id string, msgs ...llm.Message) error {
	if _, err := s.Head(ctx, c, id); err != nil {
		return err
	}
	err := s.engine.Steer(c.in(ctx), id, msgs...)
	if err == nil || errors.Is(err, store.ErrConflict) {
		return err
	}
	return BadRequest(err.Error(), "")
}

// Fork starts the run to with the first steps of the run from.
func (s *Service) Fork(ctx context.Context, c Caller, from, to string, steps int) error {
	if err := s.engine.Fork(c.in(ctx), durable.Fork{Run: from, ID: to, Steps: steps}); err != nil {
		return err
	}
	s.hub.notify(place{c.Scope, to})
	return nil
}
