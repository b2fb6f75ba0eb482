package trial

import (
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// run.go: fills a Record in from a run, whether it ran in a trial or was stored before.

// AddCall adds a call that has ended, with the effect of its tool and the state of that effect.
// Calls are added in the order of their keys.
func (r *Record) AddCall(key llm.Key, x *pawl.Execution, effect, state string) {
	depth := 0
	for _, earlier := range r.Calls {
		if strings.HasPrefix(string(key), string(earlier.Key)+"/") {
			depth++
		}
	}
	r.Calls = append(r.Calls, Call{
		Key:     key,
		Tool:    x.Call.Name,
		Args:    x.Call.Args,
		Result:  x.Result.Text(),
		Outcome: string(x.Outcome),
		Effect:  effect,
		State:   state,
		Depth:   depth,
	})
	r.Spent.Repairs += len(x.Repairs)
	if x.Outcome == pawl.OutcomeInvalid {
		r.Spent.Invalid++
	}
}

// Count sets the counts of a run.
func (s *Spent) Count(run *pawl.Spent) {
	s.Rounds = run.Rounds
	s.Requests = run.Requests
	s.Calls = run.Calls
	s.Input = run.Usage.Input
	s.Output = run.Usage.Output
	s.Corrections = run.Corrections
}
