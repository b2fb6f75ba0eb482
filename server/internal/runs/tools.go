package runs

import (
	"context"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// CallSuffix marks the agents of runs that consist of a single call.
const CallSuffix = "/call"

// toolAgent returns an agent that executes the open calls of a Result and requests nothing from a
// model.
func toolAgent(a *pawl.Agent) *pawl.Agent {
	b := *a
	b.Name, b.Model, b.Instructions, b.Output, b.Choice = a.Name+CallSuffix, silent{}, "", nil, llm.ToolChoice{}
	return &b
}

type silent struct{}

func (silent) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{Finish: llm.FinishReasonStop}, nil) }
}
