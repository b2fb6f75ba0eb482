// Package stored makes cases of runs that happened.
//
//	durable run ─▶ journal.Export ─┐
//	saved Result ─▶ FromResult ────┴▶ Run ─▶ Record (judged by the checks of a suite)
//	                                      └▶ Case (messages, fakes, answers, checks)
package stored

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/llm"
)

// Run is a run that happened. Its secrets are hidden.
type Run struct {
	// ID names the run, and Date is when it began. The zero time means unknown.
	ID   string
	Date time.Time

	// Export is what happened.
	Export *journal.Export

	// Effects is the ledger. Nil means that there is none.
	Effects []journal.LedgerEntry

	// Limits are the limits of the run that its agent's file does not state. Nil means none.
	Limits *pawl.Limits
}

// FromResult returns the part of an Export that a Result has.
func FromResult(r *pawl.Result) *journal.Export {
	x := &journal.Export{
		Form:     1,
		Messages: input(r),
		End: &journal.ExportedEnd{
			Stop:   r.Stop,
			Limit:  r.Limit,
			Cause:  r.Cause,
			Spent:  r.Spent,
			Values: r.Values,
			Output: r.Output,
			Answer: r.Answer,
			Unfit:  r.Unfit,
		},
	}
	for _, step := range r.Steps {
		for _, done := range step.Executions {
			x.Calls = append(x.Calls, journal.ExportedCall{
				Key:       done.Key,
				Call:      done.Call,
				Execution: journal.Timeless(done),
			})
		}
	}
	for _, q := range r.Pending {
		x.Pending = append(x.Pending, journal.ExportedAsk{Key: q.Key, Call: q.Call, Outcome: q.Outcome, Why: q.Why,
			Passive: q.Passive})
	}
	x.Sort()
	return x
}

// input returns the messages of a Result that were there before its steps.
func input(r *pawl.Result) []llm.Message {
	replies := 0
	for _, step := range r.Steps {
		if step.Response != nil && step.Error == "" {
			replies++
		}
	}
	for i, m := range slices.Backward(r.Messages) {
		if m.Role != llm.RoleAssistant {
			continue
		}
		replies--
		if replies <= 0 {
			return r.Messages[:i]
		}
	}
	return r.Messages
}

// Digest is the digest of what happened.
func (r *Run) Digest() (string, error) {
	form, err := r.Export.JSON()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:])[:16], nil
}

// Record returns the run as a trial, for checks. The tools say what calls may have done that are in
// no ledger. The files of the run are unknown, and not in the Record.
func (r *Run) Record(tools []Tool) *trial.Record {
	out := &trial.Record{Run: r.ID, Input: suite.LastText(r.Export.Messages), Attempts: 1}
	effects := map[string]string{}
	for _, t := range tools {
		effects[t.Name] = t.Effect
	}
	known := map[llm.Key]journal.LedgerEntry{}
	for _, entry := range r.Effects {
		known[entry.Key] = entry
	}

	for _, c := range r.Export.Calls {
		x := c.Execution
		effect := effects[x.Call.Name]
		state := stateOf(&x)
		if entry, has := known[c.Key]; has {
			effect = entry.Effect.Assumed().String()
			state = string(entry.State)
		}
		out.AddCall(c.Key, &x, effect, state)
		if d := x.Decision; isOfPerson(d) {
			out.Asked = append(out.Asked, trial.Question{Tool: c.Call.Name, Args: c.Call.Args, Answer: wordOf(d)})
		}
	}
	for _, q := range r.Export.Pending {
		out.Asked = append(out.Asked, trial.Question{Tool: q.Call.Name, Args: q.Call.Args})
	}
	r.end(out)
	return out
}

// end fills in how the run ended. A run without an end was interrupted.
func (r *Run) end(out *trial.Record) {
	e := r.Export.End
	if e == nil {
		out.Stop = string(pawl.StopCancelled)
		return
	}
	out.Stop = string(e.Stop)
	out.Limit = string(e.Limit)
	out.Cause = e.Cause
	out.Output = e.Output
	if e.Answer != nil {
		out.Answer = e.Answer.Text
	}

	out.Spent.Count(&e.Spent)
	if e.Spent.Usage.CostKnown() {
		out.Spent.Cost = &e.Spent.Usage.Cost
	}
}

// stateOf returns how far the effect of a call is known to be, without a ledger. Empty means that
// the call was not started. An Export does not have the number of attempts.
func stateOf(x *pawl.Execution) string {
	switch x.Outcome {
	case pawl.OutcomeOK:
		return string(journal.EffectCompleted)
	case pawl.OutcomeError:
		return string(journal.EffectFailed)
	case pawl.OutcomeTimeout, pawl.OutcomePanicked, pawl.OutcomeCancelled, pawl.OutcomeUnknown:
		return string(journal.EffectUnknown)
	}
	return ""
}

// composes reports whether the i-th call has calls of its own.
func (r *Run) composes(i int) bool {
	own := string(r.Export.Calls[i].Key) + "/"
	within := func(c journal.ExportedCall) bool { return strings.HasPrefix(string(c.Key), own) }
	return slices.ContainsFunc(r.Export.Calls, within)
}

// byReconcile is who decides where a tool has found out what happened.
const byReconcile = "reconcile"

// isOfPerson reports whether a person decided.
func isOfPerson(d *llm.Decision) bool { return d != nil && d.By != byReconcile }

// wordOf is the word of a suite for a decision.
func wordOf(d *llm.Decision) string {
	switch {
	case d.Result != nil:
		return "answer"
	case d.Args != nil:
		return "edit"
	case d.Approve:
		return "approve"
	}
	return "deny"
}
