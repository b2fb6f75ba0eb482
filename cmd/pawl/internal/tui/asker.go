package tui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/show"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/tools/file"
)

// asker asks a person about the calls that a policy wants approved. Concurrent calls are asked
// about one at a time.
type asker struct {
	policy  pawl.Approver
	decided map[llm.Key]bool // calls that flags decide
	in      *cli.Lines
	out     *Screen
	style   cli.Style
	width   int
	secrets *redact.Redactor // hides secrets in all questions
	console *console         // the console for cards; nil means questions line by line
	setup   *assemble.Setup  // the agent of the calls; nil means that no effect on files is shown
	resumes bool             // Run resumes the run with edited calls

	mu     sync.Mutex
	always map[string]bool // tools that are always allowed
	edits  map[llm.Key]json.RawMessage
}

var _ pawl.Approver = (*asker)(nil).approve

// NewAsker returns an asker that asks line by line. It reads from in, writes to out, and hides
// secrets.
func NewAsker(sys *cli.System, out *Screen, in *cli.Lines, secrets *redact.Redactor) *asker {
	return &asker{in: in, out: out, style: sys.Colours(sys.ErrTerm), width: sys.Width, always: map[string]bool{},
		secrets: secrets}
}

// DecideOn asks about each of the open calls that needs an approval, and returns the decisions as
// messages by the person called by.
func (a *asker) DecideOn(ctx context.Context, open []pawl.PendingCall, by string) (msgs []llm.Message) {
	for _, q := range open {
		if q.Passive || q.Outcome != pawl.OutcomePending {
			continue
		}
		var d llm.Decision
		if a.always[q.Call.Name] {
			d = q.Approve(by)
		} else {
			switch said := a.ask(ctx, q.Call, q.Why); said.Verdict {
			case pawl.VerdictAllow:
				d = q.Approve(by)
			case pawl.VerdictDeny:
				d = q.Deny(by, said.Reason)
			default:
				continue
			}
		}
		if ctx.Err() == nil {
			msgs = append(msgs, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{d}})
		}
	}
	return msgs
}

// approve asks about the calls that the policy wants approved. It does not ask about calls of
// passive tools, or about calls that a flag decides.
func (a *asker) approve(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	return a.under(ctx, a.policy, call, tool)
}

// under is approve with another policy, for example the policy of a worker.
func (a *asker) under(ctx context.Context, policy pawl.Approver, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval,
	error) {
	said, err := policy(ctx, call, tool)
	if err != nil || said.Verdict != pawl.VerdictAsk || tool.Passive {
		return said, err
	}
	if v := pawl.InvocationFrom(ctx); v != nil && (a.decided[v.Key] || !v.WaitForReply()) {
		return said, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.always[tool.Name] {
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}
	return a.ask(ctx, call, said.Reason), nil
}

// ask asks the person at the terminal.
func (a *asker) ask(ctx context.Context, call llm.ToolCall, why string) pawl.Approval {
	var path llm.Key
	if v := pawl.InvocationFrom(ctx); v != nil {
		path = v.Key
	}
	var said decision
	if a.console != nil {
		said = a.askInPlace(ctx, call, why, path)
	} else {
		said = a.askInLine(ctx, a.secrets.Call(call), why)
	}
	switch {
	case ctx.Err() != nil:
		return denied("The run was interrupted before anybody answered.")
	// an approval with changed arguments is a decision, with which the run resumes
	case said.verdict == pawl.VerdictAllow && said.args != nil:
		if a.edits == nil {
			a.edits = map[llm.Key]json.RawMessage{}
		}
		a.edits[path] = said.args
		return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: why}
	case said.verdict == pawl.VerdictAllow:
		a.always[call.Name] = a.always[call.Name] || said.always
		return pawl.Approval{Verdict: pawl.VerdictAllow}
	case said.verdict == pawl.VerdictDeny && said.text != "":
		return denied("The person at the terminal said no: " + said.text)
	case said.verdict == pawl.VerdictDeny:
		return denied("The person at the terminal said no.")
	}
	return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "the question was not answered"}
}

// askInLine asks in plain lines, at most three times.
func (a *asker) askInLine(ctx context.Context, call llm.ToolCall, why string) decision {
	done := a.out.hold() // the output of the run waits, so that the question stays visible
	defer done()
	title := a.style.Yellow("  may " + cli.WholeLine(call.Name) + " run? " + cli.WholeLine(why) + ":")
	lines := wholeArgs(string(call.Args), a.width-6)
	fmt.Fprintf(a.out.terminal, "\n%s\n", title)
	for _, l := range lines {
		fmt.Fprintf(a.out.terminal, "      %s\n", l)
	}
	if len(lines) > 20 { // the title may have left the screen
		fmt.Fprintln(a.out.terminal, title)
	}
	for range 3 {
		fmt.Fprint(a.out.terminal, "  y: yes, n: no, a: yes, always for this tool > ")
		answer, err := a.in.Next(ctx)
		if err != nil {
			fmt.Fprintln(a.out.terminal)
			break
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return decision{verdict: pawl.VerdictAllow}
		case "a", "always":
			return decision{verdict: pawl.VerdictAllow, always: true}
		case "n", "no":
			return decision{verdict: pawl.VerdictDeny}
		}
	}
	return decision{}
}

// askInPlace asks on a card with the effect of the call.
func (a *asker) askInPlace(ctx context.Context, call llm.ToolCall, why string, path llm.Key) decision {
	var of *change
	if a.setup != nil {
		of = changeOf(ctx, a.setup, call)
	}
	shown := a.secrets.Call(call)
	q := newCard(shown, why, of, a.resumes && show.Direct(path) && bytes.Equal(shown.Args, call.Args))
	s := a.console.put(ctx, q, path)
	a.console.record(path, shown, q, s)
	return s
}

func denied(reason string) pawl.Approval {
	return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: reason}
}

// Run runs the agent from the result from with msgs, as Setup.Follow does, and again for each call
// that the person approved with changed arguments. A nil asker runs it once.
func (a *asker) Run(ctx context.Context, s *assemble.Setup, from *pawl.Result, msgs []llm.Message,
	show func(pawl.Event)) (shown, truth *pawl.Result, err error) {
	for {
		shown, truth, err = s.Follow(ctx, s.Resumed(from), msgs, show)
		if shown == nil || a == nil || ctx.Err() != nil {
			return shown, truth, err
		}
		edits := a.edited(truth)
		if len(edits) == 0 {
			return shown, truth, err
		}
		from, msgs = truth, []llm.Message{llm.DecisionMessage(edits...)}
	}
}

// edited returns the decisions on calls that were approved with changed arguments. nil means none.
func (a *asker) edited(res *pawl.Result) []llm.Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []llm.Decision
	for _, w := range res.Pending {
		if args, ok := a.edits[w.Key]; ok {
			out = append(out, w.Edit("the person at the terminal", args))
			a.decided[w.Key] = true
			delete(a.edits, w.Key)
		}
	}
	return out
}

// changeOf returns the effect of a call of the file tools on its file. nil means that the call
// belongs to another tool, or that the file is not text.
func changeOf(ctx context.Context, s *assemble.Setup, call llm.ToolCall) *change {
	ours := slices.ContainsFunc(s.File.Tools, func(t agentfile.Tool) bool { return t.Set == "file" })
	if !ours || !strings.HasPrefix(call.Name, "file_") {
		return nil
	}
	set, err := file.New(s.File.Directory(), nil)
	if err != nil {
		return nil
	}
	defer set.Close()
	p, err := set.Preview(ctx, call)
	if p == nil || err != nil {
		return nil
	}
	return &change{s.Secrets.String(p.Path), s.Secrets.String(p.Before), s.Secrets.String(p.After), p.Exists}
}

// wholeArgs returns the complete arguments of a call for a decision, with characters that are
// not seen made visible, in lines of at most width columns.
func wholeArgs(args string, width int) (out []string) {
	for l := range strings.SplitSeq(strings.TrimSuffix(cli.Exact(args), "\n"), "\n") {
		for _, part := range term.Text(0, l).Chop(width) {
			out = append(out, part.String())
		}
	}
	return out
}

// AskPerson adds the rules of s to its agent. The person at the terminal decides the calls that the
// rules want approved. AskPerson returns nil if there is no terminal: such calls are then pending.
// A nil in means the standard input. decided holds the calls that flags decide. resumes says that
// the caller runs the agent by Run, which resumes edited calls.
func AskPerson(s *assemble.Setup, sys *cli.System, out *Screen, in *cli.Lines, decided map[llm.Key]bool,
	resumes bool) *asker {
	rules := s.Rules
	if !sys.InTerm || !sys.ErrTerm {
		s.Agent.Middleware = append(s.Agent.Middleware, rules.Middleware())
		return nil
	}
	if in == nil && sys.Console == nil {
		in = cli.NewLines(sys.In)
	}
	a := NewAsker(sys, out, in, s.Secrets)
	a.policy, a.decided, a.console, a.setup, a.resumes = rules.Approve, decided, consoleOf(sys), s, resumes
	s.Agent.Middleware = append(s.Agent.Middleware, pawl.Approve(a.approve))
	s.Ask = a.under
	s.Asks.Set(a.question)
	return a
}

// question shows a question of an MCP server, under the name of the server. The answer goes to the
// server and approves no call.
func (a *asker) question(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	done := a.out.hold()
	defer done()
	fmt.Fprintf(a.out.terminal, "\n%s\n", a.style.Yellow("  the MCP server "+cli.Line(q.Server, 40)+
		" asks (pawl does not; what you say goes to the server):"))
	for _, l := range wholeArgs(q.Message, a.width-6) {
		fmt.Fprintf(a.out.terminal, "      | %s\n", l)
	}
	if q.URL != "" {
		fmt.Fprintf(a.out.terminal, "      it wants you to open: %s\n", cli.Exact(q.URL))
	}
	content, err := a.form(ctx, q.Schema)
	if err != nil {
		return mcp.Answer{}, err
	}
	said, err := a.typed(ctx, "  y: send this answer, n: refuse > ")
	if err != nil {
		return mcp.Answer{}, err
	}
	said = strings.ToLower(said)
	return mcp.Answer{Accept: said == "y" || said == "yes", Content: content}, nil
}

// form asks for each field. Empty fields are omitted.
func (a *asker) form(ctx context.Context, schema json.RawMessage) (map[string]any, error) {
	var s struct {
		Properties map[string]struct {
			Title, Description, Type string
			Enum                     []string
		}
	}
	_ = json.Unmarshal(schema, &s)
	content := map[string]any{}
	for _, n := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[n]
		about := strings.TrimSpace(p.Title + " " + p.Description)
		if len(p.Enum) > 0 {
			about += " (" + strings.Join(p.Enum, ", ") + ")"
		}
		said, err := a.typed(ctx, "  "+cli.Line(cli.Exact(n+" "+about), 100)+" > ")
		if err != nil {
			return nil, err
		}
		var v any
		switch {
		case said == "":
			continue
		case p.Type == "string" || p.Type == "":
			v = said
		case json.Unmarshal([]byte(said), &v) != nil:
			v = said // the SDK reports the error
		}
		content[n] = v
	}
	return content, nil
}

func (a *asker) typed(ctx context.Context, prompt string) (string, error) {
	if a.console != nil {
		s := a.console.put(ctx, newPrompt(strings.TrimSuffix(strings.TrimSpace(prompt), " >")), "")
		if s.verdict == 0 {
			return "", cmp.Or(context.Cause(ctx), io.EOF)
		}
		return s.text, nil
	}
	fmt.Fprint(a.out.terminal, prompt)
	said, err := a.in.Next(ctx)
	return strings.TrimSpace(said), err
}
