package record

// end.go: the end of a run, as events show it again.

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
)

// RunEnded returns run_ended e as it was when the run stopped.
func (b *End) RunEnded(e pawl.Event) pawl.Event {
	res := *e.Result
	res.Stop = b.Stop
	res.Limit = b.Limit
	res.Cause = b.Cause
	res.Interrupted = b.Interrupted
	res.Unfit = b.Unfit
	res.Spent = b.Spent
	res.Pending = b.Pending
	res.Values = b.Values
	res.Output = b.Output
	switch b.Stop.Class() {
	case pawl.ClassAnswered, pawl.ClassLimited:
		res.Answer = cmp.Or(b.Answer, res.Answer) // the end may have been stored without it
	default:
		res.Answer = nil
	}
	if n := len(res.Steps); n > 0 && res.Steps[n-1].Error != "" {
		res.Steps = append(slices.Clone(res.Steps[:n-1]), b.failure(res.Steps[n-1]))
	}

	e.Result = &res
	e.Error = b.Error
	return e
}

// FailedAt reports whether e is the step of the request with which the run failed.
func (b *End) FailedAt(e pawl.Event) bool {
	return b.Stop == pawl.StopFailed && e.Kind == pawl.EventStep && e.Run == "run" && e.Error != ""
}

// FailedStep returns the step e of a failed request as it was. The records do not have the part of
// the reply that had arrived.
func (b *End) FailedStep(e pawl.Event) pawl.Event {
	step := b.failure(*e.Completed)
	spent := b.Spent
	e.Completed = &step
	e.Spent = &spent
	e.Error = step.Error
	return e
}

// failure returns the step of a request that got no stored reply, with the error of the run.
func (b *End) failure(step pawl.Step) pawl.Step {
	step.Error = strings.TrimPrefix(cmp.Or(b.Error, b.Cause), string(step.Request.Key)+": ")
	return step
}

// Err returns the error of the run that ended with res.
func (b *End) Err(res *pawl.Result) error {
	if b.Stop == pawl.StopFailed {
		return errors.New(b.Error)
	}
	return res.Err()
}

// PendingAt returns the open calls of tasks at the time of the stop with their questions, or nil if
// none had a question. A call without one was held by a call with one.
func (h *History) PendingAt(tasks []pawl.Task) []pawl.Execution {
	if h.End == nil || h.End.Stop != pawl.StopPending {
		return nil
	}

	out := make([]pawl.Execution, 0, len(tasks))
	asked := false
	for _, t := range tasks {
		x := h.End.pendingCall(t)
		asked = asked || len(x.Pending) > 0
		out = append(out, t.Replayed(t.Call, x))
	}
	if !asked {
		return nil
	}
	return out
}

// pendingCall returns the call of t with its own questions and the questions of its nested calls.
func (b *End) pendingCall(t pawl.Task) pawl.Execution {
	x := pawl.Execution{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomePending}
	for _, w := range b.Pending {
		if w.Key == t.Key || strings.HasPrefix(string(w.Key), string(t.Key)+"/") {
			x.Pending = append(x.Pending, w)
		}
	}
	if len(x.Pending) > 0 && x.Pending[0].Key == t.Key {
		x.Outcome = x.Pending[0].Outcome
	}
	return x
}
