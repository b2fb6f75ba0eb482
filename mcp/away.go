package mcp

import (
	"context"
	"errors"
	"time"
)

// awayTime is the time that a run waits for a server that was up before, and could not be reached
// the last time.
const awayTime = 2 * time.Second

var errAway = errors.New("it does not answer, and the connection is tried again in the background")

// attempt is an attempt to reach a server that is away. It may take longer than the callers wait.
type attempt struct {
	done chan struct{} // closed at its end
	live *view
	err  error
}

// reach returns the connection with an up-to-date list. If the server is known to be away, it waits
// for awayTime at most.
func (c *Client) reach(ctx context.Context) (*view, error) {
	a := c.trying(ctx)
	if a == nil {
		return c.current(ctx)
	}

	wait := time.NewTimer(awayTime)
	defer wait.Stop()
	select {
	case <-a.done:
		return a.live, a.err
	case <-wait.C:
		return nil, errAway
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// trying returns the attempt in progress to reach a server that is away, and begins one if there is
// none. Nil means that the server is not known to be away.
func (c *Client) trying(ctx context.Context) *attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	isAway := c.wasUp && c.missing != ""
	if !isAway || c.isClosed {
		return nil
	}
	if c.attempt != nil {
		return c.attempt
	}

	a := &attempt{done: make(chan struct{})}
	c.attempt = a
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.closing.Go(func() {
		defer cancel()
		a.live, a.err = c.current(ctx)
		c.mu.Lock()
		c.attempt = nil
		c.mu.Unlock()
		close(a.done)
	})
	go func() { // Close ends the attempt
		select {
		case <-c.ended:
			cancel()
		case <-a.done:
		}
	}()
	return a
}

// without returns the error with which a run cannot begin, because the server cannot be reached. It
// is nil if the run begins without the tools of the server.
func (c *Client) without(ctx context.Context, err error) error {
	c.mu.Lock()
	wasUp := c.wasUp
	gone := c.isClosed
	c.mu.Unlock()
	if ctx.Err() != nil || gone || !wasUp && !c.server.Optional {
		return err
	}

	switch {
	case !c.missed(err.Error()):
	case wasUp:
		c.notice(Ended, "", "it cannot be reached, and its tools are missing until it can: "+err.Error())
	default:
		c.notice(Ignored, "", "it cannot be reached and is left out: "+err.Error())
	}
	return nil
}

// missed records why the server cannot be reached (empty means that it can). It reports whether
// that is news: the first failure after a success, and the first success after a failure.
func (c *Client) missed(why string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := (c.missing == "") != (why == "")
	c.missing = why
	return news
}
