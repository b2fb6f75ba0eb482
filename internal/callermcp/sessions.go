package callermcp

// sessions.go: Sessions, which begins, shares, closes and forgets the sessions of callers.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/mcp"
)

// Limits bound the sessions with one server.
type Limits struct {
	// Sessions is the number of sessions. If all are in use, a further caller gets an error. 0
	// means 100.
	Sessions int
	// Idle is the time after which a session without a request is closed. 0 means 10 minutes.
	Idle time.Duration
}

// Sessions is an MCP server as a Toolset that has the tools of the caller of the run. It is safe
// for concurrent use. Close it after use.
type Sessions struct {
	server mcp.Server
	opts   mcp.Options
	limits Limits
	locked func() ([]*pawl.Tool, bool)

	mu       sync.Mutex
	held     map[identity]*held
	closed   bool
	closing  sync.WaitGroup
	reported map[mcp.Notice]bool // notices that another session had before
}

var _ pawl.Toolset = (*Sessions)(nil)

// held is a session with the server.
type held struct {
	claim
	client *mcp.Client
	uses   int         // in progress
	last   time.Time   // the end of the last use
	timer  *time.Timer // closes it when it is idle

	mu   sync.Mutex
	made map[*pawl.Tool]*pawl.Tool // so that a tool has the same compiled schema in all runs
}

// New returns the sessions with s, a server whose headers stand for callers. It sends nothing. The
// notices of o are emitted once for all sessions.
func New(s mcp.Server, o mcp.Options, l Limits) (*Sessions, error) {
	if err := check(s); err != nil {
		return nil, err
	}
	l.Sessions = cmp.Or(l.Sessions, 100)
	l.Idle = cmp.Or(l.Idle, 10*time.Minute)
	c := &Sessions{server: s, limits: l, held: map[identity]*held{}, reported: map[mcp.Notice]bool{}}

	// It checks s, reads the lock, and never sends anything.
	unsent := s
	unsent.Headers = nil
	o.IDToken = func(context.Context) (string, error) { return "", noCaller("token") }
	probe, err := mcp.New(unsent, &o)
	if err != nil {
		return nil, err
	}
	c.locked = probe.Locked

	notice := o.Notice
	o.Notice = func(n mcp.Notice) {
		if notice != nil && c.isNew(n) {
			notice(n)
		}
	}
	c.opts = o
	return c, nil
}

// maxReported is the number of notices that are remembered.
const maxReported = 1000

// isNew reports whether no session has sent n before. A notice that a session ended is always new.
func (c *Sessions) isNew(n mcp.Notice) bool {
	if n.Verdict == mcp.Disconnected || n.Verdict == mcp.Refused {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reported[n] || len(c.reported) >= maxReported {
		return false
	}
	c.reported[n] = true
	return true
}

// Locked is mcp.Client.Locked.
func (c *Sessions) Locked() (tools []*pawl.Tool, ok bool) { return c.locked() }

// NeedsCaller reports that there are no tools without a caller: a run without one fails.
// A server that resumes runs asks for it.
func (c *Sessions) NeedsCaller() bool { return true }

// Tools returns the tools that the server offers to the caller in ctx. Without a caller it returns
// an error, and outside of runs the tools in the lock.
func (c *Sessions) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	if caller.IsOutsideRuns(ctx) {
		tools, _ := c.locked()
		return tools, nil
	}

	h, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer c.release(h)

	tools, err := h.client.Tools(ctx)
	if err != nil {
		return nil, err
	}
	return c.own(h, tools), nil
}

// Close ends all sessions. It may not be used afterwards.
func (c *Sessions) Close() error {
	c.mu.Lock()
	c.closed = true
	for _, h := range maps.Clone(c.held) {
		c.drop(h)
	}
	c.mu.Unlock()
	c.closing.Wait()
	return nil
}

// acquire returns the session of the caller in ctx, and begins it if there is none. Call release
// after its use.
func (c *Sessions) acquire(ctx context.Context) (*held, error) {
	claim, err := claimOf(ctx, c.server)
	if err != nil {
		return nil, fmt.Errorf("mcp server %s: %w", c.server.Name, err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[claim.who]
	if h == nil {
		h, err = c.begin(claim)
		if err != nil {
			return nil, err
		}
	}
	h.uses++
	h.timer.Stop()
	return h, nil
}

// begin adds a session. The caller holds mu.
func (c *Sessions) begin(claim claim) (*held, error) {
	if c.closed {
		return nil, fmt.Errorf("mcp server %s: it is closed", c.server.Name)
	}
	if len(c.held) >= c.limits.Sessions && !c.dropIdle() {
		return nil, fmt.Errorf("mcp server %s: %d callers have a session, and none is idle", c.server.Name, len(c.held))
	}

	s := c.server
	s.Headers = claim.headers
	o := c.opts
	o.IDToken = func(context.Context) (string, error) { return claim.token, nil }
	client, err := mcp.New(s, &o)
	if err != nil {
		return nil, err
	}
	h := &held{claim: claim, client: client, made: map[*pawl.Tool]*pawl.Tool{}}
	h.timer = time.AfterFunc(c.limits.Idle, func() { c.expire(h) })
	c.held[claim.who] = h
	return h, nil
}

// release ends a use of h.
func (c *Sessions) release(h *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.uses--
	h.last = time.Now()
	if h.uses == 0 && c.held[h.who] == h {
		h.timer.Reset(c.limits.Idle)
	}
}

// expire closes h if it is still idle.
func (c *Sessions) expire(h *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[h.who] == h && h.uses == 0 && time.Since(h.last) >= c.limits.Idle {
		c.drop(h)
	}
}

// dropIdle closes the session that has been idle for the longest time, and reports whether there is
// one. The caller holds mu.
func (c *Sessions) dropIdle() bool {
	var oldest *held
	for _, h := range c.held {
		if h.uses == 0 && (oldest == nil || h.last.Before(oldest.last)) {
			oldest = h
		}
	}
	if oldest == nil {
		return false
	}
	c.drop(oldest)
	return true
}

// drop closes h, in the background. The caller holds mu.
func (c *Sessions) drop(h *held) {
	delete(c.held, h.who)
	h.timer.Stop()
	c.closing.Go(func() { _ = h.client.Close() })
}
