package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// The journal contains secrets: without them a run could be neither resumed nor replayed. It also
// records which arguments its tools mark as secret, so that a program that shows a run can hide
// them without its agent.

// Redactor returns a copy of r that also hides the arguments that the tools of a run mark as secret
// ("writeOnly" or "x-secret" in their schemas), and the values of these arguments wherever they
// occur. A nil r hides nothing else. Older journals have no marks.
func (e *Engine) Redactor(ctx context.Context, id string, r *redact.Redactor) (*redact.Redactor, error) {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return nil, err
	}
	return h.redactor(r), nil
}

func (h *history) redactor(r *redact.Redactor) *redact.Redactor {
	r = r.Clone()
	for name, schema := range h.marked() {
		r.AddTools(&pawl.Tool{Name: name, Input: schema})
	}
	for _, b := range h.replies {
		r.Learn(b.Response.Message.Calls()...)
	}
	for _, started := range h.intents {
		r.Learn(started[len(started)-1].Call) // the arguments may differ from the model's
	}
	for _, b := range h.outcomes {
		r.Learn(b.Call) // a nested call
	}
	for _, asked := range h.asked {
		for _, q := range asked {
			r.Learn(q.waiting.Call)
			if q.answer != nil {
				r.Learn(llm.ToolCall{Name: q.waiting.Call.Name, Args: q.answer.Args})
			}
		}
	}
	return r
}

// marked returns the schemas of the run's tools that mark an argument, by name.
func (h *history) marked() map[string]json.RawMessage {
	all := h.begin.Marked
	for _, b := range h.tools {
		all = joined(all, b.Marked)
	}
	return all
}

// markedOf returns the schemas that may mark an argument as secret. redact.Redactor decides.
func markedOf(tools []*llm.ToolSpec) (marked map[string]json.RawMessage) {
	for _, t := range tools {
		if !bytes.Contains(t.Input, []byte("writeOnly")) && !bytes.Contains(t.Input, []byte("x-secret")) {
			continue
		}
		if marked == nil {
			marked = map[string]json.RawMessage{}
		}
		marked[t.Name] = t.Input
	}
	return marked
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
		was := hide(pawl.Result{Values: end.Values, Output: end.Output, Spent: end.Spent, Cause: end.Cause})
		end.Values, end.Output, end.Spent, end.Cause, end.Error = was.Values, was.Output, was.Spent,
			was.Cause, r.String(end.Error)
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

// Redacted returns m without the secrets of r. If the two requests are equal then, they differ in
// secrets.
func (m *Mismatch) Redacted(r *redact.Redactor) *Mismatch {
	c := *m
	c.WasTo, c.IsTo = r.String(m.WasTo), r.String(m.IsTo)
	c.Was, c.Is = []byte(r.String(strings.ToValidUTF8(string(m.Was), "\uFFFD"))),
		[]byte(r.String(strings.ToValidUTF8(string(m.Is), "\uFFFD")))
	return &c
}
