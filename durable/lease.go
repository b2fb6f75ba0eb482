package durable

// lease.go: the heartbeat of a session.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/store"
)

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

// ours reports whether the lease certainly still belongs to this session.
func (s *session) ours() error {
	s.committing <- struct{}{}
	defer func() { <-s.committing }()
	if d := time.Since(s.renewed); d >= s.engine.lease() {
		return s.fail(fmt.Errorf("%w: the lease was not renewed for %v", ErrLost, d.Round(time.Millisecond)))
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

func newOwner() string { return rand.Text() }
