package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/compile"
)

// chatCmd is a conversation, line by line.
type chatCmd struct {
	File string `arg:"" optional:"" name:"FILE" help:"A file with the agent: see docs/yaml.md. Flags stand over it."`
	agentFlags
	transcriptFlags
	recordFlags
	telemetryFlags
	Thread string `placeholder:"NAME" help:"Keep the conversation in the database under this name, and go on with it if there is one: last for the last one, new for a name of its own. Default: new with --db, else it is not kept."`
	Keep   int    `placeholder:"N" help:"Send the last N turns only (up to half of N more, so that the beginning stays the same for a while). What is saved is whole. Default: all."`
}

// Help says what can be typed.
func (*chatCmd) Help() string {
	return `Each line is a message; a line that ends in a backslash goes on in the next one. Lines that begin with a slash are commands:

    /tools             what the model may call
    /save FILE         keep the conversation
    /approve           let the calls that wait run
    /deny REASON       refuse them; the model is told the reason
    /quit              end, as does the end of the input

Ctrl-C ends what the model is doing; at the prompt it ends the chat. With --save the conversation is kept after each turn, in a file; with --thread NAME, or --db FILE, in the database, where it goes on the next time: pawl chat --thread last, and where a model finds it again (--tools knowledge). The status is that of the last turn.`
}

// chat is a conversation under way.
type chat struct {
	*chatCmd
	sys     *system
	in      *lines
	out     *screen // for what is not the model's
	setup   *setup
	kept    *thread           // where it is kept in the database; nil: it is not
	res     *pawl.Result      // how the last turn ended; empty at first
	last    error             // what the last turn came to
	decided map[pawl.Key]bool // calls that were approved or denied
}

// Run reads lines until the input ends.
func (c *chatCmd) Run(sys *system) error {
	return c.recordFlags.keep(sys, c.run(sys))
}

func (c *chatCmd) run(sys *system) error {
	from := new(pawl.Result)
	if c.Messages != "" {
		var err error
		if from, err = loadTranscript(c.Messages); err != nil {
			return err
		}
	}
	if c.Keep < 0 {
		return usage("without the flag all turns are sent", "--keep %d is less than 0", c.Keep)
	}
	if err := savable("--save", c.Save); err != nil {
		return err
	}
	if err := c.carrier(sys, &c.agentFlags); err != nil {
		return err
	}
	s, err := c.setup(context.Background(), sys, c.File)
	if err != nil {
		return err
	}
	defer func() { s.close() }()
	c.hide(s.secrets)
	kept, from, err := c.thread(s, from)
	if err != nil {
		return err
	}
	t := &chat{chatCmd: c, sys: sys, in: newLines(sys.in), out: &screen{w: sys.err}, setup: s, kept: kept, res: from, decided: map[pawl.Key]bool{}}
	defer t.in.stop()
	if c.Keep > 0 {
		s.agent.Middleware = append(s.agent.Middleware, compile.LastTurns(c.Keep))
	}
	c.approve(s, sys, t.out, t.in, t.decided)
	if err := c.telemetryFlags.open(sys, s); err != nil {
		return err
	}
	if sys.inTerm {
		fmt.Fprintf(t.out, "%s with %s; /quit ends, /tools lists them\n", visible(s.model), count(len(s.tools), "tool"))
	}
	if kept != nil {
		t.say("the conversation is kept: --thread %s goes on with it%s", kept.ID, since(kept))
	}
	for {
		text, err := t.read()
		switch {
		case errors.Is(err, io.EOF):
			if sys.inTerm {
				fmt.Fprintln(t.out)
			}
			return t.last
		case errors.Is(err, pawl.ErrCancelled):
			return &failure{status: statusInterrupted}
		case err != nil:
			return usage("", "standard input: %v", err)
		case strings.TrimSpace(text) == "":
		case strings.HasPrefix(text, "/"):
			if done := t.command(text); done {
				return t.last
			}
		case len(t.waiting()) > 0:
			t.say("calls wait: %s; /approve or /deny REASON comes first", keys(t.waiting()))
		default:
			fresh := *t.res
			fresh.Spent = pawl.Spent{} // a message has a budget of its own
			t.turn(&fresh, pawl.User(text))
		}
	}
}

// thread finds where the conversation is kept, and where it goes on: in the database or in a file, but not in both.
func (c *chatCmd) thread(s *setup, from *pawl.Result) (*thread, *pawl.Result, error) {
	if c.Thread == "" && c.DB == "" {
		return nil, from, nil
	}
	if c.Messages != "" && c.Thread != "" && c.Thread != newThread {
		return nil, nil, usage("--thread new keeps under another name what --messages goes on from", "--thread and --messages both say where the conversation goes on")
	}
	db, err := s.db.Create()
	if err != nil {
		return nil, nil, misconfigured(err)
	}
	kept, past, err := openThread(context.Background(), db, c.scope(), c.Thread, time.Now())
	if err != nil {
		return nil, nil, err
	}
	s.db.Thread = kept.ID
	if c.Messages != "" {
		past = from
	}
	return kept, past, nil
}

// since says how far a conversation has come.
func since(t *thread) string {
	if t.Thread.Messages == 0 {
		return ""
	}
	return fmt.Sprintf("; it has %s: %s", count(t.Thread.Messages, "message"), line(t.Title, 60))
}

// read reads a message, which may go over several lines.
func (t *chat) read() (string, error) {
	ctx, stop := interruptible(context.Background(), io.Discard)
	defer stop()
	var text strings.Builder
	prompt := "> "
	for {
		if t.sys.inTerm {
			fmt.Fprint(t.out, prompt)
		}
		l, err := t.in.next(ctx)
		if err != nil {
			if err == io.EOF && text.Len() > 0 {
				return text.String(), nil
			}
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

// turn lets the agent go on from from with msgs.
func (t *chat) turn(from *pawl.Result, msgs ...pawl.Message) {
	ctx, stop := interruptible(context.Background(), t.sys.err)
	defer stop()
	r := &renderer{w: t.out, style: t.sys.colours(t.sys.errTerm), width: t.sys.width, live: t.sys.outTerm && t.sys.errTerm}
	maps.Copy(t.decided, decided(msgs))
	res, truth, err := t.setup.follow(ctx, t.setup.resumed(from), msgs, r.event)
	if res == nil {
		t.last = notBegun(err)
		tell(t.sys.err, t.last)
		return
	}
	t.res = truth
	if t.last = t.ended(res, err, t.Save); t.last != nil {
		var f *failure
		if errors.As(t.last, &f) && f.status == statusPending {
			f.hint = "/approve, or /deny REASON"
		}
		tell(t.sys.err, t.last)
		t.last = &failure{status: statusOf(t.last)} // it was told
	}
	if err := printAnswer(t.sys, res, r.live); err != nil {
		t.last = err
	}
	err = save(t.Save, res)
	if t.kept != nil { // what was interrupted is kept, too
		err = errors.Join(err, t.kept.save(context.Background(), res))
	}
	if err != nil {
		t.last = &failure{status: statusFailed}
		tell(t.sys.err, err)
	}
}

func statusOf(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.status
	}
	return statusFailed
}

func (t *chat) waiting() []openCall {
	var open []openCall
	for _, o := range openCalls(t.res) {
		if o.waiting != nil {
			open = append(open, o)
		}
	}
	return open
}

func (t *chat) say(format string, args ...any) {
	fmt.Fprintf(t.out, "pawl: %s\n", visible(fmt.Sprintf(format, args...)))
}

// command carries out a line that begins with a slash, and reports whether the chat is over.
func (t *chat) command(text string) (done bool) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/quit", "/exit":
		return true
	case "/tools":
		for _, tool := range t.setup.tools {
			fmt.Fprintf(t.out, "  %-18s %-10s %s\n", line(tool.Name, 40), tool.Effect, firstSentence(tool.Description, 48))
		}
		if len(t.setup.tools) == 0 {
			t.say("no tools; --tools file,data offers the built-in ones")
		}
	case "/save":
		if rest == "" {
			t.say("where to? /save FILE")
		} else if err := saveTranscript(rest, t.setup.secrets.Result(t.res)); err != nil {
			t.say("%v", err)
		} else {
			t.say("saved %s", rest)
		}
	case "/approve", "/deny":
		settle := settleFlags{Approve: []string{"all"}}
		if name == "/deny" {
			settle = settleFlags{Deny: []string{"all=" + rest}}
		}
		msgs, _, err := settle.messages(t.res)
		if err != nil {
			t.say("%v", err)
		} else {
			t.turn(t.res, msgs...)
		}
	default:
		t.say("there is no %s; there are /tools, /save FILE, /approve, /deny REASON and /quit", name)
	}
	return false
}
