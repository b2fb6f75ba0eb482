package policy

// rules.go: Rules and AskBeforeWrites: which calls run, wait or are denied.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Rules decide which calls may run, by lists of tools. Deny wins over Ask, and Ask over Allow. The
// zero value is AskBeforeWrites.
//
// An entry may have conditions on arguments, joined by and:
//
//	file_write(path in notes/**)         a cleaned path; ** stands for any number of folders
//	http_fetch(url host *.example.com)   the host of a URL, as in sandbox_hosts
//	pay(amount <= 100 and currency = EUR)
//
// The operators are in, host, <, <=, >, >= and =; a dot leads into an object (order.total), and all
// elements of a list must meet a condition. A missing argument meets no condition. An argument of
// another type, a path that leads outside or differs in case alone, and an argument that is there
// twice match entries of Deny and Ask, and no entry of Allow.
type Rules struct {
	// Deny lists calls that never run.
	Deny []string
	// Ask lists calls that wait for a decision.
	Ask []string
	// Allow lists calls that run.
	Allow []string

	// AskByDefault lists tools that do much in one call without being a Write, such as
	// execute_code. If no other list matches such a tool and Default is 0, its calls wait for a
	// decision, too. An entry may match no tool.
	AskByDefault []string

	// Default is the verdict for calls that no list matches. 0 means to ask before a Write, and to
	// allow the rest.
	Default pawl.Verdict

	// ValidFor is the time from an approval to the start of the call. 0 means no limit.
	ValidFor time.Duration

	// Flow decides too, by the origin of arguments, and the stricter verdict counts: a tool in
	// Allow may still wait for a decision. Nil means no such policy.
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
	m.Check = r.Check
	if r.Flow != nil {
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
		for _, e := range list.entries {
			if err := checkArguments(e, tools); err != nil {
				return fmt.Errorf("approval rules: %s: %w", list.name, err)
			}
			name, _, _ := strings.Cut(e, "(")
			if err := check("approval rules: "+list.name, []string{name}, tools); err != nil {
				return err
			}
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
	if err != nil || r.Flow == nil {
		return a, err
	}
	switch a.Verdict {
	case pawl.VerdictAllow, pawl.VerdictAsk:
	default:
		return a, nil // nothing is stricter
	}

	f, err := r.Flow.Approve(ctx, call, tool)
	f.ValidFor = r.ValidFor
	if f.Verdict == pawl.VerdictAsk && a.Verdict == pawl.VerdictAsk {
		f.Reason = a.Reason + "; " + f.Reason
	}
	if err == nil && f.Verdict == pawl.VerdictAllow {
		return a, nil
	}
	return f, err
}

// listed is the verdict of the lists.
func (r Rules) listed(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	in := func(list []string, allows bool) (what string, ok bool) {
		i := slices.IndexFunc(list, func(e string) bool { return covers(e, allows, call, tool) })
		if i >= 0 && strings.Contains(list[i], "(") {
			return tool.Name + " with these arguments", true
		}
		return tool.Name, i >= 0
	}
	deny := func(reason string) (pawl.Approval, error) {
		return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: reason + " run. Do not repeat it."}, nil
	}
	ask := func(reason string) (pawl.Approval, error) {
		return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: reason, ValidFor: r.ValidFor}, nil
	}

	if what, ok := in(r.Deny, false); ok {
		return deny("the rules of this agent do not let " + what)
	}
	if what, ok := in(r.Ask, false); ok {
		return ask("the rules ask before " + what)
	}
	if _, ok := in(r.Allow, true); ok {
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}

	_, wary := in(r.AskByDefault, false)
	switch {
	case r.Default == pawl.VerdictAsk, r.Default == 0 && wary:
		return ask("no rule allows " + tool.Name)
	case r.Default == pawl.VerdictDeny:
		return deny("no rule of this agent lets " + tool.Name)
	case r.Default != 0:
		return pawl.Approval{Verdict: r.Default}, nil
	}
	a, err := AskBeforeWrites(ctx, call, tool)
	a.ValidFor = r.ValidFor
	return a, err
}
