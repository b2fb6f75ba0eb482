package pawl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Verdict is an Approver's word on a call.
type Verdict int

// The verdicts. Anything else counts as Deny.
const (
	Allow Verdict = iota + 1 // run it
	Ask                      // a person or the caller must say: the call pends until a Decision answers it
	Deny                     // refuse it, whatever was decided elsewhere
)

// Approval is a verdict with its reason: told to the model with Deny, to the person with Ask.
type Approval struct {
	Verdict Verdict
	Reason  string
}

// Approver says whether a validated call may run. It is asked for every active call; tool is read only. It may be
// called concurrently, and may take its time: an approver that asks at a terminal answers Allow or Deny itself.
type Approver func(ctx context.Context, call ToolCall, tool *Tool) Approval

// AskBeforeWrites asks before every call whose effect is Write, and allows the rest.
func AskBeforeWrites(_ context.Context, _ ToolCall, tool *Tool) Approval {
	if tool.Effect == Write {
		return Approval{Ask, "it may change the world"}
	}
	return Approval{Verdict: Allow}
}

// approved settles the question whether the call may run. done means that it may not, or need not: res or err, or an open
// question on the Execution, is how it ended.
func (p *pipe) approved(ctx context.Context, c ToolCall) (res ToolResult, err error, done bool) {
	why := ""
	question := OutcomePending
	switch s := p.task.scope; {
	case p.tool.Passive:
	case p.task.Asked == OutcomeUnknown:
		question = OutcomeUnknown
	case s.approve == nil, p.tool == s.answer: // to answer is no act
		return res, nil, false
	default:
		a := s.approve(ctx, c, p.tool)
		if ctx.Err() != nil {
			return res, notBegun(ctx), true // it may have answered for that reason alone
		}
		switch a.Verdict {
		case Allow:
			return res, nil, false
		case Ask:
			why = a.Reason
		default:
			return res, denied(a.Reason), true
		}
	}
	w := Waiting{Key: p.task.Key, Call: c, Outcome: question, Attempt: p.task.Attempt, Why: why, Passive: p.tool.Passive}
	w.Digest = digest(w, p.tool)
	for _, d := range p.task.Decisions {
		if d.Digest != w.Digest {
			p.notice("decision_refused", "the decision by "+d.By+" answers another question: tool, arguments, attempt or question differ")
			continue
		}
		p.x.Decision = &d
		switch {
		case d.Result != nil:
			return *d.Result, nil, true
		case !d.Approve:
			return res, denied(d.Reason), true
		case !p.tool.Passive:
			return res, nil, false
		}
	}
	if !p.task.scope.waits {
		return res, fail(OutcomeDenied, "Not run: %s needs an answer from outside, and a call made inside another call cannot wait for one here. Call it directly.", p.tool.Name), true
	}
	p.x.Waiting = []Waiting{w}
	return res, fail(question, "It waits for an answer."), true // an error, so that no middleware takes it for done
}

func denied(reason string) error {
	if reason == "" {
		return fail(OutcomeDenied, "Denied: this call may not run. Do not repeat it.")
	}
	return fail(OutcomeDenied, "Denied: %s", reason)
}

// digest binds an answer to the question, the attempt, the tool with its schema, and the canonical arguments.
func digest(w Waiting, t *Tool) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%d\x00%s\x00%s\x00", w.Key, w.Outcome, w.Attempt, t.Name, canonical(t.Input))
	h.Write(canonical(w.Call.Args))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// canonical returns JSON with sorted names and no spaces, numbers as they were written; text that is no JSON as it is.
func canonical(b json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return b
	}
	if out, err := json.Marshal(v); err == nil {
		return out
	}
	return b
}
