package pawl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Verdict is a policy's word on a call.
type Verdict int

// The verdicts. Anything else counts as Deny.
const (
	VerdictAllow Verdict = iota + 1 // run it
	VerdictAsk                      // a person or the caller must say: the call pends until a Decision answers it
	VerdictDeny                     // refuse it, whatever was decided elsewhere
)

// Approval is a verdict with its reason: told to the model with Deny, to the person with Ask.
type Approval struct {
	Verdict  Verdict
	Reason   string
	ValidFor time.Duration // with Ask: how long a yes is good for; 0: 30 min; negative: for ever
}

const defaultWithin = 30 * time.Minute

// Approver is a policy: it says whether a validated call may run. It is asked for every call, just before the call would run; of one
// to a passive tool, which its caller carries out, only Deny counts. tool is read only. It may be called concurrently, and may
// take its time: one that asks at a terminal answers Allow or Deny itself, and waits for Invocation.Certain first. One that returns an error or panics denies the call, but an
// Abort ends the run.
type Approver func(ctx context.Context, call llm.ToolCall, tool *Tool) (Approval, error)

// Approve returns the middleware by which p decides which calls may run. Of several the strictest word counts: Deny, then Ask, then
// Allow; after a Deny the policies behind it are not asked. With a p that is nil no run begins: what was forgotten must not allow everything.
func Approve(p Approver) Middleware {
	if p == nil {
		return Middleware{Check: func([]*Tool) error { return errors.New("pawl.Approve was given no policy") }}
	}
	return Middleware{approve: p}
}

// approved settles the question whether the call may run. done means that it may not, or need not: res or err, or an open
// question on the Execution, is how it ended.
func (p *work) approved(ctx context.Context) (res llm.ToolResult, done bool, err error) {
	c := p.x.Call
	w := PendingCall{Key: p.task.Key, Call: c, Outcome: OutcomePending, Attempt: p.task.Attempt, Passive: p.tool.Passive}
	within := time.Duration(-1)
	if p.task.interrupted() && !p.tool.Passive {
		w.Outcome = OutcomeUnknown // first somebody says what happened
	} else {
		a, err := p.judged(ctx, c)
		switch {
		case err != nil:
			return res, true, err
		case p.tool.Passive:
		case a.Verdict == VerdictAllow:
			return res, false, nil
		default:
			w.Why, within = a.Reason, a.ValidFor
		}
	}
	w.Digest = digest(w, p.tool)
	w.Expires = p.expires(w, within)
	for _, d := range p.task.Decisions {
		if d.Key != p.task.Key {
			continue // it is for a call inside of this one
		}
		if res, done, used, err := p.decided(ctx, w, d); used {
			return res, done, err
		}
	}
	if w.Outcome == OutcomeUnknown && p.tool.Reconcile != nil {
		return p.reconciled(ctx, w)
	}
	return p.asks(w)
}

// asks leaves the call with the question w, where it can wait.
func (p *work) asks(w PendingCall) (res llm.ToolResult, done bool, err error) {
	if !p.task.scope.waits {
		return res, true, fail(OutcomeDenied, "Not run: %s needs an answer from outside, and a call made inside another call cannot wait for one here. Call it directly.", p.tool.Name)
	}
	if p.x.Pending = []PendingCall{w}; w.Outcome == OutcomeUnknown {
		return res, true, fail(w.Outcome, "It waits for an answer.")
	}
	return res, true, errWaits
}

// errWaits ends a call that waits: an error, so that no middleware takes it for done.
var errWaits error = &failure{outcome: OutcomePending, text: "It waits for an answer."}

// decided carries d out if it answers the question w. A decision that does not, or comes too late, is not used: the question stays.
func (p *work) decided(ctx context.Context, w PendingCall, d llm.Decision) (res llm.ToolResult, done, used bool, err error) {
	c := w.Call
	refuse := func(code, why string) (llm.ToolResult, bool, bool, error) {
		p.notice(code, "the decision by "+d.By+" "+why)
		return res, false, false, nil
	}
	switch {
	case d.Digest != w.Digest:
		return refuse("decision_refused", "answers another question: tool, arguments, attempt or question differ")
	case d.Result != nil:
		p.x.Decision = &d
		return *d.Result, true, true, nil
	case !d.Approve:
		p.x.Decision = &d
		return res, true, true, denied(d.Reason)
	case p.tool.Passive:
		return refuse("decision_refused", "approves a call that the caller carries out: only a result answers it")
	case p.tooLate(w):
		return refuse("decision_expired", "came after "+p.task.Pending.Expires.Format(time.RFC3339)+"; the question is asked anew")
	}
	if d.Args != nil {
		c.Args = d.Args
		if c, err = p.validate(c, false); err != nil {
			return refuse("decision_refused", "changes the arguments to some that cannot be used: "+err.Error())
		}
		p.accept(c)
	}
	if d.Args != nil || w.Outcome == OutcomeUnknown { // the policies have not seen it
		if _, err := p.judged(ctx, c); err != nil {
			return res, true, true, err
		}
	}
	p.x.Decision = &d
	return res, false, true, nil
}

// judged asks the policies about the call; the strictest word counts. The error says that it may not run. A policy that fails, denies.
func (p *work) judged(ctx context.Context, c llm.ToolCall) (Approval, error) {
	all := Approval{Verdict: VerdictAllow}
	if p.tool == p.task.scope.answer {
		return all, nil // to answer is no act
	}
	for _, policy := range p.task.scope.layers.policies {
		a, err := ask(ctx, policy, c, p.tool)
		var ctl *control
		switch {
		case ctx.Err() != nil:
			return all, notStarted(ctx) // it may have answered for that reason alone
		case errors.As(err, &ctl):
			return all, err
		case err != nil:
			return all, &failure{outcome: OutcomeDenied, err: fmt.Errorf("approval policy: %w", err),
				text: "Denied: it could not be found out whether this call may run. Do not repeat it."}
		case a.Verdict == VerdictAllow:
		case a.Verdict == VerdictAsk:
			all = asks(all, a)
		default:
			return all, denied(a.Reason)
		}
	}
	return all, nil
}

// asks adds the question of one more policy; the shortest time counts.
func asks(all, a Approval) Approval {
	if a.ValidFor == 0 {
		a.ValidFor = defaultWithin
	}
	if all.Verdict != VerdictAsk {
		return a
	}
	if a.Reason != "" && all.Reason != "" {
		a.Reason = "; " + a.Reason
	}
	all.Reason += a.Reason
	if a.ValidFor > 0 && (all.ValidFor < 0 || a.ValidFor < all.ValidFor) {
		all.ValidFor = a.ValidFor
	}
	return all
}

func ask(ctx context.Context, policy Approver, c llm.ToolCall, t *Tool) (a Approval, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return policy(ctx, c, t)
}

// expires says until when a yes to w is good. A question that was asked before, and is not too old, keeps its time.
func (p *work) expires(w PendingCall, within time.Duration) time.Time {
	if q := p.task.Pending; q != nil && q.Digest == w.Digest && !p.tooLate(w) {
		return q.Expires
	}
	if within < 0 {
		return time.Time{}
	}
	return time.Now().Add(within).UTC().Truncate(time.Second)
}

// tooLate reports whether the time to say yes to w, as it was asked, is over.
func (p *work) tooLate(w PendingCall) bool {
	q := p.task.Pending
	return q != nil && q.Digest == w.Digest && !q.Expires.IsZero() && time.Now().After(q.Expires)
}

// interrupted reports whether the call was begun and nobody knows whether it happened.
func (t *Task) interrupted() bool { return t.Pending != nil && t.Pending.Outcome == OutcomeUnknown }

func denied(reason string) error {
	if reason == "" {
		return fail(OutcomeDenied, "Denied: this call may not run. Do not repeat it.")
	}
	return fail(OutcomeDenied, "Denied: %s", reason)
}

// digest binds an answer to the question, the attempt, the tool with its schema, and the canonical arguments.
func digest(w PendingCall, t *Tool) string {
	return sum("%s\x00%s\x00%d\x00%s", w.Key, w.Outcome, w.Attempt, t.Digest(w.Call.Args))
}

// Digest names a call by what it is: the tool's name, its schema and args in their canonical form (names sorted, no spaces, numbers as
// they were written). Calls with the same digest ask for the same. It does not look at whether args fit.
func (t *Tool) Digest(args json.RawMessage) string {
	t.canonical.once.Do(func() { t.canonical.text = jsonform.Canonical(t.Input) })
	return sum("%s\x00%s\x00%s", t.Name, t.canonical.text, jsonform.Canonical(args))
}

func sum(format string, args ...any) string {
	h := sha256.New()
	fmt.Fprintf(h, format, args...)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// reconciled asks the tool what became of a call that was interrupted, for which nobody has decided the question w.
func (p *work) reconciled(ctx context.Context, w PendingCall) (res llm.ToolResult, done bool, err error) {
	happened, err := p.reconcile(ctx, w.Call)
	switch {
	case ctx.Err() != nil:
		return res, true, notStarted(ctx)
	case err != nil:
		w.Why = "its tool cannot say: " + err.Error()
		return p.asks(w)
	case happened != nil:
		p.x.Decision = &llm.Decision{Key: w.Key, Digest: w.Digest, By: "reconcile", Result: happened}
		return *happened, true, nil
	}
	a, err := p.judged(ctx, w.Call) // it did not happen; a yes to running it then is no yes to running it now
	if err != nil || a.Verdict == VerdictAllow {
		return res, err != nil, err
	}
	w.Outcome, w.Why = OutcomePending, a.Reason
	w.Digest = digest(w, p.tool)
	w.Expires = p.expires(w, a.ValidFor)
	return p.asks(w)
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
