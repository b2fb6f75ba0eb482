package server

// attach.go: a request that a client repeats is attached to the run of the first one.

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/durable"
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

// window remembers the requests to OpenAI's endpoints.
type window struct {
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
	turn        *turn         // it is not changed: each connection has a copy

	readers int  // connections that receive the answer
	lost    bool // the last of them ended before it had the answer
	failed  bool // the last of them got an error within its stream: Vercel's SDK repeats this
	ended   time.Time
}

// enter returns the earlier request that this one repeats, or a new one (fresh).
func (w *window) enter(r *sent, repeats, states, page bool) (s *sent, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.order) > 0 && (r.at.Sub(w.order[0].at) > windowStated || len(w.order) > windowSize) {
		w.remove(w.order[0])
		w.order = w.order[1:]
	}
	old := w.known[r.print]
	if old != nil {
		within := func(d time.Duration) bool { return r.at.Sub(old.ended) < d }
		if repeats || page && (old.readers > 0 || old.lost && within(windowPage)) || !states && old.readers == 0 &&
			(old.lost && within(windowLost) || old.failed && within(windowFailed)) {
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

// remove forgets a request. w.mu is locked.
func (w *window) remove(r *sent) {
	if w.known[r.print] == r {
		delete(w.known, r.print)
	}
}

// leave records how a connection has ended. It reports whether nothing reads the answer any more,
// although it was not delivered.
func (w *window) leave(r *sent, lost, failed bool, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.readers--
	r.lost, r.failed, r.ended = lost, failed, now
	return lost && r.readers == 0
}

// deserted reports whether the answer still has no reader.
func (w *window) deserted(r *sent) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.readers == 0 && r.lost
}

// open returns the turn of a request: the earlier one if the client repeats the request.
func (c *call) open(prefix string, in asked) (*turn, error) {
	key := c.r.Header.Get("Idempotency-Key")
	count, err := strconv.Atoi(c.r.Header.Get("X-Stainless-Retry-Count"))
	states := err == nil && !c.langChain()
	repeats := err == nil && count > 0 || key != ""
	// A browser repeats a request by itself when its connection breaks before the answer begins. It
	// is not known to its client, and may arrive before the server notices the end of the first.
	page := !in.stream && c.r.Header.Get("Origin") != ""
	for {
		r := &sent{print: c.print(key), body: c.body, at: c.s.o.Now(), opened: make(chan struct{})}
		s, fresh := c.s.window.enter(r, repeats, states, page)
		if !fresh {
			select {
			case <-s.opened:
			case <-c.r.Context().Done():
			}
			t, err := c.attach(s)
			if t == nil && err == nil {
				continue // it could not begin
			}
			return t, err
		}
		t, err := c.begun(prefix, in, s, key, repeats, states)
		if err != nil {
			c.s.window.mu.Lock()
			c.s.window.remove(s)
			c.s.window.mu.Unlock()
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

// print returns the fingerprint of the request: equal ones are the same request.
func (c *call) print(key string) [32]byte {
	who, body := c.client.scope(), string(c.body[:])
	if key != "" {
		body = "key " + key
	}
	return sha256.Sum256([]byte(strings.Join([]string{who.Tenant, who.User, c.r.URL.Path, body}, "\x00")))
}

// attach returns the turn of an earlier request. Nil means that it could not begin.
func (c *call) attach(s *sent) (*turn, error) {
	err := c.r.Context().Err()
	switch {
	case err != nil || s.turn == nil:
	case s.body != c.body:
		err = otherBody()
	default:
		t := *s.turn
		if !t.forget { // its events may have left the memory, and are stored
			t.live, err = c.look(place{c.client.scope(), t.id})
		}
		if err == nil {
			return &t, nil
		}
	}
	c.s.window.leave(s, s.lost, s.failed, c.s.o.Now())
	return nil, err
}

// begun starts the run of a new request, unless an earlier process started it.
func (c *call) begun(prefix string, in asked, s *sent, key string, repeats, states bool) (*turn, error) {
	if id, results, more := trailing(in.messages); id != "" {
		t, err := c.resume(id, results, more, func(changed time.Time) bool {
			return repeats || !states && changed.Before(c.s.started) && s.at.Sub(c.s.started) < windowLost
		})
		if t != nil || err != nil {
			return t, err
		}
	}
	span := s.at.Unix() / int64(windowStated.Seconds())
	spans := []int64{span, span - 1}
	if key != "" { // it has no end
		span = 0
		spans = []int64{0}
	}
	if repeats || !states && s.at.Sub(c.s.started) < windowLost {
		for _, span := range spans {
			head, err := c.last(prefix, s.print, span)
			if err != nil {
				return nil, err
			}
			if head != nil && (key != "" || repeats && s.at.Sub(head.Created) < windowStated ||
				!states && head.Created.Before(c.s.started) && s.at.Sub(head.Created) < windowLost) {
				return c.found(head)
			}
		}
	}
	in.dress.Print = s.body[:]
	for ; ; s.n++ {
		id := derived(prefix, s.print, span, s.n)
		switch _, err := c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), id); {
		case err == nil: // another process had the same request
			continue
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
		t, err := c.launch(id, in)
		if t != nil || err != nil && !errors.Is(err, durable.ErrLost) && !errors.Is(err, store.ErrConflict) {
			return t, err
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
		head, err := c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), derived(prefix, print, span, n))
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
func (c *call) found(head *store.JournalRun) (*turn, error) {
	p := place{head.Scope, head.ID}
	d, err := c.s.dressOf(c.ctx(), p)
	if err != nil {
		return nil, err
	}
	if d != nil && !bytes.Equal(d.Print, c.body[:]) {
		return nil, otherBody()
	}
	for {
		l, err := c.look(p)
		if !errors.Is(err, durable.ErrLost) {
			return &turn{id: head.ID, agent: head.Agent, live: l}, err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-c.r.Context().Done():
			return nil, c.r.Context().Err()
		}
	}
}

func otherBody() error {
	return fault("conflict", "this Idempotency-Key belongs to another request", "send another key with each request")
}

// leave ends the connection of a turn. A run without a reader is cancelled, unless it goes on.
func (c *call) leave(t *turn) {
	goesOn := c.onDisconnect(t.agent) == "continue" || c.r.Header.Get("Idempotency-Key") != ""
	if c.s.window.leave(t.sent, c.r.Context().Err() != nil, t.failed, c.s.o.Now()) && !goesOn {
		c.abandon(t.id, func() bool { return c.s.window.deserted(t.sent) })
	}
}

// onDisconnect returns what happens to a run of an agent whose client has disconnected: cancel or
// continue. "" means that the endpoint decides.
func (c *call) onDisconnect(agent string) string {
	return cmp.Or(c.r.Header.Get("X-Pawl-Disconnect"), c.s.o.OnDisconnect[baseName(agent)])
}

// abandon cancels the run of a client that has disconnected, if it has no reader after a while. A
// run that has stopped by then stays: a repeated request gets its failure or its question.
func (c *call) abandon(id string, deserted func() bool) {
	gone := &call{s: c.s, client: c.client, r: c.r.WithContext(context.WithoutCancel(c.ctx()))}
	time.AfterFunc(c.s.o.Reconnect, func() {
		head, err := c.s.o.Journal.JournalRun(gone.ctx(), c.client.scope(), id)
		if err == nil && head.State == store.JournalOpen && deserted() {
			_, err = gone.giveUp(id)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			c.s.o.Log.Warn("cancelling a run whose client disconnected", "run", id, "error", err)
		}
	})
}
