// tool.go: tools of tests, their calls and results.
package runtest

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Says returns a tool that answers every call with text.
func Says(name, text string) *pawl.Tool {
	return Does(name, func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult(text), nil })
}

// Does returns a tool that accepts any arguments.
func Does(name string, run pawl.ToolFunc) *pawl.Tool {
	return &pawl.Tool{Name: name, Input: json.RawMessage(`{"type":"object"}`), Run: run}
}

// Passive returns a tool that the caller of the run executes.
func Passive(name string) *pawl.Tool {
	return &pawl.Tool{Name: name, Input: json.RawMessage(`{"type":"object"}`), Passive: true}
}

// Call returns a call whose ID also serves as its name in results.
func Call(id, name, args string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

// Answer returns the result of the call with that ID.
func Answer(id, text string) llm.ToolResult {
	return llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: text}}}
}

// Composes returns a tool that acts through its Invocation.
func Composes(name string, run func(context.Context, *pawl.Invocation) (llm.ToolResult, error)) *pawl.Tool {
	t := Does(name, func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		return run(ctx, pawl.InvocationFrom(ctx))
	})
	t.Effect = pawl.EffectCompose
	return t
}

// Text returns a part of a message.
func Text(s string) llm.Text { return llm.Text{Text: s} }

// Execute runs one call of tool outside a run.
func Execute(t testing.TB, tool *pawl.Tool, args string) pawl.Execution {
	t.Helper()
	return pawl.Toolsets{tool}.Execute(t.Context(), Call("c", tool.Name, args))
}

// Policies returns the middleware of several policies.
func Policies(all ...pawl.Approver) []pawl.Middleware {
	out := make([]pawl.Middleware, len(all))
	for i, p := range all {
		out[i] = pawl.Approve(p)
	}
	return out
}

// Starts records when calls began. Several tools may write to it at the same time.
type Starts struct {
	mu    sync.Mutex
	after map[string]time.Duration
}

// After returns for each call ID the time between the creation of its tool and its start.
func (s *Starts) After() map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]time.Duration{}
	maps.Copy(out, s.after)
	return out
}

func (s *Starts) add(id string, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.after == nil {
		s.after = map[string]time.Duration{}
	}
	s.after[id] = after
}

// Lasting returns a tool that takes a given time and records when its calls start.
func Lasting(name string, effect pawl.Effect, d time.Duration, began *Starts) *pawl.Tool {
	begin := time.Now()
	t := Does(name, func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		began.add(c.ID, time.Since(begin))
		select {
		case <-time.After(d):
			return llm.TextResult(name + " " + string(c.Args)), nil
		case <-ctx.Done():
			return llm.ToolResult{}, ctx.Err()
		}
	})
	t.Effect = effect
	return t
}
