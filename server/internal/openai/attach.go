package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Clients of OpenAI's APIs repeat a request by themselves if a connection breaks.
const (
	windowStated = 10 * time.Minute // for a request that states that it is a repetition
	windowLost   = time.Minute      // for an equal request after an answer that was not delivered
	windowFailed = 15 * time.Second // for an equal request after an error within a stream
	windowPage   = 2 * time.Second  // for an equal request of a web page; see open
	windowSize   = 10_000           // requests that are remembered
)

// Window remembers the requests to OpenAI's endpoints.
type Window struct {
	mu    sync.Mutex
	known map[[32]byte]*sent // the last request of each fingerprint
	order []*sent            // the oldest first
}

// sent is a request, with the fingerprint of its client, address and body (or Idempotency-Key).
type sent struct {
	print, body [32]byte
	at          time.Time
	n           int           // number of the run among the runs of equal requests
	opened      chan struct{} // closed when turn is set, or when the request could not begin
	turn        *Turn         // it is not changed: each connection has a copy

	readers int  // connections that receive the answer
	lost    bool // the last of them ended before it had the answer
	failed  bool // the last of them got an error within its stream: Vercel's SDK repeats this
	ended   time.Time
}

// enter returns the earlier request that this one repeats, or a new one (fresh).
func (w *Window) enter(r *sent, how retry) (s *sent, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.order) > 0 && (r.at.Sub(w.order[0].at) > windowStated || len(w.order) > windowSize) {
		w.remove(w.order[0])
		w.order = w.order[1:]
	}
	if old := w.known[r.print]; old != nil {
		if old.repeatedBy(r, how) {
			old.readers++
			return old, false
		}
		r.n = old.n + 1
	}

	if w.known == nil {
		w.known = map[[32]byte]*sent{}
	}
	r.readers = 1
	w.known[r.print] = r
	w.order = append(w.order, r)
	return r, true
}

// retry is what a request says about being a repetition of an earlier one.
type retry struct {
	key    string // Idempotency-Key; "" means none
	stated bool   // the client counts its attempts, and this is not the first
	counts bool   // the client counts its attempts, so that an equal request is a new one
	page   bool   // a browser sent it, and may repeat it without saying so
}

// explicit reports whether the client says that it repeats a request.
func (h retry) explicit() bool { return h.key != "" || h.stated }

// repeatedBy reports whether r repeats the request s, so that both get one answer. w.mu is locked.
func (s *sent) repeatedBy(r *sent, how retry) bool {
	switch {
	case how.explicit():
		return true

	// A browser repeats a request when its connection breaks before the answer begins. The repetition
	// may arrive before the server notices the end of the first.
	case how.page && s.readers > 0:
		return true
	case how.page && s.lost && s.endedWithin(windowPage, r.at):
		return true

	// While one connection still reads the answer, an equal request is a second question. So is every
	// request of a client that counts its attempts.
	case how.counts || s.readers > 0:
		return false

	// Nobody has the answer: the connection broke, or ended with an error that the client repeats.
	case s.lost && s.endedWithin(windowLost, r.at):
		return true
	}
	return s.failed && s.endedWithin(windowFailed, r.at)
}

// endedWithin reports whether the last connection of s ended less than d before now.
func (s *sent) endedWithin(d time.Duration, now time.Time) bool { return now.Sub(s.ended) < d }

// remove forgets a request. w.mu is locked.
func (w *Window) remove(r *sent) {
	if w.known[r.print] == r {
		delete(w.known, r.print)
	}
}

// leave records how a connection has ended. It reports whether nothing reads the answer any more,
// although it was not delivered.
func (w *Window) leave(r *sent, lost, failed bool, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.readers--
	r.lost, r.failed, r.ended = lost, failed, now
	return lost && r.readers == 0
}

// deserted reports whether the answer still has no reader.
func (w *Window) deserted(r *sent) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.readers == 0 && r.lost
}

// open returns the turn of a request: the earlier one if the client repeats the request.
func (c *call) open(prefix string, in runs.Asked) (*Turn, error) {
	how := c.retry(in.Stream)
	for {
		r := &sent{print: c.print(how.key), body: c.Body, at: c.S.O.Now(), opened: make(chan struct{})}
		s, fresh := c.h.window.enter(r, how)
		if !fresh {
			select {
			case <-s.opened:
			case <-c.R.Context().Done():
			}
			t, err := c.attach(s)
			if t == nil && err == nil {
				continue // it could not begin
			}
			return t, err
		}
		t, err := c.begin(prefix, in, s, how)
		if err != nil {
			c.h.window.mu.Lock()
			c.h.window.remove(s)
			c.h.window.mu.Unlock()
			close(s.opened)
			return nil, err
		}
		t.sent = s
		mine := *t
		s.turn = t
		close(s.opened)
		return &mine, nil
	}
}

// retry reads what the request says about repeating an earlier one.
func (c *call) retry(stream bool) retry {
	count, err := strconv.Atoi(c.R.Header.Get("X-Stainless-Retry-Count"))
	counted := err == nil // OpenAI's own clients send it with every request

	return retry{
		key:    c.R.Header.Get("Idempotency-Key"),
		stated: counted && count > 0,
		counts: counted && !c.langChain(), // LangChain's repetitions always have 0
		page:   !stream && c.R.Header.Get("Origin") != "",
	}
}

// print returns the fingerprint of the request: equal ones are the same request.
func (c *call) print(key string) [32]byte {
	who := c.Client.Scope()
	body := string(c.Body[:])
	if key != "" {
		body = "key " + key
	}
	return sha256.Sum256([]byte(strings.Join([]string{who.Tenant, who.User, c.R.URL.Path, body}, "\x00")))
}

// attach returns the turn of an earlier request. Nil means that it could not begin.
func (c *call) attach(s *sent) (*Turn, error) {
	err := c.R.Context().Err()
	switch {
	case err != nil || s.turn == nil:
	case s.body != c.Body:
		err = otherBody()
	default:
		t := *s.turn
		if !t.Forget { // its events may have left the memory, and are stored
			t.Live, err = c.Look(runs.Place{Who: c.Client.Scope(), Id: t.Id})
		}
		if err == nil {
			return &t, nil
		}
	}
	c.h.window.leave(s, s.lost, s.failed, c.S.O.Now())
	return nil, err
}

// begin starts the run of a new request, unless an earlier process has started it.
func (c *call) begin(prefix string, in runs.Asked, s *sent, how retry) (*Turn, error) {
	// Results at the end of the conversation continue the run that made the calls.
	if id, results, more := trailing(in.Messages); id != "" {
		t, err := c.resume(id, results, more, func(changed time.Time) bool {
			return how.explicit() || c.afterRestart(s, how) && changed.Before(c.S.Started)
		})
		if t != nil || err != nil {
			return t, err
		}
	}

	// The journal has the request if an earlier process got it.
	spans := spansOf(s.at, how)
	if how.explicit() || c.afterRestart(s, how) {
		for _, span := range spans {
			head, err := c.last(prefix, s.print, span)
			if err != nil {
				return nil, err
			}
			if head != nil && c.answers(head, s, how) {
				return c.found(head)
			}
		}
	}

	return c.startNew(prefix, in, s, spans[0])
}

// spansOf returns the spans of time whose requests a request may repeat, the present one first. A
// key has no end, so that all its requests are in one span.
func spansOf(at time.Time, how retry) []int64 {
	if how.key != "" {
		return []int64{0}
	}
	now := at.Unix() / int64(windowStated.Seconds())
	return []int64{now, now - 1}
}

// afterRestart reports whether a request without a statement may be one that the process before
// this one has lost.
func (c *call) afterRestart(s *sent, how retry) bool {
	return !how.counts && s.at.Sub(c.S.Started) < windowLost
}

// answers reports whether the run of an earlier process answers the request s.
func (c *call) answers(head *store.JournalRun, s *sent, how retry) bool {
	age := s.at.Sub(head.Created)
	switch {
	case how.key != "":
		return true
	case how.stated && age < windowStated:
		return true
	}
	return !how.counts && head.Created.Before(c.S.Started) && age < windowLost
}

// startNew starts a run under the first free ID of the request. Another process may take an ID
// between the look and the start.
func (c *call) startNew(prefix string, in runs.Asked, s *sent, span int64) (*Turn, error) {
	in.Dress.Print = s.body[:]
	for ; ; s.n++ {
		id := derived(prefix, s.print, span, s.n)
		switch _, err := c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), id); {
		case err == nil: // another process had the same request
			continue
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}

		l, err := c.Launch(id, in)
		if l != nil {
			return &Turn{Id: id, Agent: in.Model, Live: l, Forget: in.Dress.Forget}, nil
		}
		taken := errors.Is(err, durable.ErrLost) || errors.Is(err, store.ErrConflict)
		if err != nil && !taken {
			return nil, err
		}
	}
}

// derived returns the ID of a run, which any process finds again: of the n-th run of equal requests
// in a span of time.
func derived(prefix string, print [32]byte, span int64, n int) string {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(print[:], uint64(span)), uint64(n))
	sum := sha256.Sum256(b)
	return prefix + "_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// last returns the last run of equal requests in a span of time. Nil means that there is none.
func (c *call) last(prefix string, print [32]byte, span int64) (last *store.JournalRun, err error) {
	for n := 0; ; n++ {
		head, err := c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), derived(prefix, print, span, n))
		if errors.Is(err, store.ErrNotFound) {
			return last, nil
		} else if err != nil {
			return nil, err
		}
		last = &head
	}
}

// found returns the turn of a run that an earlier process started. It waits until that process has
// released the run, or its lease has ended.
func (c *call) found(head *store.JournalRun) (*Turn, error) {
	p := runs.Place{Who: head.Scope, Id: head.ID}
	d, err := c.S.DressOf(c.Ctx(), p)
	if err != nil {
		return nil, err
	}
	if d != nil && !bytes.Equal(d.Print, c.Body[:]) {
		return nil, otherBody()
	}
	for {
		l, err := c.Look(p)
		if !errors.Is(err, durable.ErrLost) {
			return &Turn{Id: head.ID, Agent: head.Agent, Live: l}, err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-c.R.Context().Done():
			return nil, c.R.Context().Err()
		}
	}
}

func otherBody() error {
	return runs.Fault("conflict", "this Idempotency-Key belongs to another request", "send another key with each request")
}

// leave ends the connection of a turn. A run without a reader is cancelled, unless it goes on.
func (c *call) leave(t *Turn) {
	goesOn := c.OnDisconnect(t.Agent) == "continue" || c.R.Header.Get("Idempotency-Key") != ""
	if c.h.window.leave(t.sent, c.R.Context().Err() != nil, t.failed, c.S.O.Now()) && !goesOn {
		c.Abandon(t.Id, func() bool { return c.h.window.deserted(t.sent) })
	}
}
