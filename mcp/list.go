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
		s.repairer.take()
		params := &sdk.ListToolsParams{}
		seen := map[string]bool{}
		for {
			res, err := s.conn.ListTools(ctx, params)
			if err != nil {
				return c.listError(ctx, err)
			}
			for _, t := range res.Tools {
				defs = append(defs, s.definition(t))
			}
			if res.NextCursor == "" || seen[res.NextCursor] || len(defs) >= maxTools {
				if res.NextCursor != "" {
					c.notice(Cut, "", fmt.Sprintf("its list of tools does not end; %d are used", min(len(defs), maxTools)))
				}
				break
			}
			seen[res.NextCursor] = true
			params = &sdk.ListToolsParams{Cursor: res.NextCursor}
		}
		bad = s.repairer.take()
	}
	s.listed = append(c.server.inspect(defs, &c.opts, c.runner), bad...)
	c.keep(s.listed)
	s.fresh = true
	return nil
}

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
