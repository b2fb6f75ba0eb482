package journal

// answered.go: Answered, the questions of a run that have an answer.

import (
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
)

// Answered is a question about a call, whether it may run, and its answer.
type Answered struct {
	// Key is the key of the call.
	Key llm.Key `json:"key"`
	// Call is the call as it waited.
	Call llm.ToolCall `json:"call"`
	// Effect is the effect of its tool. EffectUnstated means unknown.
	Effect pawl.Effect `json:"effect"`
	// Decision is the answer.
	Decision llm.Decision `json:"decision"`
}

// Allowed reports whether the call was approved unchanged. A call with other arguments or with a
// result from a person was not.
func (a *Answered) Allowed() bool {
	return a.Decision.Approve && a.Decision.Args == nil && a.Decision.Result == nil
}

// Answers returns the answered questions of the run, in the order of their calls. Questions about
// calls that may have happened, and about calls that the caller executes, are not among them.
func (r *Run) Answers() []Answered { return answers(r.history) }

func answers(h *record.History) []Answered {
	effects := h.Effects()
	out := []Answered{}
	for key, asked := range h.Questions {
		for i := range asked {
			q := &asked[i]
			if q.Answer == nil || q.Waiting.Passive || q.Waiting.Outcome != pawl.OutcomePending {
				continue
			}
			out = append(out, Answered{
				Key:      key,
				Call:     q.Waiting.Call,
				Effect:   effects[q.Waiting.Call.Name],
				Decision: *q.Answer,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Answered) int { return CompareKeys(a.Key, b.Key) })
	return out
}
