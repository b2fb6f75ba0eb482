package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// answered stops at a reply without calls.
func (r *run) answered(resp *llm.Response) (StopReason, error) {
	switch {
	case resp.Finish == llm.FinishReasonLength:
		return r.limit("the answer was cut at the bound of the model's output")
	case resp.Finish == llm.FinishReasonContentFilter:
		return StopFailed, &llm.ProviderError{Code: llm.CodeContentFilter, Message: cmp.Or(resp.Message.Text(), "the reply was withheld")}
	case resp.Finish == llm.FinishReasonError:
		return StopFailed, &llm.ProviderError{Code: llm.CodeServer, Message: cmp.Or(resp.Message.Text(), "the provider ended the reply with an error")}
	case r.output.unfit():
		return r.unfit()
	case r.lastTurn != "":
		return r.limit(r.lastTurn + "; the model was asked to answer")
	case r.scope.budget.callsRefused() > 0:
		return r.limit(fmt.Sprintf("the limit of %d calls was reached", r.scope.budget.callsRefused()))
	case strings.TrimSpace(resp.Message.Text()) == "":
		r.res.Cause = "the answer is empty"
	}
	return StopAnswer, nil
}

// finished stops at a call that ends the run.
func (r *run) finished(x *Execution) (StopReason, error) {
	switch {
	case x.Ends == EndsFailed:
		return StopFailed, &ToolError{Execution: *x, Err: x.err}
	case r.answers(x.Call) && len(r.res.Pending) > 0:
		return r.pending() // what the other calls come to may change it: the model is asked again then
	case r.answers(x.Call):
		r.res.Output, r.res.Repairs = x.Call.Args, x.Repairs
		if r.lastTurn != "" && !r.output.asked {
			return r.limit(r.lastTurn + "; the model was asked to answer")
		}
		return StopAnswer, nil
	}
	return StopFinished, nil
}

func (r *run) limit(cause string) (StopReason, error) {
	r.res.Cause = cause
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
			return r.limit("the time is used up") // somebody else's clock
		}
		return r.limit(fmt.Sprintf("the time of %v is used up", r.agent.Limits.Time))
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
		r.replies++ // the failed step has a number of its own
		r.asked = req
		x := ee.FailedExecution()
		r.spend(x.Spent) // the attempts were paid for
		r.paid(x.Spent.Usage)
		r.record(nil, []Execution{x})
	}
	return StopFailed, fmt.Errorf("%s: %w", req.Key, err)
}
