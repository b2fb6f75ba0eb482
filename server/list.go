package server

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl/store"
)

// list is a list of runs that somebody watches.
type list struct {
	who  store.Scope
	more chan struct{} // there are names in ids

	ids map[string]bool // of runs that changed here; hub.mu guards it
}

// watchList says to whom changes of runs are told.
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

// tell tells those who watch lists that a run is not as it was.
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

// changed are the names of the runs that changed since it was asked last.
func (h *hub) changed(l *list) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := slices.Sorted(maps.Keys(l.ids))
	clear(l.ids)
	return ids
}

// lister sends a list of runs, and what changes of it.
type lister struct {
	*call
	w    *sender
	sent map[string][sha256.Size]byte // how each run was told, by its id
	seen map[string]bool              // in the look that is under way
}

// watchRuns streams the list of runs. What changes here is told at once; for what other processes do, the journal is looked at every two seconds, or as seldom as it takes
// for the looking to be a twentieth of the time.
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
			if took, ok = s.look(); !ok {
				return nil
			}
			look.Reset(pause(took))
		case <-beat.C:
			s.w.beat()
		case <-c.r.Context().Done():
			return nil
		case <-c.s.hub.closing:
			return nil
		}
	}
	return nil
}

// pause is the time between looks that take so long.
func pause(took time.Duration) time.Duration { return max(2*time.Second, 20*took) }

// look tells what is new in the whole list, and how long that took; false: the client is gone, or the journal is.
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
			data, _ := json.Marshal(map[string]string{"id": id}) // text
			s.w.event("", "gone", data)
		}
	}
	return time.Since(began), true
}

// run tells how a run stands, where that is new; false: the client is gone.
func (s *lister) run(head store.JournalRun) bool {
	data, err := json.Marshal(s.s.toRun(head))
	if err != nil {
		return true
	}
	if hide := s.s.o.Secrets; hide != nil {
		data = hide.JSON(data)
	}
	sum := sha256.Sum256(data)
	if s.sent[head.ID] == sum {
		return true
	}
	s.sent[head.ID] = sum
	s.w.event("", "run", data)
	return s.w.buf.Len() < batchBytes || s.w.flush()
}
