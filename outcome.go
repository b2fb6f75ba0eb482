package pawl

// outcome.go: turns what came back into the outcome and the result; truncates long results.

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

const defaultMaxResult = 32 << 10

// complete turns what came back through the middleware into the outcome and the result.
func (w *work) complete(ctx context.Context, res llm.ToolResult, err error) {
	x := &w.x
	if !w.inv.accepted {
		x.Call = w.task.Call // unchanged
	}
	if w.inv.work != nil {
		w.inv.close()
		x.Values, x.Spent, x.Cached = w.inv.set, w.inv.spent, w.inv.cached
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
		if x.Outcome = x.Pending[0].Outcome; x.waitsInside() {
			x.Outcome = OutcomePending // what happened is known: it can be executed again
		}
		return
	case err != nil:
		if res = w.failed(err); len(x.Pending) > 0 {
			return
		}
	default:
		x.Outcome = OutcomeOK
		if res.IsError {
			x.Outcome, x.Error = OutcomeError, text.Clip(res.Text(), 500)
		}
	}
	if len(res.Parts) == 0 && res.Data != nil {
		res.Parts = []llm.Part{llm.Text{Text: string(res.Data)}}
	}
	if res.Data != nil && !jsonscan.Valid(res.Data) {
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
		x.Outcome, x.Error = OutcomeBlocked, b.reason
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

// capped cuts the text of parts from total to limit bytes. It keeps the head and the tail, and puts
// mark between them. mark receives the number of dropped bytes and the place where they begin.
func capped(parts []llm.Part, total, limit int, mark func(dropped, at int) string) []llm.Part {
	keep := max(0, limit-len(mark(total, total)))
	head := keep * 2 / 3
	tail := total - (keep - head) // the place where the tail begins
	out := make([]llm.Part, 0, len(parts))
	at, dropped, cut, marked := 0, 0, 0, -1
	for _, p := range parts {
		t, ok := p.(llm.Text)
		if !ok {
			out = append(out, p)
			continue
		}
		n := len(t.Text)
		a := text.RuneBefore(t.Text, min(max(head-at, 0), n))
		b := max(a, text.RuneAfter(t.Text, min(max(tail-at, 0), n)))
		at += n
		dropped += b - a
		switch {
		case b == a:
			out = append(out, t)
		case marked < 0: // the first part that is cut
			marked, cut = len(out), at-n+a
			out = append(out, llm.Text{Text: t.Text[:a]}, llm.Text{Text: t.Text[b:]})
		case a > 0 || b < n:
			out = append(out, llm.Text{Text: t.Text[:a] + t.Text[b:]})
		}
	}
	first, second := out[marked].(llm.Text), out[marked+1].(llm.Text)
	out[marked] = llm.Text{Text: first.Text + mark(dropped, cut) + second.Text}
	return slices.Delete(out, marked+1, marked+2)
}
