package runs

import (
	"maps"
	"slices"

	"github.com/pawl-go/pawl/store"
)

// list is a watched list of runs.
type list struct {
	who  store.Scope
	More chan struct{} // ids is not empty

	ids map[string]bool // runs that changed in this process; guarded by hub.mu
}

// WatchList registers a watcher for the runs of a scope.
func (h *Hub) WatchList(who store.Scope) *list {
	l := &list{who: who, More: make(chan struct{}, 1), ids: map[string]bool{}}
	h.Mu.Lock()
	h.lists[l] = true
	h.Mu.Unlock()
	return l
}

func (h *Hub) LeaveList(l *list) {
	h.Mu.Lock()
	delete(h.lists, l)
	h.Mu.Unlock()
}

// Tell notifies the watchers of lists that a run has changed.
func (h *Hub) Tell(p Place) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for l := range h.lists {
		if l.who == p.Who {
			l.ids[p.Id] = true
			select {
			case l.More <- struct{}{}:
			default:
			}
		}
	}
}

// Changed returns the IDs of the runs that changed since its last call.
func (h *Hub) Changed(l *list) []string {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	ids := slices.Sorted(maps.Keys(l.ids))
	clear(l.ids)
	return ids
}
