package assemble

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/advice"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
)

// ruleFlags select the calls that run, the calls that need approval, and the calls that never run.
type ruleFlags struct {
	Yes       bool           `short:"y" help:"@rule_yes"`
	AllowTool []string       `name:"allow-tool" placeholder:"TOOL" help:"@rule_allowtool"`
	AskTool   []string       `name:"ask-tool" placeholder:"TOOL" help:"@rule_asktool"`
	DenyTool  []string       `name:"deny-tool" placeholder:"TOOL" help:"@rule_denytool"`
	Within    *time.Duration `name:"approve-within" placeholder:"TIME" help:"@rule_within" rare:""`
}

// over writes the flags over the agent. Flags that name tools extend the lists of a file, because a
// command line must not remove a safety rule. --yes allows every call that no list denies or wants
// approved.
func (f *ruleFlags) over(a *agentfile.Agent) {
	if a.Team != nil || a.Handoffs != nil {
		// addToTeam adds the lists when the workers and their tools are known
		f = &ruleFlags{Yes: f.Yes}
	}
	for _, l := range []struct {
		path  string
		list  *[]string
		given []string
	}{
		{"approve.deny", &a.Approve.Deny, f.DenyTool},
		{"approve.ask", &a.Approve.Ask, f.AskTool},
		{"approve.allow", &a.Approve.Allow, f.AllowTool},
	} {
		for _, name := range l.given {
			a.Override(fmt.Sprintf("%s[%d]", l.path, len(*l.list)))
			*l.list = append(slices.Clip(*l.list), name)
		}
	}
	if f.Yes {
		a.Approve.Else = "allow"
		a.Override("approve.else")
	}
}

// addToTeam adds the lists of the flags to the rules of the team, as far as they name its own tools
// or workers. workerRules adds the other names to the rules of the workers.
func (f *ruleFlags) addToTeam(r *policy.Rules, built *agentfile.Built) error {
	everywhere := append(slices.Clip(built.Tools), built.Within...)
	for _, l := range []struct {
		flag  string
		list  *[]string
		given []string
	}{
		{"--deny-tool", &r.Deny, f.DenyTool},
		{"--ask-tool", &r.Ask, f.AskTool},
		{"--allow-tool", &r.Allow, f.AllowTool},
	} {
		for _, name := range l.given {
			switch {
			case unnamedIn(built.Tools, name) == nil:
				*l.list = append(slices.Clip(*l.list), name)
			case unnamedIn(built.Within, name) == nil: // workerRules has it
			default:
				// The suggestion comes from the tools of all, since the person thinks of one agent.
				what, hint := advice.Parts(unnamedIn(everywhere, name))
				return cli.Usage(hint, "%s: %s", l.flag, what)
			}
		}
	}
	return nil
}

// unnamedIn returns the error for an entry of a list that names none of tools. Nil means that it
// names one.
func unnamedIn(tools []*pawl.Tool, entry string) error {
	return policy.Rules{Deny: []string{entry}}.Check(tools)
}

// workerRules approves the calls of workers: by their own rules with the flags over them, and by
// the person at the terminal where the rules ask. Without a person such calls are refused, because
// nested calls cannot be pending.
func (s *Setup) workerRules(own policy.Rules, f *ruleFlags) pawl.Middleware {
	// The flags come last in each list and deny first in the rules: a flag can forbid what a file
	// allows.
	r := own
	r.Deny = slices.Concat(r.Deny, f.DenyTool)
	r.Ask = slices.Concat(r.Ask, f.AskTool)
	r.Allow = slices.Concat(r.Allow, f.AllowTool)
	if f.Yes {
		r.Default = pawl.VerdictAllow
	}

	m := pawl.Approve(func(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
		if s.Ask == nil {
			return r.Approve(ctx, call, tool)
		}
		return s.Ask(ctx, r.Approve, call, tool)
	})
	m.Check = own.Check // the names in the flags may belong to other workers
	return m
}

// Decided returns the keys of the calls that msgs decide.
func Decided(msgs []llm.Message) map[llm.Key]bool {
	keys := map[llm.Key]bool{}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if d, ok := p.(llm.Decision); ok {
				keys[d.Key] = true
			}
		}
	}
	return keys
}

// Held returns tools that execute only the calls that the rules allow. It is for calls outside a
// run, where a call cannot be pending: all other calls fail.
func Held(rules policy.Rules, tools []*pawl.Tool) pawl.Toolset {
	var all pawl.Toolsets
	rules.Flow = nil // such a call has no conversation
	for _, t := range tools {
		one := t.Clone()
		if !t.Passive {
			one.Run = held(rules, t)
		}
		all = append(all, one)
	}
	return all
}

// held returns a function that executes the calls of a tool that the rules allow.
func held(rules policy.Rules, t *pawl.Tool) func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		given, err := rules.Approve(ctx, call, t)
		switch {
		case err != nil:
			return llm.ToolResult{}, err
		case given.Verdict == pawl.VerdictAsk:
			return llm.ErrorResult(fmt.Sprintf("not run: %s, and no person is here to ask; "+
				"--allow-tool %s or --yes lets it run", given.Reason, t.Name)), nil
		case given.Verdict != pawl.VerdictAllow:
			return llm.ErrorResult("not run: " + given.Reason), nil
		}
		return t.Run(ctx, call)
	}
}
