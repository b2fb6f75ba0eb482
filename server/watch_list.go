package server

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// lister sends a list of runs and its changes.
type lister struct {
	*call
	w    *web.Sender
	sent map[string][sha256.Size]byte // digest of the last sent state of each run, by ID
	seen map[string]bool              // runs seen in the current scan
}

// watchRuns streams the list of runs. Changes in this process are sent at once. Changes by other
// processes are found by scanning the journal every two seconds, or less often so that scanning
// takes at most a twentieth of the time.
func (c *call) watchRuns(state string, p store.Page) error {
	if state != "" || p != (store.Page{}) {
		return runs.BadRequest("the list that is streamed is the whole one", "leave state, after and limit out")
	}
	leave, err := c.EnterStream()
	if err != nil {
		return err
	}
	defer leave()
	l := c.S.Hub.WatchList(c.Client.Scope())
	defer c.S.Hub.LeaveList(l)
	s := &lister{call: c, w: c.Events(), sent: map[string][sha256.Size]byte{}}
	took, ok := s.look()
	if !ok {
		return nil
	}
	s.w.Event("", "listed", []byte("{}"))
	look, beat := time.NewTimer(pause(took)), time.NewTicker(c.S.O.Beat)
	defer look.Stop()
	defer beat.Stop()
	for s.w.Flush() {
		select {
		case <-l.More:
			for _, id := range c.S.Hub.Changed(l) {
				if head, err := c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), id); err == nil && !s.run(head) {
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
			if !s.w.Beat() {
				return nil
			}
		case <-c.R.Context().Done():
			return nil
		case <-c.S.Hub.Closing:
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
		heads, err := s.S.O.Journal.JournalRuns(s.Ctx(), s.Client.Scope(), "", p)
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
			s.w.Event("", "gone", data)
		}
	}
	return time.Since(began), true
}

// run sends the state of a run if it is new. False means that the client has disconnected.
func (s *lister) run(head store.JournalRun) bool {
	data, err := s.S.Marshal(s.S.ToRun(head))
	if err != nil {
		return true
	}
	sum := sha256.Sum256(data)
	if s.sent[head.ID] == sum {
		return true
	}
	s.sent[head.ID] = sum
	s.w.Event("", "run", data)
	return s.w.Buf.Len() < runs.BatchBytes || s.w.Flush()
}
