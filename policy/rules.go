package policy

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Rules decide which calls may run, by lists of tools. Deny wins over Ask, and Ask over Allow. The zero value is
// pawl.AskBeforeWrites.
type Rules struct {
	Deny  []string // these never run; the model is told
	Ask   []string // these wait for a decision
	Allow []string // these run

	// Wary are tools that do much in one call and are no Write themselves, such as execute_code. Where no other list is about one and Else is 0, it waits for a decision too. An
	// entry may be about no tool.
	Wary []string

	Else   pawl.Verdict  // for calls that no list is about; 0: ask before a Write, allow the rest
	Within time.Duration // how long a yes is good for; 0: 30 min; negative: for ever
}

var _ pawl.Approver = Rules{}.Approve

// Middleware returns the middleware that holds an agent to r.
func (r Rules) Middleware() pawl.Middleware {
	m := pawl.Approve(r.Approve)
	m.Check = r.Check
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
	return nil
}

// Approve is the policy itself, for a policy of your own that asks it first.
func (r Rules) Approve(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	in := func(list []string) bool {
		return slices.ContainsFunc(list, func(e string) bool { return matches(e, tool) })
	}
	switch {
	case in(r.Deny):
		return pawl.Approval{Verdict: pawl.Deny, Reason: "the rules of this agent do not let " + tool.Name + " run. Do not repeat it."}, nil
	case in(r.Ask):
		return pawl.Approval{Verdict: pawl.Ask, Reason: "the rules ask before " + tool.Name, Within: r.Within}, nil
	case in(r.Allow):
		return pawl.Approval{Verdict: pawl.Allow}, nil
	case r.Else == pawl.Ask, r.Else == 0 && in(r.Wary):
		return pawl.Approval{Verdict: pawl.Ask, Reason: "no rule allows " + tool.Name, Within: r.Within}, nil
	case r.Else == pawl.Deny:
		return pawl.Approval{Verdict: pawl.Deny, Reason: "no rule of this agent lets " + tool.Name + " run. Do not repeat it."}, nil
	case r.Else != 0:
		return pawl.Approval{Verdict: r.Else}, nil
	}
	a, err := pawl.AskBeforeWrites(ctx, call, tool)
	a.Within = r.Within
	return a, err
}
