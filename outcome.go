package pawl

// outcome.go: Outcome, Execution, and how a call gets its outcome and its result for the model.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// Outcome is the result of a call in one word, from a closed list.
type Outcome string

// The outcomes. All but OutcomePending and OutcomeUnknown are final: the call has its result.
const (
	// The tool ran and succeeded.
	OutcomeOK Outcome = "ok"
	// The tool ran and reported a failure.
	OutcomeError Outcome = "error"
	// The arguments do not fit the schema. The tool did not run.
	OutcomeInvalid Outcome = "invalid"
	// No tool has the name.
	OutcomeUnknownTool Outcome = "unknown_tool"
	// A middleware rejected the call.
	OutcomeBlocked Outcome = "blocked"
	// A person or a policy rejected the call.
	OutcomeDenied Outcome = "denied"
	// The tool did not end within its timeout.
	OutcomeTimeout Outcome = "timeout"
	// The run was cancelled before or during the call.
	OutcomeCancelled Outcome = "cancelled"
	// The tool panicked.
	OutcomePanicked Outcome = "panicked"
	// Not started: the reply was cut, a limit was reached, or another call stopped the step.
	OutcomeSkipped Outcome = "skipped"
	// The call waits for an approval or for a result from outside.
	OutcomePending Outcome = "pending"
	// The call was interrupted and may have taken effect. It waits for a decision.
	OutcomeUnknown Outcome = "unknown"
)

// Settled reports whether the outcome is final: the call has its result.
func (o Outcome) Settled() bool { return o != OutcomePending && o != OutcomeUnknown }

// Failed reports whether the call itself failed. FailFast does not stop for rejections.
func (o Outcome) Failed() bool {
	switch o {
	case OutcomeError, OutcomeInvalid, OutcomeUnknownTool, OutcomeTimeout, OutcomePanicked:
		return true
	}
	return false
}

// Execution is the record of a call. It is plain data and may be stored and sent.
type Execution struct {
	Key llm.Key `json:"key"`
	// Position among the calls of the step, or of Invocation.Do.
	Index int `json:"index"`
	// The call as executed. A middleware may have changed it.
	Call    llm.ToolCall   `json:"call"`
	Outcome Outcome        `json:"outcome"`
	Result  llm.ToolResult `json:"result"`
	// Error text for people. The model reads Result.
	Error string `json:"error,omitzero"`
	// StopFailed or StopFinished: the call ends the run. "" means that it does not.
	Ends StopReason `json:"ends,omitzero"`
	// Repairs of the arguments.
	Repairs []string `json:"repairs,omitzero"`
	// Pending calls, with OutcomePending and OutcomeUnknown: this one, or calls nested in it. Empty
	// means that the call has no question: it runs when an earlier call has its answer.
	Pending []PendingCall `json:"waiting,omitzero"`
	// Run values that the call set.
	Values Values `json:"values,omitzero"`
	// Usage of nested calls and runs.
	Spent Spent `json:"spent,omitzero"`
	// Number of times that the tool was started.
	Attempts int           `json:"attempts"`
	Decision *llm.Decision `json:"decision,omitzero"`
	// The tool did not run: an earlier call supplied the result.
	Cached bool `json:"cached,omitzero"`
	local  bool // executed by this process, which has counted it in the budget
	// The value of Limits.Calls that prevented the call. 0 means none.
	Limited int       `json:"limited,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`

	err error // of the tool, for errors.Is in this process
}

// Err returns the error of the tool or of the pipeline, for errors.Is. It is nil if there is none,
// or if the Execution was read from JSON.
func (x *Execution) Err() error { return x.err }

// SetErr replaces the error that Err returns. Package redact uses it to hide secrets.
func (x *Execution) SetErr(err error) { x.err = err }

// newCalls returns the number of calls that x adds to Spent.Calls: 1 if the tool was started since
// the call became pending, as one of before, else 0.
func newCalls(x *Execution, before []PendingCall) int {
	again := func(w PendingCall) bool { return w.Key == x.Key && x.Attempts <= w.Attempt }
	if x.Attempts == 0 || slices.ContainsFunc(before, again) {
		return 0
	}
	return 1
}

// waitsInside reports whether the call waits for calls nested in it. Its usage and values count
// when it has ended: until then it is executed again, and finds the results of the nested calls.
func (x *Execution) waitsInside() bool {
	return len(x.Pending) > 0 && x.Pending[0].Key != x.Key
}

// giveUp gives a pending call the result that the run was cancelled.
func (x *Execution) giveUp() {
	text := "Not run: the run was cancelled."
	switch {
	case x.waitsInside():
		text = "Cancelled while calls nested in it were pending. It may have taken effect in part."
	case x.Outcome == OutcomeUnknown:
		text = "Cancelled. It was started and interrupted: it may have taken effect."
	}
	id := x.Call.ID
	key := x.Key
	x.Outcome, x.Pending, x.Error, x.Result = OutcomeCancelled, nil, text, llm.ErrorResult(text)
	x.Result.CallID = id
	x.Result.Key = key
}

const defaultMaxResult = 32 << 10

// complete turns what came back through the middleware into the outcome and the result.
func (w *work) complete(ctx context.Context, res llm.ToolResult, err error) {
	x := &w.x
	if !w.inv.accepted {
		x.Call = w.task.Call // unchanged
	}
	if w.inv.work != nil {
		w.inv.close()
		x.Values = w.inv.set
		x.Spent = w.inv.spent
		x.Cached = w.inv.cached
		if in := w.inv.ends; in != nil { // a nested call ended the run; the tool cannot change that
			var ctl *control
			if !errors.As(err, &ctl) {
				err = in.control()
			}
		}
	}
	x.err = err
	switch {
	case len(x.Pending) > 0:
		x.Outcome = x.Pending[0].Outcome
		if x.waitsInside() {
			x.Outcome = OutcomePending // what happened is known: it can be executed again
		}
		return
	case err != nil:
		res = w.failed(err)
		if !x.Outcome.Settled() {
			return
		}
	default:
		x.Outcome = OutcomeOK
		if res.IsError {
			x.Outcome, x.Error = OutcomeError, text.Clip(res.Text(), 500)
		}
	}
	res.Data = bytes.Clone(res.Data)
	if len(res.Parts) == 0 && res.Data != nil {
		res.Parts = []llm.Part{llm.Text{Text: string(res.Data)}}
	}
	if res.Data != nil && !json.Valid(res.Data) {
		res.Data = nil // the conversation could not be stored with it
		x.Error = cmp.Or(x.Error, "the tool's data was no JSON and was left out")
	}
	res.Parts = w.sendable(ctx, res.Parts)
	if d := x.Decision; d != nil && d.Approve && d.Args != nil {
		changed := "(Not run as you asked: the approver changed the arguments to " +
			text.Clip(string(d.Args), 1000) + ")\n"
		res.Parts = slices.Insert(res.Parts, 0, llm.Part(llm.Text{Text: changed}))
	}
	limit := defaultMaxResult
	if w.tool != nil && w.tool.MaxResult != 0 {
		limit = w.tool.MaxResult
	}
	res.Parts = w.truncated(ctx, res.Parts, limit)
	res.CallID, res.Key = w.task.Call.ID, w.task.Key
	x.Result = res
}

// failed records the failure, and returns its result for the model.
func (w *work) failed(err error) llm.ToolResult {
	x := &w.x
	var (
		f   *failure
		ctl *control
		b   *blocked
	)
	switch {
	case errors.As(err, &ctl):
		x.Ends = ctl.ends
		if ctl.ends == StopFinished {
			x.Outcome = OutcomeOK
			return ctl.result
		}
		x.Outcome, x.Error = OutcomeError, ctl.Error()
		return llm.ErrorResult("Stopped: " + ctl.Error())
	case errors.As(err, &b):
		x.Outcome = OutcomeBlocked
		x.Error = b.reason
		return llm.ErrorResult("Blocked: " + b.reason)
	case errors.As(err, &f):
		x.Outcome, x.Error, x.Limited = f.outcome, f.Error(), f.limit
		if w.task.interrupted() && x.Attempts == w.task.Attempt && f.outcome != OutcomeUnknown {
			return llm.ErrorResult(f.text + " It was begun before and interrupted: what it does may have happened.")
		}
		if f.outcome == OutcomeUnknown {
			q := PendingCall{Key: w.task.Key, Call: x.Call, Outcome: OutcomeUnknown, Attempt: x.Attempts, Why: f.text}
			q.Digest = digest(q, w.tool)
			x.Pending = []PendingCall{q}
		}
		return llm.ErrorResult(f.text)
	}
	x.Outcome, x.Error = OutcomeError, err.Error()
	return llm.ErrorResult(err.Error())
}

func (w *work) event(e Event) {
	e.Run, e.Step, e.Path = w.task.Run, w.task.Step, w.task.Key
	w.inv.send(e)
}

func (w *work) notice(code, text string) { w.event(Event{Kind: EventNotice, Code: code, Text: text}) }
