package tui

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
)

// ChatCmd is the command chat: a conversation, line by line.
type ChatCmd struct {
	File string `arg:"" optional:"" name:"FILE" help:"@chat_file"`
	assemble.AgentFlags
	assemble.TranscriptFlags
	assemble.RecordFlags
	assemble.TelemetryFlags `group:"telemetry"`

	Thread string `placeholder:"NAME" help:"@chat_thread"`
	Resume bool   `help:"@chat_resume"`
	Keep   int    `placeholder:"N" help:"@chat_keep"`
}

//go:embed chat.txt
var chatHelp string

// Help returns the long help of the command.
func (*ChatCmd) Help() string {
	return strings.TrimSpace(strings.Replace(chatHelp, "{commands}\n", slashHelp(), 1))
}

// chat is the state of a conversation.
type chat struct {
	*ChatCmd
	sys     *cli.System
	in      *cli.Lines // nil means the console
	out     *Screen    // for output of the command itself
	display *display
	console *console // nil means plain lines
	setup   *assemble.Setup
	person  *asker           // asks about calls; nil means that there is no terminal
	stored  *assemble.Thread // the stored conversation; nil means that it is not stored
	res     *pawl.Result     // the result of the last turn; empty before the first turn
	last    error            // the error of the last turn
	decided map[llm.Key]bool // calls with a decision
	spent   pawl.Spent       // the usage of all turns
}

// Run reads messages until the input ends.
func (c *ChatCmd) Run(sys *cli.System) error {
	con, sys := openConsole(sys, true)
	defer con.Close()
	err := c.RecordFlags.Keep(sys, c.run(sys))
	if con != nil { // later output belongs below the console
		err = reported(sys, err)
	}
	return err
}

// reported reports err, and returns it as a failure that is not reported again.
func reported(sys *cli.System, err error) error {
	if err == nil {
		return nil
	}
	return cli.Silent(cli.Report(sys.Err, err))
}

func (c *ChatCmd) run(sys *cli.System) error {
	from, err := assemble.LoadTranscript(c.Messages)
	if err != nil {
		return err
	}
	if c.Keep < 0 {
		return cli.Usage("without the flag all turns are sent", "--keep %d is less than 0", c.Keep)
	}
	if err := cli.Savable("--save", c.Save); err != nil {
		return err
	}
	if err := c.Carrier(sys, &c.AgentFlags); err != nil {
		return err
	}
	if c.File == "" && c.Model == "" {
		c.File = assemble.FileHere()
	}

	t := &chat{
		ChatCmd: c,
		sys:     sys,
		out:     NewScreen(sys.Err),
		console: consoleOf(sys),
		res:     from,
		decided: map[llm.Key]bool{},
	}
	t.display = NewDisplay(sys, t.out, false)
	if t.console == nil {
		t.in = cli.NewLines(sys.In)
		defer t.in.Stop()
	}

	if err := t.open(); err != nil {
		return err
	}
	// The setup is read at the end, because /model replaces it.
	defer func() { t.setup.Close() }()
	if err := t.start(); err != nil {
		return err
	}
	return t.talk()
}

// open builds the agent, and selects who decides about its calls.
func (t *chat) open() error {
	s, err := t.ChatCmd.Setup(context.Background(), t.sys, t.File)
	if err != nil {
		return err
	}
	t.Hide(s.Secrets)
	if t.Keep > 0 {
		s.Agent.Middleware = append(s.Agent.Middleware, history.LastTurns(t.Keep))
	}
	person := AskPerson(s, t.sys, t.out, t.in, t.decided, true)
	if err := t.TelemetryFlags.Open(t.sys, s); err != nil {
		s.Close()
		return err
	}
	t.setup = s
	t.person = person
	return nil
}

// start finds the conversation to continue, and describes it.
func (t *chat) start() error {
	wanted := t.DB != "" || t.Thread != "" || t.Resume
	byDefault := t.console != nil && !wanted
	if byDefault {
		t.Thread = assemble.NewThread
	}
	stored, from, err := t.thread(t.sys, t.setup, t.res)
	switch {
	case err != nil && byDefault: // a chat does not need a database
		t.notice("the conversation is not stored: %v", err)
		stored = nil
		from = t.res
	case err != nil:
		return err
	}
	t.stored = stored
	t.res = from

	if t.console != nil {
		t.greet()
		return nil
	}
	if t.sys.InTerm {
		fmt.Fprintf(t.out, "%s: %s in %s, %s; /quit ends, /help lists the commands\n", cli.Visible(t.name()),
			cli.Visible(t.setup.Model), cli.Visible(t.folder()), t.facts())
	}
	if stored != nil {
		t.notice("the conversation is stored: --thread %s resumes it%s", stored.ID, lengthOf(stored))
	}
	return nil
}

// talk handles messages until there are no more.
func (t *chat) talk() error {
	for {
		text, err := t.read()
		switch {
		case errors.Is(err, io.EOF):
			if t.sys.InTerm && t.console == nil {
				fmt.Fprintln(t.out)
			}
			return t.last
		case errors.Is(err, pawl.ErrCancelled):
			return cli.Silent(cli.StatusInterrupted)
		case err != nil:
			return cli.Usage("", "standard input: %v", err)
		case strings.TrimSpace(text) == "":

		case strings.HasPrefix(text, "/"):
			if t.console != nil { // elsewhere the terminal itself shows what is typed
				t.console.wrapped("said", term.Text(term.Cyan|term.Bold, "> ").Add(term.Cyan, text))
			}
			if done := t.command(text); done {
				return t.last
			}

		// A message would leave the calls without an answer, and the model would read errors.
		case len(t.waiting()) > 0:
			t.notice("calls are pending: %s; first /approve or /deny REASON", assemble.Keys(t.waiting()))
		default:
			t.message(text)
		}
	}
}

// message sends a message, and then the messages that were typed too late for its run.
func (t *chat) message(text string) {
	for {
		msg := llm.User(text)
		if t.console != nil {
			t.console.update(func() {
				t.console.view.AddMessage(text)
				msg = t.console.pasted.message(text)
			})
		}
		fresh := *t.res
		fresh.Spent = pawl.Spent{} // each message has its own budget
		t.turn(&fresh, msg)
		if t.console == nil {
			return
		}

		late := t.console.unqueue()
		if len(late) == 0 {
			return
		}
		text = strings.Join(late, "\n")
		if t.res.Stop.Class() != pawl.ClassAnswered {
			// the person expected another end of the run
			t.console.update(func() { t.console.editor.Set(text) })
			return
		}
	}
}

// thread opens the conversation to continue: in the database or from a file, but not both.
func (c *ChatCmd) thread(sys *cli.System, s *assemble.Setup, from *pawl.Result) (*assemble.Thread, *pawl.Result,
	error) {
	isStored := c.Thread != "" || c.DB != "" || c.Resume
	continues := c.Thread != "" && c.Thread != assemble.NewThread
	switch {
	case c.Resume && (c.Thread != "" || c.Messages != ""):
		return nil, nil, cli.Usage("use one: pawl chat --resume shows a choice, "+
			"pawl chat --thread NAME names the conversation", "--resume, --thread and --messages exclude each other")
	case c.Thread == assemble.NoThread, !isStored:
		return nil, from, nil
	case c.Messages != "" && continues:
		return nil, nil, cli.Usage("to store the conversation of --messages under a new name: --thread new",
			"--thread and --messages both select a conversation")
	}

	// Conversations that are to be stored need a database, which is made if there is none.
	db, err := s.DB.Create()
	if err != nil {
		return nil, nil, assemble.Misconfigured(err)
	}
	if c.Resume {
		c.Thread, err = choose(sys, db, c.Scope())
		if err != nil {
			return nil, nil, err
		}
	}
	stored, past, err := assemble.OpenThread(context.Background(), db, c.Scope(), c.Thread, time.Now())
	if err != nil {
		return nil, nil, err
	}
	if c.Messages != "" { // the thread is new, and has no past of its own
		past = from
	}
	return stored, past, nil
}

// lengthOf describes the messages of a stored conversation.
func lengthOf(t *assemble.Thread) string {
	if t.Thread.Messages == 0 {
		return ""
	}
	return fmt.Sprintf("; it has %s: %s", cli.Count(t.Thread.Messages, "message"), cli.Line(t.Title, 60))
}

// read reads a message, which may have several lines.
func (t *chat) read() (string, error) {
	if t.console != nil {
		return t.console.next()
	}

	ctx, stop := cli.Interruptible(context.Background(), io.Discard)
	defer stop()
	var text strings.Builder
	prompt := "> "
	for {
		if t.sys.InTerm {
			fmt.Fprint(t.out, prompt)
		}
		l, err := t.in.Next(ctx)
		switch {
		case err == io.EOF && text.Len() > 0: // the last line asked for another one
			return text.String(), nil
		case err != nil:
			return "", err
		}

		more := strings.HasSuffix(l, `\`)
		text.WriteString(strings.TrimSuffix(l, `\`))
		if !more {
			return text.String(), nil
		}
		text.WriteByte('\n')
		prompt = "… "
	}
}

// turn runs the agent from the result from with msgs.
func (t *chat) turn(from *pawl.Result, msgs ...llm.Message) {
	d := t.display
	d.started = time.Now()
	ctx, stop := t.attended()
	defer stop()
	if t.stored != nil {
		ctx = pawl.WithRunOptions(ctx, pawl.RunOptions{Thread: t.stored.ID})
	}
	maps.Copy(t.decided, assemble.Decided(msgs))
	res, truth, err := t.person.Run(ctx, t.setup, from, msgs, d.Show)
	stop() // what follows is no longer cancelled by Ctrl-C
	if res == nil {
		t.last = cli.NotBegun(err)
		cli.Report(t.sys.Err, t.last)
		return
	}

	// res is for the person, without secrets. The next turn needs the original bytes.
	t.res = truth
	t.spent.Rounds += res.Spent.Rounds // Add is for nested runs, whose rounds are their own
	t.spent.Add(res.Spent)
	if t.console != nil {
		d.totals(res.Spent)
	}
	t.last = t.ended(res, err)
	if err := assemble.PrintAnswer(t.sys, res, d.live); err != nil {
		t.last = err
	}
	if err := t.keep(res); err != nil {
		t.last = cli.Silent(cli.StatusFailed)
		cli.Report(t.sys.Err, err)
	}
}

// ended reports how a turn ended, and returns the failure for the end of the chat. nil means an
// answer.
func (t *chat) ended(res *pawl.Result, err error) error {
	failure := assemble.Ended(res, err, t.File, t.Save)
	var f *cli.Failure
	if errors.As(failure, &f) && f.Status == cli.StatusPending {
		f.Hint = "/approve, or /deny REASON"
	}
	return reported(t.sys, failure)
}

// keep stores the result of a turn, also of an interrupted one, in the file and in the thread.
func (t *chat) keep(res *pawl.Result) error {
	err := assemble.SaveTranscript(t.Save, res)
	if t.stored != nil {
		err = errors.Join(err, t.stored.Save(context.Background(), res))
	}
	return err
}

// attended returns the context of a turn, which the person can cancel. stop may be called more than
// once.
func (t *chat) attended() (ctx context.Context, stop func()) {
	if t.console != nil {
		return t.console.follow(context.Background(), pawl.ErrCancelled, new(pawl.Steering))
	}
	return cli.Interruptible(context.Background(), t.sys.Err)
}

func (t *chat) waiting() []assemble.OpenCall {
	var open []assemble.OpenCall
	for _, o := range assemble.OpenCalls(t.res) {
		if o.Question() != nil {
			open = append(open, o)
		}
	}
	return open
}

func (t *chat) notice(format string, args ...any) {
	fmt.Fprintf(t.out, "pawl: %s\n", cli.Visible(fmt.Sprintf(format, args...)))
}
