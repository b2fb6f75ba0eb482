package durable

// drain.go: ends the run of a process that is about to end.

import (
	"context"

	"github.com/pawl-go/pawl/llm"
)

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
