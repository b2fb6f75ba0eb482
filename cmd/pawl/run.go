package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-go/pawl"
)

// runCmd carries out one task.
type runCmd struct {
	File string `arg:"" optional:"" name:"FILE" help:"An agent's file, FILE.yaml: see docs/yaml.md. Flags stand over it. Without one, what stands here is the task."`
	Task string `arg:"" optional:"" name:"TASK" help:"What to do; - reads it from standard input. Left out, --messages goes on as it stands."`
	agentFlags
	transcriptFlags
	settleFlags
	durableFlags
	recordFlags
	telemetryFlags
	engineFlags
	Plan string `placeholder:"FILE" help:"A strategic plan, a JSON object with phases: it stands in the system text of the agent and of those that work for it. A strategic team carries it out in place of one of its own."`
	JSON bool   `name:"json" help:"Print the events, one JSON object a line, and nothing else."`
}

// Help says what the flags cannot.
func (*runCmd) Help() string {
	return `The answer goes to standard output, what happens on the way to standard error.

Before a call that may change the world (file_write, file_edit, file_delete) pawl asks, if there is a terminal to ask at. Elsewhere, and for tools of --passive, the call is pending: the open calls are printed, one JSON object a line, and the status is 3. Go on with what --save kept:

    pawl run … --save run.json "task"
    pawl run … --messages run.json --save run.json --approve run/1/0

--allow-tool, --ask-tool and --deny-tool say what other calls run, are asked about, or never run, by name (file_write), pattern (file_*) or effect (effect:write); a denial wins, then a question. --yes lets all calls run that neither of the last two is about. An approval is good for 30 minutes (--approve-within); what comes later is asked anew.

--approve and --deny take a key or the word all, which means every call of which nothing else is said. --approve 'run/1/0={"path":"b.txt"}' lets the call run with other arguments, which the model is told.

With --output the answer is the JSON value that fits the schema, and nothing else goes to standard output. An answer that does not fit is sent back with what is wrong with it, twice at most; after that the status is 1.

With --durable the run is kept in the database as it goes: its name is told on standard error, Ctrl-C leaves it where it is, and pawl runs resume NAME goes on with it, from this folder or another, with the same agent. docs/durable.md says what that can be relied on for.

With --engine temporal the run is on a Temporal cluster, where pawl worker does its work: what is given here is the agent's file, for its name, and the task. Ctrl-C ends the watching and not the run; pawl runs resume RUN --engine temporal watches again.

With --max-rounds 0 no call is run: the calls are handed back, which is status 3 too. A run that uses up its rounds is asked for an answer with what it has, and its status is 4.`
}

// Run carries the task out, prints what came of it, and saves the transcript whatever that was.
func (c *runCmd) Run(sys *system) error {
	return c.keep(sys, c.run(sys))
}

func (c *runCmd) run(sys *system) error {
	cause := error(pawl.ErrCancelled)
	if c.Durable || c.away() {
		cause = errStopped
	}
	ctx, sys, stop := attend(context.Background(), sys, cause, c.JSON)
	defer stop()
	if err := c.words(); err != nil {
		return err
	}
	if err := c.engineFlags.check(nil); err != nil {
		return err
	}
	if c.away() {
		return c.onCluster(ctx, sys)
	}
	if err := c.durableFlags.check(); err != nil {
		return err
	}
	from, msgs, err := c.start(sys)
	if err != nil {
		return err
	}
	if err := savable("--save", c.Save); err != nil {
		return err
	}
	if err := c.carrier(sys, &c.agentFlags); err != nil {
		return err
	}
	if c.Durable {
		c.durably()
	}
	s, err := c.setup(ctx, sys, c.File)
	if err != nil {
		return err
	}
	defer func() { s.close() }()
	c.hide(s.secrets)

	out := newScreen(sys.err)
	person := askPerson(s, sys, out, nil, decided(msgs), !c.Durable)
	if err := c.telemetryFlags.open(sys, s); err != nil {
		return err
	}
	if c.Durable {
		return c.durable(ctx, sys, s, out, from, msgs)
	}
	d := newDisplay(sys, out)
	var unwritten error
	if c.JSON {
		d.show = eventLines(sys.out, &unwritten)
	}
	started := time.Now()
	res, truth, err := person.run(ctx, s, from, msgs, d.show)
	if res == nil {
		return notBegun(err)
	}
	saved := save(c.Save, res)
	if !c.JSON {
		d.totals(res.Spent, time.Since(started))
		sys = sys.plain()
		if err := printEnd(sys, res, s.handed(truth), d.live); err != nil {
			return errors.Join(err, saved)
		}
	}
	if saved != nil {
		tell(sys.plain().err, saved)
	}
	if end := c.ended(res, err, c.Save); end != nil {
		return end
	}
	if saved != nil {
		return silent(statusFailed)
	}
	return unwritten
}

// durable begins a durable run, or goes on with the one that was begun with the same transcript and messages.
func (c *runCmd) durable(ctx context.Context, sys *system, s *setup, out *screen, from *pawl.Result, msgs []pawl.Message) error {
	db, err := s.db.Create()
	if err != nil {
		return misconfigured(err)
	}
	j := newJournal(db, c.storeFlags, c.Lease)
	runner := j.Runner(cmp.Or(c.durableFlags.Run, newRunID()), s.agent)
	if len(from.Messages)+len(from.Values) > 0 {
		runner.From = from
	}
	if runner.Meta, err = newNote(c.File, &c.agentFlags, s); err != nil {
		return err
	}
	sys.tell("run " + runner.ID)
	return (&work{j, runner, s, sys, out, c.JSON, c.Save}).do(ctx, msgs)
}

// words tells the file from the task.
func (c *runCmd) words() error {
	switch {
	case isAgentFile(c.File):
	case c.Task != "":
		return usage(`pawl run FILE.yaml "what to do"; a task of several words stands in quotes`, "%s is no agent's file: its name does not end in .yaml", c.File)
	default:
		c.Task, c.File = c.File, ""
	}
	return nil
}

// start finds what the run begins with: a transcript to go on from, and what is said now.
func (c *runCmd) start(sys *system) (*pawl.Result, []pawl.Message, error) {
	from := new(pawl.Result)
	if c.Messages != "" {
		var err error
		if from, err = loadTranscript(c.Messages); err != nil {
			return nil, nil, err
		}
	} else if !c.settleFlags.empty() {
		hint := "--messages FILE, with what --save wrote"
		if c.Durable {
			hint = "pawl runs approve, deny and answer are for the calls of durable runs"
		}
		return nil, nil, usage(hint, "--approve, --deny and --answer are about the open calls of an earlier run, and none is given")
	}
	if err := c.planned(from); err != nil {
		return nil, nil, err
	}
	msgs, waiting, err := c.settleFlags.messages(from)
	if err != nil {
		return nil, nil, err
	}
	task := c.Task
	switch {
	case task == "-" || task == "" && c.Messages == "" && !sys.inTerm:
		b, err := io.ReadAll(sys.in)
		if err != nil {
			return nil, nil, usage("", "the task could not be read from standard input: %v", err)
		}
		task = string(b)
		if strings.TrimSpace(task) == "" {
			return nil, nil, usage(`pawl run --model … "what to do"`, "there is no task: standard input is empty")
		}
	case c.Messages == "" && strings.TrimSpace(task) == "":
		return nil, nil, usage(`pawl run --model … "what to do"`, "there is no task")
	}
	if strings.TrimSpace(task) != "" {
		if len(waiting) > 0 {
			return nil, nil, usage("first "+strings.TrimPrefix(settling(waiting), ", and "), "%s for an answer before a new message: %s", waits(len(waiting)), keys(waiting))
		}
		fresh := *from // a new task has a budget of its own
		fresh.Spent = pawl.Spent{}
		from = &fresh
		msgs = append(msgs, pawl.User(task))
	}
	return from, msgs, nil
}

// planned gives the run the plan of --plan.
func (c *runCmd) planned(from *pawl.Result) error {
	if c.Plan == "" {
		return nil
	}
	b, err := readFile("--plan", c.Plan)
	if err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(b, &object); err != nil || object == nil {
		return usage(`{"phases":[{"worker":"…","goals":"…"}]}`, "--plan: %s is no JSON object", c.Plan)
	}
	values := pawl.Values{}
	maps.Copy(values, from.Values)
	values[pawl.StrategicPlan] = b
	from.Values = values
	return nil
}

// follow shows the events of a run and returns how it ended. The Result is nil when nothing was begun.
func follow(events iter.Seq2[pawl.Event, error], show func(pawl.Event)) (res *pawl.Result, err error) {
	for e, failed := range events {
		if failed != nil {
			err = failed
			break
		}
		if e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/") {
			res = e.Result
		}
		show(e)
	}
	return res, err
}

// eventLines prints events as JSON, one a line. When a line cannot be written, the rest is not tried, and failed says why.
func eventLines(w io.Writer, failed *error) func(pawl.Event) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return func(ev pawl.Event) {
		if *failed == nil {
			*failed = e.Encode(ev)
		}
	}
}

func save(path string, res *pawl.Result) error {
	if path == "" {
		return nil
	}
	return saveTranscript(path, res)
}

// printEnd prints what the run gave: the answer, or the calls that are open, one JSON object a line.
func printEnd(sys *system, res *pawl.Result, open []openCall, told bool) error {
	if len(open) > 0 && (res.Stop == pawl.StopPending || res.Stop == pawl.StopLimit) {
		e := json.NewEncoder(sys.out)
		e.SetEscapeHTML(false)
		for _, o := range open {
			if err := e.Encode(o); err != nil {
				return err
			}
		}
		return nil
	}
	return printAnswer(sys, res, told)
}

// printAnswer prints the answer, unless it was told as it came.
func printAnswer(sys *system, res *pawl.Result, told bool) error {
	text := ""
	switch res.Stop {
	case pawl.StopAnswer, pawl.StopFinished, pawl.StopLimit:
		text = res.Text()
	}
	if text == "" || told && res.Stop != pawl.StopFinished && res.Output == nil { // what was told may not be JSON yet
		return nil
	}
	if sys.outTerm {
		text = visible(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(sys.out, text)
	return err
}

// ended, for a run that was saved to a file ("": was not), turns how the run stopped into the exit status and what there is to say about it.
func (f *agentFlags) ended(res *pawl.Result, err error, saved string) error {
	open := openCalls(res)
	goOn := "go on with: pawl run --messages " + quotedWord(saved)
	if saved == "" {
		goOn = "with --save FILE the run can be gone on with: pawl run --messages FILE"
	}
	switch res.Stop {
	case pawl.StopAnswer, pawl.StopFinished:
		return nil
	case pawl.StopPending:
		return fail(statusPending, fmt.Errorf("%s for an answer: %s", waits(len(open)), keys(open)), goOn+settling(open))
	case pawl.StopLimit:
		if len(open) > 0 {
			return fail(statusPending, fmt.Errorf("%s: %s", res.Cause, keys(open)), goOn+", and --answer KEY=TEXT for each call, or --max-rounds N to run them")
		}
		return fail(statusLimit, fmt.Errorf("limit: %s", res.Cause), f.raise(res))
	case pawl.StopCancelled:
		return fail(statusInterrupted, errors.New(res.Cause), goOn)
	case pawl.StopStalled:
		return fail(statusFailed, errors.New(res.Cause), "other instructions (--system) or another model may help: pawl models list")
	}
	if err == nil {
		err = errors.New(res.Cause)
	}
	return failed(err)
}

// quotedWord writes a word so that a shell reads it as one.
func quotedWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && r != '/' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func waits(n int) string {
	if n == 1 {
		return "1 call waits"
	}
	return count(n, "call") + " wait"
}
