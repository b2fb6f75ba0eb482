package pawl

// seam.go: the calls of an Executor, and the checks of what it returns. llm.Response checks what a
// Model yields.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
)

// ExecutorError is the error of a run whose Executor broke its contract: an execution belongs to
// another call, has another Call.ID than its task, an unknown outcome, content that no conversation
// can hold, or a question that has no answer; or the Executor panicked, or emitted an event that
// does not belong to its call. The run stops with StopFailed. A call of a tool with EffectWrite
// that has no valid execution is pending, because it may have taken effect.
type ExecutorError struct {
	Key  llm.Key // of the call
	Text string  // the fault, and what would be right
}

// Error returns the key of the call and the fault.
func (e *ExecutorError) Error() string { return fmt.Sprintf("executor: call %s: %s", e.Key, e.Text) }

// DoBy executes the call by e, and checks what e returns as a run does. An Executor around another
// one calls DoBy in place of e.Do. nil means Do. An execution with a fault has an *ExecutorError.
func (t Task) DoBy(ctx context.Context, e Executor, emit func(Event)) Execution {
	x := t.by(ctx, e, emit)
	if x.Outcome != OutcomePending || len(x.Pending) > 0 {
		return x
	}

	waits := t.HeldBy != "" || ctx.Err() != nil // as in settle
	if !waits || t.hasBegun(&x) {
		t.ask(&x) // it has a tool: see fault
	}
	return x
}

// hasBegun reports whether x says that this attempt of a write has begun. Such a call does not
// wait for another one, and is not executed again without a question.
func (t *Task) hasBegun(x *Execution) bool {
	tool := t.Tool()
	return tool != nil && tool.Effect.Assumed() == EffectWrite && x.Attempts > t.Attempt
}

// by executes the call by e, and checks what e returns. The question of a call with OutcomePending
// may be missing: see settle. nil means Do. A panic of e is a fault, except in a workflow, whose
// coroutines end with panics.
func (t *Task) by(ctx context.Context, e Executor, emit func(Event)) (x Execution) {
	if e == nil {
		return t.Do(ctx, emit)
	}

	events := &callEvents{task: t, out: emit}
	if !t.inWorkflow() {
		defer func() {
			if v := recover(); v != nil {
				events.end()
				x = t.faulty("it panicked: %v", v)
			}
		}()
	}
	return t.checked(ctx, e, events)
}

// checked calls e, and checks what it returns and emits.
func (t *Task) checked(ctx context.Context, e Executor, events *callEvents) Execution {
	x, err := e.Do(ctx, *t, events.emit)
	events.end()
	if err != nil {
		x = t.notExecuted(ctx, err)
	} else if fault := t.fault(&x); fault != "" {
		return t.faulty("%s", fault)
	}

	if x.Outcome.Settled() {
		x.Result.CallID = t.Call.ID
		x.Result.Key = t.Key
	}
	if x.Outcome == OutcomeUnknown && len(x.Pending) == 0 {
		t.ask(&x)
	}
	if events.fault != "" {
		x.endRun(events.fault)
	}
	return x
}

// fault returns what is wrong with x, an execution of t. Empty means nothing.
func (t *Task) fault(x *Execution) string {
	switch {
	case x.Key == "" && x.Outcome == "":
		return "its execution is empty; return the result of Task.Do, or an error"
	case x.Key != t.Key:
		return fmt.Sprintf("its execution has the key %q; return the execution of this call", x.Key)
	case x.Call.ID != t.Call.ID:
		return fmt.Sprintf("its execution has the call ID %q, want %q", x.Call.ID, t.Call.ID)
	case !x.Outcome.known():
		return fmt.Sprintf("its execution has the unknown outcome %q", x.Outcome)
	case !x.Outcome.Settled() && t.Tool() == nil && len(x.Pending) == 0:
		return fmt.Sprintf("it is %s, and no tool has its name", x.Outcome)
	case x.Outcome.Settled() && len(x.Pending) > 0:
		return fmt.Sprintf("its execution is %s and has a question; a call has an outcome or a question", x.Outcome)
	case x.Ends != "" && x.Ends != StopFinished && x.Ends != StopFailed:
		return fmt.Sprintf("its execution ends the run with %q, want finished or failed", x.Ends)
	}
	return cmp.Or(x.contentFault(), t.questionFault(x))
}

// contentFault returns what no conversation and no journal could hold of x. Empty means nothing.
func (x *Execution) contentFault() string {
	for _, p := range x.Result.Parts {
		if !isContent(p) {
			return fmt.Sprintf("its result has a part of the type %T, want llm.Text or llm.Media", p)
		}
	}
	if d := x.Result.Data; len(d) > 0 && !json.Valid(d) {
		return "the Data of its result is not JSON"
	}
	for _, name := range slices.Sorted(maps.Keys(x.Values)) {
		if !json.Valid(x.Values[name]) {
			return fmt.Sprintf("its value %q is not JSON", name)
		}
	}
	return ""
}

// questionFault returns what is wrong with the questions of x, an execution of t. Empty means
// nothing. A question with a fault could not be answered, so that the run would never continue.
func (t *Task) questionFault(x *Execution) string {
	for _, q := range x.Pending {
		switch {
		case !inOrUnder(q.Key, t.Key):
			return fmt.Sprintf("its question has the key %q, which is no part of this call", q.Key)
		case q.Outcome.Settled():
			return fmt.Sprintf("its question has the outcome %q, want pending or unknown", q.Outcome)
		case q.Digest == "":
			return "its question has no digest; leave Pending empty, and the run asks"
		}
	}
	return ""
}

// endRun makes x end the run, because of a fault of the Executor.
func (x *Execution) endRun(fault string) {
	x.Ends = StopFailed
	x.err = &ExecutorError{x.Key, fault}
	x.Error = x.err.Error()
}

// faulty returns the execution of a call that has no valid one. It ends the run.
func (t *Task) faulty(format string, args ...any) Execution {
	text := "No result: the call may have been executed."
	x := newExecution(t)
	x.Outcome = OutcomeCancelled
	x.Result = llm.ErrorResult(text)
	x.Result.CallID = t.Call.ID
	x.Result.Key = t.Key
	x.Ended = x.Started

	// The Executor may have executed it before it broke its contract. The question stays in the
	// Result, although the run ends.
	if tool := t.Tool(); tool != nil && tool.Effect.Assumed() == EffectWrite && !tool.Passive {
		t.ask(&x)
	}
	x.endRun(fmt.Sprintf(format, args...))
	return x
}

// notExecuted returns the execution of a call that was not sent, or of which no outcome arrived;
// see Executor.
func (t *Task) notExecuted(ctx context.Context, err error) Execution {
	w := &work{task: t, exec: newExecution(t), tool: t.Tool()}
	if w.tool != nil && w.tool.Passive {
		w.exec.Outcome = OutcomePending
		t.ask(&w.exec)
		return w.exec
	}

	hadNone := w.tool == nil || hadNoEffect(err) // no tool has its name
	if !hadNone {
		w.exec.Attempts++ // it may have been started
	}
	switch {
	case ctx.Err() != nil && hadNone:
		err = notStarted(ctx)
	case ctx.Err() != nil:
		err = w.interrupted(ctx, err)
	case hadNone:
		// complete uses the result and the certainty of the error.
	case w.tool != nil && w.tool.Effect.Assumed() == EffectWrite:
		text := "No outcome of the call arrived: " + err.Error() + ". What it does may have happened."
		err = &failure{outcome: OutcomeUnknown, err: err, text: text}
	default:
		c := w.interruptedCertainty(err)
		err = &failure{outcome: OutcomeError, err: err, certainty: c, text: "No result of the call arrived" + sentence(c)}
	}
	w.complete(ctx, llm.ToolResult{}, err)
	w.exec.endNow()
	return w.exec
}

// endNow sets the time of the end.
func (x *Execution) endNow() { x.Ended = time.Now() }

// hadNoEffect reports whether err states that a call did not start.
func hadNoEffect(err error) bool {
	var stated *delivery.Error
	return errors.As(err, &stated) && stated.Certainty.NoEffect()
}

// workBy executes task i by the Executor, which may end this goroutine, as t.FailNow does. It
// reports false if the call was abandoned in the meantime.
func (b *batch) workBy(i int) bool {
	returned := false
	defer func() {
		if !returned {
			x := b.tasks[i].faulty("it ended the goroutine of the call; return the Execution")
			b.endBy(i, workEnded, &x, true)
		}
	}()
	x := b.tasks[i].by(b.ctx, b.executor, b.sent[i].emit)
	returned = true
	return b.endBy(i, workEnded, &x, false)
}

// endBy completes task i, a call by the Executor, unless it is complete: its Do may return when the
// call has just been abandoned. It reports whether it did.
func (b *batch) endBy(i int, state int32, x *Execution, freed bool) bool {
	if !b.works[i].state.CompareAndSwap(workRuns, state) {
		return false
	}
	b.sent[i].end()
	b.done(i, x, freed)
	return true
}

// errStuck is the error of a call whose Executor does not return.
var errStuck = errors.New("its Executor did not return when the context ended, and was abandoned")

// abandonBy abandons task i, a call by the Executor. The Executor may have sent it, if a worker had
// started it.
func (b *batch) abandonBy(i int, started bool) {
	if b.works[i].state.Load() != workRuns {
		return // it has ended
	}

	var err error = delivery.NewError(delivery.NotSent, "the run has ended", nil)
	if started {
		err = errStuck
	}
	x := b.tasks[i].notExecuted(b.ctx, err)
	b.endBy(i, workAbandoned, &x, started)
}

// callEvents passes on the events that an Executor emits for one call, until the call has ended.
type callEvents struct {
	task  *Task
	out   func(Event)
	mu    sync.Mutex // held during out, so that no event is in flight when the call has ended
	ended bool
	fault string // of the Executor; empty means none
}

func (c *callEvents) emit(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
	case !c.task.owns(e):
		c.fault = fmt.Sprintf("it emitted %s at %q, which is no event of the call", e.Kind, e.Path)
	case e.Kind == EventCallCompleted && e.Path == c.task.Key:
		c.fault = "it emitted call_completed; return the Execution, and the run emits it"
	default:
		c.out(e)
	}
}

func (c *callEvents) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// owns reports whether e is an event of the call, or of a call or a run nested in it.
func (t *Task) owns(e Event) bool {
	return inOrUnder(e.Path, t.Key) || e.Path == "" && inOrUnder(e.Run, t.Key)
}

// settle completes the executions of a step when all calls have ended: a pending call without a
// question gets one, unless it waits for an earlier call that has one, or ctx has ended. A write
// that has begun gets one in any case.
func settle(ctx context.Context, tasks []Task, execs []Execution) []Execution {
	asked := false
	for i := range tasks {
		t, x := &tasks[i], &execs[i]
		if x.Key == "" {
			*x = t.faulty("it was not executed; Engine.Schedule executes each task")
		}

		waits := asked || t.HeldBy != "" || ctx.Err() != nil
		switch {
		case x.Outcome != OutcomePending || len(x.Pending) > 0:
		case waits && !t.hasBegun(x):
		case t.Tool() == nil:
			*x = t.faulty("it is pending, and no tool has its name")
		default:
			t.ask(x)
		}
		asked = asked || len(x.Pending) > 0
	}
	return execs
}

// ask gives x, the execution of t without an outcome, the question that an interrupted write has:
// whether it took effect. Without a question the run would have nothing that answers the call.
func (t *Task) ask(x *Execution) {
	tool := t.Tool()
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
