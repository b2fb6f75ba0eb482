package mutant

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Executors returns the faults of a pawl.Executor that pawltest.TestExecutor finds: faults of
// executions, of events, of what becomes of a task, and of calls at the same time.
func Executors() []Mutant[pawl.Executor] {
	return slices.Concat(executionFaults(), eventFaults(), taskFaults(), orderFaults())
}

// do is the method of an Executor.
type do = func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error)

type executor do

// Do executes a call with the fault.
func (e executor) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	return e(ctx, t, emit)
}

// honest returns the method of e. A nil Executor executes calls in this process.
func honest(e pawl.Executor) do {
	if e != nil {
		return e.Do
	}
	return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
		return t.Do(ctx, emit), nil
	}
}

// ofExecutor is a fault of an Executor. plant is called once for each run.
func ofExecutor(name, part string, plant func(next do) do) Mutant[pawl.Executor] {
	return Mutant[pawl.Executor]{name, part, func(e pawl.Executor) pawl.Executor { return executor(plant(honest(e))) }}
}

// ofExecution is a fault that changes an execution.
func ofExecution(name, part string, change func(x *pawl.Execution)) Mutant[pawl.Executor] {
	return ofExecutor(name, part, func(next do) do {
		return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
			x, err := next(ctx, t, emit)
			if err == nil {
				change(&x)
			}
			return x, err
		}
	})
}

// ofTask is a fault that changes a task before its execution.
func ofTask(name, part string, change func(t *pawl.Task)) Mutant[pawl.Executor] {
	return ofExecutor(name, part, func(next do) do {
		return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
			change(&t)
			return next(ctx, t, emit)
		}
	})
}

// ofEvent is a fault that changes what becomes of an event.
func ofEvent(name, part string, change func(e pawl.Event, emit func(pawl.Event))) Mutant[pawl.Executor] {
	return ofExecutor(name, part, func(next do) do {
		return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
			return next(ctx, t, func(e pawl.Event) { change(e, emit) })
		}
	})
}

func executionFaults() []Mutant[pawl.Executor] {
	return []Mutant[pawl.Executor]{
		ofExecution("returns an empty execution", "result/one", func(x *pawl.Execution) { *x = pawl.Execution{} }),
		ofExecution("returns the key of another call", "result/one", func(x *pawl.Execution) { x.Key += "1" }),
		ofExecution("returns the ID of another call", "result/one", func(x *pawl.Execution) { x.Call.ID += "1" }),
		ofExecution("changes the name of the call", "result/one", func(x *pawl.Execution) { x.Call.Name = "other" }),
		ofExecution("changes the arguments of the call", "result/one", func(x *pawl.Execution) { x.Call.Args = []byte(`{}`) }),
		ofExecution("returns no outcome", "result/one", func(x *pawl.Execution) { x.Outcome = "" }),
		ofExecution("invents an outcome", "result/one", func(x *pawl.Execution) { x.Outcome = "done" }),
		ofExecution("takes a success for a failure", "result/one", func(x *pawl.Execution) { x.Outcome = pawl.OutcomeError }),
		ofExecution("takes a success for unknown", "result/one", func(x *pawl.Execution) { x.Outcome = pawl.OutcomeUnknown }),
		ofExecution("takes a success for pending", "result/one", func(x *pawl.Execution) { x.Outcome = pawl.OutcomePending }),
		ofExecution("takes a failure for a success", "result/failed", func(x *pawl.Execution) {
			if x.Outcome.Failed() {
				x.Outcome = pawl.OutcomeOK
			}
		}),
		ofExecution("takes a panic for a failure", "result/failed", func(x *pawl.Execution) {
			if x.Outcome == pawl.OutcomePanicked {
				x.Outcome = pawl.OutcomeError
			}
		}),
		ofExecution("drops the error text", "result/failed", func(x *pawl.Execution) { x.Error = "" }),
		ofExecution("drops IsError", "result/failed", func(x *pawl.Execution) { x.Result.IsError = false }),
		ofExecution("drops the certainty", "result/failed", func(x *pawl.Execution) { x.Certainty = "" }),
		ofExecution("drops the result", "result/one", func(x *pawl.Execution) { x.Result = llm.ToolResult{} }),
		ofExecution("returns the first part of a result only", "result/parts", func(x *pawl.Execution) {
			x.Result.Parts = x.Result.Parts[:min(1, len(x.Result.Parts))]
		}),
		ofExecution("drops the data of a result", "result/parts", func(x *pawl.Execution) { x.Result.Data = nil }),
		ofExecution("drops the repairs", "result/wrong calls", func(x *pawl.Execution) { x.Repairs = nil }),
		ofExecution("takes an unknown tool for a failure", "result/wrong calls", func(x *pawl.Execution) {
			if x.Outcome == pawl.OutcomeUnknownTool {
				x.Outcome = pawl.OutcomeError
			}
		}),
		ofExecution("drops the end of the run", "ends/finished", func(x *pawl.Execution) { x.Ends = "" }),
		ofExecution("takes the failure of the run for its end", "ends/stopped", func(x *pawl.Execution) {
			if x.Ends == pawl.StopFailed {
				x.Ends = pawl.StopFinished
			}
		}),
		ofExecution("counts no attempt", "result/one", func(x *pawl.Execution) { x.Attempts = 0 }),
		ofExecution("counts one attempt", "retries", func(x *pawl.Execution) { x.Attempts = min(x.Attempts, 1) }),
		ofExecution("drops the values", "values", func(x *pawl.Execution) { x.Values = nil }),
		ofExecution("drops the question", "questions", func(x *pawl.Execution) { x.Pending = nil }),
		ofExecution("drops the question of a passive call", "result/passive", func(x *pawl.Execution) {
			if len(x.Pending) > 0 {
				x.Pending = nil
				x.Outcome = pawl.OutcomeOK
			}
		}),
		ofExecution("changes the digest of a question", "questions", func(x *pawl.Execution) {
			for i := range x.Pending {
				x.Pending[i].Digest = "0"
			}
		}),
		ofExecution("drops the decision", "questions", func(x *pawl.Execution) { x.Decision = nil }),
		ofExecution("drops the usage of nested calls", "nested", func(x *pawl.Execution) { x.Spent = pawl.Spent{} }),
		ofExecutor("returns an error for a failed call", "result/failed", func(next do) do {
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				x, err := next(ctx, t, emit)
				if err == nil && x.Outcome.Failed() {
					err = errors.New(x.Error)
				}
				return x, err
			}
		}),
		ofExecutor("panics", "result/one", func(do) do {
			return func(context.Context, pawl.Task, func(pawl.Event)) (pawl.Execution, error) { panic("lost") }
		}),
	}
}

func eventFaults() []Mutant[pawl.Executor] {
	return []Mutant[pawl.Executor]{
		ofEvent("drops the events", "events/all", func(pawl.Event, func(pawl.Event)) {}),
		ofEvent("drops call_started", "events/all", func(e pawl.Event, emit func(pawl.Event)) {
			if e.Kind != pawl.EventCallStarted {
				emit(e)
			}
		}),
		ofEvent("emits events twice", "events/all", func(e pawl.Event, emit func(pawl.Event)) {
			emit(e)
			emit(e)
		}),
		ofEvent("drops the text of progress", "events/all", func(e pawl.Event, emit func(pawl.Event)) {
			e.Text = ""
			emit(e)
		}),
		ofEvent("drops the data of progress", "events/all", func(e pawl.Event, emit func(pawl.Event)) {
			e.Data = nil
			emit(e)
		}),
		ofEvent("drops the step of events", "events/all", func(e pawl.Event, emit func(pawl.Event)) {
			e.Step = 0
			emit(e)
		}),
		ofEvent("drops the notices of retries", "retries", func(e pawl.Event, emit func(pawl.Event)) {
			if e.Kind != pawl.EventNotice {
				emit(e)
			}
		}),
		ofEvent("emits events of nested calls under the key of the outer call", "nested", func(e pawl.Event, emit func(pawl.Event)) {
			e.Path = "run/1/0"
			emit(e)
		}),
		ofEvent("drops the events of nested calls", "nested", func(e pawl.Event, emit func(pawl.Event)) {
			if len(e.Path) <= len("run/1/0") {
				emit(e)
			}
		}),
		ofEvent("emits events of another call", "events/all", func(e pawl.Event, emit func(pawl.Event)) {
			e.Path = "run/9/9"
			emit(e)
		}),
		ofExecutor("emits call_completed", "result/one", func(next do) do {
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				x, err := next(ctx, t, emit)
				emit(pawl.Event{Kind: pawl.EventCallCompleted, Run: t.Run, Step: t.Step, Path: t.Key, Execution: &x})
				return x, err
			}
		}),
		ofExecutor("emits the events in reverse", "events/all", func(next do) do { return held(next, slices.Reverse) }),
		ofExecutor("emits the events when the call has ended", "events/live", func(next do) do {
			return held(next, func([]pawl.Event) {})
		}),
	}
}

// held emits the events of a call when it has ended, after arrange.
func held(next do, arrange func([]pawl.Event)) do {
	return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
		var mu sync.Mutex
		var events []pawl.Event
		x, err := next(ctx, t, func(e pawl.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		})
		arrange(events)
		for _, e := range events {
			emit(e)
		}
		return x, err
	}
}

func taskFaults() []Mutant[pawl.Executor] {
	return []Mutant[pawl.Executor]{
		ofTask("drops the arguments", "result/one", func(t *pawl.Task) { t.Call.Args = json.RawMessage(`{}`) }),
		ofTask("repairs the arguments itself", "result/wrong calls", func(t *pawl.Task) {
			t.Call.Args = json.RawMessage(`{"at":"a"}`)
		}),
		ofTask("drops the values of the run", "values", func(t *pawl.Task) { t.Values = nil }),
		ofTask("executes refused calls", "refused", func(t *pawl.Task) { t.Refuse = "" }),
		ofTask("refuses calls", "result/one", func(t *pawl.Task) { t.Refuse = "Not now." }),
		ofTask("drops the decisions", "questions", func(t *pawl.Task) { t.Decisions = nil }),
		ofTask("drops the earlier question", "interrupted", func(t *pawl.Task) { t.Pending = nil }),
		ofTask("drops the number of earlier attempts", "interrupted", func(t *pawl.Task) { t.Attempt = 0 }),
		ofTask("executes held calls", "held", func(t *pawl.Task) { t.HeldBy = "" }),
		ofExecutor("executes each call twice", "result/one", func(next do) do {
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				if _, err := next(ctx, t, func(pawl.Event) {}); err != nil {
					return pawl.Execution{}, err
				}
				return next(ctx, t, emit)
			}
		}),
		ofExecutor("repeats failed calls", "result/failed", func(next do) do {
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				x, err := next(ctx, t, emit)
				if err == nil && x.Outcome.Failed() {
					return next(ctx, t, func(pawl.Event) {})
				}
				return x, err
			}
		}),
		ofExecutor("executes no call", "result/one", func(do) do {
			return func(_ context.Context, t pawl.Task, _ func(pawl.Event)) (pawl.Execution, error) {
				return pawl.Execution{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomeOK}, nil
			}
		}),
	}
}

func orderFaults() []Mutant[pawl.Executor] {
	return []Mutant[pawl.Executor]{
		ofExecutor("executes one call after the other", "together", func(next do) do {
			var mu sync.Mutex
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				mu.Lock()
				defer mu.Unlock()
				return next(ctx, t, emit)
			}
		}),
		ofExecutor("mixes up the results of a step", "result/several", func(next do) do {
			var mu sync.Mutex
			var first *llm.ToolResult
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				x, err := next(ctx, t, emit)
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = &x.Result
				}
				x.Result = *first
				return x, err
			}
		}),
		ofExecutor("mixes up the tasks of a step", "result/several", func(next do) do {
			var mu sync.Mutex
			var first json.RawMessage
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				mu.Lock()
				if first == nil {
					first = t.Call.Args
				}
				t.Call.Args = first
				mu.Unlock()
				return next(ctx, t, emit)
			}
		}),
		ofExecutor("ignores that the run is cancelled", "cancelled", func(next do) do {
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				return next(context.WithoutCancel(ctx), t, emit)
			}
		}),
		ofExecutor("leaves a cancelled call running", "cancelled", func(next do) do {
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				type end struct {
					x   pawl.Execution
					err error
				}
				ended := make(chan end, 1)
				go func() {
					x, err := next(ctx, t, emit)
					ended <- end{x, err}
				}()
				select {
				case e := <-ended:
					return e.x, e.err
				case <-ctx.Done():
					return pawl.Execution{Key: t.Key, Call: t.Call, Outcome: pawl.OutcomeCancelled}, nil
				}
			}
		}),
		ofExecutor("returns an error when the run is cancelled and the call had ended", "cancelled", func(next do) do {
			return func(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
				x, err := next(ctx, t, emit)
				if ctx.Err() != nil {
					return pawl.Execution{Key: "run/9/9"}, err
				}
				return x, err
			}
		}),
	}
}
