package pawl

// seam.go: the checks of what an Executor and a Model yield. llm.Response checks the parts of a
// reply.

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
)

// ExecutorError is the error of a run whose Executor broke its contract: a task has no completed
// execution or several, or an execution belongs to no task, has another Call.ID than its task, or
// an unknown outcome. The run stops with StopFailed. A call of a tool with EffectWrite that has no
// valid execution is pending, because it may have taken effect.
type ExecutorError struct {
	Key  llm.Key // of the call
	Text string  // the fault, and what would be right
}

// Error returns the key of the call and the fault.
func (e *ExecutorError) Error() string { return fmt.Sprintf("executor: call %s: %s", e.Key, e.Text) }

// seam collects the executions of tasks from the events of an Executor. The Executor may be of the
// program and in another process, so nothing that it yields is trusted.
type seam struct {
	tasks  []Task
	execs  []Execution      // one for each task; no Key means none yet
	faults []*ExecutorError // of each task; nil means none
	stray  *Execution       // ends the run for an execution of no task; nil means none
}

func newSeam(tasks []Task) *seam {
	return &seam{tasks: tasks, execs: make([]Execution, len(tasks))}
}

// accept records the execution of a call_completed event. Executions of nested calls are not
// recorded: they are part of the execution of the call around them.
func (s *seam) accept(x *Execution) {
	i := s.place(x)
	if i < 0 {
		nested := slices.ContainsFunc(s.tasks, func(t Task) bool { return inOrUnder(x.Key, t.Key) })
		if !nested {
			s.strayed(x.Key)
		}
		return
	}

	key := s.tasks[i].Key
	switch {
	case s.execs[i].Key != "":
		s.fault(i, &ExecutorError{key, "it is completed twice; yield one call_completed for each task"})
		return
	case x.Call.ID != s.tasks[i].Call.ID:
		s.fault(i, &ExecutorError{key, fmt.Sprintf("its execution has the call ID %q, want %q", x.Call.ID, s.tasks[i].Call.ID)})
		return
	case !x.Outcome.known():
		s.fault(i, &ExecutorError{key, fmt.Sprintf("its execution has the unknown outcome %q", x.Outcome)})
		return
	}
	s.execs[i] = *x
	s.execs[i].Index = i
	s.execs[i].Result.CallID = x.Call.ID
	s.execs[i].Result.Key = key
}

// strayed records the first execution of no task. It is the fault of none of the tasks, so that
// their executions stay as they are.
func (s *seam) strayed(key llm.Key) {
	if s.stray != nil {
		return
	}
	err := &ExecutorError{key, "it is completed, and no task has its key; yield Task.Completed"}
	s.stray = &Execution{Key: key, Outcome: OutcomeError, Ends: StopFailed, Error: err.Error(), err: err}
}

// ending returns the execution that ends the run, after executions. nil means none.
func (s *seam) ending() *Execution {
	if s.stray != nil {
		return s.stray
	}
	return ending(s.execs)
}

// place returns the index of the task with the key of x, or -1.
func (s *seam) place(x *Execution) int {
	if x.Index >= 0 && x.Index < len(s.tasks) && s.tasks[x.Index].Key == x.Key {
		return x.Index
	}
	return slices.IndexFunc(s.tasks, func(t Task) bool { return t.Key == x.Key })
}

// fault records the first fault of task i.
func (s *seam) fault(i int, err *ExecutorError) {
	if s.faults == nil {
		s.faults = make([]*ExecutorError, len(s.tasks))
	}
	if s.faults[i] == nil {
		s.faults[i] = err
	}
}

// executions returns the executions of all tasks, in call order, when the sequence of the Executor
// has ended. The execution of a task with a fault ends the run.
func (s *seam) executions(ctx context.Context) []Execution {
	asked := false // an earlier call has an open question, which later calls may wait for
	for i := range s.tasks {
		t, x := &s.tasks[i], &s.execs[i]
		switch {
		case x.Key != "":
		case ctx.Err() != nil && (s.faults == nil || s.faults[i] == nil):
			// The Executor ended with the run. The call stays open, so that Resume executes it.
			*x = t.unexecuted("Not run: the run was cancelled.")
		default:
			s.fault(i, &ExecutorError{t.Key, "it was not completed; yield one call_completed for each task"})
			*x = t.unexecuted("No result: the call may have been executed.")
			if tool := t.Tool(); tool != nil && tool.Effect.Assumed() == EffectWrite && !tool.Passive {
				x.Outcome = OutcomeUnknown
			}
		}

		waits := x.Outcome == OutcomePending && asked
		if !x.Outcome.Settled() && len(x.Pending) == 0 && !waits {
			s.ask(t, x)
		}
		asked = asked || len(x.Pending) > 0

		if s.faults != nil && s.faults[i] != nil {
			x.Ends = StopFailed
			x.err = s.faults[i]
			x.Error = x.err.Error()
		}
	}
	return s.execs
}

// ask gives a call without an outcome the question that an interrupted write has: whether it took
// effect. Without a question the run would have nothing that answers the call.
func (s *seam) ask(t *Task, x *Execution) {
	tool := t.Tool()
	if tool == nil {
		s.fault(x.Index, &ExecutorError{t.Key, "it is pending, and no tool has its name"})
		x.Outcome = OutcomeCancelled
		return
	}
	q := PendingCall{Key: t.Key, Call: x.Call, Outcome: OutcomeUnknown, Attempt: x.Attempts, Schema: tool.Input,
		Why: "Its executor returned no outcome. What it does may have happened."}
	if tool.Passive {
		q.Outcome = OutcomePending
		q.Passive = true
		q.Schema = nil
		q.Why = ""
	}
	q.Digest = digest(q, tool)
	x.Outcome = q.Outcome
	if q.Outcome == OutcomeUnknown {
		x.Certainty = delivery.Unknown
	}
	x.Pending = []PendingCall{q}
}

// unexecuted returns the record of a call for which the Executor yielded none. The text is its
// result for the model.
func (t *Task) unexecuted(text string) Execution {
	x := Execution{
		Key:      t.Key,
		Index:    t.Index,
		Call:     t.Call,
		Outcome:  OutcomeCancelled,
		Result:   llm.ErrorResult(text),
		Error:    text,
		Attempts: t.Attempt,
	}
	x.Result.CallID = t.Call.ID
	x.Result.Key = t.Key
	return x
}

// unknownFinish returns an error for a finish reason that is not on the list: a reply that ended
// for an unknown reason must not count as an answer. An adapter maps it to llm.FinishReasonOther.
func unknownFinish(f llm.FinishReason) error {
	switch f {
	case llm.FinishReasonStop, llm.FinishReasonLength, llm.FinishReasonToolCalls, llm.FinishReasonContentFilter,
		llm.FinishReasonError, llm.FinishReasonOther:
		return nil
	}
	return &llm.ProviderError{
		Code:    llm.CodeStream,
		Message: fmt.Sprintf("the model yielded the unknown finish reason %q", f),
	}
}
