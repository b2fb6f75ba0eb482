package durable

// drain.go: the calls in progress, which a process that is about to end lets end.

import (
	"context"
	"sync"

	"github.com/pawl-go/pawl/llm"
)

// calls are the calls of a run that are in progress, without the calls of Compose tools, which
// consist of others.
type calls struct {
	mu         sync.Mutex
	inProgress map[llm.Key]bool
	draining   bool        // Engine.Drain is closed
	stop       func(error) // stops the run
}

// drain lets no other call start, and stops the run when none is in progress any more.
func (c *calls) drain() {
	c.mu.Lock()
	c.draining = true
	idle := len(c.inProgress) == 0
	c.mu.Unlock()
	if idle {
		c.stop(ErrDrained)
	}
}

// admit lets the call at key start, and counts it until settle. While the run is drained, only a
// call in progress may start again. The others wait until the run stops.
func (c *calls) admit(ctx context.Context, key llm.Key) error {
	c.mu.Lock()
	starts := !c.draining || c.inProgress[key]
	if starts {
		c.inProgress[key] = true
	}
	c.mu.Unlock()
	if starts {
		return nil
	}

	<-ctx.Done()
	return context.Cause(ctx)
}

// settle removes the call at key, whose outcome is stored, from the calls in progress.
func (c *calls) settle(key llm.Key) {
	c.mu.Lock()
	delete(c.inProgress, key)
	last := c.draining && len(c.inProgress) == 0
	c.mu.Unlock()
	if last {
		c.stop(ErrDrained)
	}
}
