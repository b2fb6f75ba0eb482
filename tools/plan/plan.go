// Package plan provides execute_plan, a tool that executes several calls in one, without a request
// to the model between them. That saves time and tokens.
//
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files, plan.New(nil)}}
//
// The model sends {"steps":[{"tool":"file_read","args":{"path":"a.txt"}}, …]}, 1 to 50 steps. They
// run together. Each step goes through the same pipeline as every call: checks, approval, budget,
// slots, journal, and events under its own key. The result is one JSON array with the results of
// the steps, in order. A failing step does not stop the others. If a step needs a decision by a
// person, the plan becomes pending if the run's engine sets Replays, and the step is refused
// otherwise. The other steps are executed and their results stored.
//
// With Options.DataFlow, a step can use values from earlier steps, run once for each item of a
// list, and run only under a condition:
//
//	{"steps":[
//		{"tool":"file_list","args":{"path":"."}},
//		{"tool":"file_read","each":{"$from":"0/entries"},
//		 "when":{"$from":"item/type","equals":"file"},"args":{"path":{"$from":"item/name"}}}
//	]}
//
// Such a plan is checked before anything runs: steps, cycles, tools, and types as far as the tools'
// schemas state them. Steps that depend on nothing run together, then the steps that use their
// values, and so on. Each such wave is one Invocation.Do, so a plan needs no goroutine, and an
// engine can execute it again.
package plan

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

// Options are the options of New. Nil and the zero value give the plan without data flow.
type Options struct {
	DataFlow bool // steps can use values of earlier steps ($from, each, when)
}

// New returns the tool execute_plan. It can call every tool of the run in which it is called.
func New(opts *Options) *pawl.Tool {
	dataFlow := opts != nil && opts.DataFlow
	most := strconv.Itoa(maxCalls)
	t := toolrun.Define(definitions, "execute", &pawl.Tool{
		Name:      "execute_plan",
		Output:    outputSchema(`"ok","error"`),
		Effect:    pawl.EffectCompose,
		Inline:    true,
		Timeout:   -1, // the steps have their own timeouts
		MaxResult: -1, // report limits the result in a way that keeps it valid JSON
		Run: toolrun.Func(func(ctx context.Context, a args) (llm.ToolResult, error) {
			return execute(ctx, a.Steps, dataFlow)
		}),
	}, "most", most)
	if !dataFlow {
		return t
	}

	t.Output = outputSchema(`"ok","error","skipped"`)
	return toolrun.Define(definitions, "flow", t, "most", most)
}

// execute checks and executes a plan.
func execute(ctx context.Context, steps []step, dataFlow bool) (llm.ToolResult, error) {
	v := pawl.InvocationFrom(ctx)
	if v == nil {
		return llm.ToolResult{}, errors.New("execute_plan calls the tools of a run, and there is none")
	}
	if err := checkSteps(v, steps); err != nil {
		return llm.ToolResult{}, err
	}

	p := newFlow(steps)
	if dataFlow {
		if faults := p.read(v); len(faults) > 0 {
			return llm.ToolResult{}, toolrun.Refuse("Nothing of the plan was run:\n- %s", strings.Join(faults, "\n- "))
		}
		p.announce(v)
	}
	return run(ctx, v, p)
}

// maxCalls is the maximum number of steps of a plan, and also the maximum number of calls that all
// steps make together.
const maxCalls = 50

// maxText is the number of bytes of step results that the model gets at most.
const maxText = 32 << 10

type args struct {
	Steps []step `json:"steps"`
}

type step struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	Each *from           `json:"each"`
	When *from           `json:"when"`
}

// checkSteps refuses a plan without steps, a plan with too many steps, and a plan nested in a plan.
func checkSteps(v *pawl.Invocation, steps []step) error {
	n := len(steps)
	switch {
	case n == 0:
		return toolrun.Refuse("The plan has no steps: give 1 to %d.", maxCalls)
	case n > maxCalls:
		return toolrun.Refuse("The plan has %d steps, and at most %d are executed in one. Nothing was run: "+
			"send it in parts.",
			n, maxCalls)
	}
	for i, s := range steps {
		if s.Tool == v.Tool().Name {
			return toolrun.Refuse("Step %d is a plan itself, and a plan cannot contain a plan. Nothing was "+
				"run: put its steps into this one.", i)
		}
	}
	return nil
}

// outputSchema returns the schema of the results in Data.
func outputSchema(statuses string) json.RawMessage {
	outcome := `"status":{"enum":[` + statuses + `]},"result":{"type":"string"},"error":{"type":"string"},"data":{}`
	return json.RawMessage(`{"type":"array","items":{"type":"object","properties":{` +
		`"step":{"type":"integer"},"tool":{"type":"string"},` + outcome + `,` +
		`"items":{"type":"array","items":{"type":"object","properties":{` + outcome + `},"required":["status"]}}},` +
		`"required":["step","tool","status"]}}`)
}

// run executes the steps wave by wave.
func run(ctx context.Context, v *pawl.Invocation, p *flow) (llm.ToolResult, error) {
	for _, wave := range p.waves() {
		calls := p.calls(wave)
		if len(calls) == 0 {
			continue
		}
		executions, err := v.Do(ctx, calls...)
		if err != nil {
			return llm.ToolResult{}, err // the plan is pending, or the run ends
		}
		p.record(wave, executions)
	}
	return p.report()
}
