package relational

// heads.go: heads, what the holders of leases know of their runs.

import (
	"sync"

	"github.com/pawl-go/pawl/store"
)

// mostHeads is the number of known heads. Beyond it, all are read again.
const mostHeads = 10_000

// heads are the heads of the runs whose lease this process has, since its last change of each. A
// change compares the head in the database with it, so that an old one does no harm.
type heads struct {
	mu    sync.Mutex
	known map[place]journalRow
}

// place is the place of a run.
type place struct {
	scope store.Scope
	run   string
}

// of returns the known head of the run of a lease.
func (h *heads) of(l store.Lease) (r journalRow, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, known = h.known[place{l.Scope, l.Run}]
	return r, known
}

// learn records the head of the run of a lease.
func (h *heads) learn(l store.Lease, r journalRow) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || len(h.known) >= mostHeads {
		h.known = map[place]journalRow{}
	}
	r.was = store.JournalRun{}
	r.added = nil
	h.known[place{l.Scope, l.Run}] = r
}

// forget removes the head of the run of a lease.
func (h *heads) forget(l store.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, place{l.Scope, l.Run})
}
