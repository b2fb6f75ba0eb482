package pawl

// restart.go: asks again for a reply that broke off after it had begun.

import (
	"cmp"
	"context"
	"errors"

	"github.com/pawl-go/pawl/llm"
)

// maxRestarts is how often a request is sent again because its reply broke off. A request that
// fails before its reply begins is repeated by the model itself.
const maxRestarts = 2

// restarts reports whether the request is sent again: its reply has begun, and broke off. What was
// emitted of the reply is retracted. A reply with a call is not asked for again, because the call
// was announced, and may run already (early.go).
func (r *run) restarts(ctx context.Context, req *llm.Request, reply *llm.Response) bool {
	err := cmp.Or(r.reply.err, reply.Err())
	var broke *llm.ProviderError
	switch {
	case err == nil || ctx.Err() != nil:
		return false
	case len(reply.Message.Parts) == 0 || reply.Message.HasCalls():
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
	r.reply.ahead = nil // the reply had no call, so none was started early
	if r.out.sink != nil {
		r.withdraw(reply)
		r.emit(Event{Kind: EventNotice, Step: r.history.replies + 1, Path: req.Key, Code: "retry",
			Text: "the reply broke off, and is asked for again: " + err.Error()})
		r.emitRequest(req)
	}
	*reply = llm.Response{}
	return true
}

// withdraw emits the retraction of everything that was emitted of a reply, the last part first.
func (r *run) withdraw(reply *llm.Response) {
	reply.Seal()
	for i := len(reply.Message.Parts) - 1; i >= 0; i-- {
		text := ""
		switch p := reply.Message.Parts[i].(type) {
		case llm.Text:
			text = p.Text
		case llm.Reasoning:
			text = p.Text
		}
		if text != "" {
			r.emit(Event{Kind: EventTextRetracted, Step: r.history.replies + 1, Index: i, Text: text})
		}
	}
}
