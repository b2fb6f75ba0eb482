package durable

import (
	"context"
	"errors"

	"github.com/pawl-go/pawl/llm"
)

// ErrDrained is the cause with which runs stop after Engine.Drain was closed. The run stays open,
// and its lease is released.
var ErrDrained = errors.New("the process ends")

// drain stops the run when no call is in progress any more.
func (s *session) drain() {
	s.mu.Lock()
	s.draining = true
	idle := len(s.acting) == 0
	s.mu.Unlock()
	if idle {
		s.cancel(ErrDrained)
	}
}

// admit lets the call at key start, and counts it until settle. While the run is drained, only a
// call in progress may start again. The others wait until the run stops.
func (s *session) admit(ctx context.Context, key llm.Key) error {
	s.mu.Lock()
	starts := !s.draining || s.acting[key]
	if starts {
		s.acting[key] = true
	}
	s.mu.Unlock()
	if starts {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// settle removes the call at key, whose outcome is stored, from the calls in progress.
func (s *session) settle(key llm.Key) {
	s.mu.Lock()
	delete(s.acting, key)
	last := s.draining && len(s.acting) == 0
	s.mu.Unlock()
	if last {
		s.cancel(ErrDrained)
	}
}
