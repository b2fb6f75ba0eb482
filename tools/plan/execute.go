package plan

import (
	"context"
	"errors"
	"strconv"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// plainTool returns the plan tool whose steps are independent of each other.
func plainTool() *pawl.Tool {
	return toolrun.Define(definitions, "execute", &pawl.Tool{
		Name:      "execute_plan",
		Output:    outputSchema(`"ok","error"`),
		Effect:    pawl.EffectCompose,
		Inline:    true,
		Timeout:   -1, // the steps have their own timeouts
		MaxResult: -1, // report limits the result in a way that keeps it valid JSON
		Run: toolrun.Func(func(ctx context.Context, a args) (llm.ToolResult, error) {
			v, err := inRun(ctx, a.Steps)
			if err != nil {
				return llm.ToolResult{}, err
			}
			return run(ctx, v, newFlow(a.Steps))
		}),
	}, "most", strconv.Itoa(maxCalls))
}

// inRun returns the invocation of the plan. It returns an error if the tool is called outside a
// run, and refuses steps that counted refuses.
func inRun(ctx context.Context, steps []step) (*pawl.Invocation, error) {
	v := pawl.InvocationFrom(ctx)
	if v == nil {
		return nil, errors.New("execute_plan calls the tools of a run, and there is none")
	}
	return v, counted(v, steps)
}
