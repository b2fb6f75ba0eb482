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
	// Deny lists calls that never run. The model reads the entry that denied a call, if it is more
	// than the name of the tool.
	Deny []string
	// Ask lists calls that wait for a decision. The question names the entry, if it is more than
	// the name of the tool.
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

// AskBeforeWrites is a pawl.Approver. It asks before every call with EffectWrite or EffectUnstated,
// and allows the other calls.
func AskBeforeWrites(_ context.Context, _ llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	if tool.Effect.Assumed() == pawl.EffectWrite {
		return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "it may change the world"}, nil
	}
	return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
}

var _ pawl.Approver = AskBeforeWrites

// Middleware returns the middleware that holds an agent to r.
func (r Rules) Middleware() pawl.Middleware {
	m := pawl.Approve(r.Approve)
	m.Check = r.Check

	// Flow also has to know the conversation around an agent that is called as a tool.
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
	}{
		{"deny", r.Deny},
		{"ask", r.Ask},
		{"allow", r.Allow},
	} {
		for _, e := range list.entries {
			if err := checkRule(e, tools); err != nil {
				return fmt.Errorf("approval rules: %s: %w", list.name, err)
			}
		}
	}
	if r.Default < 0 || r.Default > pawl.VerdictDeny {
		return fmt.Errorf("approval rules: there is no Default %d; use one of the Verdicts of package pawl", r.Default)
	}
	if err := notNegative("approval rules", number{"ValidFor", int64(r.ValidFor)}); err != nil {
		return err
	}
	if r.Flow != nil {
		return r.Flow.Check(tools)
	}
	return nil
}

// checkRule reports an entry that can be about none of tools, and conditions that no call can meet.
func checkRule(entry string, tools []*pawl.Tool) error {
	if err := checkArguments(entry, tools); err != nil {
		return err
	}
	name, _, _ := strings.Cut(entry, "(")
	return checkEntry(name, tools)
}

// Approve is the policy itself, for a policy of your own that asks it first.
func (r Rules) Approve(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	byLists, err := r.listed(ctx, call, tool)
	if err != nil || r.Flow == nil {
		return byLists, err
	}
	switch byLists.Verdict {
	case pawl.VerdictAllow, pawl.VerdictAsk:
	default:
		return byLists, nil // nothing is stricter
	}

	// The stricter verdict counts. If both ask, the question has both reasons: what is wrong with
	// the call first, because all questions of the lists look alike.
	byFlow, err := r.Flow.Approve(ctx, call, tool)
	byFlow.ValidFor = r.ValidFor
	if err == nil && byFlow.Verdict == pawl.VerdictAllow {
		byLists.Derivations = byFlow.Derivations
		return byLists, nil
	}
	if byFlow.Verdict == pawl.VerdictAsk && byLists.Verdict == pawl.VerdictAsk {
		byFlow.Reason += "; " + byLists.Reason
	}
	return byFlow, err
}

// listed is the verdict of the lists, or else of the defaults.
func (r Rules) listed(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	// The strictest list first: an entry in two lists must not become an allowance.
	if e := restricting(r.Deny, call, tool); e != "" {
		return deny("the rules of this agent do not let " + calls(e, tool) + " run" + by(e, tool)), nil
	}
	if e := restricting(r.Ask, call, tool); e != "" {
		return r.ask("the rules ask before " + calls(e, tool) + by(e, tool)), nil
	}
	if allowing(r.Allow, call, tool) != "" {
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}

	wary := restricting(r.AskByDefault, call, tool) != ""
	switch {
	case r.Default == pawl.VerdictAsk, r.Default == 0 && wary:
		return r.ask("no rule allows " + tool.Name), nil
	case r.Default == pawl.VerdictDeny:
		return deny("no rule of this agent lets " + tool.Name + " run"), nil
	case r.Default != 0:
		return pawl.Approval{Verdict: r.Default}, nil
	}
	a, err := AskBeforeWrites(ctx, call, tool)
	a.ValidFor = r.ValidFor
	return a, err
}

// restricting returns the first entry of Deny, Ask or AskByDefault that is or may be about the
// call. Empty means none.
func restricting(list []string, call llm.ToolCall, tool *pawl.Tool) string {
	return firstEntry(list, func(e string) bool { return covers(e, false, call, tool) })
}

// allowing returns the first entry of Allow that is certainly about the call. Empty means none.
func allowing(list []string, call llm.ToolCall, tool *pawl.Tool) string {
	return firstEntry(list, func(e string) bool { return covers(e, true, call, tool) })
}

func firstEntry(list []string, is func(string) bool) string {
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return ""
	}
	return list[i]
}

// calls names the calls of a tool that an entry is about.
func calls(entry string, tool *pawl.Tool) string {
	if strings.Contains(entry, "(") {
		return tool.Name + " with these arguments"
	}
	return tool.Name
}

// by names the entry that decided, unless it is the name of the tool alone. A person sees which of
// many rules asks, and a model what it may not do.
func by(entry string, tool *pawl.Tool) string {
	if entry == tool.Name {
		return ""
	}
	return ", by the entry " + entry
}

func deny(reason string) pawl.Approval {
	return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: reason + ". Do not repeat it."}
}

func (r Rules) ask(reason string) pawl.Approval {
	return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: reason, ValidFor: r.ValidFor}
}
