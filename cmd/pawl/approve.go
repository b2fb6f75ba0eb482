package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/outside"
)

// ruleFlags say which calls run, which wait for a person, and which never run.
type ruleFlags struct {
	Yes       bool           `short:"y" help:"Run calls that may change the world without asking."`
	AllowTool []string       `name:"allow-tool" placeholder:"TOOL" help:"Run calls of these tools without asking: a name, a pattern (file_*) or an effect (effect:write)."`
	AskTool   []string       `name:"ask-tool" placeholder:"TOOL" help:"Ask before calls of these tools, with --yes too."`
	DenyTool  []string       `name:"deny-tool" placeholder:"TOOL" help:"Never run calls of these tools. Wins over all else."`
	Within    *time.Duration `name:"approve-within" placeholder:"TIME" help:"How long an approval is good for; 0: for ever. Default: 30m."`
}

// over writes what the flags say over the agent. Flags that name tools add to the lists of a file, since a rule that somebody wrote to be safe is not taken
// away by another; with --yes every call runs that no list asks about or denies.
func (f *ruleFlags) over(a *config.Agent) {
	if a.Team != nil {
		f = &ruleFlags{Yes: f.Yes, Within: f.Within} // whose tools the lists are about is known when the workers are built: see spread
	}
	for _, l := range []struct {
		path string
		list *[]string
		said []string
	}{{"approve.deny", &a.Approve.Deny, f.DenyTool}, {"approve.ask", &a.Approve.Ask, f.AskTool}, {"approve.allow", &a.Approve.Allow, f.AllowTool}} {
		for _, name := range l.said {
			a.Override(fmt.Sprintf("%s[%d]", l.path, len(*l.list)))
			*l.list = append(slices.Clip(*l.list), name)
		}
	}
	set(a, "approve.within", &a.Approve.Within, (*outside.Duration)(f.Within))
	if f.Yes {
		set(a, "approve.else", &a.Approve.Else, "allow")
	}
}

// spread gives the lists of the flags to the team: what is about its own tools, workers among them, to its rules. Those of its workers have them already, by inner.
func (f *ruleFlags) spread(r *policy.Rules, built *config.Built) error {
	about := func(name string, tools []*pawl.Tool) error { return policy.Rules{Deny: []string{name}}.Check(tools) }
	for _, l := range []struct {
		flag string
		list *[]string
		said []string
	}{{"--deny-tool", &r.Deny, f.DenyTool}, {"--ask-tool", &r.Ask, f.AskTool}, {"--allow-tool", &r.Allow, f.AllowTool}} {
		for _, name := range l.said {
			switch {
			case about(name, built.Tools) == nil:
				*l.list = append(slices.Clip(*l.list), name)
			case about(name, built.Within) != nil:
				what, hint, _ := strings.Cut(strings.TrimPrefix(about(name, append(slices.Clip(built.Tools), built.Within...)).Error(), "approval rules: deny: "), "; ")
				return usage(hint, "%s: %s", l.flag, what)
			}
		}
	}
	return nil
}

// inner is who decides about the calls of workers: their own rules with the flags over them, and where they ask the person at the terminal. Without one such calls are refused, since they
// are made inside others.
func (s *setup) inner(own policy.Rules, f *ruleFlags) pawl.Middleware {
	r := own
	r.Deny, r.Ask, r.Allow = slices.Concat(r.Deny, f.DenyTool), slices.Concat(r.Ask, f.AskTool), slices.Concat(r.Allow, f.AllowTool)
	if f.Yes {
		r.Else = pawl.Allow
	}
	m := pawl.Approve(func(ctx context.Context, call pawl.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
		if s.ask == nil {
			return r.Approve(ctx, call, tool)
		}
		return s.ask(ctx, r.Approve, call, tool)
	})
	m.Check = own.Check // those of the flags may be about others
	return m
}

// decided returns the calls that msgs decide on.
func decided(msgs []pawl.Message) map[pawl.Key]bool {
	keys := map[pawl.Key]bool{}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if d, ok := p.(pawl.Decision); ok {
				keys[d.Key] = true
			}
		}
	}
	return keys
}

// asker asks a person where a policy says Ask. Calls that run together ask one after another.
type asker struct {
	policy  pawl.Approver
	decided map[pawl.Key]bool // calls that flags say something of
	in      *lines
	out     *screen
	style   style
	width   int
	secrets *pawl.Redactor // hides them in what is shown
	console *console       // where it can be asked in place; nil: line by line
	setup   *setup         // whose calls are asked about; nil means that no change of a file is shown
	resumes bool           // the run is resumed with edited calls: see run

	mu     sync.Mutex
	always map[string]bool // tools that were allowed once and for all
	edits  map[pawl.Key]json.RawMessage
}

var _ pawl.Approver = (*asker)(nil).approve

// newAsker returns an asker that asks line by line: it reads from in, writes to out, and hides secrets.
func newAsker(sys *system, out *screen, in *lines, secrets *pawl.Redactor) *asker {
	return &asker{in: in, out: out, style: sys.colours(sys.errTerm), width: sys.width, always: map[string]bool{}, secrets: secrets}
}

// decideOn asks about each of open that waits for an approval, and returns the decisions as messages by the person called by.
func (a *asker) decideOn(ctx context.Context, open []pawl.Waiting, by string) (msgs []pawl.Message) {
	for _, q := range open {
		if q.Passive || q.Outcome != pawl.OutcomePending {
			continue
		}
		var d pawl.Decision
		if a.always[q.Call.Name] {
			d = q.Approve(by)
		} else {
			switch said := a.ask(ctx, q.Call, q.Why); said.Verdict {
			case pawl.Allow:
				d = q.Approve(by)
			case pawl.Deny:
				d = q.Deny(by, said.Reason)
			default:
				continue
			}
		}
		if ctx.Err() == nil {
			msgs = append(msgs, pawl.Message{Role: pawl.RoleUser, Parts: []pawl.Part{d}})
		}
	}
	return msgs
}

// approve asks about the calls that the policy wants asked about. A call to a passive tool takes no answer, and one that was decided
// on by a flag needs none.
func (a *asker) approve(ctx context.Context, call pawl.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	return a.under(ctx, a.policy, call, tool)
}

// under is approve for a policy of others: that of a worker.
func (a *asker) under(ctx context.Context, policy pawl.Approver, call pawl.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	said, err := policy(ctx, call, tool)
	if err != nil || said.Verdict != pawl.Ask || tool.Passive {
		return said, err
	}
	if v := pawl.InvocationFrom(ctx); v != nil && (a.decided[v.Key] || !v.Certain()) {
		return said, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.always[tool.Name] {
		return pawl.Approval{Verdict: pawl.Allow}, nil
	}
	return a.ask(ctx, call, said.Reason), nil
}

// ask asks the person at the terminal.
func (a *asker) ask(ctx context.Context, call pawl.ToolCall, why string) pawl.Approval {
	if a.console != nil {
		return a.askInPlace(ctx, call, why)
	}
	call = a.secrets.Call(call)
	done := a.out.hold() // what the run tells meanwhile waits, so that the question stays in sight
	defer done()
	fmt.Fprintf(a.out.w, "\n%s\n", a.style.yellow("  may "+line(call.Name, 60)+" run? "+line(why, 200)+":"))
	for _, l := range wholeArgs(string(call.Args), a.width-6) {
		fmt.Fprintf(a.out.w, "      %s\n", l)
	}
	for range 3 {
		fmt.Fprint(a.out.w, "  y: yes, n: no, a: yes, always for this tool > ")
		answer, err := a.in.next(ctx)
		if err != nil {
			fmt.Fprintln(a.out.w)
			if ctx.Err() != nil {
				return pawl.Approval{Verdict: pawl.Deny, Reason: "The run was interrupted before anybody answered."}
			}
			return pawl.Approval{Verdict: pawl.Ask, Reason: "nobody answered"}
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return pawl.Approval{Verdict: pawl.Allow}
		case "a", "always":
			a.always[call.Name] = true
			return pawl.Approval{Verdict: pawl.Allow}
		case "n", "no":
			return pawl.Approval{Verdict: pawl.Deny, Reason: "The person at the terminal said no."}
		}
	}
	return pawl.Approval{Verdict: pawl.Ask, Reason: "the question was not answered"}
}

// askInPlace asks on a card: what the call would do, and the keys that answer.
func (a *asker) askInPlace(ctx context.Context, call pawl.ToolCall, why string) pawl.Approval {
	var path pawl.Key
	if v := pawl.InvocationFrom(ctx); v != nil {
		path = v.Key
	}
	var of *change
	if a.setup != nil {
		of = changeOf(ctx, a.setup, call)
	}
	shown := a.secrets.Call(call)
	q := newCard(shown, why, of, a.resumes && direct(path) && bytes.Equal(shown.Args, call.Args))
	s := a.console.put(ctx, q, path)
	a.console.record(path, shown, q, s)
	switch {
	case ctx.Err() != nil:
		return pawl.Approval{Verdict: pawl.Deny, Reason: "The run was interrupted before anybody answered."}
	case s.verdict == pawl.Allow && s.args != nil: // a yes to other arguments is a decision, with which the run goes on
		if a.edits == nil {
			a.edits = map[pawl.Key]json.RawMessage{}
		}
		a.edits[path] = s.args
		return pawl.Approval{Verdict: pawl.Ask, Reason: why}
	case s.verdict == pawl.Allow:
		a.always[call.Name] = a.always[call.Name] || s.always
		return pawl.Approval{Verdict: pawl.Allow}
	case s.verdict == pawl.Deny && s.text != "":
		return pawl.Approval{Verdict: pawl.Deny, Reason: "The person at the terminal said no: " + s.text}
	case s.verdict == pawl.Deny:
		return pawl.Approval{Verdict: pawl.Deny, Reason: "The person at the terminal said no."}
	}
	return pawl.Approval{Verdict: pawl.Ask, Reason: "the question was not answered"}
}

// run lets the agent go on from from with msgs as follow does, and goes on once more with each call that the person allowed with other arguments. a may be nil.
func (a *asker) run(ctx context.Context, s *setup, from *pawl.Result, msgs []pawl.Message, show func(pawl.Event)) (told, truth *pawl.Result, err error) {
	for {
		told, truth, err = s.follow(ctx, s.resumed(from), msgs, show)
		if told == nil || a == nil || ctx.Err() != nil {
			return told, truth, err
		}
		edits := a.edited(truth)
		if len(edits) == 0 {
			return told, truth, err
		}
		from, msgs = truth, []pawl.Message{pawl.Decide(edits...)}
	}
}

// edited returns the decisions on calls that were allowed with other arguments; nil: there is none.
func (a *asker) edited(res *pawl.Result) []pawl.Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []pawl.Decision
	for _, w := range res.Pending {
		if args, ok := a.edits[w.Key]; ok {
			out = append(out, w.Edit("the person at the terminal", args))
			a.decided[w.Key] = true
			delete(a.edits, w.Key)
		}
	}
	return out
}

// changeOf is what a call of the file tools would make of its file; nil: it is none of theirs, or its file has no text.
func changeOf(ctx context.Context, s *setup, call pawl.ToolCall) *change {
	ours := slices.ContainsFunc(s.file.Tools, func(t config.Tool) bool { return t.Set == "file" })
	if !ours || !strings.HasPrefix(call.Name, "file_") {
		return nil
	}
	set, err := file.New(s.file.Directory(), nil)
	if err != nil {
		return nil
	}
	defer set.Close()
	p, err := set.Preview(ctx, call)
	if p == nil || err != nil {
		return nil
	}
	return &change{s.secrets.String(p.Path), s.secrets.String(p.Before), s.secrets.String(p.After), p.Exists}
}

// wholeArgs shows arguments to the person who decides on them: all of them, made harmless, or a head and how much is left out.
func wholeArgs(args string, width int) []string {
	const most = 40
	var out []string
	rest := visible(args)
	for rest != "" && len(out) < most {
		l, more, _ := strings.Cut(rest, "\n")
		if utf8.RuneCountInString(l) > width {
			r := []rune(l)
			out = append(out, string(r[:width]))
			rest = rest[len(string(r[:width])):]
			continue
		}
		out = append(out, l)
		rest = more
	}
	if rest != "" {
		out = append(out, fmt.Sprintf("… %d bytes more: say n to see the call whole with --save", len(rest)))
	}
	return out
}

// screen is a writer that can be held, so that a question is not written over.
type screen struct {
	mu sync.Mutex
	w  io.Writer
}

// newScreen returns a screen that writes to w.
func newScreen(w io.Writer) *screen { return &screen{w: w} }

// Write waits while the screen is held.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// hold keeps others from writing until the returned function is called.
func (s *screen) hold() func() {
	s.mu.Lock()
	return s.mu.Unlock
}

// askPerson has the calls of s decided by its rules, and where they ask, by the person at the terminal. It returns nil without a terminal:
// such calls are pending then. in may be nil; decided are the calls that flags decide. resumes says that the caller resumes the run with edited calls: see asker.run.
func askPerson(s *setup, sys *system, out *screen, in *lines, decided map[pawl.Key]bool, resumes bool) *asker {
	rules := s.rules
	if !sys.inTerm || !sys.errTerm {
		s.agent.Middleware = append(s.agent.Middleware, rules.Middleware())
		return nil
	}
	if in == nil && sys.console == nil {
		in = newLines(sys.in)
	}
	a := newAsker(sys, out, in, s.secrets)
	a.policy, a.decided, a.console, a.setup, a.resumes = rules.Approve, decided, consoleOf(sys), s, resumes
	s.agent.Middleware = append(s.agent.Middleware, pawl.Approve(a.approve))
	s.ask = a.under
	s.asks.set(a.question)
	return a
}
