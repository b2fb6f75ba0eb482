package pawl

// restart.go: asks again for a reply that broke off after it had begun.

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// maxRestarts is how often a request is sent again because its reply broke off. A request that
// fails before its reply begins is repeated by the model itself.
const maxRestarts = 2

// restarts reports whether the request is sent again: its reply has begun, and broke off. What was
// emitted of the reply is retracted, its calls too. If one of them has started, the reply is not
// asked for again, because the next one may make the same call.
func (r *run) restarts(ctx context.Context, req *llm.Request, reply *llm.Response) bool {
	err := cmp.Or(r.reply.err, reply.Err())
	var broke *llm.ProviderError
	switch {
	case err == nil || ctx.Err() != nil:
		return false
	case len(reply.Message.Parts) == 0 || r.hasStarted(reply):
		return false
	case !errors.As(err, &broke) || !broke.Retryable:
		return false
	case r.reply.restarts == maxRestarts:
		return false
	}

	r.spend(Spent{Requests: reply.Requests, Usage: reply.Usage})
	r.reply.lost.Add(reply.Usage)
	r.reply.restarts++
	r.reply.err = nil
	r.reply.ahead = nil // none of its calls has started
	r.reply.deltas = nil
	if r.out.sink != nil {
		r.withdraw(reply)
		r.emit(Event{Kind: EventNotice, Step: r.history.replies + 1, Path: req.Key, Code: "retry",
			Text: "the reply broke off, and is asked for again: " + err.Error()})
		r.emitRequest(req)
	}
	*reply = llm.Response{}
	return true
}

// hasStarted reports whether a call of a reply that is being written has started: early (early.go),
// or by a reader of the events, who executes passive calls and has seen that one is complete.
func (r *run) hasStarted(reply *llm.Response) bool {
	if r.reply.ahead != nil {
		started := func(t Task) bool { return t.earlyCall != nil }
		if slices.ContainsFunc(r.reply.ahead.tasks, started) {
			return true
		}
	}
	for i := range reply.Message.Parts {
		c, complete := reply.Sealed(i).(llm.ToolCall)
		if !complete {
			continue
		}
		if tool := find(r.scope.tools, c.Name); tool != nil && tool.Passive {
			return true
		}
	}
	return false
}

// withdraw emits the retraction of everything that was emitted of a reply, the last part first.
func (r *run) withdraw(reply *llm.Response) {
	reply.Seal()
	for i := len(reply.Message.Parts) - 1; i >= 0; i-- {
		text := ""
		isCall := false
		switch p := reply.Message.Parts[i].(type) {
		case llm.Text:
			text = p.Text
		case llm.Reasoning:
			text = p.Text
		case llm.ToolCall:
			isCall = true
		}
		if text != "" || isCall {
			r.emit(Event{Kind: EventTextRetracted, Step: r.history.replies + 1, Index: i, Text: text})
		}
	}
}
