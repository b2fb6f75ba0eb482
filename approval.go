package pawl

// approval.go: approval policies, pending calls, decisions, and the reconciliation of calls
// whose outcome is unknown.

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/llm/derivation"
)

// Verdict is the answer of a policy about a call.
type Verdict int

// The verdicts. Any other value counts as VerdictDeny.
const (
	VerdictAllow Verdict = iota + 1 // run the call
	VerdictAsk                      // the call is pending until a Decision answers it
	VerdictDeny                     // reject the call, also if a Decision approves it
)

// Approval is a verdict with its reason. The model receives the reason of VerdictDeny, and the
// person who decides receives the reason of VerdictAsk.
type Approval struct {
	Verdict Verdict // the zero value counts as VerdictDeny
	Reason  string  // why; "" says nothing
	Doubts  []Doubt // the same as data, with VerdictAsk; nil means none
	// ValidFor is the time from an approval to the start of the call, with VerdictAsk. An older
	// approval is not used, and the question is asked again. 0 and less mean no limit.
	ValidFor time.Duration
	// Derivations say why values of the call needed no question, with VerdictAllow. The Execution
	// has them, for all policies. nil means that the policy says nothing.
	Derivations []derivation.Value
}

// Doubt is a value of a call that a policy asks about, and what a person needs to decide: what is
// wrong with it, the sentence that it stands in, and what the user said. It is made from the call
// and from the conversation, never from what the model says about the call. A text of others in it
// (Sentence) is shown as theirs.
type Doubt struct {
	// Class says what is wrong with the value. policy.Flow has: stranger (a stranger's text names
	// it), made_up (no text names it), leaves (it may give away what was read), not_said (the user
	// said another value) and record (a record has it, which the user's words do not name).
	Class string `json:"class"`
	Arg   string `json:"arg,omitzero"`   // the name of the argument
	Value string `json:"value,omitzero"` // of the argument, at most 60 characters of it
	// Source is where the value stands, such as text that read_file returned. Empty means nowhere.
	Source string `json:"source,omitzero"`
	// Sentence is the text around the value, or the names of its record: one line of at most 90
	// characters. Empty means none.
	Sentence string `json:"sentence,omitzero"`
	Said     string `json:"said,omitzero"` // the user's own words; empty means unknown
}

// Approver is a policy: it decides whether a validated call may run. It is asked for every call,
// just before the call would run. For passive tools, which the caller executes, only VerdictDeny
// counts.
//
// tool must not be changed. An error or a panic denies the call, and an AbortError ends the run. An
// Approver must be safe for concurrent use. It may take its time: an Approver that asks at a
// terminal returns VerdictAllow or VerdictDeny itself, and calls Invocation.WaitForReply first.
type Approver func(ctx context.Context, call llm.ToolCall, tool *Tool) (Approval, error)

// Approve returns the middleware by which p decides which calls may run. The strictest verdict of
// several policies counts: VerdictDeny, then VerdictAsk, then VerdictAllow. After VerdictDeny the
// later policies are not asked. If p is nil, no run starts: a missing policy must not allow every
// call.
func Approve(p Approver) Middleware {
	if p == nil {
		return Middleware{Check: func([]*Tool) error {
			return errors.New("pawl.Approve was given no policy; give it one, such as policy.AskBeforeWrites")
		}}
	}
	return Middleware{approve: p}
}

// Approve returns the decision that approves the call.
func (w PendingCall) Approve(by string) llm.Decision {
	return llm.Decision{Key: w.Key, Digest: w.Digest, Approve: true, By: by}
}

// Edit returns the decision that approves the call with other arguments, which must fit the schema
// of the tool. The result informs the model of the change.
func (w PendingCall) Edit(by string, args json.RawMessage) llm.Decision {
	d := w.Approve(by)
	d.Args = args
	return d
}

// Deny returns the decision that rejects the call. The model gets the reason.
func (w PendingCall) Deny(by, reason string) llm.Decision {
	return llm.Decision{Key: w.Key, Digest: w.Digest, By: by, Reason: reason}
}

// Answer returns the decision that contains the result of the call.
func (w PendingCall) Answer(by string, r llm.ToolResult) llm.Decision {
	return llm.Decision{Key: w.Key, Digest: w.Digest, By: by, Result: &r}
}

// approved decides whether the call w.exec.Call may run, and applies the changes of a decision to
// it. done means that it must not or need not run: the outcome is res, err, or an open question in
// the Execution.
func (w *work) approved(ctx context.Context) (res llm.ToolResult, done bool, err error) {
	q := PendingCall{Key: w.task.Key, Call: w.exec.Call, Outcome: OutcomePending, Attempt: w.task.Attempt,
		Passive: w.tool.Passive}

	// Only a call that runs here can get other arguments, which need the schema.
	if !w.tool.Passive {
		q.Schema = w.tool.Input
	}
	if w.task.interrupted() && !w.tool.Passive {
		q.Outcome = OutcomeUnknown // the first question is what happened
		q.Why = cmp.Or(w.task.Pending.Why, "Interrupted before its result was stored. What it does may have happened.")
	} else {
		a, err := w.judged(ctx, w.exec.Call)
		switch {
		case err != nil:
			return res, true, err
		// The caller gets the question in any case.
		case w.tool.Passive:
		case a.Verdict == VerdictAllow:
			w.exec.Derivations = a.Derivations
			return res, false, nil
		default:
			q.Why, q.Doubts, q.ValidFor = a.Reason, a.Doubts, max(a.ValidFor, 0)
		}
	}
	q.Digest = digest(q, w.tool)

	// The decision of a person counts before what the tool can find out (Reconcile).
	for _, d := range w.task.Decisions {
		if d.Key != w.task.Key {
			continue // it belongs to a nested call
		}
		if res, done, used, err := w.decided(ctx, q, d); used {
			return res, done, err
		}
	}
	if q.Outcome == OutcomeUnknown && w.tool.Reconcile != nil {
		return w.reconciled(ctx, q)
	}
	return w.pend(q)
}

// pend leaves the call pending with the question q, if calls can be pending here.
func (w *work) pend(q PendingCall) (res llm.ToolResult, done bool, err error) {
	if !w.task.scope.canPend {
		return res, true, fail(OutcomeDenied, "Not run: %s needs an answer from outside, and a call made inside "+
			"another call cannot wait for one here. Call it directly.", w.tool.Name)
	}
	w.exec.Pending = []PendingCall{q}
	if q.Outcome == OutcomeUnknown {
		return res, true, fail(q.Outcome, "It waits for an answer.")
	}
	return res, true, errPending
}

// errPending ends a pending call. It is an error, so that middleware does not take the call for
// executed.
var errPending error = &failure{outcome: OutcomePending, text: "It waits for an answer."}

// decided applies the decision d to the question q. A decision about another question, or a
// decision that arrives too late, is not used: the question stays open.
func (w *work) decided(
	ctx context.Context, q PendingCall, d llm.Decision,
) (res llm.ToolResult, done, used bool, err error) {
	refuse := func(code, why string) (llm.ToolResult, bool, bool, error) {
		by := ""
		if d.By != "" {
			by = " by " + d.By
		}
		w.exec.Error = "the decision" + by + " " + why
		w.notice(code, w.exec.Error)
		return res, false, false, nil
	}
	switch {
	case d.Digest != q.Digest:
		return refuse("decision_refused", "answers another question: tool, arguments, attempt or question differ")
	case d.Result != nil:
		w.exec.Decision = &d
		return *d.Result, true, true, nil
	case !d.Approve:
		w.exec.Decision = &d
		return res, true, true, denied(d.Reason)
	case w.tool.Passive:
		return refuse("decision_refused", "approves a call that the caller executes: only a result answers it")
	case d.Expired(q.ValidFor, time.Now()):
		return refuse("decision_expired", "was not used within "+q.ValidFor.String()+"; the question is asked anew")
	// A write before this one has an open question. The decision is stored with the time at which
	// it arrived, so that ValidFor goes on.
	case w.held(): // the decision stays valid
		if d.At.IsZero() {
			d.At = time.Now().UTC()
		}
		q.Granted = []llm.Decision{d}
		res, done, err = w.pend(q)
		return res, done, true, err
	}
	if d.Args != nil {
		c := q.Call
		c.Args = d.Args

		// The arguments of a person are never repaired: they are executed as approved, or not at
		// all.
		c, err = w.validate(ctx, c, false)
		if err != nil {
			return refuse("decision_refused", "changes the arguments to some that cannot be used: "+err.Error())
		}
		w.inv.Call = c
		w.exec.Call = c
	}
	if d.Args != nil || q.Outcome == OutcomeUnknown { // the policies have not seen this call
		if _, err := w.judged(ctx, w.exec.Call); err != nil {
			return res, true, true, err
		}
	}
	w.exec.Decision = &d
	return res, false, true, nil
}

// judged asks the policies about c and returns the strictest verdict, which is VerdictAllow or
// VerdictAsk, with the derivations of all. An error means that c must not run. A policy that fails
// denies the call.
func (w *work) judged(ctx context.Context, c llm.ToolCall) (Approval, error) {
	all := Approval{Verdict: VerdictAllow}
	if w.tool == w.task.scope.answer {
		return all, nil // an answer has no side effect
	}
	for _, policy := range w.task.scope.layers.policies {
		a, err := ask(ctx, policy, c, w.tool)
		var ctl *control
		switch {
		case ctx.Err() != nil:
			return all, notStarted(ctx) // the end of ctx may be the only reason of the answer
		case errors.As(err, &ctl):
			return all, err
		case err != nil:
			return all, &failure{outcome: OutcomeDenied, err: fmt.Errorf("approval policy: %w", err),
				text: "Denied: it could not be found out whether this call may run. Do not repeat it."}
		case a.Verdict == VerdictAllow:
			all.Derivations = append(slices.Clip(all.Derivations), a.Derivations...)
		case a.Verdict == VerdictAsk:
			all = both(all, a)
		default:
			return all, denied(a.Reason)
		}
	}
	return all, nil
}

// both adds the question a of one more policy to all. The shorter time counts.
func both(all, a Approval) Approval {
	if all.Verdict != VerdictAsk {
		return a
	}
	if a.Reason != "" && all.Reason != "" {
		a.Reason = "; " + a.Reason
	}
	all.Reason += a.Reason
	all.Doubts = append(slices.Clip(all.Doubts), a.Doubts...)
	if a.ValidFor > 0 && (all.ValidFor <= 0 || a.ValidFor < all.ValidFor) {
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

// interrupted reports whether an earlier attempt of the call has an unknown outcome.
func (t *Task) interrupted() bool { return t.Pending != nil && t.Pending.Outcome == OutcomeUnknown }

func denied(reason string) error {
	if reason == "" {
		return fail(OutcomeDenied, "Denied: this call may not run. Do not repeat it.")
	}
	return fail(OutcomeDenied, "Denied: %s", reason)
}

// digest binds a decision to the question, the attempt, the tool with its schema, and the canonical
// arguments.
func digest(q PendingCall, t *Tool) string {
	return sum("%s\x00%s\x00%d\x00%s", q.Key, q.Outcome, q.Attempt, t.Digest(q.Call.Args))
}

// Digest identifies a call by its content: the name of the tool, its schema, and args in canonical
// form (sorted names, no spaces, numbers as written). Calls with the same digest request the same
// work. Digest does not validate args.
func (t *Tool) Digest(args json.RawMessage) string {
	return sum("%s\x00%s\x00%s", t.Name, t.formed().canonical(), jsonform.Canonical(args))
}

func sum(format string, args ...any) string {
	h := sha256.New()
	fmt.Fprintf(h, format, args...)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// reconciled asks the tool for the outcome of an interrupted call. No decision has answered q.
func (w *work) reconciled(ctx context.Context, q PendingCall) (res llm.ToolResult, done bool, err error) {
	happened, err := w.reconcile(ctx, q.Call)
	switch {
	case ctx.Err() != nil:
		return res, true, notStarted(ctx)
	case err != nil:
		q.Why = "its tool cannot say: " + err.Error()
		return w.pend(q)
	case happened != nil:
		w.exec.Decision = &llm.Decision{Key: q.Key, Digest: q.Digest, By: "reconcile", Result: happened}
		return *happened, true, nil
	}

	w.isReconciled = true
	a, err := w.judged(ctx, q.Call) // it did not happen: an approval covers one attempt
	if err != nil || a.Verdict == VerdictAllow {
		return res, err != nil, err
	}
	q.Outcome = OutcomePending
	q.Why, q.Doubts, q.ValidFor = a.Reason, a.Doubts, max(a.ValidFor, 0)
	q.Digest = digest(q, w.tool)
	return w.pend(q)
}

// reconcile calls Tool.Reconcile, for no longer than the timeout of the tool.
func (w *work) reconcile(ctx context.Context, c llm.ToolCall) (res *llm.ToolResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	ctx = context.WithValue(ctx, invocationKey{}, &w.inv)
	if limit := w.tool.timeout(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	c.Args, c.Opaque = bytes.Clone(c.Args), c.Opaque.Clone()
	return w.tool.Reconcile(ctx, c)
}
