package tui

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/show"
	"github.com/pawl-go/pawl/cmd/pawl/internal/show/markdown"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// slash is a command of the chat. Its name begins with a slash.
type slash struct {
	name, args, help string
	// the command only shows information, so it may be used during a run
	shows bool
	do    func(t *chat, rest string) // nil ends the chat
}

// slashes returns the commands in the order of /help.
func slashes() []slash {
	return []slash{
		{"/help", "", "what can be typed", true, (*chat).help},
		{"/tools", "", "what the model may call", true, (*chat).tools},
		{"/show", "[N]", "a whole result: of call #N, or the last one", true, (*chat).show},
		{"/cost", "", "what the conversation has used", true, (*chat).cost},
		{"/model", "[NAME]", "which model it is; with a name, another one", false, (*chat).model},
		{"/thread", "[NAME]", "the stored conversations; with a name, continue that one", false,
			(*chat).threads},
		{"/clear", "", "start a new conversation", false, (*chat).clear},
		{"/save", "FILE", "write the conversation to a file", false, (*chat).save},
		{"/undo", "[--force]", "restore the file of the last change", false, (*chat).undo},
		{"/runs", "", "durable runs", true, (*chat).runs},
		{"/approve", "", "run the pending calls", false, (*chat).settle},
		{"/deny", "REASON", "refuse them; the model gets the reason", false, (*chat).refuse},
		{"/quit", "", "end, as does the end of the input", false, nil},
	}
}

// slashHelp returns the list of commands.
func slashHelp() string {
	var b strings.Builder
	for _, s := range slashes() {
		fmt.Fprintf(&b, "    %-18s %s\n", strings.TrimSpace(s.name+" "+s.args), s.help)
	}
	return b.String()
}

// command executes a line that begins with a slash, and reports whether the chat ends.
func (t *chat) command(text string) (done bool) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	// Other chats call it so.
	if name == "/exit" {
		name = "/quit"
	}
	all := slashes()
	var names []string
	for _, s := range all {
		if s.name == name {
			if s.do != nil {
				s.do(t, strings.TrimSpace(rest))
			}
			return s.do == nil
		}
		names = append(names, s.name)
	}
	t.notice("there is no %s%s; there are %s", name, cli.Meant(name, names), strings.Join(names, ", "))
	return false
}

// duringRun executes a command during a run, and reports whether that is possible.
func (t *chat) duringRun(text string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if !slices.ContainsFunc(slashes(), func(s slash) bool { return s.name == name && s.shows }) {
		return false
	}
	t.command(text)
	return true
}

// complete returns the completions of a line that begins with a slash.
func (t *chat) complete(before string) []string {
	name, rest, hasArgs := strings.Cut(before, " ")
	switch {
	case !strings.HasPrefix(before, "/") || strings.Contains(before, "\n"):
		return nil
	case !hasArgs:
		return commandsFrom(before)
	}

	var out []string
	for _, w := range t.argumentsOf(name, rest) {
		if strings.HasPrefix(w, rest) {
			out = append(out, name+" "+w)
		}
	}
	return out
}

// commandsFrom returns the commands whose names start so, with a space behind each that takes an
// argument.
func commandsFrom(start string) (out []string) {
	for _, s := range slashes() {
		if !strings.HasPrefix(s.name, start) {
			continue
		}
		if s.args != "" {
			s.name += " "
		}
		out = append(out, s.name)
	}
	return out
}

// argumentsOf returns the possible arguments of a command, of which the person has typed start.
func (t *chat) argumentsOf(command, start string) (words []string) {
	switch command {
	case "/thread":
		for _, k := range t.known() {
			words = append(words, k.ID)
		}
	case "/save":
		words, _ = filepath.Glob(start + "*")
		for i, w := range words {
			if info, err := os.Stat(w); err == nil && info.IsDir() {
				words[i] += "/"
			}
		}
	}
	return words
}

func (t *chat) help(string) {
	fmt.Fprint(t.out, slashHelp())
	if t.console != nil {
		fmt.Fprint(t.out, "\n"+keyHelp)
	}
}

//go:embed keys.txt
var keyHelp string

func (t *chat) tools(string) {
	for _, tool := range t.setup.Tools {
		fmt.Fprintf(t.out, "  %-18s %-10s %s\n", cli.Line(tool.Name, 40), tool.Effect,
			cli.FirstSentence(tool.Description, max(t.sys.Width-32, 48)))
	}
	if len(t.setup.Tools) == 0 {
		t.notice("no tools; --tools file,data offers the built-in ones")
	}
}

func (t *chat) save(rest string) {
	if rest == "" {
		t.notice("where to? /save FILE")
	} else if err := assemble.SaveTranscript(rest, t.setup.Secrets.Result(t.res)); err != nil {
		t.notice("%v", err)
	} else {
		t.notice("saved %s", rest)
	}
}

// undo restores a file, as pawl undo does.
func (t *chat) undo(rest string) {
	if change, err := t.setup.File.Undo(context.Background(), t.sys.Env, rest == "--force"); err != nil {
		t.notice("%v; checkpoints: true keeps changes, and /undo --force restores a file that differs", err)
	} else {
		t.notice("%s is as before the last call", cli.Visible(change.Path))
	}
}

func (t *chat) settle(string) {
	t.decide(assemble.SettleFlags{Approve: []string{assemble.All}})
}

func (t *chat) refuse(rest string) {
	t.decide(assemble.SettleFlags{Deny: []string{assemble.All + "=" + rest}})
}

// decide decides all pending calls.
func (t *chat) decide(f assemble.SettleFlags) {
	msgs, _, err := f.Settle(t.res)
	if err != nil {
		t.notice("%v", err)
	} else {
		t.turn(t.res, msgs...)
	}
}

// show shows the details of a call, permanently.
func (t *chat) show(rest string) {
	if c := t.console; c != nil {
		c.update(func() { showCall(c.view, rest) })
		return
	}
	p := t.display.plain
	showCall(p.View, rest)
	p.Print(p.View.Drain(time.Now())...)
}

// showCall adds the details of the call that the argument of /show names. Without one it is the
// last call.
func showCall(v *show.View, arg string) {
	n, err := strconv.Atoi(strings.TrimPrefix(arg, "#"))
	if arg == "" {
		n = v.Calls()
		err = nil
	}
	if err != nil || n < 1 || n > v.Calls() {
		v.Add("output", outputLine(fmt.Sprintf("pawl: there is no result %q; there are %s", arg,
			cli.Count(v.Calls(), "result"))))
		return
	}
	v.AddDetails(n)
}

func (t *chat) cost(string) {
	fmt.Fprintf(t.out, "  %s\n", cli.Totals(t.spent, 0))
}

// model shows the model, or sets another one.
func (t *chat) model(rest string) {
	if rest == "" {
		t.notice("%s; /model NAME sets another", t.setup.Model)
		return
	}
	name := t.Model
	setup := t.setup
	t.Model = rest
	if err := t.open(); err != nil { // the agent of before is still in place
		t.Model = name
		cli.Report(t.sys.Err, err)
		return
	}

	// The new agent has opened the database again, and the thread must not use the closed one.
	setup.Close()
	if t.stored != nil {
		if db, err := t.setup.DB.Create(); err == nil {
			t.stored.DB = db
		}
	}
	t.notice("the model is %s from now on", t.setup.Model)
}

// clear starts a new conversation. The stored conversation stays.
func (t *chat) clear(string) {
	t.switchTo(assemble.NewThread, new(pawl.Result))
	t.display.plain.View.ForgetCalls()
	t.last = nil
	if t.console != nil {
		t.console.update(func() { t.console.view.ForgetCalls() })
	}
}

// switchTo continues the conversation called name. If conversations are not stored, it starts a new
// one from the result from.
func (t *chat) switchTo(name string, from *pawl.Result) {
	t.spent = pawl.Spent{}
	if t.stored == nil {
		t.res = from
		t.notice("a new conversation")
		return
	}
	stored, past, err := assemble.OpenThread(context.Background(), t.stored.DB, t.stored.Scope, name, time.Now())
	if err != nil {
		cli.Report(t.sys.Err, err)
		return
	}
	t.stored = stored
	t.res = past
	t.notice("the conversation is %s%s", stored.ID, lengthOf(stored))
	t.recall()
}

// known returns the stored conversations.
func (t *chat) known() []store.Thread {
	if t.stored == nil {
		return nil
	}
	all, err := assemble.Threads(context.Background(), t.stored.DB, t.stored.Scope)
	if err != nil {
		t.notice("%v", err)
	}
	return all
}

func (t *chat) threads(rest string) {
	switch {
	case t.stored == nil:
		t.notice("conversations are not stored; --thread NAME stores them")
	case rest != "":
		t.switchTo(rest, nil)
	default:
		all := t.known()
		for _, k := range all[:min(len(all), 15)] {
			mark := "  "
			if k.ID == t.stored.ID {
				mark = "* "
			}
			fmt.Fprintf(t.out, "%s%-20s %4d  %s  %s\n", mark, cli.Visible(k.ID), k.Messages,
				ago(time.Since(k.Updated)), cli.Line(k.Title, max(t.sys.Width-40, 10)))
		}
		if len(all) == 0 {
			t.notice("no conversation is stored yet; this one is %s", t.stored.ID)
		}
	}
}

// ago formats an age for a column.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "     now"
	case d < time.Hour:
		return fmt.Sprintf("%3d min ", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%3d h   ", int(d.Hours()))
	}
	return fmt.Sprintf("%3d days", int(d.Hours()/24))
}

// runs lists durable runs.
func (t *chat) runs(string) {
	db, err := t.setup.DB.Create()
	if err != nil {
		cli.Report(t.sys.Err, assemble.Misconfigured(err))
		return
	}
	all, err := db.JournalRuns(context.Background(), t.Scope(), "", store.Page{Limit: 15})
	if err != nil {
		t.notice("%v", err)
	}
	for _, r := range all {
		fmt.Fprintf(t.out, "  %-24s %-10s %s\n", cli.Visible(r.ID), r.State, ago(time.Since(r.Updated)))
	}
	if len(all) == 0 {
		t.notice("there is no durable run; pawl run --durable starts one")
	}
}

// greet shows the model, the tools and the conversation on the console.
func (t *chat) greet() {
	c := t.console
	c.update(func() {
		c.editor.Complete = t.complete
		c.command = t.duringRun
		head := term.Text(term.Bold, t.name()).Add(0, "  "+t.setup.Model).Add(term.Dim, "  in "+t.folder())
		c.view.Add("head", head.Wrap(c.view.Width)...)
		c.view.Add("head", term.Text(term.Dim, t.facts()).Wrap(c.view.Width)...)
		c.greeting = term.Text(term.Dim, "Enter sends, Alt-Enter: new line, /help")
	})
	t.recall()
}

// name returns the name of the agent. An agent without a file is called pawl.
func (t *chat) name() string { return cmp.Or(t.setup.Agent.Name, "pawl") }

// folder returns the name of the folder that the tools work in.
func (t *chat) folder() string {
	dir, err := filepath.Abs(t.setup.File.Directory())
	if err != nil {
		return t.setup.File.Directory()
	}
	return filepath.Base(dir)
}

// facts returns what a person wants to know before the first message: the tools, the context that
// is used, where the conversation is stored, and whether /undo has something to restore.
func (t *chat) facts() string {
	facts := []string{cli.Count(len(t.setup.Tools), "tool")}
	if window := t.setup.Window; window > 0 {
		taken := t.setup.Taken
		for _, m := range t.res.Messages {
			taken += len(m.Text()) / 3 // about three bytes a token
		}
		facts = append(facts, fmt.Sprintf("context %d%% of %s tokens", 100*taken/window, cli.Grouped(window)))
	}
	if t.stored != nil {
		facts = append(facts, "thread "+t.stored.ID)
	}
	if t.writes() && !t.setup.File.Checkpoints {
		facts = append(facts, "/undo is off (checkpoints: true)")
	}
	return strings.Join(facts, "  ")
}

// writes reports whether the agent has a tool whose changes checkpoints would keep.
func (t *chat) writes() bool {
	return slices.ContainsFunc(t.setup.Tools, func(tool *pawl.Tool) bool {
		return tool.Name == "file_write" || tool.Name == "file_edit"
	})
}

// recall shows the end of a resumed conversation, and puts its messages into the history of the
// editor.
func (t *chat) recall() {
	if t.console == nil || len(t.res.Messages) == 0 {
		return
	}
	c := t.console
	c.update(func() {
		last := -1 // the last message of the person
		for i, m := range t.res.Messages {
			if m.Role == llm.RoleUser && m.Text() != "" {
				c.editor.Remember(m.Text())
				last = i
			}
		}
		if last >= 0 {
			t.showFrom(last)
		}
	})
	if open := t.waiting(); len(open) > 0 {
		t.notice("calls are pending: %s; /approve, or /deny REASON", assemble.Keys(open))
	}
}

// showFrom shows a message of the person and the replies to it. The lock of the console is held.
func (t *chat) showFrom(asked int) {
	v := t.console.view
	if asked > 0 {
		v.Add("output", term.Text(term.Dim, fmt.Sprintf("… %s before", cli.Count(asked, "message"))))
	}
	v.Add("past", v.Quote(t.res.Messages[asked].Text())...)
	for _, m := range t.res.Messages[asked+1:] {
		text := m.Text()
		if m.Role == llm.RoleAssistant && strings.TrimSpace(text) != "" {
			v.Add("text", markdown.Render(t.setup.Secrets.String(text), v.Width)...)
		}
	}
}
