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
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/redact"
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
	seen   map[string]bool // the calls that a yes to another call covers, by callKey
	asked  map[string]bool // the calls with questions of their own, by callKey
	always map[string]bool // the keys of questions that are answered with yes
	edits  map[llm.Key]json.RawMessage
}

var _ pawl.Approver = (*asker)(nil).approve

// NewAsker returns an asker that asks line by line. It reads from in, writes to out, and hides
// secrets.
func NewAsker(sys *cli.System, out *Screen, in *cli.Lines, secrets *redact.Redactor) *asker {
	return &asker{
		in:      in,
		out:     out,
		style:   sys.Colours(sys.ErrTerm),
		width:   sys.Width,
		secrets: secrets,
		always:  map[string]bool{},
		seen:    map[string]bool{},
		asked:   map[string]bool{},
	}
}

// DecideOn asks about each of the open calls that needs an approval, and returns the decisions as
// messages by the person called by.
func (a *asker) DecideOn(ctx context.Context, open []pawl.PendingCall, by string) (msgs []llm.Message) {
	for i, q := range open {
		// A result, or the knowledge whether a call happened, is no matter of yes and no.
		if q.Passive || q.Outcome != pawl.OutcomePending {
			continue
		}
		said := pawl.Approval{Verdict: pawl.VerdictAllow}
		of := question{call: q.Call, why: q.Why, doubts: q.Doubts, path: q.Key}
		if !a.isAnswered(of) {
			of.others = othersOf(of, open[i+1:])
			said = a.ask(ctx, of)
		}
		if ctx.Err() != nil {
			continue
		}

		switch said.Verdict {
		case pawl.VerdictAllow:
			msgs = append(msgs, llm.DecisionMessage(q.Approve(by)))
		case pawl.VerdictDeny:
			msgs = append(msgs, llm.DecisionMessage(q.Deny(by, said.Reason)))
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
	// A call that starts early may still be dropped with its reply. The person is asked about calls
	// that stay.
	if v := pawl.InvocationFrom(ctx); v != nil && (a.decided[v.Key] || !v.WaitForReply()) {
		return said, nil
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	of := question{call: call, why: said.Reason, doubts: said.Doubts}
	if v := pawl.InvocationFrom(ctx); v != nil {
		of.path = v.Key
		of.others = a.othersIn(of, v.Messages())
	}
	if a.isAnswered(of) {
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}
	return a.ask(ctx, of), nil
}

// ask asks the person at the terminal.
func (a *asker) ask(ctx context.Context, of question) pawl.Approval {
	call := of.call
	why := of.why
	a.asked[callKey(call)] = true
	var said decision
	if a.console != nil {
		said = a.askInPlace(ctx, of)
	} else {
		said = a.askInLine(ctx, a.hidden(of))
	}
	switch {
	case ctx.Err() != nil:
		return denied("The run was interrupted before anybody answered.")
	// an approval with changed arguments is a decision, with which the run resumes
	case said.verdict == pawl.VerdictAllow && said.args != nil:
		if a.edits == nil {
			a.edits = map[llm.Key]json.RawMessage{}
		}
		a.edits[of.path] = said.args
		return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: why, Doubts: of.doubts}
	case said.verdict == pawl.VerdictAllow:
		a.agreed(of, said.always)
		return pawl.Approval{Verdict: pawl.VerdictAllow}
	case said.verdict == pawl.VerdictDeny && said.text != "":
		return denied("The person at the terminal said no: " + said.text)
	case said.verdict == pawl.VerdictDeny:
		return denied("The person at the terminal said no.")
	}
	return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "the question was not answered"}
}

// hidden returns the question without secrets.
func (a *asker) hidden(of question) question {
	of.call = a.secrets.Call(of.call)
	of.others = slices.Clone(of.others)
	for i, c := range of.others {
		of.others[i] = a.secrets.Call(c)
	}
	return of
}

// askInLine asks in plain lines, at most three times.
func (a *asker) askInLine(ctx context.Context, of question) decision {
	done := a.out.hold() // the output of the run waits, so that the question stays visible
	defer done()
	title := a.style.Yellow("  may " + cli.WholeLine(of.title()) + " run? " + cli.WholeLine(of.why) + ":")
	var lines []string
	for _, c := range of.calls() {
		lines = append(lines, wholeArgs(string(c.Args), a.width-6)...)
	}
	fmt.Fprintf(a.out.terminal, "\n%s\n", title)
	for _, l := range lines {
		fmt.Fprintf(a.out.terminal, "      %s\n", l)
	}
	if len(lines) > 20 { // the title may have left the screen
		fmt.Fprintln(a.out.terminal, title)
	}

	keys := "y: yes, n: no, a: yes, always for this tool and reason"
	if !of.mayRepeat() {
		keys = "y: yes, n: no"
	}
	// An input that is no answer, such as pasted text, must not keep the run here for ever.
	for range 3 {
		fmt.Fprint(a.out.terminal, "  "+keys+" > ")
		answer, err := a.in.Next(ctx)
		if err != nil {
			fmt.Fprintln(a.out.terminal)
			break
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return decision{verdict: pawl.VerdictAllow}
		case "a", "always":
			if of.mayRepeat() {
				return decision{verdict: pawl.VerdictAllow, always: true}
			}
		case "n", "no":
			return decision{verdict: pawl.VerdictDeny}
		}
	}
	return decision{}
}

// askInPlace asks on a card with the effect of the call.
func (a *asker) askInPlace(ctx context.Context, of question) decision {
	var effect *change
	if a.setup != nil {
		effect = changeOf(ctx, a.setup, of.call)
	}
	shown := a.hidden(of)
	// Arguments with a hidden secret cannot be edited: the mark would replace the secret. A
	// question about several calls has no arguments of its own.
	whole := bytes.Equal(shown.call.Args, of.call.Args) && len(of.others) == 0
	q := newCard(shown, effect, a.resumes && show.Direct(of.path) && whole)
	s := a.console.prompt(ctx, q, of.path)
	a.console.record(of.path, shown.call, q, s)
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
		from = truth
		msgs = []llm.Message{llm.DecisionMessage(edits...)}
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
// belongs to another tool, would fail, or that the file is not text.
func changeOf(ctx context.Context, s *assemble.Setup, call llm.ToolCall) *change {
	if s.Built.Files == nil {
		return nil
	}
	p, err := s.Built.Files.Preview(ctx, call)
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
	a.policy = rules.Approve
	a.decided = decided
	a.console = consoleOf(sys)
	a.setup = s
	a.resumes = resumes
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
	// Nothing is sent before the person has seen all fields.
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
	_ = json.Unmarshal(schema, &s) // a question without a form has no schema

	content := map[string]any{}
	// In the order of the names: JSON objects have none of their own.
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		about := strings.TrimSpace(p.Title + " " + p.Description)
		if len(p.Enum) > 0 {
			about += " (" + strings.Join(p.Enum, ", ") + ")"
		}
		said, err := a.typed(ctx, "  "+cli.Line(cli.Exact(name+" "+about), 100)+" > ")
		if err != nil {
			return nil, err
		}
		if said != "" {
			content[name] = fieldValue(p.Type, said)
		}
	}
	return content, nil
}

// fieldValue returns what a person typed as a value of a type of JSON Schema. A value that does not
// fit stays text: the SDK reports it.
func fieldValue(kind, said string) any {
	if kind == "string" || kind == "" {
		return said
	}
	var v any
	if json.Unmarshal([]byte(said), &v) != nil {
		return said
	}
	return v
}

func (a *asker) typed(ctx context.Context, prompt string) (string, error) {
	if a.console != nil {
		s := a.console.prompt(ctx, newPrompt(strings.TrimSuffix(strings.TrimSpace(prompt), " >")), "")
		if s.verdict == 0 {
			return "", cmp.Or(context.Cause(ctx), io.EOF)
		}
		return s.text, nil
	}
	fmt.Fprint(a.out.terminal, prompt)
	said, err := a.in.Next(ctx)
	return strings.TrimSpace(said), err
}
