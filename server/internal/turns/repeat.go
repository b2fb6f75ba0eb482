package turns

// repeat.go: a request that a client repeats is attached to the run of the first.

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// open returns the turn of a request: the earlier one if the client repeats the request.
func (c *Call) open(in Asked) (*Turn, error) {
	how := c.retry(in.Stream)
	for {
		now := c.Now()
		s, fresh := c.Handler.window.enter(&sent{
			print:  c.print(how.key),
			body:   c.Body,
			at:     now,
			span:   spanOf(now, how),
			opened: make(chan struct{}),
		}, how)

		// The earlier request may still be about to begin.
		if !fresh {
			select {
			case <-s.opened:
			case <-c.Request.Context().Done():
			}
			t, err := c.attach(s)
			if t == nil && err == nil {
				continue // it could not begin
			}
			return t, err
		}

		t, err := c.begin(in, s, how)
		if err != nil {
			c.Handler.window.drop(s)
			return nil, err
		}

		// Each connection has a copy, since it records how its own stream ended.
		t.sent = s
		mine := *t
		s.turn = t
		close(s.opened)
		return &mine, nil
	}
}

// retry reads what the request says about repeating an earlier one.
func (c *Call) retry(stream bool) retry {
	count, err := strconv.Atoi(c.Request.Header.Get("X-Stainless-Retry-Count"))
	counted := err == nil // the providers' own clients send it with every request
	fromPage := c.Request.Header.Get("Origin") != ""

	how := retry{key: c.Request.Header.Get("Idempotency-Key")}
	how.stated = counted && count > 0
	always0 := c.isLangChain() || c.isClaudeCode()
	how.counts = counted && !always0
	how.page = fromPage && !stream
	return how
}

// print returns the fingerprint of the request: equal ones are the same request.
func (c *Call) print(key string) [32]byte {
	who := c.Client.Scope
	body := string(c.Body[:])
	if key != "" {
		body = "key " + key
	}
	return sha256.Sum256([]byte(strings.Join([]string{who.Tenant, who.User, c.Request.URL.Path, body}, "\x00")))
}

// attach returns the turn of an earlier request. Nil means that it could not begin.
func (c *Call) attach(s *sent) (*Turn, error) {
	err := c.Request.Context().Err()
	switch {
	case err != nil || s.turn == nil: // it has no turn to attach to
	case s.body != c.Body:
		err = otherBody()
	default:
		mine := *s.turn
		if !mine.forget { // its events may have left the memory, and are stored
			mine.Live, err = c.Runs.Attach(c.Context(), c.Caller(), mine.ID)
		}
		if err == nil {
			return &mine, nil
		}
	}
	c.Handler.window.release(s, s.closing, c.Now())
	return nil, err
}

// begin starts the run of a new request, unless an earlier process has started it.
func (c *Call) begin(in Asked, s *sent, how retry) (*Turn, error) {
	// Results at the end of the conversation continue the run that made the calls.
	if id, results, more := resultsAtEnd(in.Messages); id != "" {
		repeats := func(changed time.Time) bool {
			return how.explicit() || c.afterRestart(s, how) && changed.Before(c.Runs.Started())
		}
		t, err := c.resume(id, results, more, repeats)
		if t != nil || err != nil {
			return t, err
		}
	}

	// The journal has the request if an earlier process got it. It is not asked again once this
	// process has begun a run for an equal request: every run after that one is new, too.
	number, began := c.Handler.window.numberOf(s)
	if how.explicit() || !began && c.afterRestart(s, how) {
		head, err := c.earlier(in.Prefix, s, how, number)
		if err != nil {
			return nil, err
		}
		if head != nil {
			return c.found(head)
		}
	}

	return c.startNew(in, s, number)
}

// earlier returns the run with which an earlier process answers the request s, in its span of time
// or the one before. Nil means that there is none. from is a number that may be free.
func (c *Call) earlier(prefix string, s *sent, how retry, from int) (*store.JournalRun, error) {
	free, last, err := c.firstFree(prefix, s.print, s.span, max(from-1, 0))
	if err != nil {
		return nil, err
	}
	if last != nil && c.answers(last, s, how) {
		c.Handler.window.setNumber(s, free-1, false)
		return last, nil
	}
	if how.key != "" { // it has one span
		return nil, nil
	}

	_, last, err = c.firstFree(prefix, s.print, s.span-1, 0)
	if err != nil || last == nil || !c.answers(last, s, how) {
		return nil, err
	}
	return last, nil
}

// spanOf returns the span of time of a request. A key has no end, so that all its requests are in
// one span.
func spanOf(at time.Time, how retry) int64 {
	if how.key != "" {
		return 0
	}
	return at.Unix() / int64(windowStated.Seconds())
}

// afterRestart reports whether the process before this one may have lost the request, which states
// nothing about repetitions.
func (c *Call) afterRestart(s *sent, how retry) bool {
	return !how.counts && s.at.Sub(c.Runs.Started()) < windowLost
}

// answers reports whether the run of an earlier process answers the request s.
func (c *Call) answers(head *store.JournalRun, s *sent, how retry) bool {
	age := s.at.Sub(head.Created)
	switch {
	case how.key != "":
		return true
	case how.stated && age < windowStated:
		return true
	}
	return !how.counts && head.Created.Before(c.Runs.Started()) && age < windowLost
}

// startNew starts a run under the first free ID of the request, whose number is at least from.
// Another process may take an ID between the look and the start.
func (c *Call) startNew(in Asked, s *sent, from int) (*Turn, error) {
	in.Extras.Print = s.body[:]
	if in.Newest != nil {
		before, err := in.Newest()
		if err != nil {
			return nil, err
		}
		in.Previous = before
	}
	for {
		number, _, err := c.firstFree(in.Prefix, s.print, s.span, from)
		if err != nil {
			return nil, err
		}

		in.ID = derived(in.Prefix, s.print, s.span, number)
		l, err := c.Runs.Create(c.Context(), c.Caller(), in.Request)
		if l != nil {
			c.Handler.window.setNumber(s, number, true)
			return &Turn{
				ID:     in.ID,
				Agent:  in.Agent,
				Live:   l,
				Extras: &in.Extras,
				forget: in.Extras.Forget,
			}, nil
		}
		taken := errors.Is(err, durable.ErrLost) || errors.Is(err, store.ErrConflict)
		if err != nil && !taken {
			return nil, err
		}
		from = number + 1
	}
}

// derived returns the ID of a run, which any process finds again: of the n-th run of equal requests
// in a span of time.
func derived(prefix string, print [32]byte, span int64, n int) string {
	b := binary.BigEndian.AppendUint64(print[:], uint64(span))
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	sum := sha256.Sum256(b)
	return prefix + "_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// firstFree returns the first number, at least from, that no run of equal requests has in a span of
// time, and the run before it; nil means that the number from is free. The runs have numbers
// without a gap, so that the number is found by doubling and bisection, and not one by one.
func (c *Call) firstFree(prefix string, print [32]byte, span int64, from int) (free int, last *store.JournalRun,
	err error) {
	isTaken := func(n int) bool {
		head, headErr := c.Runs.Head(c.Context(), c.Caller(), derived(prefix, print, span, n))
		switch {
		case headErr == nil:
			last = &head
		case !errors.Is(headErr, store.ErrNotFound):
			err = headErr
		}
		return headErr == nil
	}

	taken := from - 1
	free = from
	for isTaken(free) {
		taken = free
		free = from + 2*(free-from) + 1
	}
	for err == nil && free-taken > 1 {
		middle := taken + (free-taken)/2
		if isTaken(middle) {
			taken = middle
		} else {
			free = middle
		}
	}
	return free, last, err
}

// found returns the turn of a run that another process started, and may still execute.
func (c *Call) found(head *store.JournalRun) (*Turn, error) {
	x, err := c.Runs.Extras(c.Context(), c.Caller(), head.ID)
	if err != nil {
		return nil, err
	}
	if x != nil && !bytes.Equal(x.Print, c.Body[:]) {
		return nil, otherBody()
	}
	l, err := c.Runs.Attach(c.Context(), c.Caller(), head.ID)
	return &Turn{ID: head.ID, Agent: head.Agent, Live: l, Extras: x}, err
}

// otherBody returns the error for a key that came with another body.
func otherBody() error {
	return runs.Fault("conflict", "this Idempotency-Key belongs to another request",
		"send another key with each request")
}
