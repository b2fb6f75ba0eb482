package temporal

import (
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// stepping makes the steps of a run, and of its nested runs, out of their replies and calls. A
// history has each reply and each call once; with the steps it would have them twice.
type stepping struct {
	open map[llm.Key]*openStep // the step in progress, by run
	done []pawl.Step           // the steps of the outermost run
}

// openStep is a step that is not complete.
type openStep struct {
	pawl.Step
	number int
	calls  int // of the reply; a step without a reply ends before the next request
}

// with returns e, and the ends of steps around it.
func (s *stepping) with(e pawl.Event) (all []pawl.Event) {
	switch e.Kind {
	case pawl.EventResponseReceived:
		all = append(s.endSteps(e.Run), e)
		s.begin(e.Run, &openStep{
			number: e.Step,
			calls:  len(e.Response.Message.Calls()),
			Step:   pawl.Step{Response: e.Response},
		})

	case pawl.EventCallCompleted:
		all = append(s.endWithin(e.Path), e)
		if !isOfStep(e) {
			return all
		}
		if s.open[e.Run] == nil { // a call of an earlier run
			s.begin(e.Run, &openStep{number: e.Step})
		}
		step := s.open[e.Run]
		step.Executions = append(step.Executions, *e.Execution)
	}

	step := s.open[e.Run]
	if step != nil && step.Response != nil && len(step.Executions) == step.calls {
		all = append(all, s.endSteps(e.Run)...)
	}
	return all
}

// isOfStep reports whether a reply contains the call of e, and not a tool makes it.
func isOfStep(e pawl.Event) bool {
	place := strings.TrimPrefix(string(e.Path), string(e.Run)+"/")
	return strings.Count(place, "/") == 1
}

func (s *stepping) begin(run llm.Key, step *openStep) {
	if s.open == nil {
		s.open = map[llm.Key]*openStep{}
	}
	s.open[run] = step
}

// endSteps ends the step in progress of a run, if there is one.
func (s *stepping) endSteps(run llm.Key) []pawl.Event {
	step := s.open[run]
	if step == nil {
		return nil
	}
	delete(s.open, run)
	slices.SortFunc(step.Executions, func(a, b pawl.Execution) int { return journal.CompareKeys(a.Key, b.Key) })
	return []pawl.Event{s.complete(run, step.number, step.Step)}
}

// endWithin ends the steps of the runs that are nested in a call.
func (s *stepping) endWithin(call llm.Key) (all []pawl.Event) {
	var runs []llm.Key
	for run := range s.open {
		if strings.HasPrefix(string(run), string(call)+"/") {
			runs = append(runs, run)
		}
	}
	// The innermost run ends first.
	slices.SortFunc(runs, func(a, b llm.Key) int { return journal.CompareKeys(b, a) })
	for _, run := range runs {
		all = append(all, s.endSteps(run)...)
	}
	return all
}

// complete returns the event of a complete step.
func (s *stepping) complete(run llm.Key, number int, step pawl.Step) pawl.Event {
	outcomes := make([]pawl.Outcome, len(step.Executions))
	for i := range step.Executions {
		outcomes[i] = step.Executions[i].Outcome
	}
	if run == "run" {
		s.done = append(s.done, step)
	}
	return pawl.Event{
		Kind:      pawl.EventStep,
		Run:       run,
		Step:      number,
		Outcomes:  outcomes,
		Error:     step.Error,
		Completed: &step,
	}
}

// finish returns the step events that the end of the run completes.
func (s *stepping) finish(out *Outcome) []pawl.Event {
	all := s.endSteps("run")
	if out.StepError == "" {
		return all
	}
	return append(all, s.complete("run", len(repliesOf(out.Result))+1, pawl.Step{Error: out.StepError}))
}

// repliesOf returns the replies in the conversation of a result.
func repliesOf(res *pawl.Result) (all []llm.Message) {
	for _, m := range res.Messages {
		if m.Role == llm.RoleAssistant {
			all = append(all, m)
		}
	}
	return all
}
