package pawl

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// reconciled asks the tool what became of a call that was interrupted, for which nobody has decided the question w.
func (p *work) reconciled(ctx context.Context, c llm.ToolCall, w PendingCall) (_ llm.ToolCall, res llm.ToolResult, done bool, err error) {
	happened, err := p.reconcile(ctx, c)
	switch {
	case ctx.Err() != nil:
		return c, res, true, notBegun(ctx)
	case err != nil:
		w.Why = "its tool cannot say: " + err.Error()
		return p.asks(c, w)
	case happened != nil:
		p.x.Decision = &llm.Decision{Key: w.Key, Digest: w.Digest, By: "reconcile", Result: happened}
		return c, *happened, true, nil
	}
	a, err := p.judged(ctx, c) // it did not happen; a yes to running it then is no yes to running it now
	if err != nil || a.Verdict == VerdictAllow {
		return c, res, err != nil, err
	}
	w.Outcome, w.Why = OutcomePending, a.Reason
	w.Digest = digest(w, p.tool)
	w.Expires = p.expires(w, a.ValidFor)
	return p.asks(c, w)
}

func (p *work) reconcile(ctx context.Context, c llm.ToolCall) (res *llm.ToolResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	ctx = context.WithValue(ctx, invocationKey{}, &p.inv)
	if limit := p.tool.timeout(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	return p.tool.Reconcile(ctx, c)
}
