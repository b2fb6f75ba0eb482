package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	return fmt.Errorf("its list of tools: %s", clip(clean(err.Error()), 300))
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
