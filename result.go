package pawl

// result.go: Result and its parts: Step, Execution, Outcome, StopReason, Spent.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

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

// Failed reports whether the call itself failed, which FailFast stops for. Rejections are
// decisions, not failures.
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
	// Pending calls, with OutcomePending and OutcomeUnknown: this one, or calls nested in it.
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

// begunBeside returns the number of calls that x adds to Spent.Calls: 1 if the tool was started
// since the call became pending as before, else 0. A nil before means that the call was never
// pending.
func begunBeside(x *Execution, before *PendingCall) int {
	if before != nil && x.Attempts <= before.Attempt || x.Attempts == 0 {
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
	id, key := x.Call.ID, x.Key
	x.Outcome, x.Pending, x.Error, x.Result = OutcomeCancelled, nil, text, llm.ErrorResult(text)
	x.Result.CallID, x.Result.Key = id, key
}

// PendingCall is an open call that waits for a decision. Answer it with an llm.Decision that has
// the same Key and Digest, or use its methods.
type PendingCall struct {
	Key  llm.Key      `json:"key"`
	Call llm.ToolCall `json:"call"`
	// OutcomePending asks for an approval or a result. OutcomeUnknown asks whether the call took
	// effect.
	Outcome Outcome `json:"outcome"`
	// Binds the decision to the question, the attempt, the tool, its schema and the arguments.
	Digest string `json:"digest"`
	// Number of times that the tool was started before.
	Attempt int `json:"attempt"`
	// Reason, for the person who decides.
	Why string `json:"why,omitzero"`
	// Only a result answers the call, because pawl does not execute it.
	Passive bool `json:"passive,omitzero"`
	// End of the time for an approval. After it the question is asked again. Zero means never.
	Expires time.Time `json:"expires,omitzero"`

	// Granted are the decisions that approved the calls around this one, innermost first. They stay
	// valid when the run is resumed.
	Granted []llm.Decision `json:"granted,omitzero"`
}

// Approve returns the decision that approves the call.
func (w PendingCall) Approve(by string) llm.Decision {
	return llm.Decision{Key: w.Key, Digest: w.Digest, Approve: true, By: by}
}

// Edit returns the decision that approves the call with other arguments, which must fit the schema
// of the tool. The result informs the model of the change.
func (w PendingCall) Edit(by string, args json.RawMessage) llm.Decision {
	d := w.Approve(by)
	d.Args = args
	return d
}

// Deny returns the decision that rejects the call. The model gets the reason.
func (w PendingCall) Deny(by, reason string) llm.Decision {
	return llm.Decision{Key: w.Key, Digest: w.Digest, By: by, Reason: reason}
}

// Answer returns the decision that contains the result of the call.
func (w PendingCall) Answer(by string, r llm.ToolResult) llm.Decision {
	return llm.Decision{Key: w.Key, Digest: w.Digest, By: by, Result: &r}
}

// Values are data that the tools and the middleware of a run share, by name. A call sees the values
// from the start of its step and its own changes. Changes are merged in call order.
type Values map[string]json.RawMessage

// Spent is the usage of a run, with nested runs. Resume continues from it.
type Spent struct {
	Rounds   int       `json:"rounds"`   // steps whose calls were executed
	Requests int       `json:"requests"` // answered model requests
	Calls    int       `json:"calls"`    // started calls, with nested calls
	Usage    llm.Usage `json:"usage"`

	// Answers that did not fit Agent.Output and were sent back.
	Corrections int `json:"corrections,omitzero"`
}

// Add adds v, except Rounds and Corrections, which nested runs have of their own.
func (s *Spent) Add(v Spent) {
	s.Requests += v.Requests
	s.Calls += v.Calls
	s.Usage.Add(v.Usage)
}

// StopReason is the reason why a run ended, from a closed list.
type StopReason string

// The stop reasons. Only StopAnswer and StopFinished are success.
const (
	// The model answered.
	StopAnswer StopReason = "answer"
	// A tool ended the run as successful (FinishError).
	StopFinished StopReason = "finished"
	// Calls wait for a person or for the caller.
	StopPending StopReason = "pending"
	// A limit was reached, with or without an answer. Result.Limit names it.
	StopLimit StopReason = "limit"
	// The model repeats itself: equal calls with equal results, or failures of one tool.
	StopStalled StopReason = "stalled"
	// The context was cancelled.
	StopCancelled StopReason = "cancelled"
	// The run failed with an error.
	StopFailed StopReason = "failed"
)

// Step is one request with its reply, and the calls of the reply. Response is nil in the first step
// of a run that started with open calls.
type Step struct {
	// Request shares the memory of the conversation. It is nil in a stored Result.
	Request  *llm.Request  `json:"-"`
	Response *llm.Response `json:"response,omitzero"`
	// Executions of the calls, in call order.
	Executions []Execution `json:"executions,omitzero"`
}

// Result is the end of a run. It is plain data: store it as JSON, and continue it with
// Agent.Resume.
type Result struct {
	// The conversation, without instructions.
	Messages []llm.Message `json:"messages"`
	// Steps of this run.
	Steps []Step `json:"steps,omitzero"`
	// Usage of this run and of the runs that it resumed.
	Spent Spent      `json:"spent"`
	Stop  StopReason `json:"stop"`
	// The limit that was reached, with StopLimit. "" means none.
	Limit LimitName `json:"limit,omitzero"`
	// The reason as a sentence. "" with StopAnswer.
	Cause string `json:"cause,omitzero"`
	// The pending calls, in call order.
	Pending []PendingCall `json:"pending,omitzero"`
	Values  Values        `json:"values,omitzero"`
	// Messages that were sent to the run and that no request contains (see Steering). Resume does
	// not send them.
	Unread []llm.Message `json:"unread,omitzero"`

	// Output is the answer as JSON that fits Agent.Output. nil means no answer, or no Agent.Output.
	Output json.RawMessage `json:"output,omitzero"`
	// Repairs of the answer that Output needed, such as a removed code fence.
	Repairs []string `json:"repairs,omitzero"`
}

// Text returns the answer: Output if there is one, the result that ended the run with StopFinished,
// else the text of the last reply.
func (r *Result) Text() string {
	if r.Output != nil {
		return string(r.Output)
	}
	if r.Stop == StopFinished && len(r.Steps) > 0 {
		if x := ending(r.Steps[len(r.Steps)-1].Executions); x != nil {
			return x.Result.Text()
		}
	}
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == llm.RoleAssistant {
			return m.Text()
		}
	}
	return ""
}

// Calls returns the calls of the last reply that have no result, in call order. With AtLimitReturn
// the caller executes them.
func (r *Result) Calls() []llm.ToolCall {
	open, _ := openCalls(r.Messages)
	return open
}

// end completes the Result and emits run_ended. Every result of a run passes here.
func (r *run) end(ctx context.Context, stop StopReason, err error) (*Result, error) {
	r.release(ctx)
	r.res.Stop = stop
	r.res.Messages = append(r.res.Messages, r.history.then...)
	ended := Event{Kind: EventRunEnded, Result: r.res}
	if err != nil {
		ended.Error = err.Error()
		r.res.Cause = cmp.Or(r.res.Cause, err.Error())
	}
	r.emit(ended)
	return r.res, err
}

// release ends what the run has started or reserved. A second call has no effect.
func (r *run) release(ctx context.Context) {
	if r.reply.early != nil {
		r.reply.early.drop()
		r.reply.early = nil
	}
	r.paid(llm.Usage{})
	if in := r.inbox; in != nil {
		r.inbox = nil
		r.res.Unread = in.Close(ctx)
	}
	if r.parent.branch != nil {
		r.parent.branch.refused(r.own.outer)
	}
}

// answered stops at a reply without calls.
func (r *run) answered(resp *llm.Response) (StopReason, error) {
	switch {
	case resp.Finish == llm.FinishReasonLength:
		return r.limit(reached{"output", "the answer was cut at the bound of the model's output"})
	case resp.Finish == llm.FinishReasonContentFilter:
		return StopFailed, &llm.ProviderError{Code: llm.CodeContentFilter, Message: cmp.Or(resp.Message.Text(), "the reply was withheld")}
	case resp.Finish == llm.FinishReasonError:
		return StopFailed, &llm.ProviderError{Code: llm.CodeServer, Message: cmp.Or(resp.Message.Text(), "the provider ended the reply with an error")}
	case r.output.unfit():
		return r.unfit()
	case r.reply.final.limit != "":
		return r.limit(reached{r.reply.final.limit, r.reply.final.cause + "; the model was asked to answer"})
	case r.scope.budget.callsRefused().limit != "":
		return r.limit(r.scope.budget.callsRefused())
	case strings.TrimSpace(resp.Message.Text()) == "":
		r.res.Cause = "the answer is empty"
	}
	return StopAnswer, nil
}

// finished stops at a call that ends the run.
func (r *run) finished(x *Execution) (StopReason, error) {
	switch {
	case x.Ends == StopFailed:
		return StopFailed, &ToolError{Execution: *x, Err: x.err}
	case r.answers(x.Call) && len(r.res.Pending) > 0:
		return r.pending() // their results may change the answer
	case r.answers(x.Call):
		r.res.Output, r.res.Repairs = x.Call.Args, x.Repairs
		if r.reply.final.limit != "" && !r.output.asked {
			return r.limit(reached{r.reply.final.limit, r.reply.final.cause + "; the model was asked to answer"})
		}
		return StopAnswer, nil
	}
	return StopFinished, nil
}

func (r *run) limit(at reached) (StopReason, error) {
	r.res.Limit, r.res.Cause = at.limit, at.cause
	return StopLimit, nil
}

func (r *run) pending() (StopReason, error) {
	names := make([]string, len(r.res.Pending))
	for i, w := range r.res.Pending {
		names[i] = w.Call.Name
	}
	r.res.Cause = "calls wait for an answer: " + strings.Join(names, ", ")
	return StopPending, nil
}

func (r *run) stalled() (StopReason, error) {
	r.res.Cause = r.stall.cause
	return StopStalled, nil
}

// interrupted stops a run whose context has ended.
func (r *run) interrupted(ctx context.Context) (StopReason, error) {
	switch cause := context.Cause(ctx); cause {
	case ErrTime:
		if r.agent.Limits.Time == 0 {
			return r.limit(reached{"time", "the time is used up"}) // the caller set ErrTime
		}
		return r.limit(reached{"time", fmt.Sprintf("the time of %v is used up", r.agent.Limits.Time)})
	case ErrCancelled:
		r.res.Cause = "the run was cancelled"
		return StopCancelled, nil
	default:
		r.res.Cause = "interrupted: " + cause.Error()
		return StopCancelled, cause
	}
}

// broken stops a run whose model failed. The unfinished reply is dropped.
func (r *run) broken(ctx context.Context, req *llm.Request, err error) (StopReason, error) {
	if ctx.Err() != nil {
		return r.interrupted(ctx)
	}
	var ee ExecutionError
	if errors.As(err, &ee) {
		r.history.replies++ // the failed step has its own number
		r.reply.request = req
		x := ee.FailedExecution()
		r.spend(x.Spent)
		r.paid(x.Spent.Usage)
		r.record(nil, []Execution{x})
	}
	return StopFailed, fmt.Errorf("%s: %w", req.Key, err)
}
