package durable

// lease.go: the heartbeat of a session, which renews its lease, and the clocks behind leases.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/store"
)

// heartbeat renews the lease until the session ends, looks for what others have written, and drains
// the run.
func (s *session) heartbeat() {
	tick := time.NewTicker(s.engine.lease() / 3) // so that two renewals may fail
	defer tick.Stop()
	drain := s.engine.Drain
	var look <-chan time.Time
	if s.engine.Look > 0 && s.engine.Look < s.engine.lease()/3 {
		looks := time.NewTicker(s.engine.Look)
		defer looks.Stop()
		look = looks.C
	}

	for {
		select {
		case <-s.stop:
			return
		case <-drain:
			drain = nil // it stays closed
			s.calls.drain()
			continue
		case <-look:
			s.look()
			continue
		case <-tick.C:
		}

		err := s.renew()
		switch {
		case errors.Is(err, store.ErrConflict):
			_ = s.fail(fmt.Errorf("%w: %w", ErrLost, err))
			return
		case err != nil:
			// It may be temporary. If it is not, checkLease reports it before a call starts.
			s.engine.report(s.id, err)
		}
	}
}

// renew renews the lease, and reads what others have written meanwhile.
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
	s.setRenewed(now)
	if head.Records > s.seen {
		s.readOutside(ctx)
	}
	return nil
}

// look reads what others have written since the last write of the run. An error is no news: the
// next renewal reports it.
func (s *session) look() {
	ctx, cancel := context.WithTimeout(context.Background(), s.engine.lease()/3)
	defer cancel()
	head, err := s.engine.Journal.JournalRun(ctx, s.lease.Scope, s.id)
	if err != nil {
		return
	}

	s.committing <- struct{}{}
	defer func() { <-s.committing }()
	if head.Records > s.seen {
		s.readOutside(ctx)
	}
}

// checkLease returns an error unless the lease certainly still belongs to this session. A call may
// start only then.
func (s *session) checkLease() error {
	s.mu.Lock()
	age := time.Since(s.renewed)
	err := s.err
	s.mu.Unlock()
	if err != nil || age < s.engine.lease() {
		return err
	}
	return s.fail(fmt.Errorf("%w: the lease was not renewed for %v", ErrLost, age.Round(time.Millisecond)))
}

// setRenewed records that the lease was renewed by a write that began at a time.
func (s *session) setRenewed(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewed = at
}

// stopHeartbeat ends the heartbeat and waits for it. It may be called more than once.
func (s *session) stopHeartbeat() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.beats.Wait()
}

// newOwner returns the name of this process for one lease.
func newOwner() string { return rand.Text() }

// mostSkew is the difference of clocks that is not reported.
const mostSkew = time.Second

// reportSkew reports records that were written in the future.
func (e *Engine) reportSkew(id string, h *record.History) {
	now := e.clock()
	skew := time.Duration(0)
	for _, r := range h.Records {
		skew = max(skew, r.At.Sub(now))
	}
	if skew > mostSkew {
		skew = skew.Round(time.Millisecond)
		e.report(id, fmt.Errorf("%w: this one is at least %v behind another one", ErrClock, skew))
	}
}
