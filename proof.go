package pawl

import (
	"context"
	"sync/atomic"
)

// proof is which messages a run has found sound, with every call answered. The run looks at each message once, and whoever heals its
// requests does not look again. A Model that is slow to end may still read it while the run goes on: what it then finds is not its own.
type proof struct {
	known int // of the messages that are sent next, how many were looked at
	first atomic.Pointer[Message]
	n     atomic.Int64
	kept  kept
}

type proofKey struct{}

// add looks at the messages that were added since the last request. From the first request on, nothing else is done to them.
func (p *proof) add(msgs []Message) {
	if !(Rules{Settled: true}).sound(msgs[p.known:]) {
		p.n.Store(0)
		return
	}
	p.known = len(msgs)
	p.first.Store(&msgs[0])
	p.n.Store(int64(len(msgs)))
}

// proved reports whether msgs are those that the run of ctx is about to send.
func proved(ctx context.Context, msgs []Message) bool {
	p, ok := ctx.Value(proofKey{}).(*proof)
	return ok && len(msgs) > 0 && p.n.Load() == int64(len(msgs)) && p.first.Load() == &msgs[0]
}

// HealRequest returns req with its messages healed, and what was done to them: req itself where there is no fault. It is for Models, which
// call it with what Stream was given, before they send anything. What the run that made the request has looked at is not looked at again.
func (r Rules) HealRequest(ctx context.Context, req *Request) (*Request, []Mend) {
	if proved(ctx, req.Messages) && r.also(req.Messages) {
		return req, nil
	}
	healed, mends := r.Heal(req.Messages)
	if len(mends) == 0 {
		return req, nil
	}
	sent := *req
	sent.Messages = healed
	return &sent, mends
}

// also reports whether msgs, which are sound and have no open call, keep what r asks for beyond that.
func (r Rules) also(msgs []Message) bool {
	for i := range msgs {
		if m := &msgs[i]; len(r.NotLast) > 0 && m.Role == RoleAssistant && r.cutBefore(m) < len(m.Parts) {
			return false
		}
	}
	for i := range msgs {
		if m := &msgs[i]; r.UserFirst && begins(m) {
			return m.Role == RoleUser
		}
	}
	return true
}
