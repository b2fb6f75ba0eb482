package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
)

// list updates the tools of s. The caller holds the turn.
func (c *Client) list(ctx context.Context, s *session) error {
	if s.fresh {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.server.startTime(), errSlow)
	defer cancel()

	var defs []Definition
	var bad []Listed
	if caps := s.conn.InitializeResult().Capabilities; caps != nil && caps.Tools != nil {
		s.repairer.rejected() // of an earlier list
		var err error
		defs, err = c.definitions(ctx, s)
		if err != nil {
			return c.listError(ctx, err)
		}
		bad = s.repairer.rejected()
	}

	s.listed = append(c.server.inspect(defs, &c.opts, c.runner), bad...)
	c.keep(s.listed)
	s.fresh = true
	return nil
}

// definitions returns the server's tools, page by page, up to maxTools.
func (c *Client) definitions(ctx context.Context, s *session) ([]Definition, error) {
	var defs []Definition
	seen := map[string]bool{}
	for cursor := ""; ; {
		res, err := s.conn.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, t := range res.Tools {
			defs = append(defs, s.definition(t))
		}

		cursor = res.NextCursor
		switch {
		case cursor == "":
			return defs, nil
		case seen[cursor] || len(defs) >= maxTools:
			c.notice(Cut, "", fmt.Sprintf("its list of tools does not end; %d are used", min(len(defs), maxTools)))
			return defs, nil
		}
		seen[cursor] = true
	}
}

// listError returns the error of a list that could not be fetched.

func (c *Client) listError(ctx context.Context, err error) error {
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

// definition returns the server's definition of t, with the bytes that the server sent.
func (s *session) definition(t *sdk.Tool) Definition {
	var d Definition
	if raw := s.repairer.tool(t.Name); raw != nil && json.Unmarshal(raw, &d) == nil {
		return d
	}
	return Definition{Name: t.Name, Title: t.Title, Description: t.Description, Input: asJSON(t.InputSchema),
		Output: asJSON(t.OutputSchema), Annotations: asJSON(t.Annotations)}
}

// Names returns the names of tools, for Options.OtherTools.
func Names(tools []*pawl.Tool) []string {
	names := map[string]bool{}
	for _, t := range tools {
		names[t.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
