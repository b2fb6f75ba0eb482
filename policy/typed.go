package policy

// typed.go: Approve: a policy for one tool, with typed arguments.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/schema/gotype"
	"github.com/pawl-go/pawl/llm"
)

// Approve returns the middleware by which decide decides about the calls of tool, with their
// arguments as In, the input type of a tool that pawl.Func made. It allows the calls of other
// tools; see pawl.Approve for several policies together.
//
// The middleware finds the calls by the name of the tool, so that a Clone counts. Arguments that
// cannot be decoded into In deny the call, as an error or a panic of decide does. An agent without
// such a tool, a nil tool or decide, and a field of In that the arguments do not have are errors
// before the run begins.
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
		// An error of an approver denies the call: decide has not seen its arguments.
		if err := gotype.Decode(call.Args, &in); err != nil {
			return pawl.Approval{}, fmt.Errorf("the arguments of %s: %w", tool.Name, err)
		}
		return decide(ctx, in)
	})
	m.Check = func(tools []*pawl.Tool) error {
		i := slices.IndexFunc(tools, func(t *pawl.Tool) bool { return t.Name == tool.Name })
		if i < 0 {
			return fmt.Errorf("policy.Approve: the agent has no tool %s", tool.Name)
		}
		return fields[In](tools[i])
	}
	return m
}

// fields returns an error if In is a struct with a field that the arguments of t cannot have:
// decide would see its zero value in every call.
func fields[In any](t *pawl.Tool) error {
	var in, args struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if reflect.TypeFor[In]().Kind() != reflect.Struct {
		return nil
	}
	if err := errors.Join(json.Unmarshal(pawl.SchemaFor[In](), &in), json.Unmarshal(t.Input, &args)); err != nil {
		return fmt.Errorf("policy.Approve: the schema of %s: %w", t.Name, err)
	}
	for name := range in.Properties {
		// A schema without properties allows any.
		if _, ok := args.Properties[name]; !ok && len(args.Properties) > 0 {
			return fmt.Errorf("policy.Approve: %v has the field %q, and the arguments of %s have no such property: "+
				"use the tool's input type", reflect.TypeFor[In](), name, t.Name)
		}
	}
	return nil
}
