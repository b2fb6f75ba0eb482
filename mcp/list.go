package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
)

// list updates the tools of s, and returns s or the session that took its place. The caller holds
// the turn.
func (c *Client) list(ctx context.Context, s *session) (*session, error) {
	if s.fresh {
		return s, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.server.startTime(), errSlow)
	defer cancel()

	err := c.listOnce(ctx, s)
	if err == nil || ctx.Err() != nil {
		return s, c.listError(ctx, err)
	}

	// A session may have ended since the last call, with nothing that said so.
	if certaintyOf(err) != expired && !lost(err) && s.alive() {
		return s, c.listError(ctx, err)
	}
	c.abandon(s)
	fresh, err := c.connect(ctx)
	if err != nil {
		return s, err
	}
	return fresh, c.listError(ctx, c.listOnce(ctx, fresh))
}

// listOnce requests the list of s.
func (c *Client) listOnce(ctx context.Context, s *session) error {
	var tools, bad []Listed
	if caps := s.conn.InitializeResult().Capabilities; caps != nil && caps.Tools != nil {
		s.repairer.rejected() // of an earlier list
		var err error
		tools, err = c.listedBy(ctx, s)
		if err != nil {
			return err
		}
		bad = s.repairer.rejected()
	}

	s.listed = append(c.server.inspect(tools, &c.opts, c.runner), bad...)
	c.keep(s.listed)
	s.fresh = true
	return nil
}

// listedBy returns the server's tools, page by page, up to maxTools.
func (c *Client) listedBy(ctx context.Context, s *session) ([]Listed, error) {
	var tools []Listed
	seen := map[string]bool{}
	for cursor := ""; ; {
		res, err := s.conn.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, t := range res.Tools {
			tools = append(tools, s.listedAs(t))
		}

		cursor = res.NextCursor
		switch {
		case cursor == "":
			return tools, nil
		case seen[cursor] || len(tools) >= maxTools:
			c.notice(Cut, "", fmt.Sprintf("its list of tools does not end; %d are used", min(len(tools), maxTools)))
			return tools, nil
		}
		seen[cursor] = true
	}
}

// listError returns the error of a list that could not be fetched, or nil.
func (c *Client) listError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errSlow) {
		return fmt.Errorf("it did not list its tools within %v", c.server.startTime())
	}
	return &fault{text: "its list of tools: " + clip(clean(err.Error()), 300), cause: err}
}

// keep replaces tools by equal ones created before, so that schemas are compiled once.
func (c *Client) keep(listed []Listed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := map[string]*pawl.Tool{}
	for i := range listed {
		l := &listed[i]
		if l.Tool == nil {
			continue
		}
		key := l.As + "\x00" + l.Digest()
		if was := c.tools[key]; was != nil {
			l.Tool = was
		}
		now[key] = l.Tool
	}
	c.tools = now
}

// listedAs returns t as the server sent it.
func (s *session) listedAs(t *sdk.Tool) Listed {
	if l, ok := s.repairer.tool(t.Name); ok {
		return l
	}
	return Listed{Definition: Definition{
		Name:        t.Name,
		Title:       t.Title,
		Description: t.Description,
		Input:       asJSON(t.InputSchema),
		Output:      asJSON(t.OutputSchema),
		Annotations: asJSON(t.Annotations),
	}}
}

// Names returns the names of tools, for Options.OtherTools.
func Names(tools []*pawl.Tool) []string {
	names := map[string]bool{}
	for _, t := range tools {
		names[t.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

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

	// Several runs wait for the attempt, so that it does not end with the first of them.
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
	mayBeAway := wasUp || c.server.Optional
	if ctx.Err() != nil || gone || !mayBeAway {
		return err
	}

	switch {
	case !c.missed(err.Error()):
	case wasUp:
		c.notice(Disconnected, "", "it cannot be reached, and its tools are missing until it can: "+err.Error())
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
