package server

// watch_list.go: streams the list of runs and its changes.

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl/store"
)

// list is a watched list of runs.
type list struct {
	who  store.Scope
	more chan struct{} // ids is not empty

	ids map[string]bool // runs that changed in this process; guarded by hub.mu
}

// watchList registers a watcher for the runs of a scope.
func (h *hub) watchList(who store.Scope) *list {
	l := &list{who: who, more: make(chan struct{}, 1), ids: map[string]bool{}}
	h.mu.Lock()
	h.lists[l] = true
	h.mu.Unlock()
	return l
}

func (h *hub) leaveList(l *list) {
	h.mu.Lock()
	delete(h.lists, l)
	h.mu.Unlock()
}

// tell notifies the watchers of lists that a run has changed.
func (h *hub) tell(p place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.lists {
		if l.who == p.who {
			l.ids[p.id] = true
			select {
			case l.more <- struct{}{}:
			default:
			}
		}
	}
}

// changed returns the IDs of the runs that changed since its last call.
func (h *hub) changed(l *list) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := slices.Sorted(maps.Keys(l.ids))
	clear(l.ids)
	return ids
}

// lister sends a list of runs and its changes.
type lister struct {
	*call
	w    *sender
	sent map[string][sha256.Size]byte // digest of the last sent state of each run, by ID
	seen map[string]bool              // runs seen in the current scan
}

// watchRuns streams the list of runs. Changes in this process are sent at once. Changes by other
// processes are found by scanning the journal every two seconds, or less often so that scanning
// takes at most a twentieth of the time.
func (c *call) watchRuns(state string, p store.Page) error {
	if state != "" || p != (store.Page{}) {
		return badRequest("the list that is streamed is the whole one", "leave state, after and limit out")
	}
	leave, err := c.enterStream()
	if err != nil {
		return err
	}
	defer leave()
	l := c.s.hub.watchList(c.client.scope())
	defer c.s.hub.leaveList(l)
	s := &lister{call: c, w: c.events(), sent: map[string][sha256.Size]byte{}}
	took, ok := s.look()
	if !ok {
		return nil
	}
	s.w.event("", "listed", []byte("{}"))
	look, beat := time.NewTimer(pause(took)), time.NewTicker(c.s.o.Beat)
	defer look.Stop()
	defer beat.Stop()
	for s.w.flush() {
		select {
		case <-l.more:
			for _, id := range c.s.hub.changed(l) {
				if head, err := c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), id); err == nil && !s.run(head) {
					return nil
				}
			}
		case <-look.C:
			took, ok = s.look()
			if !ok {
				return nil
			}
			look.Reset(pause(took))
		case <-beat.C:
			if !s.w.beat() {
				return nil
			}
		case <-c.r.Context().Done():
			return nil
		case <-c.s.hub.closing:
			return nil
		}
	}
	return nil
}

// pause returns the time between scans of duration took.
func pause(took time.Duration) time.Duration { return max(2*time.Second, 20*took) }

// look sends what is new in the whole list and returns the duration of the scan. False means that
// the client has disconnected or the journal failed.
func (s *lister) look() (time.Duration, bool) {
	began := time.Now()
	s.seen = make(map[string]bool, len(s.sent))
	for p := (store.Page{Limit: 1000}); ; {
		heads, err := s.s.o.Journal.JournalRuns(s.ctx(), s.client.scope(), "", p)
		if err != nil {
			return 0, false
		}
		for _, head := range heads {
			s.seen[head.ID] = true
			if !s.run(head) {
				return 0, false
			}
		}
		if len(heads) < p.Size() {
			break
		}
		p.After = heads[len(heads)-1].ID
	}
	for id := range s.sent {
		if !s.seen[id] {
			delete(s.sent, id)
			data, _ := json.Marshal(map[string]string{"id": id}) // text always marshals
			s.w.event("", "gone", data)
		}
	}
	return time.Since(began), true
}

// run sends the state of a run if it is new. False means that the client has disconnected.
func (s *lister) run(head store.JournalRun) bool {
	data, err := s.s.marshal(s.s.toRun(head))
	if err != nil {
		return true
	}
	sum := sha256.Sum256(data)
	if s.sent[head.ID] == sum {
		return true
	}
	s.sent[head.ID] = sum
	s.w.event("", "run", data)
	return s.w.buf.Len() < batchBytes || s.w.flush()
}
