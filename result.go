package pawl

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

// Outcome says how a call ended, from a closed list.
type Outcome string

// The outcomes. Every one but OutcomePending and OutcomeUnknown settles the call: it has its result.
const (
	OutcomeOK          Outcome = "ok"           // it ran, and did what was asked
	OutcomeError       Outcome = "error"        // it ran, and told of a failure
	OutcomeInvalid     Outcome = "invalid"      // the arguments do not fit; it did not run
	OutcomeUnknownTool Outcome = "unknown_tool" // there is no such tool
	OutcomeBlocked     Outcome = "blocked"      // a middleware refused it
	OutcomeDenied      Outcome = "denied"       // a person or a policy refused it
	OutcomeTimeout     Outcome = "timeout"      // it did not end in time
	OutcomeCancelled   Outcome = "cancelled"    // it was ended, or not begun, because the run was
	OutcomePanicked    Outcome = "panicked"     // the tool's code failed
	OutcomeSkipped     Outcome = "skipped"      // not begun: its reply was cut, a limit was reached, or another call stopped the step
	OutcomePending     Outcome = "pending"      // it waits for a person or for the caller
	OutcomeUnknown     Outcome = "unknown"      // it was interrupted and may have happened; it waits for somebody who knows
)

// Settled reports whether a call with this outcome has its result.
func (o Outcome) Settled() bool { return o != OutcomePending && o != OutcomeUnknown }

// Failed reports whether o is a failure of the call itself, which FailFast stops for. Blocks and denials are decisions, not
// failures.
func (o Outcome) Failed() bool {
	switch o {
	case OutcomeError, OutcomeInvalid, OutcomeUnknownTool, OutcomeTimeout, OutcomePanicked:
		return true
	}
	return false
}

// Execution is the record of a call carried out. It is plain data: it may be stored and sent.
type Execution struct {
	Key      llm.Key        `json:"key"`
	Index    int            `json:"index"` // the call's place among the calls of its step, or of its Invocation.Do
	Call     llm.ToolCall   `json:"call"`  // as it ran: a middleware may have changed it
	Outcome  Outcome        `json:"outcome"`
	Result   llm.ToolResult `json:"result"`
	Error    string         `json:"error,omitzero"`   // what went wrong, for the record; the model reads Result
	Ends     StopReason     `json:"ends,omitzero"`    // StopFailed or StopFinished: the call ends the run; "" means that it does not
	Repairs  []string       `json:"repairs,omitzero"` // what was mended in the arguments
	Pending  []PendingCall  `json:"waiting,omitzero"` // with OutcomePending and OutcomeUnknown: the questions
	Values   Values         `json:"values,omitzero"`  // what the call set
	Spent    Spent          `json:"spent,omitzero"`   // by the calls and requests made inside this call
	Attempts int            `json:"attempts"`         // how often the tool was begun
	Decision *llm.Decision  `json:"decision,omitzero"`
	Cached   bool           `json:"cached,omitzero"` // answered with what an earlier call gave; nothing ran
	here     bool           // it went through this process' pipeline, which has counted it in the budget
	Limited  int            `json:"limited,omitzero"` // the Limits.Calls for which it was not begun; 0: it was not for that
	Started  time.Time      `json:"started,omitzero"` // when the pipeline took the call
	Ended    time.Time      `json:"ended,omitzero"`

	err error // what the tool returned, for errors.Is within the process
}

// Err returns the error of the tool or of the pipeline, for errors.Is. It is nil if there is none, or if
// the Execution was read from JSON.
func (x *Execution) Err() error { return x.err }

// SetErr replaces what Err returns. Package redact uses it to hide secrets.
func (x *Execution) SetErr(err error) { x.err = err }

// begunBeside is 1 for a call that was begun since it waited for before; nil: since ever. Those count as carried out.
func begunBeside(x *Execution, before *PendingCall) int {
	if before != nil && x.Attempts <= before.Attempt || x.Attempts == 0 {
		return 0
	}
	return 1
}

// waitsInside reports whether the call waits for calls that were made inside of it. What it spent and set is counted when it has ended: it is
// carried out again for that, and finds what was done.
func (x *Execution) waitsInside() bool {
	return len(x.Pending) > 0 && x.Pending[0].Key != x.Key
}

// giveUp answers a call that waits, because nobody will.
func (x *Execution) giveUp() {
	text := "Not run: the run was cancelled."
	switch {
	case x.waitsInside():
		text = "Cancelled while calls made inside of it waited. What it does may have happened in part."
	case x.Outcome == OutcomeUnknown:
		text = "Cancelled. It was begun and interrupted: what it does may have happened."
	}
	id, key := x.Call.ID, x.Key
	x.Outcome, x.Pending, x.Error, x.Result = OutcomeCancelled, nil, text, llm.ErrorResult(text)
	x.Result.CallID, x.Result.Key = id, key
}

// PendingCall is an open call and the question it waits with. Answer it with a Decision that has the same Key and Digest.
type PendingCall struct {
	Key     llm.Key      `json:"key"`
	Call    llm.ToolCall `json:"call"`
	Outcome Outcome      `json:"outcome"`          // OutcomePending: may it run, or what is the result? OutcomeUnknown: did it happen?
	Digest  string       `json:"digest"`           // binds the answer to question, attempt, tool, schema and arguments
	Attempt int          `json:"attempt"`          // how often the call was begun before
	Why     string       `json:"why,omitzero"`     // for the person who decides
	Passive bool         `json:"passive,omitzero"` // only a result answers it: there is nothing to run
	Expires time.Time    `json:"expires,omitzero"` // after that a yes comes too late, and the question is asked anew; zero: never

	// Granted has the decisions by which the calls around this one were let run, the innermost first, where it was made inside others. They hold
	// when the run is resumed, so nobody is asked for those again.
	Granted []llm.Decision `json:"granted,omitzero"`
}

// Approve returns the decision that lets the call run.
func (w PendingCall) Approve(by string) llm.Decision {
	return llm.Decision{Key: w.Key, Digest: w.Digest, Approve: true, By: by}
}

// Edit returns the decision that lets the call run with other arguments, which must fit the tool's schema; the model is told.
func (w PendingCall) Edit(by string, args json.RawMessage) llm.Decision {
	d := w.Approve(by)
	d.Args = args
	return d
}

// Deny returns the decision that refuses the call; the model is told the reason.
func (w PendingCall) Deny(by, reason string) llm.Decision {
	return llm.Decision{Key: w.Key, Digest: w.Digest, By: by, Reason: reason}
}

// Answer returns the decision that gives the call's result.
func (w PendingCall) Answer(by string, r llm.ToolResult) llm.Decision {
	return llm.Decision{Key: w.Key, Digest: w.Digest, By: by, Result: &r}
}

// Values is data of a run that tools and middleware share, by name. A call sees the run's values as they were when its
// step began, with its own changes; changes are merged in call order.
type Values map[string]json.RawMessage

// Spent is what a run has used, inner runs included. It survives Resume.
type Spent struct {
	Rounds   int       `json:"rounds"`   // steps whose calls were carried out
	Requests int       `json:"requests"` // model requests answered
	Calls    int       `json:"calls"`    // calls begun, those made inside calls included
	Usage    llm.Usage `json:"usage"`

	Corrections int `json:"corrections,omitzero"` // answers that did not fit Agent.Output and were sent back
}

// Add adds what v says, except Rounds and Corrections: an inner run's are its own.
func (s *Spent) Add(v Spent) {
	s.Requests += v.Requests
	s.Calls += v.Calls
	s.Usage.Add(v.Usage)
}

// StopReason is why a run ended.
type StopReason string

// The stop causes. Only StopAnswer and StopFinished are success.
const (
	StopAnswer    StopReason = "answer"    // the model answered
	StopFinished  StopReason = "finished"  // a tool said that the task is done
	StopPending   StopReason = "pending"   // calls wait for a person or for the caller
	StopLimit     StopReason = "limit"     // a limit was reached, whether or not there is an answer
	StopStalled   StopReason = "stalled"   // the model turns in circles: the same calls to the same results, or failures of one tool
	StopCancelled StopReason = "cancelled" // the context was cancelled
	StopFailed    StopReason = "failed"    // an error ended it
)

// Step is one decision and what came of it. Response is nil in the first step of a run that began with open calls.
type Step struct {
	Request    *llm.Request  `json:"-"` // shares the transcript's memory; nil after a Result was stored
	Response   *llm.Response `json:"response,omitzero"`
	Executions []Execution   `json:"executions,omitzero"` // in call order
}

// Result is how a run ended. It is plain data: store it as JSON, and go on from it with Agent.Resume.
type Result struct {
	Messages []llm.Message `json:"messages"`         // the transcript, without instructions
	Steps    []Step        `json:"steps,omitzero"`   // of this run
	Spent    Spent         `json:"spent"`            // of this run and those it resumed
	Stop     StopReason    `json:"stop"`             // the cause, in a word
	Limit    LimitName     `json:"limit,omitzero"`   // the limit that was reached, with StopLimit
	Cause    string        `json:"cause,omitzero"`   // the cause, in a sentence; "" with StopAnswer
	Pending  []PendingCall `json:"pending,omitzero"` // the calls that wait, in call order
	Values   Values        `json:"values,omitzero"`  // as the run left them
	Unread   []llm.Message `json:"unread,omitzero"`  // messages sent to the run that no request had (see Steering); Resume does not send them by itself

	// Output is the answer as JSON that fits Agent.Output in full; nil when there is none, or no Output. Repairs says what was mended in
	// what the model wrote to read it so: a code fence taken off, a number that was text.
	Output  json.RawMessage `json:"output,omitzero"`
	Repairs []string        `json:"repairs,omitzero"`
}

// Text returns the answer: Output where there is one, else the text of the last reply, or with StopFinished the result that ended the run.
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

// Calls returns the calls of the last reply that have no result yet, in call order. With AtLimit Return they are what is
// handed back to the caller.
func (r *Result) Calls() []llm.ToolCall {
	open, _ := openCalls(r.Messages)
	return open
}

// end completes the Result and emits run_ended. Every result of a run passes here.
func (r *run) end(ctx context.Context, stop StopReason, err error) (*Result, error) {
	r.release(ctx)
	r.res.Stop = stop
	r.res.Messages = append(r.res.Messages, r.history.then...) // they follow when the open calls have results
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
	r.drop()
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
		return r.pending() // what the other calls come to may change it: the model is asked again then
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
			return r.limit(reached{"time", "the time is used up"}) // somebody else's clock
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

// broken stops a run whose model failed. What it had said is dropped; the transcript is as it was before the request.
func (r *run) broken(ctx context.Context, req *llm.Request, err error) (StopReason, error) {
	if ctx.Err() != nil {
		return r.interrupted(ctx)
	}
	var ee ExecutionError
	if errors.As(err, &ee) {
		r.history.replies++ // the failed step has a number of its own
		r.reply.request = req
		x := ee.FailedExecution()
		r.spend(x.Spent) // the attempts were paid for
		r.paid(x.Spent.Usage)
		r.record(nil, []Execution{x})
	}
	return StopFailed, fmt.Errorf("%s: %w", req.Key, err)
}
