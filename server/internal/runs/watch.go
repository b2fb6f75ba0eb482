package runs

// watch.go: readers that wait for a change: of the runs of an owner, and of a pending run.

import (
	"context"
	"maps"
	"slices"

	"github.com/pawl-go/pawl/store"
)

// Watch reports the runs of an owner that change in this process.
type Watch struct {
	// More has a value when there are changes.
	More <-chan struct{}

	hub   *hub
	scope store.Scope
	more  chan struct{}
	ids   map[string]bool // runs that changed; guarded by hub.mu
}

// Watch begins to watch the runs of an owner. Close ends it.
func (s *Service) Watch(scope store.Scope) *Watch {
	more := make(chan struct{}, 1)
	w := &Watch{More: more, hub: s.hub, scope: scope, more: more, ids: map[string]bool{}}
	s.hub.mu.Lock()
	s.hub.watches[w] = true
	s.hub.mu.Unlock()
	return w
}

// Close ends the watch.
func (w *Watch) Close() {
	w.hub.mu.Lock()
	delete(w.hub.watches, w)
	w.hub.mu.Unlock()
}

// Changed returns the IDs of the runs that changed since its last call.
func (w *Watch) Changed() []string {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	ids := slices.Sorted(maps.Keys(w.ids))
	clear(w.ids)
	return ids
}

// notify reports to watches that a run has changed.
func (h *hub) notify(p place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches {
		if w.scope != p.scope {
			continue
		}
		w.ids[p.id] = true
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}

// A reader of a pending run waits for its next attempt in three steps. It takes a seat with
// Resumed. When the run resumes here, hub.run closes the seat, and Successor is the next attempt.
// With each heartbeat, Refresh finds out whether another process has resumed the run.

// seat is where readers of a pending run wait until it resumes.
type seat struct {
	on      chan struct{} // closed when the run resumes
	readers int
}

// Resumed returns a channel that is closed when a pending run resumes here, and a function to call
// when the channel is no longer needed.
func (s *Service) Resumed(l *Live) (on <-chan struct{}, leave func()) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()

	at := h.seats[l.place]
	now := h.runs[l.place]
	switch {
	case now != nil && now != l && !now.job.replay: // it has resumed
		at = &seat{on: make(chan struct{})}
		close(at.on)
	case at == nil:
		at = &seat{on: make(chan struct{})}
		h.seats[l.place] = at
	}
	at.readers++
	return at.on, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		at.readers--
		if at.readers == 0 && h.seats[l.place] == at {
			delete(h.seats, l.place)
		}
	}
}

// wakeWatchers closes the seat of a run that resumes. The caller holds mu.
func (h *hub) wakeWatchers(p place) {
	if at := h.seats[p]; at != nil {
		delete(h.seats, p)
		close(at.on)
	}
}

// Successor returns the run that continues a pending one in this process. Nil means that it has not
// resumed, or has stopped since then and was dropped.
func (s *Service) Successor(l *Live) *Live {
	if now := s.hub.find(l.place); now != l {
		return now
	}
	return nil
}

// Refresh returns a pending run anew if another process has resumed it: followed while it executes
// there, or replayed when it has stopped. Nil means that it has not. The error is store.ErrNotFound
// if the run was deleted.
func (s *Service) Refresh(ctx context.Context, c Caller, l *Live) (*Live, error) {
	head, err := s.options.Journal.JournalRun(c.in(ctx), l.scope, l.id)
	if err != nil {
		return nil, err
	}
	switch {
	case head.State == store.JournalWaiting && head.Fence == l.fence.Load():
		return nil, nil // its questions are open
	case head.State == store.JournalOpen && !isLeased(head, s.options.Now()):
		return nil, nil // no process has resumed it yet
	}
	s.hub.remove(l) // and no attempt that this process has begun since then
	now, err := s.Attach(ctx, c, l.id)
	if err != nil {
		return nil, nil // the next attempt may find it
	}
	return now, nil
}
