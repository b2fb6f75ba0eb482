package pawl

// outcome.go: how a call gets its outcome, its certainty and its result for the model.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// giveUp gives a pending call the result that the run was cancelled.
func (x *Execution) giveUp() {
	text := "Not run: the run was cancelled."
	switch {
	case x.waitsInside():
		text = "Cancelled while calls nested in it were pending. It may have taken effect in part."
		x.Certainty = delivery.Unknown
	case x.Outcome == OutcomeUnknown:
		text = "Cancelled. It was started and interrupted: it may have taken effect."
		x.Certainty = delivery.Unknown
	}

	x.Outcome = OutcomeCancelled
	x.Pending = nil
	x.Error = text
	x.Result = llm.ErrorResult(text)
	x.Result.CallID = x.Call.ID
	x.Result.Key = x.Key
}

const defaultMaxResult = 32 << 10

// complete turns what came back through the middleware into the outcome and the result.
func (w *work) complete(ctx context.Context, res llm.ToolResult, err error) {
	x := &w.exec

	// The record has repaired or changed arguments only if the call got as far as the policies.
	if !w.inv.accepted {
		x.Call = w.task.Call // unchanged
	}

	// A call that was refused before has no Invocation.
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
	x.Result = w.forModel(ctx, res)
}

// forModel returns the result of the tool as the conversation contains it: with parts that
// providers accept, within the tool's limit of bytes, and with the key of the call.
func (w *work) forModel(ctx context.Context, res llm.ToolResult) llm.ToolResult {
	x := &w.exec
	res.Data = bytes.Clone(res.Data) // the tool may change its own
	if len(res.Parts) == 0 && res.Data != nil {
		res.Parts = []llm.Part{llm.Text{Text: string(res.Data)}}
	}
	if res.Data != nil && !json.Valid(res.Data) {
		res.Data = nil // the conversation could not be stored with it
		x.Error = cmp.Or(x.Error, "the tool's data was no JSON and was left out")
	}
	res.Parts = w.sendable(ctx, res.Parts)

	// The transcript keeps the arguments of the model, which learns only here what was executed.
	if d := x.Decision; d != nil && d.Approve && d.Args != nil {
		changed := "(Not run as you asked: the approver changed the arguments to " +
			text.Clip(string(d.Args), 1000) + ")\n"
		res.Parts = slices.Insert(res.Parts, 0, llm.Part(llm.Text{Text: changed}))
	}

	limit := defaultMaxResult
	if w.tool != nil && w.tool.MaxResult != 0 {
		limit = w.tool.MaxResult
	}
	res.Parts, res.LeftOut = w.truncated(ctx, res.Parts, limit)
	res.CallID = w.task.Call.ID
	res.Key = w.task.Key
	res.Label = w.resultLabel(&res)

	// A part that states a stranger has no label once it is stored, and would have the result's. So
	// the label of the result is the one of all of it.
	res.Label = res.WholeLabel().Shared()
	return res
}

// resultLabel returns the label of res: its own, or else the tool's. A result that is made of the
// results of nested calls has the join of the conversation and of these. An error has no author
// better than a stranger, because it may repeat what the call sent.
func (w *work) resultLabel(res *llm.ToolResult) *llm.Label {
	composed := w.inv.composed()
	switch {
	case res.IsError && composed != nil:
		return (&llm.Label{From: composed.From}).Shared()
	case res.IsError:
		return nil
	case composed != nil && res.Label != nil:
		return composed.Join(*res.Label).Shared()
	case composed != nil:
		return composed.Shared()
	case res.Label == nil && w.tool != nil:
		return w.tool.Label
	}
	return res.Label
}

// failed records the failure, and returns its result for the model.
func (w *work) failed(err error) llm.ToolResult {
	x := &w.exec
	var (
		f    *failure
		ctl  *control
		b    *blocked
		call *delivery.Error
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
		x.Certainty = w.overall(w.certaintyOf(err))
		why := "Blocked: " + b.reason
		if x.Certainty != "" {
			why = strings.TrimSuffix(why, ".") + sentence(x.Certainty)
		}
		return llm.ErrorResult(why)
	case errors.As(err, &f):
		x.Outcome, x.Error, x.Limited = f.outcome, f.Error(), f.limit
		x.Certainty = f.certainty

		// No attempt was made now: what is known of the call is what was known of the earlier
		// attempt.
		if w.task.interrupted() && x.Attempts == w.task.Attempt && f.outcome != OutcomeUnknown {
			x.Certainty = delivery.Unknown
			return llm.ErrorResult(f.text + " It was begun before and interrupted: what it does may have happened.")
		}
		if f.outcome == OutcomeUnknown {
			x.Certainty = delivery.Unknown

			// The question has the number of this attempt, because an approval covers one attempt.
			q := PendingCall{Key: w.task.Key, Call: x.Call, Outcome: OutcomeUnknown, Attempt: x.Attempts, Why: f.text}
			q.Digest = digest(q, w.tool)
			x.Pending = []PendingCall{q}
		}
		return llm.ErrorResult(f.text)
	case errors.As(err, &call):
		x.Outcome, x.Error = OutcomeError, text.Clip(call.Error(), 500)
		x.Certainty = w.overall(w.certaintyOf(call))
		return withCertainty(call.Result, x.Certainty)
	}
	x.Outcome, x.Error = OutcomeError, err.Error()
	return llm.ErrorResult(err.Error())
}

func (w *work) event(e Event) {
	e.Run, e.Step, e.Path = w.task.Run, w.task.Step, w.task.Key
	w.inv.send(e)
}

func (w *work) notice(code, text string) { w.event(Event{Kind: EventNotice, Code: code, Text: text}) }

// certaintyOf returns what err states about a call of w's tool. Empty means nothing, or a call that
// only reads: of such a call it does not matter whether it happened.
func (w *work) certaintyOf(err error) delivery.Certainty {
	var e *delivery.Error
	if !errors.As(err, &e) || !w.mayChange() {
		return ""
	}
	return e.Certainty
}

// mayChange reports whether a call of the tool may change the world, itself or by nested calls.
func (w *work) mayChange() bool {
	if w.tool == nil {
		return true
	}
	switch w.tool.Effect.Assumed() {
	case EffectWrite, EffectIdempotent, EffectCompose:
		return true
	}
	return false
}

// interruptedCertainty returns what is known about a call that ended with its context, or without
// its tool: what err states, or that the tool has sent nothing. Otherwise it may have happened, if
// it can change something.
func (w *work) interruptedCertainty(err error) delivery.Certainty {
	stated := w.certaintyOf(err)
	switch {
	case stated != "" || !w.mayChange():
	case w.isUnsent():
		stated = delivery.NotSent
	default:
		stated = delivery.Unknown
	}
	return w.overall(stated)
}

// isUnsent ends the attempt for a tool with StatesSending, and reports whether it has sent nothing.
func (w *work) isUnsent() bool {
	unsent, _ := w.late.End()
	return unsent
}

// overall returns what is known about the whole call, if c is known about its last attempt: an
// earlier attempt may have taken effect.
func (w *work) overall(c delivery.Certainty) delivery.Certainty {
	earlier := w.task.Attempt > 0 && !w.isReconciled
	if c.NoEffect() && (earlier || w.lost.Load()) {
		return delivery.Unknown
	}
	return c
}

// sentence returns the words of a certainty for the model, to follow a text without a full stop.
func sentence(c delivery.Certainty) string {
	switch c {
	case delivery.NotSent:
		return ". It was not sent."
	case delivery.Refused:
		return ". It was refused before any work."
	case delivery.Unknown:
		return ". What it does may have happened."
	}
	return "."
}

// withCertainty returns the result of a delivery.Error with the words of c.
func withCertainty(r llm.ToolResult, c delivery.Certainty) llm.ToolResult {
	var before, after string
	switch c {
	case delivery.NotSent:
		before = "Not sent: "
	case delivery.Refused:
		before = "Refused before any work: "
	case delivery.Unknown:
		after = " What the call does may have happened."
		if !strings.HasSuffix(strings.TrimSpace(r.Text()), ".") {
			after = "." + after
		}
	}

	parts := []llm.Part{}
	if before != "" {
		parts = append(parts, llm.Text{Text: before})
	}
	parts = append(parts, r.Parts...)
	if after != "" {
		parts = append(parts, llm.Text{Text: after})
	}
	r.Parts = parts
	r.IsError = true
	return r
}
