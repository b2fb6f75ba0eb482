package policy

// rate.go: Rate, which bounds how often calls start.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Rate bounds how often calls start: Burst at once, and one more after each Every (a token bucket).
// A call that is too early waits for its turn, at most for Wait; a longer wait blocks the call, and
// the model receives the time of the next try. A waiting call takes neither a slot nor budget.
type Rate struct {
	// Tools are the tools whose calls are bounded. Nil means every tool.
	Tools []string
	// Every is the time after which one more call may start. It is required.
	Every time.Duration
	// Burst is the number of calls that may start at once. 0 means 1.
	Burst int
	// Wait is the longest wait of a call for its turn. 0 means none.
	Wait time.Duration

	// Key names the bucket of a call, for example its user or host. Nil means one bucket for each
	// tool.
	Key func(ctx context.Context, call llm.ToolCall) string
}

// Middleware returns the middleware that bounds calls to r, with full buckets.
func (r Rate) Middleware() pawl.Middleware {
	b := &buckets{
		every: r.Every,
		ahead: time.Duration(max(r.Burst, 1)-1) * r.Every,
		next:  map[string]time.Time{},
	}
	return pawl.Middleware{
		Rank: rankRate,
		Check: func(tools []*pawl.Tool) error {
			if r.Every <= 0 {
				return fmt.Errorf("rate limit: Every is %v, and must be longer than nothing", r.Every)
			}
			if err := notNegative("rate limit", number{"Burst", int64(r.Burst)}, number{"Wait", int64(r.Wait)}); err != nil {
				return err
			}
			return checkEntries("rate limit", r.Tools, tools)
		},
		Approved: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				t := calledTool(pawl.InvocationFrom(ctx), r.Tools)
				if t == nil {
					return next(ctx, call)
				}
				key := t.Name
				if r.Key != nil {
					key = r.Key(ctx, call)
				}

				wait, ok := b.reserve(key, r.Wait)
				if !ok {
					return llm.ToolResult{}, pawl.BlockError(fmt.Sprintf("%s was called too often (%s). "+
						"Try again in %v, or go on without it.", t.Name, r, readable(wait)))
				}
				// The call did not happen, so that its place goes to another.
				if !sleep(ctx, wait) {
					b.release(key)
					return llm.ToolResult{}, context.Cause(ctx)
				}
				return next(ctx, call)
			}
		},
	}
}

// String returns the rate in words: "2 at once, one more each 1s".
func (r Rate) String() string {
	return fmt.Sprintf("%d at once, one more each %v", max(r.Burst, 1), r.Every)
}

// buckets have for each key the time of its next call, if calls came evenly. A call may come
// earlier by the content of a full bucket.
type buckets struct {
	every time.Duration
	ahead time.Duration // the content of a full bucket

	mu   sync.Mutex
	next map[string]time.Time // a time in the past means a full bucket, which need not be stored
	full int                  // keys after which full buckets are looked for
}

// reserve reserves a turn that comes within most, and returns the wait for it. If ok is false, no
// turn was reserved.
func (b *buckets) reserve(key string, most time.Duration) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	now := time.Now()
	next := b.next[key]
	if next.Before(now) {
		next = now
	}
	wait = max(0, next.Sub(now)-b.ahead)
	if wait > most {
		return wait, false
	}
	b.sweep(now)
	b.next[key] = next.Add(b.every)
	return wait, true
}

// release releases a turn that was not used.
func (b *buckets) release(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next[key] = b.next[key].Add(-b.every)
}

// sweep removes full buckets if there are twice as many keys as after the last sweep, so that its
// cost per call stays small.
func (b *buckets) sweep(now time.Time) {
	if len(b.next) < max(64, b.full) {
		return
	}
	for k, next := range b.next {
		if next.Before(now) {
			delete(b.next, k)
		}
	}
	b.full = 2 * len(b.next)
}

// sleep waits, and reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// readable rounds a time up to what a reader wants to know.
func readable(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d > time.Second {
		unit = time.Second
	}
	return (d + unit - 1).Truncate(unit)
}
