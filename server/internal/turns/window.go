package turns

// window.go: window, the requests that a client may repeat.

import (
	"sync"
	"time"
)

// The providers' clients repeat a request by themselves if a connection breaks.
const (
	windowStated = 10 * time.Minute // for a request that states that it is a repetition
	windowLost   = time.Minute      // for an equal request after an answer that was not delivered
	windowFailed = 15 * time.Second // for an equal request after an error within a stream
	windowPage   = 2 * time.Second  // for an equal request of a web page; see repeatedBy
	windowSize   = 10_000           // requests that are remembered
)

// window remembers the requests to the endpoints of an API.
type window struct {
	mu    sync.Mutex
	known map[[32]byte]*sent // the last request of each fingerprint
	order []*sent            // the oldest first
}

// sent is a request, with the fingerprint of its client, address and body (or Idempotency-Key).
type sent struct {
	print  [32]byte
	body   [32]byte // see fingerprint
	at     time.Time
	span   int64         // of time, in which the runs of equal requests are numbered
	opened chan struct{} // closed when turn is set, or when the request could not begin
	turn   *Turn         // it is not changed: each connection has a copy

	// window.mu guards these fields.
	number  int  // of the run among the runs of equal requests; until it has one, the first to try
	began   bool // this process has begun a run for it, or for an equal request before it
	readers int  // connections that receive the answer
	closing      // of the last of them
	ended   time.Time
	held    bool // it has waited for a person, and the answer was not delivered yet
}

// closing is how a connection ended without the answer. Zero means that it was delivered.
type closing struct {
	lost   bool // the connection ended before
	failed bool // the client got an error within its stream: Vercel's SDK repeats this
	away   bool // the client got the error outage, and the run goes on
}

// enter returns the earlier request that this one repeats, or a new one (fresh).
func (w *window) enter(r *sent, how retry) (s *sent, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgetOld(r.at)

	if old := w.known[r.print]; old != nil {
		if old.repeatedBy(r, how) {
			old.readers++
			return old, false
		}
		r.began = old.began
		if r.span == old.span {
			r.number = old.number + 1
		}
	}

	if w.known == nil {
		w.known = map[[32]byte]*sent{}
	}
	r.readers = 1
	w.known[r.print] = r
	w.order = append(w.order, r)
	return r, true
}

// forgetOld forgets requests that are too old to be repeated, and those beyond the limit. w.mu is
// locked.
func (w *window) forgetOld(now time.Time) {
	for len(w.order) > 0 {
		first := w.order[0]
		if now.Sub(first.at) <= windowStated && len(w.order) <= windowSize {
			return
		}
		w.remove(first)
		w.order = w.order[1:]
	}
}

// retry is what a request says about being a repetition of an earlier one.
type retry struct {
	key    string // Idempotency-Key; "" means none
	stated bool   // the client counts its attempts, and this is not the first
	counts bool   // the client counts its attempts
	page   bool   // a browser sent it, and may repeat it without saying so
}

// explicit reports whether the client says that it repeats a request.
func (h retry) explicit() bool { return h.key != "" || h.stated }

// repeatedBy reports whether r repeats the request s, so that both get one answer. w.mu is locked.
func (s *sent) repeatedBy(r *sent, how retry) bool {
	switch {
	case how.explicit():
		return true

	// The client got the error outage, and the run goes on. A second run would execute its calls a
	// second time.
	case s.away && s.endedWithin(windowStated, r.at):
		return true

	// An equal request waits for the same person, instead of asking a second time.
	case s.held:
		return true

	// A browser repeats a request when its connection breaks before the answer begins. The
	// repetition may arrive before the server notices the end of the first.
	case how.page && s.readers > 0:
		return true
	case how.page && s.lost && s.endedWithin(windowPage, r.at):
		return true

	// While one connection still reads the answer, an equal request is a second question.
	case s.readers > 0:
		return false

	// The answer reached no client. Clients that count their attempts do not repeat a stream that
	// broke off, but the programs around them do, as a first attempt.
	case s.lost && s.endedWithin(windowLost, r.at):
		return true

	// The client got its answer, or an error that a client that counts repeats by a higher count.
	case how.counts:
		return false
	}
	return s.failed && s.endedWithin(windowFailed, r.at)
}

// endedWithin reports whether the last connection of s ended less than d before now.
func (s *sent) endedWithin(d time.Duration, now time.Time) bool { return now.Sub(s.ended) < d }

// remove forgets a request. w.mu is locked.
func (w *window) remove(r *sent) {
	if w.known[r.print] == r {
		delete(w.known, r.print)
	}
}

// release records how a connection has ended. It reports whether nothing reads the answer any more,
// although it was not delivered.
func (w *window) release(r *sent, how closing, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.readers--
	r.closing = how
	r.ended = now
	r.held = r.held && how.lost
	return how.lost && r.readers == 0
}

// hold records that the turn of r waits for a person. r may be nil: the turn is of no request.
func (w *window) hold(r *sent) {
	if r == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.held = true
}

// numberOf returns the number of r, and whether this process has begun a run for an equal request.
func (w *window) numberOf(r *sent) (number int, began bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.number, r.began
}

// setNumber records the number of the run of r. began means that this process has begun it.
func (w *window) setNumber(r *sent, number int, began bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.number = number
	r.began = r.began || began
}

// drop forgets a request that could not begin, and releases its repetitions.
func (w *window) drop(r *sent) {
	w.mu.Lock()
	w.remove(r)
	w.mu.Unlock()
	close(r.opened)
}

// deserted reports whether the answer still has no reader.
func (w *window) deserted(r *sent) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.readers == 0 && r.lost
}
