package callermcp

// tools.go: the tools of one caller.

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// own returns tools as tools of the caller of h.
func (c *Sessions) own(h *held, tools []*pawl.Tool) []*pawl.Tool {
	h.mu.Lock()
	defer h.mu.Unlock()

	// Only the tools of this list are remembered.
	fresh := make(map[*pawl.Tool]*pawl.Tool, len(tools))
	out := make([]*pawl.Tool, len(tools))
	for i, t := range tools {
		mine := h.made[t]
		if mine == nil {
			mine = t.Clone()
			mine.Run = c.runner(h, t)
		}
		fresh[t] = mine
		out[i] = mine
	}
	h.made = fresh
	return out
}

// runner returns the function that executes the calls of a tool that the session from offered. A
// call goes to the session of its caller, which must be the one to whom the tool was offered.
func (c *Sessions) runner(from *held, offered *pawl.Tool) pawl.ToolFunc {
	refuse := func(err error) (llm.ToolResult, error) {
		text := "the call was refused and nothing was sent: " + err.Error()
		return llm.ToolResult{}, delivery.NewError(delivery.NotSent, text, err)
	}
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		h, err := c.acquire(ctx)
		if err != nil {
			return refuse(err)
		}
		defer c.release(h)
		if h.who != from.who {
			return refuse(fmt.Errorf("mcp server %s: the tool was offered to another caller", c.server.Name))
		}

		t := offered
		if h != from { // it was idle, and closed
			t, err = h.find(ctx, offered)
			if err != nil {
				return refuse(err)
			}
		}
		if t == nil {
			return llm.ErrorResult("Not run: the server " + c.server.Name +
				" has changed this tool since it was offered. Do without it."), nil
		}
		res, err := t.Run(ctx, call)
		return h.hide(res), err
	}
}

// find returns the tool of the session that is equal to offered. Nil means that there is none.
func (h *held) find(ctx context.Context, offered *pawl.Tool) (*pawl.Tool, error) {
	tools, err := h.client.Tools(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tools, func(t *pawl.Tool) bool { return isEqual(t, offered) })
	if i < 0 {
		return nil, nil
	}
	return tools[i], nil
}

// isEqual reports whether a model and a policy see the same tool.
func isEqual(a, b *pawl.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Input, b.Input) && a.Effect == b.Effect
}

// hide replaces the token in a result, for a server that repeats its request.
func (h *held) hide(res llm.ToolResult) llm.ToolResult {
	var secrets redact.Redactor
	if secrets.Add(h.token) != nil || h.token == "" {
		return res // too short to be distinguished from other text
	}
	res.Parts = slices.Clone(res.Parts)
	for i, p := range res.Parts {
		if t, ok := p.(llm.Text); ok {
			t.Text = secrets.String(t.Text)
			res.Parts[i] = t
		}
	}
	if res.Data != nil {
		res.Data = secrets.JSON(res.Data)
	}
	return res
}
