package server

// watch_list.go: streams the list of runs and its changes.

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
	out   *web.Sender
	watch *runs.Watch
	sent  map[string][sha256.Size]byte // digest of the last sent state of each run, by ID
	seen  map[string]bool              // runs seen in the current scan
}

// watchRuns streams the list of runs. Changes in this process are sent at once. Changes by other
// processes are found by scanning the journal every two seconds, or less often so that scanning
// takes at most a twentieth of the time.
func (c *call) watchRuns(state string, p store.Page) error {
	if state != "" || p != (store.Page{}) {
		return runs.BadRequest("the list that is streamed is the whole one", "leave state, after and limit out")
	}
	release, err := c.AcquireStream()
	if err != nil {
		return err
	}
	defer release()
	watch := c.Runs.Watch(c.Client.Scope)
	defer watch.Close()

	s := &lister{call: c, out: c.StartStream(), watch: watch, sent: map[string][sha256.Size]byte{}}
	took, ok := s.scan()
	if ok {
		s.out.Event("", "listed", []byte("{}"))
		s.follow(took)
	}
	return nil
}

// follow sends changes until the client has disconnected, the journal fails or the server stops.
func (s *lister) follow(took time.Duration) {
	scan := time.NewTimer(pause(took))
	defer scan.Stop()
	beat := time.NewTicker(s.Beat)
	defer beat.Stop()

	for s.out.Flush() {
		select {
		case <-s.watch.More:
			if !s.sendChanged() {
				return
			}

		case <-scan.C:
			took, ok := s.scan()
			if !ok {
				return
			}
			scan.Reset(pause(took))

		case <-beat.C:
			if !s.out.Beat() {
				return
			}
		case <-s.Request.Context().Done():
			return
		case <-s.Runs.Closing():
			return
		}
	}
}

// pause returns the time between scans of duration took.
func pause(took time.Duration) time.Duration { return max(2*time.Second, 20*took) }

// sendChanged sends the runs that changed in this process. False means that the client has
// disconnected.
func (s *lister) sendChanged() bool {
	for _, id := range s.watch.Changed() {
		head, err := s.Runs.Head(s.Context(), s.Caller(), id)
		if err == nil && !s.send(head) {
			return false
		}
	}
	return true
}

// scan sends what is new in the whole list and returns the duration of the scan. False means that
// the client has disconnected or the journal failed.
func (s *lister) scan() (time.Duration, bool) {
	began := time.Now()
	s.seen = make(map[string]bool, len(s.sent))
	for p := (store.Page{Limit: 1000}); ; {
		heads, err := s.Runs.Heads(s.Context(), s.Caller(), "", p)
		if err != nil {
			return 0, false
		}
		for _, head := range heads {
			s.seen[head.ID] = true
			if !s.send(head) {
				return 0, false
			}
		}
		if len(heads) < p.Size() {
			break
		}
		p.After = heads[len(heads)-1].ID
	}

	// A run that was sent and is not in the list any more was deleted.
	for id := range s.sent {
		if !s.seen[id] {
			delete(s.sent, id)
			data, _ := json.Marshal(map[string]string{"id": id}) // text always marshals
			s.out.Event("", "gone", data)
		}
	}
	return time.Since(began), true
}

// send sends the state of a run if it is new. False means that the client has disconnected.
func (s *lister) send(head store.JournalRun) bool {
	data, err := s.Marshal(s.Runs.Describe(head))
	if err != nil {
		return true
	}
	sum := sha256.Sum256(data)
	if s.sent[head.ID] == sum {
		return true
	}
	s.sent[head.ID] = sum
	s.out.Event("", "run", data)
	return s.out.FlushFull()
}
