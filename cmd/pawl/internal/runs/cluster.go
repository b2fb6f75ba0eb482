package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/tui"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/durable/temporal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// remote is the runs of a Temporal cluster.
type remote struct{ *assemble.ClusterFlags }

// saysWithin is the time in which a worker must report the state of a run.
const saysWithin = 15 * time.Second

// there calls do with an engine that is connected to the cluster.
func (f remote) there(sys *cli.System, do func(context.Context, *temporal.Engine) error) error {
	ctx, stop := cli.InterruptibleBy(context.Background(), sys.Err, cli.ErrStopped)
	defer stop()
	e, err := f.Dial(ctx, sys)
	if err != nil {
		return err
	}
	defer e.Client.Close()
	ctx, cancel := context.WithTimeout(ctx, saysWithin)
	defer cancel()
	return do(ctx, e)
}

// list lists the runs of the namespace.
func (f remote) list(sys *cli.System, state string, asJSON bool) error {
	return f.there(sys, func(ctx context.Context, e *temporal.Engine) error {
		all, err := e.Runs(ctx, 0)
		if err != nil {
			return f.Failed(err)
		}
		runs := []temporal.Listed{}
		for _, r := range all {
			if state == "" || r.State == state {
				runs = append(runs, r)
			}
		}
		return cli.List(sys.Out, asJSON, runs, "RUN|STATE|BEGAN|ENDED|AGENT", func(r temporal.Listed) []any {
			began := cli.Moment(r.Began, "")
			ended := cli.Moment(r.Ended, "")
			return []any{cli.Visible(r.ID), r.State, began, ended, cli.Visible(r.Agent)}
		})
	})
}

// show shows a run.
func (f remote) show(sys *cli.System, id string, asJSON bool) error {
	return f.there(sys, func(ctx context.Context, e *temporal.Engine) error {
		x, err := e.Export(ctx, id)
		if err != nil {
			return f.Failed(err)
		}
		hide := assemble.Secrets(sys.Env, nil)
		x = x.Redacted(hide)
		if asJSON {
			return printExport(sys, x)
		}

		s, err := e.State(ctx, id)
		if err != nil {
			return f.Failed(err)
		}
		// Temporal's own states say how the workflow is, and not what the run waits for.
		state := "running"
		switch {
		case s.Over:
			state = string(s.Result.Stop)
		case s.Waits:
			state = "waiting"
		}
		v := &runView{out: sys.Out, export: x, secrets: hide, width: sys.Width}
		return v.print([][2]string{
			{"run", id},
			{"state", state},
			{"cause", endOf(x)},
			{"task", taskOf(x)},
			{"agent", x.Agent},
			{"spent", spentLine(s.Spent)},
		})
	})
}

// printExport prints a run in its canonical form.
func printExport(sys *cli.System, x *journal.Export) error {
	b, err := x.JSON()
	if err == nil {
		_, err = sys.Out.Write(b)
	}
	return err
}

// taskOf returns the first message of the user.
func taskOf(x *journal.Export) string {
	for _, m := range x.Messages {
		if m.Role == llm.RoleUser {
			return m.Text()
		}
	}
	return ""
}

// endOf returns the reason why the run stopped. Empty means that it has not.
func endOf(x *journal.Export) string {
	if x.End == nil {
		return ""
	}
	return cmp.Or(x.End.Error, x.End.Cause)
}

// settle decides pending calls. done is the word for the person, such as "approved".
func (f remote) settle(sys *cli.System, id, by, done string, flags assemble.SettleFlags) error {
	return f.there(sys, func(ctx context.Context, e *temporal.Engine) error {
		left, err := f.decide(ctx, e, id, by, flags)
		return printSettled(sys, done, id, left, "the run continues", err)
	})
}

// decide sends the decisions of the flags, and returns the calls that are still pending.
func (f remote) decide(ctx context.Context, e *temporal.Engine, id, by string,
	flags assemble.SettleFlags) ([]assemble.OpenCall, error) {
	s, err := e.State(ctx, id)
	if err != nil {
		return nil, f.Failed(err)
	}
	return flags.Decide(s.Pending, nil, id, by, f.Command, func(ds ...llm.Decision) error {
		return f.Failed(e.Decide(ctx, id, ds...))
	})
}

// resume watches a run until it is over or waits for an answer.
func (f remote) resume(sys *cli.System, id string, flags assemble.SettleFlags, asJSON bool) error {
	ctx, stop := cli.InterruptibleBy(context.Background(), sys.Err, cli.ErrStopped)
	defer stop()
	ctx, sys = cli.Attended(ctx, sys, cli.ErrStopped)
	r := &RemoteRun{Flags: f.ClusterFlags, Sys: sys, ID: id, JSON: asJSON}
	e, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer e.Client.Close()
	if !flags.Empty() {
		if _, err := f.decide(ctx, e, id, assemble.WhoSays(sys), flags); err != nil {
			return err
		}
	}
	return r.watch(ctx, e.Runner(id, ""), nil)
}

// cancel cancels a run.
func (f remote) cancel(sys *cli.System, id string) error {
	return f.there(sys, func(ctx context.Context, e *temporal.Engine) error {
		if err := e.Cancel(ctx, id); errors.Is(err, temporal.ErrUnknownRun) {
			return cli.Fail(cli.StatusFailed, fmt.Errorf("there is no run %s, or it is over", cli.Visible(id)),
				f.Command("runs", "list"))
		} else if err != nil {
			return f.Failed(err)
		}
		_, err := fmt.Fprintf(sys.Out, "%s will stop soon\n", cli.Visible(id))
		return err
	})
}

// withoutFlags removes the names of flags from an error about keys that are arguments.
func withoutFlags(err error) error {
	var e *cli.Failure
	if errors.As(err, &e) && e.Err != nil {
		text := e.Err.Error()
		for _, flag := range []string{"--approve ", "--deny ", "--answer "} {
			text = strings.Replace(text, flag, "", 1)
		}
		e.Err = errors.New(text)
	}
	return err
}

// RemoteRun is a run on a Temporal cluster that this process watches.
type RemoteRun struct {
	Flags     *assemble.ClusterFlags
	Sys       *cli.System
	ID, Agent string // Agent may be empty if the run exists
	JSON      bool   // events are printed as JSON, and nothing else is
	Save      string // the file that the result is written to; "" means none
}

// Do starts the run from a Result, and watches it until it ends or the person stops watching.
func (r *RemoteRun) Do(ctx context.Context, from *pawl.Result, msgs []llm.Message) error {
	e, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer e.Client.Close()

	r.Sys.Notice("run " + r.ID)
	// The run begins all the same: a worker may start later.
	if there, err := e.Attended(ctx); err == nil && !there {
		r.Sys.Notice("no worker polls task queue " + e.TaskQueue + "; the run waits for one: pawl worker FILE.yaml")
	}
	runner := e.Runner(r.ID, r.Agent)
	if len(from.Messages)+len(from.Values) > 0 {
		runner.From = from
	}
	return r.watch(ctx, runner, msgs)
}

// dial connects to the cluster. The engine has the task queue of the agent.
func (r *RemoteRun) dial(ctx context.Context) (*temporal.Engine, error) {
	e, err := r.Flags.Dial(ctx, r.Sys)
	if err == nil {
		e.TaskQueue = r.Flags.QueueOf(r.Agent)
	}
	return e, err
}

// watch starts or watches the run, asks the person at the terminal for decisions, and returns the
// exit status as an error.
func (r *RemoteRun) watch(ctx context.Context, runner *temporal.Runner, msgs []llm.Message) error {
	sys := r.Sys
	out := tui.NewScreen(r.Sys.Err)
	d := tui.PlainDisplay(sys, out, r.JSON)
	show := onlyOnce(d.Show)
	hide := assemble.Secrets(sys.Env, nil)
	a := tui.NewAsker(sys, out, cli.NewLines(sys.In), hide)
	attended := !r.JSON && sys.InTerm && sys.ErrTerm

	for {
		res, err := pawl.Collect(redact.Runner(runner, hide).Stream(ctx, msgs...), show)
		runner.From = nil // the next messages are answers
		if ctx.Err() != nil && (res == nil || res.Stop.Class() == pawl.ClassWaiting) {
			return cli.Fail(cli.StatusInterrupted, errors.New("no longer watched: the run continues"),
				r.Flags.Command("runs", "resume", r.ID)+" watches again, "+r.Flags.Command("runs", "cancel", r.ID)+
					" cancels it")
		}
		if res == nil {
			return r.Flags.Failed(err)
		}

		waits := res.Stop.Class() == pawl.ClassWaiting
		if waits && attended {
			msgs = a.DecideOn(ctx, res.Pending, assemble.WhoSays(sys))
			if len(msgs) > 0 {
				continue
			}
		}

		open := assemble.WaitingCalls(res.Pending)
		end := assemble.Ended(res, err, "", r.Save)
		if waits {
			waiting := fmt.Errorf("%s for an answer: %s", assemble.Waits(len(open)), assemble.Keys(open))
			end = cli.Fail(cli.StatusPending, waiting, r.settling(open))
		}
		return d.End(res, open, r.Save, end)
	}
}

// onlyOnce returns a function that shows the events of a run whose streams all start with its first
// event. The end of the run is always shown, because it replaces the end of a stream that waits.
func onlyOnce(show func(pawl.Event)) func(pawl.Event) {
	shown := map[string]bool{}
	return func(e pawl.Event) {
		name := string(e.Kind) + string(e.Path)
		over := e.Kind == pawl.EventRunEnded && e.Result.Stop.Class() != pawl.ClassWaiting
		if shown[name] && !over {
			return
		}
		shown[name] = true
		show(e)
	}
}

// settling returns the commands that settle the open calls of a run.
func (r *RemoteRun) settling(open []assemble.OpenCall) string {
	command := r.Flags.Command
	return assemble.SettlingBy(command, r.ID, open, command("runs", "answer", r.ID, "KEY=RESULT")+
		" if it did, "+command("runs", "approve", r.ID, "KEY")+" to run it again, or deny")
}
