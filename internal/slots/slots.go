// Package slots limits the number of tools that execute at the same time.
package slots

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Semaphore has slots that holders acquire in order of arrival. It allocates nothing while a slot
// is free. It is safe for concurrent use.
type Semaphore struct {
	Free int // the number of free slots; set it before the first use

	mu      sync.Mutex
	waiting []chan struct{}
}

// Holder holds at most one slot. The zero value holds none.
type Holder struct{ holds atomic.Bool }

// Acquire takes a slot for h. It returns false if ctx has ended first.
func (s *Semaphore) Acquire(ctx context.Context, h *Holder) bool {
	s.mu.Lock()
	if s.Free > 0 {
		s.Free--
		s.mu.Unlock()
		h.holds.Store(true)
		return true
	}
	mine := make(chan struct{})
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()

	select {
	case <-mine:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.waiting, mine); i >= 0 {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return false
		} // otherwise the slot arrived in the meantime
	}
	h.holds.Store(true)
	return true
}

// Release passes the slot of h to the holder that has waited longest. It does nothing if h holds no
// slot: a call may be abandoned before it ends, and both release its slot.
func (s *Semaphore) Release(h *Holder) {
	if !h.holds.CompareAndSwap(true, false) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.Free++
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
}
