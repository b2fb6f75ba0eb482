package pawl

import (
	"context"
	"slices"
	"sync"
)

// slots is how many tools may be at work in a run at once, inner calls and inner runs included: a semaphore, first come first served, that
// allocates nothing while there is room.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{}
}

// take takes a slot, which give gives back; false when ctx ended first.
func (s *slots) take(ctx context.Context) bool {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return true
	}
	mine := make(chan struct{})
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, mine)
	if i < 0 {
		return true // it was handed over meanwhile
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return false
}

// give hands a slot to who has waited longest.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
}
