package pawl

// result.go: Result and its parts: Answer, Step, Spent, Values; how a run ends.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// Result is the end of a run. It is plain data: store it as JSON, and continue it with
// Agent.Resume. A nil Result, of a run that did not start, has no text and no calls; its Err is not
// nil.
type Result struct {
	// The conversation, without instructions.
	Messages []llm.Message `json:"messages"`
	// Steps of this run.
	Steps []Step `json:"steps,omitzero"`
	// Usage of this run and of the runs that it resumed.
	Spent Spent      `json:"spent"`
	Stop  StopReason `json:"stop"` // why the run stopped
	// How the run answered. nil means that it did not, or that the Result was stored before
	// version 0.1. It is set with StopAnswer and StopFinished, and with StopLimit if there is an
	// answer all the same.
	Answer *Answer `json:"answer,omitzero"`
	// The limit that was reached, with StopLimit. "" means none.
	Limit LimitName `json:"limit,omitzero"`
	// The reason as a sentence. "" with StopAnswer.
	Cause string `json:"cause,omitzero"`
	// The text of the cause with which the context interrupted the run, with StopCancelled. ""
	// means that the run was given up (ErrCancelled), or another reason.
	Interrupted string `json:"interrupted,omitzero"`
	// The pending calls, in call order.
	Pending []PendingCall `json:"pending,omitzero"`
	Values  Values        `json:"values,omitzero"` // of the run, at its end
	// Messages that were sent to the run and that no request contains (see Steering). Resume does
	// not send them.
	Unread []llm.Message `json:"unread,omitzero"`

	// Output is the answer as JSON that fits Agent.Output. nil means no answer, or no Agent.Output.
	Output json.RawMessage `json:"output,omitzero"`
	// Repairs of the answer that Output needed, such as a removed code fence.
	Repairs []string `json:"repairs,omitzero"`
	// Unfit is why the last answer does not fit Agent.Output, with StopFailed: the Faults of the
	// *OutputError. nil means that the run stopped for another reason.
	Unfit []string `json:"unfit,omitzero"`

	claimed uint32 // 1 after a Resume has begun to execute the open calls; accessed atomically
}

// Answer is how a run answered. It is set when the run stops, and never derived from Steps, which
// events and stored results may not have.
type Answer struct {
	// The answer as text. With AnswerOutput it is JSON, equal to Result.Output.
	Text string `json:"text"`
	// Where the answer comes from: "reply", "output" or "tool".
	From AnswerSource `json:"from"`
	// The call whose result is the answer, with AnswerTool. "" means none.
	Key llm.Key `json:"key,omitzero"`
	// A limit made the run ask for the answer before it was done. Resume under a raised limit asks
	// the model again. An answer that only passed a limit is not forced, and Resume keeps it.
	Forced bool `json:"forced,omitzero"`
}

// AnswerSource is the place that an answer comes from, from a closed list.
type AnswerSource string

// The sources of answers.
const (
	// The text of the last reply.
	AnswerReply AnswerSource = "reply"
	// JSON that fits Agent.Output.
	AnswerOutput AnswerSource = "output"
	// The result of the tool that ended the run (FinishError).
	AnswerTool AnswerSource = "tool"
)

// Text returns the text of the answer, or the text of the last reply if there is no answer.
func (r *Result) Text() string {
	if r == nil {
		return ""
	}
	if a := r.answered(); a != nil {
		return a.Text
	}
	if i := lastOf(r.Messages, llm.RoleAssistant); i >= 0 {
		return r.Messages[i].Text()
	}
	return ""
}

// answered returns the answer of the run. nil means none.
//
// Results that were stored before version 0.1 have no Answer. For them it is found as it was then:
// in Output, in the last step, or in the last reply. At a limit it counts as forced, since they do
// not say whether it was: a resumed run then asks the model again.
func (r *Result) answered() *Answer {
	if r.Answer != nil {
		return r.Answer
	}

	forced := false
	switch r.Stop.Class() {
	case ClassAnswered:
	case ClassLimited:
		forced = true
	default:
		return nil
	}

	if r.Output != nil {
		return &Answer{Text: string(r.Output), From: AnswerOutput, Forced: forced}
	}
	if len(r.Steps) > 0 {
		if x := ending(r.Steps[len(r.Steps)-1].Executions); x != nil {
			return &Answer{Text: x.Result.Text(), From: AnswerTool, Key: x.Key, Forced: forced}
		}
	}
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == llm.RoleAssistant && !r.Messages[n-1].HasCalls() {
		return &Answer{Text: r.Messages[n-1].Text(), From: AnswerReply, Forced: forced}
	}
	return nil
}

// Err returns nil for StopAnswer and StopFinished, and a *StopError for all other reasons. It is
// for results that were stored or that another process sent: runs return the same error, and the
// cause itself if they failed. In the tree of the error is the *OutputError of an answer that does
// not fit.
func (r *Result) Err() error {
	if r == nil {
		return errNoResult
	}
	if r.Stop.Class() == ClassAnswered {
		return nil
	}
	stop := &StopError{Reason: r.Stop, Result: r}
	switch {
	case r.Interrupted != "":
		stop.Err = errors.New(r.Interrupted)
	case len(r.Unfit) > 0:
		stop.Err = &OutputError{Text: r.lastAnswer(), Faults: r.Unfit, Result: r}
	}
	return stop
}

var errNoResult = errors.New("there is no Result: the run did not start, and its error says why")

// fault returns what contradicts itself in a Result that a Runner returned. nil means nothing.
func (r *Result) fault() error {
	switch {
	case r == nil:
		return errors.New("the Runner returned neither a Result nor an error")
	case r.Stop == StopPending && len(r.Pending) == 0:
		return fmt.Errorf("the Result has the Stop %q and no Pending; add the open questions", r.Stop)
	case r.Stop.Class() != ClassAnswered:
		return nil
	}
	if open := r.Calls(); len(open) > 0 {
		return fmt.Errorf("the Result has the Stop %q, and the call %q of %s has no result; add it to Messages",
			r.Stop, open[0].ID, open[0].Name)
	}
	return nil
}

// lastAnswer returns the last answer that the model gave, which may not fit: the arguments of the
// call with the answer, or else the text of the last reply.
func (r *Result) lastAnswer() string {
	i := lastOf(r.Messages, llm.RoleAssistant)
	if i < 0 {
		return ""
	}
	for _, c := range r.Messages[i].Calls() {
		if c.Name == answerTool {
			return string(c.Args)
		}
	}
	return r.Messages[i].Text()
}

// Calls returns the calls of the last reply that have no result, in call order. With AtLimitReturn
// the caller executes them.
func (r *Result) Calls() []llm.ToolCall {
	if r == nil {
		return nil
	}
	open, _ := openCalls(r.Messages)
	return open
}

// Step is one request with its reply, and the calls of the reply. Response is nil in the first step
// of a run that resumed open calls, and in the step of a failed request without any part of a
// reply.
type Step struct {
	// Request shares the memory of the conversation. It is nil in a stored Result.
	Request  *llm.Request  `json:"-"`
	Response *llm.Response `json:"response,omitzero"` // the reply; see Step for nil
	// Executions of the calls, in call order.
	Executions []Execution `json:"executions,omitzero"`
	// Error is the text of the error of a request that failed or was cancelled. Response is then
	// the part of the reply that arrived, with no Finish, and its calls are not executed. "" means
	// that the request was answered.
	Error string `json:"error,omitzero"`
}

// Spent is the usage of a run, with nested runs. Resume continues from it.
//
// Requests counts every request that was sent to a provider, answered or not: repeated requests,
// the attempts of package react, the requests for summaries, and the last request of a run that
// failed or was cancelled. Replies without a request, such as the decisions of a team's manager,
// do not count. A Model of the program that fails counts its request with llm.Delta.Requests.
// Requests that a tool sends by itself do not count, nor requests before a crash whose replies were
// not stored.
type Spent struct {
	Rounds   int       `json:"rounds"`   // steps whose calls were executed
	Requests int       `json:"requests"` // requests to models; see above
	Calls    int       `json:"calls"`    // started calls, with nested calls
	Usage    llm.Usage `json:"usage"`    // tokens and cost of all requests

	// Answers that did not fit Agent.Output and were sent back.
	Corrections int `json:"corrections,omitzero"`
}

// Add adds v, except Rounds and Corrections, which nested runs have of their own.
func (s *Spent) Add(v Spent) {
	s.Requests += v.Requests
	s.Calls += v.Calls
	s.Usage.Add(v.Usage)
}

// Values are data that the tools and the middleware of a run share, by name. A call sees the values
// from the start of its step and its own changes. Changes are merged in call order.
type Values map[string]json.RawMessage

// end completes the Result, emits run_ended, and returns the error of the run. Every result of a
// run passes here. An answer that passed a limit of tokens or cost is no plain answer.
func (r *run) end(ctx context.Context, stop StopReason, err error) (*Result, error) {
	r.release(ctx)
	if stop.Class() == ClassAnswered {
		if over := r.own.passed(); over.limit != "" {
			stop, _ = r.limit(over)
		}
	}
	r.res.Stop = stop
	r.res.Answer = r.reply.answer

	// Messages that no request has contained are answered by a run that resumes this Result.
	r.res.Messages = append(r.res.Messages, r.history.then...)
	ended := Event{Kind: EventRunEnded, Result: r.res}
	if err != nil {
		ended.Error = err.Error()
		r.res.Cause = cmp.Or(r.res.Cause, err.Error())
	}
	r.emit(ended)
	switch {
	case stop.Class() == ClassAnswered:
		return r.res, nil
	case stop == StopFailed:
		return r.res, err
	}
	return r.res, &StopError{Reason: stop, Result: r.res, Err: err}
}

// release ends what the run has started or reserved. A second call has no effect.
func (r *run) release(ctx context.Context) {
	if r.reply.ahead != nil {
		r.reply.ahead.drop()
		r.reply.ahead = nil
	}
	r.paid(llm.Usage{}, false)
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
	case r.output.rejected():
		return r.unfit()
	}

	r.reply.answer = &Answer{Text: resp.Message.Text(), From: AnswerReply}
	if r.res.Output != nil {
		r.reply.answer = &Answer{Text: string(r.res.Output), From: AnswerOutput}
	}
	switch {
	case r.reply.final.limit != "":
		return r.asked()
	// The result of the refused call asked the model to answer with what it had.
	case r.scope.budget.callsRefused().limit != "":
		r.reply.answer.Forced = true
		return r.limit(r.scope.budget.callsRefused())
	case saysNothing(resp):
		r.reply.answer = nil
		return StopFailed, &llm.ProviderError{Code: llm.CodeMalformedReply, Message: "the answer is empty"}
	}
	return StopAnswer, nil
}

// finished stops at a call that ends the run.
func (r *run) finished(x *Execution) (StopReason, error) {
	switch {
	case x.Ends == StopFailed:
		var fault *ExecutorError
		if errors.As(x.err, &fault) {
			return StopFailed, fault
		}
		return StopFailed, &ToolError{Execution: *x, Err: x.err}
	case r.answers(x.Call) && len(r.res.Pending) > 0:
		return r.pending() // their results may change the answer
	case r.answers(x.Call):
		r.res.Output, r.res.Repairs = x.Call.Args, x.Repairs
		r.reply.answer = &Answer{Text: string(x.Call.Args), From: AnswerOutput}
		if r.reply.final.limit != "" && !r.output.asked {
			return r.asked()
		}
		return StopAnswer, nil
	}
	r.reply.answer = &Answer{Text: x.Result.Text(), From: AnswerTool, Key: x.Key}
	return StopFinished, nil
}

func (r *run) limit(at reached) (StopReason, error) {
	r.res.Limit = at.limit
	r.res.Cause = at.cause
	return StopLimit, nil
}

// asked stops at the answer that the model was asked for because of a limit.
func (r *run) asked() (StopReason, error) {
	r.reply.answer.Forced = true
	why := r.reply.final
	if now := r.own.passed(); now.limit == why.limit {
		why = now // with the usage of the answer
	}
	return r.limit(reached{why.limit, why.cause + "; the model was asked to answer"})
}

func (r *run) pending() (StopReason, error) {
	names := make([]string, len(r.res.Pending))
	for i, w := range r.res.Pending {
		names[i] = w.Call.Name
	}
	r.res.Cause = "calls wait for an answer: " + strings.Join(names, ", ")
	for _, why := range r.resumed.refused {
		r.res.Cause += "; " + why
	}
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
		r.res.Interrupted = cause.Error()
		return StopCancelled, cause
	}
}

// broken stops a run whose request failed or was cancelled. The step has the unfinished reply, and
// the conversation does not.
func (r *run) broken(ctx context.Context, req *llm.Request, reply *llm.Response, err error) (StopReason, error) {
	spent := Spent{Requests: reply.Requests, Usage: reply.Usage}
	if ctx.Err() != nil {
		spent.Requests++ // the request that was cancelled
		err = context.Cause(ctx)
	}
	var execs []Execution
	var ee ExecutionError
	if errors.As(err, &ee) {
		x := ee.FailedExecution()
		spent.Add(x.Spent)
		execs = []Execution{x}
	}
	r.history.replies++ // the failed step has its own number
	r.reply.request = req
	r.spend(spent)
	r.paid(*spent.Usage.Plus(r.reply.lost), false)
	reply.Seal()
	if len(reply.Message.Parts) == 0 {
		reply = nil
	}
	r.record(Step{Response: reply, Executions: execs, Error: err.Error()})
	if ctx.Err() != nil {
		return r.interrupted(ctx)
	}
	var over LimitError
	if errors.As(err, &over) {
		name, cause := over.LimitReached()
		return r.limit(reached{name, cause})
	}
	return StopFailed, fmt.Errorf("%s: %w", req.Key, err)
}
