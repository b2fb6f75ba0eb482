package policy

// rules.go: Rules and AskBeforeWrites: which calls run, wait or are denied.

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Rules decide which calls may run, by lists of tools. Deny wins over Ask, and Ask over Allow. The
// zero value is AskBeforeWrites.
type Rules struct {
	Deny  []string // these never run
	Ask   []string // these wait for a decision
	Allow []string // these run

	// AskByDefault lists tools that do much in one call without being a Write, such as
	// execute_code. If no other list matches such a tool and Default is 0, its calls wait for a
	// decision, too. An entry may match no tool.
	AskByDefault []string

	// for calls that no list matches; 0 means ask before a Write and allow the rest
	Default pawl.Verdict

	ValidFor time.Duration // the validity of an approval; 0 means 30 min, negative means for ever

	// Flow decides too, by the origin of arguments, and the stricter verdict counts: a tool in
	// Allow may still wait for a decision. nil means no such policy.
	Flow *Flow
}

var _ pawl.Approver = Rules{}.Approve

// AskBeforeWrites is a pawl.Approver. It asks before every call with EffectWrite, and allows the
// other calls.
func AskBeforeWrites(_ context.Context, _ llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	if tool.Effect == pawl.EffectWrite {
		return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "it may change the world"}, nil
	}
	return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
}

var _ pawl.Approver = AskBeforeWrites

// Middleware returns the middleware that holds an agent to r.
func (r Rules) Middleware() pawl.Middleware {
	m := pawl.Approve(r.Approve)
	if m.Check = r.Check; r.Flow != nil {
		m.Tool = r.Flow.Middleware().Tool
	}
	return m
}

// Check reports an entry that can be about none of tools.
func (r Rules) Check(tools []*pawl.Tool) error {
	for _, list := range []struct {
		name    string
		entries []string
	}{{"deny", r.Deny}, {"ask", r.Ask}, {"allow", r.Allow}} {
		if err := check("approval rules: "+list.name, list.entries, tools); err != nil {
			return err
		}
	}
	if r.Flow != nil {
		return r.Flow.Check(tools)
	}
	return nil
}

// Approve is the policy itself, for a policy of your own that asks it first.
func (r Rules) Approve(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	a, err := r.listed(ctx, call, tool)
	if err != nil || r.Flow == nil || a.Verdict != pawl.VerdictAllow && a.Verdict != pawl.VerdictAsk {
		return a, err
	}
	f, err := r.Flow.Approve(ctx, call, tool)
	if f.ValidFor = r.ValidFor; f.Verdict == pawl.VerdictAsk && a.Verdict == pawl.VerdictAsk {
		f.Reason = a.Reason + "; " + f.Reason
	}
	if err == nil && f.Verdict == pawl.VerdictAllow {
		return a, nil
	}
	return f, err
}

// listed is the verdict of the lists.
func (r Rules) listed(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	in := func(list []string) bool {
		return slices.ContainsFunc(list, func(e string) bool { return matches(e, tool) })
	}
	switch {
	case in(r.Deny):
		return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "the rules of this agent do not let " + tool.Name + " run. Do not repeat it."}, nil
	case in(r.Ask):
		return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "the rules ask before " + tool.Name, ValidFor: r.ValidFor}, nil
	case in(r.Allow):
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	case r.Default == pawl.VerdictAsk, r.Default == 0 && in(r.AskByDefault):
		return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "no rule allows " + tool.Name, ValidFor: r.ValidFor}, nil
	case r.Default == pawl.VerdictDeny:
		return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "no rule of this agent lets " + tool.Name + " run. Do not repeat it."}, nil
	case r.Default != 0:
		return pawl.Approval{Verdict: r.Default}, nil
	}
	a, err := AskBeforeWrites(ctx, call, tool)
	a.ValidFor = r.ValidFor
	return a, err
}
