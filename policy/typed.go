package policy

// typed.go: Approve: a policy for one tool, with typed arguments.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Approve returns the middleware by which decide decides about the calls of tool, with their
// arguments as In, the input type of a tool that pawl.Func made. It allows the calls of other
// tools; see pawl.Approve for several policies together.
//
// The middleware finds the calls by the name of the tool, so that a Clone counts. Arguments that
// cannot be decoded into In deny the call, as an error or a panic of decide does. An agent without
// such a tool, and a nil tool or decide, are errors before the run begins.
func Approve[In any](tool *pawl.Tool, decide func(context.Context, In) (pawl.Approval, error)) pawl.Middleware {
	if tool == nil || decide == nil {
		return pawl.Middleware{Check: func([]*pawl.Tool) error {
			return errors.New("policy.Approve was given no tool, or no function that decides")
		}}
	}
	m := pawl.Approve(func(ctx context.Context, call llm.ToolCall, t *pawl.Tool) (pawl.Approval, error) {
		if t.Name != tool.Name {
			return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
		}
		var in In
		if err := jsonform.Decode(call.Args, &in); err != nil {
			return pawl.Approval{}, fmt.Errorf("the arguments of %s: %w", tool.Name, err)
		}
		return decide(ctx, in)
	})
	m.Check = func(tools []*pawl.Tool) error {
		if !slices.ContainsFunc(tools, func(t *pawl.Tool) bool { return t.Name == tool.Name }) {
			return fmt.Errorf("policy.Approve: the agent has no tool %s", tool.Name)
		}
		return nil
	}
	return m
}
