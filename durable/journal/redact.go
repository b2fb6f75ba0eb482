package journal

// redact.go: hides secrets in what is shown of a run.

import (
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// redactor returns r with the secrets in the arguments of a run.
func redactor(h *record.History, r *redact.Redactor) *redact.Redactor {
	r = r.Clone()
	for name, schema := range h.Marked() {
		r.AddTools(&pawl.Tool{Name: name, Input: schema})
	}
	for _, b := range h.Replies {
		r.Learn(b.Response.Message.Calls()...)
	}
	for _, started := range h.Attempts {
		r.Learn(started[len(started)-1].Call) // the arguments may differ from the model's
	}
	for _, b := range h.Outcomes {
		r.Learn(b.Call) // a nested call
	}
	for _, asked := range h.Questions {
		for _, q := range asked {
			r.Learn(q.Waiting.Call)
			if q.Answer != nil {
				r.Learn(llm.ToolCall{Name: q.Waiting.Call.Name, Args: q.Answer.Args})
			}
		}
	}
	return r
}

// Redacted returns a copy of x without the secrets of r. A nil r hides nothing.
func (x *Export) Redacted(r *redact.Redactor) *Export {
	out := *x
	input := r.Result(&pawl.Result{Messages: x.Messages, Values: x.Values})
	out.Messages = input.Messages
	out.Values = input.Values
	out.Agent = r.String(x.Agent)

	out.Replies = append([]ExportedReply{}, x.Replies...)
	for i := range out.Replies {
		one := &out.Replies[i]
		step := redactedStep(r, pawl.Step{Response: &one.Response})
		one.Response = *step.Response
	}

	out.Calls = append([]ExportedCall{}, x.Calls...)
	for i := range out.Calls {
		one := &out.Calls[i]
		one.Call = r.Call(one.Call)
		one.Execution = redactedExecution(r, one.Execution)
	}

	out.Steered = append([]ExportedWord(nil), x.Steered...)
	for i := range out.Steered {
		one := &out.Steered[i]
		one.Messages = r.Result(&pawl.Result{Messages: one.Messages}).Messages
	}

	out.Pending = append([]ExportedAsk(nil), x.Pending...)
	for i := range out.Pending {
		one := &out.Pending[i]
		one.Call = r.Call(one.Call)
		one.Why = r.String(one.Why)
	}

	out.End = x.End.redacted(r)
	return &out
}

func (e *ExportedEnd) redacted(r *redact.Redactor) *ExportedEnd {
	if e == nil {
		return nil
	}
	end := *e
	res := r.Result(&pawl.Result{
		Values: e.Values,
		Output: e.Output,
		Answer: e.Answer,
		Spent:  e.Spent,
		Cause:  e.Cause,
		Unfit:  e.Unfit,
	})
	end.Values = res.Values
	end.Output = res.Output
	end.Answer = res.Answer
	end.Spent = res.Spent
	end.Cause = res.Cause
	end.Unfit = res.Unfit
	end.Error = r.String(e.Error)
	return &end
}

// Redacted returns f without the secrets of r. A nil r hides nothing.
func (f LedgerEntry) Redacted(r *redact.Redactor) LedgerEntry {
	if len(f.Derivations) > 0 {
		f.Derivations = redactedExecution(r, pawl.Execution{Call: f.Call, Derivations: f.Derivations}).Derivations
	}
	f.Call = r.Call(f.Call)
	f.Error = r.String(f.Error)
	if f.Question != nil {
		f.Question = &r.Result(&pawl.Result{Pending: []pawl.PendingCall{*f.Question}}).Pending[0]
	}
	if f.Answer != nil {
		f.Answer = redactedExecution(r, pawl.Execution{Call: f.Call, Decision: f.Answer}).Decision
	}
	return f
}

// A Redactor knows results as a whole; these are its parts.

func redactedStep(r *redact.Redactor, s pawl.Step) pawl.Step {
	return r.Result(&pawl.Result{Steps: []pawl.Step{s}}).Steps[0]
}

func redactedExecution(r *redact.Redactor, x pawl.Execution) pawl.Execution {
	return redactedStep(r, pawl.Step{Executions: []pawl.Execution{x}}).Executions[0]
}
