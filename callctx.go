package pawl

import (
	"context"
	"sync"
	"time"
)

// callCtx is the context of one attempt at a call: it holds the Invocation, and ends with the tool's time. Its timer is made when somebody
// waits for its end, since most tools are done before they would: a timer for each call is a tenth of what short calls cost.
type callCtx struct {
	context.Context // outside the attempt
	inv             *Invocation
	deadline        time.Time // zero: the call takes its time

	mu     sync.Mutex
	timed  context.Context // Context with the deadline; nil until somebody asked
	cancel context.CancelFunc
	over   bool // the attempt has ended
}

var _ context.Context = (*callCtx)(nil)

// Deadline returns the earlier of the tool's and the outer deadline.
func (c *callCtx) Deadline() (time.Time, bool) {
	outer, ok := c.Context.Deadline()
	if c.deadline.IsZero() || ok && outer.Before(c.deadline) {
		return outer, ok
	}
	return c.deadline, true
}

// Done makes the timer.
func (c *callCtx) Done() <-chan struct{} { return c.full().Done() }

// Err makes the timer only when the time is over.
func (c *callCtx) Err() error {
	c.mu.Lock()
	timed, over := c.timed, c.over
	c.mu.Unlock()
	if timed == nil && !over && (c.deadline.IsZero() || time.Now().Before(c.deadline)) {
		return c.Context.Err()
	}
	return c.full().Err()
}

// Value returns the Invocation for its key. For others it asks the context that was made, so that the package context finds its own.
func (c *callCtx) Value(key any) any {
	if key == (invocationKey{}) {
		return c.inv
	}
	c.mu.Lock()
	timed := c.timed
	c.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return c.Context.Value(key)
}

// full returns the context with the deadline.
func (c *callCtx) full() context.Context {
	if c.deadline.IsZero() {
		return c.Context
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadlineCause(c.Context, c.deadline, errTimeout)
		if c.over {
			c.cancel()
		}
	}
	return c.timed
}

// end ends the context with the attempt, as a cancel function would.
func (c *callCtx) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.cancel != nil {
		c.cancel()
	}
}
