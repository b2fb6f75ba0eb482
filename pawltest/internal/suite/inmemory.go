package suite

import (
	"context"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// inMemory is the agent itself, resumed from its last Result.
type inMemory struct {
	agent *pawl.Agent
	last  *pawl.Result
}

// InMemory returns a Runner of one run of a in this process, which resumes with Decisions as
// durable runs do. from is the Result that it resumes first; nil means a new run.
func InMemory(a *pawl.Agent, from *pawl.Result) pawl.Runner { return &inMemory{a, from} }

// Stream starts or resumes the run.
func (r *inMemory) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		events := r.agent.Stream(ctx, msgs...)
		if r.last != nil {
			events = r.agent.ResumeStream(ctx, r.last, msgs...)
		}
		for e, err := range events {
			if e.Kind == pawl.EventRunEnded && e.Run == "run" {
				r.last = e.Result
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
