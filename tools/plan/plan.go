// Package plan gives a model execute_plan: several calls in one, where a request to the model between each two would only cost time and tokens.
//
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files, plan.New(nil)}}
//
// The model sends {"steps":[{"tool":"file_read","args":{"path":"a.txt"}}, …]}, 1 to 50 of them. They run together, each through the pipeline that every call
// goes through (checks, approval, budget, slots, journal, events under keys of their own), and the result is one JSON array with what each of them gave, in order.
// A step that fails stops no other. A step that waits for a person makes the plan wait where the run's executor is a pawl.Replayer, and is refused elsewhere;
// the others are carried out, and kept.
//
// With Options.DataFlow a step can take values from steps before it, run once for each item of a list, and run only when a value says so:
//
//	{"steps":[
//		{"tool":"file_list","args":{"path":"."}},
//		{"tool":"file_read","each":{"$from":"0/entries"},"when":{"$from":"item/type","equals":"file"},"args":{"path":{"$from":"item/name"}}}
//	]}
//
// Such a plan is checked before anything runs: steps, cycles, the tools, and types as far as the tools' schemas state them. Steps that nothing holds back run
// together, then those that take from them, and so on: each such wave is one Invocation.Do, so a plan needs no goroutine and can be carried out again by an engine.
package plan

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// Options are what New can be told. Nil and the zero value are the plan without data flow.
type Options struct {
	DataFlow bool // steps can take values from steps before them ($from, each, when)
}

// New returns the tool execute_plan. It calls the tools of the run that it is part of, whatever they are.
func New(opts *Options) *pawl.Tool {
	if opts != nil && opts.DataFlow {
		return flowTool()
	}
	return plainTool()
}

// maxCalls is how many steps a plan has at most, and how many calls with those that each makes.
const maxCalls = 50

// maxText is how many bytes of what the steps gave are told to the model.
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

// counted refuses a plan of no steps, of too many, and one inside of a plan.
func counted(v *pawl.Invocation, steps []step) error {
	switch n := len(steps); {
	case n == 0:
		return toolrun.Refuse("The plan has no steps: give 1 to %d.", maxCalls)
	case n > maxCalls:
		return toolrun.Refuse("The plan has %d steps, and at most %d are carried out in one. Nothing was run: send it in parts.", n, maxCalls)
	}
	for i, s := range steps {
		if s.Tool == v.Tool().Name {
			return toolrun.Refuse("Step %d is a plan itself, and a plan has none inside of it. Nothing was run: put its steps into this one.", i)
		}
	}
	return nil
}

// outputSchema is of the results in Data.
func outputSchema(statuses string) json.RawMessage {
	const one = `"status":{"enum":[%[1]s]},"result":{"type":"string"},"error":{"type":"string"},"data":{}`
	return json.RawMessage(fmt.Sprintf(`{"type":"array","items":{"type":"object","properties":{"step":{"type":"integer"},"tool":{"type":"string"},`+one+
		`,"items":{"type":"array","items":{"type":"object","properties":{`+one+`},"required":["status"]}}},"required":["step","tool","status"]}}`, statuses))
}

// run carries out the steps wave by wave.
func run(ctx context.Context, v *pawl.Invocation, p *flow) (llm.ToolResult, error) {
	for _, wave := range p.waves() {
		calls := p.calls(wave)
		if len(calls) == 0 {
			continue
		}
		xs, err := v.Do(ctx, calls...)
		if err != nil {
			return llm.ToolResult{}, err // the plan waits, or the run ends
		}
		p.take(wave, xs)
	}
	return p.report()
}
