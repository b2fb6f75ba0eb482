package journal

import (
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

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

// Redacted returns a copy of x without the secrets of r.
func (x *Export) Redacted(r *redact.Redactor) *Export {
	out := *x
	hide := func(res pawl.Result) *pawl.Result { return r.Result(&res) }
	given := hide(pawl.Result{Messages: x.Messages, Values: x.Values})
	out.Messages, out.Values, out.Agent = given.Messages, given.Values, r.String(x.Agent)
	out.Replies = append([]ExportedReply{}, x.Replies...)
	for i := range out.Replies {
		one := &out.Replies[i]
		one.Response = *hide(pawl.Result{Steps: []pawl.Step{{Response: &one.Response}}}).Steps[0].Response
	}
	out.Calls = append([]ExportedCall{}, x.Calls...)
	for i := range out.Calls {
		one := &out.Calls[i]
		one.Call, one.Execution = r.Call(one.Call),
			hide(pawl.Result{Steps: []pawl.Step{{Executions: []pawl.Execution{one.Execution}}}}).Steps[0].Executions[0]
	}
	out.Steered = append([]ExportedWord(nil), x.Steered...)
	for i := range out.Steered {
		out.Steered[i].Messages = hide(pawl.Result{Messages: out.Steered[i].Messages}).Messages
	}
	out.Pending = append([]ExportedAsk(nil), x.Pending...)
	for i := range out.Pending {
		out.Pending[i].Call, out.Pending[i].Why = r.Call(out.Pending[i].Call), r.String(out.Pending[i].Why)
	}
	if x.End != nil {
		end := *x.End
		was := hide(pawl.Result{Values: end.Values, Output: end.Output, Answer: end.Answer, Spent: end.Spent, Cause: end.Cause})
		end.Values, end.Output, end.Spent, end.Cause, end.Error = was.Values, was.Output, was.Spent,
			was.Cause, r.String(end.Error)
		end.Answer = was.Answer
		out.End = &end
	}
	return &out
}

// Redacted returns f without the secrets of r.
func (f LedgerEntry) Redacted(r *redact.Redactor) LedgerEntry {
	f.Call, f.Error = r.Call(f.Call), r.String(f.Error)
	if f.Question != nil {
		f.Question = &r.Result(&pawl.Result{Pending: []pawl.PendingCall{*f.Question}}).Pending[0]
	}
	if f.Answer != nil {
		x := pawl.Execution{Call: f.Call, Decision: f.Answer}
		f.Answer = r.Result(&pawl.Result{Steps: []pawl.Step{{Executions: []pawl.Execution{x}}}}).
			Steps[0].Executions[0].Decision
	}
	return f
}
