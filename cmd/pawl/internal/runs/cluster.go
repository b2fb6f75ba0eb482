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
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/temporal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// remote is the runs of a Temporal cluster.
type remote struct{ *assemble.ClusterFlags }

// far is a run on a cluster that this process watches.
type far struct {
	RemoteRun
	flags  remote
	engine *temporal.Engine
	runner *temporal.Runner
	sys    *cli.System
}

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
			return []any{cli.Visible(r.ID), r.State, cli.Moment(r.Began, ""), cli.Moment(r.Ended, ""), cli.Visible(r.Agent)}
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
		state := "running"
		switch {
		case s.Over:
			state = string(s.Result.Stop)
		case s.Waits:
			state = "waiting"
		}
		v := &runView{w: sys.Out, export: x, secrets: hide, width: sys.Width}
		return v.print([][2]string{{"run", id}, {"state", state}, {"cause", endOf(x)}, {"task", taskOf(x)},
			{"agent", x.Agent}, {"spent", spentLine(s.Spent)}})
	})
}

// printExport prints a run in its canonical form.
func printExport(sys *cli.System, x *durable.Export) error {
	b, err := x.JSON()
	if err == nil {
		_, err = sys.Out.Write(b)
	}
	return err
}

// taskOf returns the first message of the user.
func taskOf(x *durable.Export) string {
	for _, m := range x.Messages {
		if m.Role == llm.RoleUser {
			return m.Text()
		}
	}
	return ""
}

// endOf returns the reason why the run stopped. Empty means that it has not.
func endOf(x *durable.Export) string {
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
	return flags.Decide(s.Pending, id, by, f.Command, func(ds ...llm.Decision) error {
		if err := e.Decide(ctx, id, ds...); err != nil {
			return f.Failed(err)
		}
		return nil
	})
}

// resume watches a run until it is over or waits for an answer.
func (f remote) resume(sys *cli.System, id string, flags assemble.SettleFlags, asJSON bool) error {
	ctx, stop := cli.InterruptibleBy(context.Background(), sys.Err, cli.ErrStopped)
	defer stop()
	ctx, sys = cli.Attended(ctx, sys, cli.ErrStopped)
	w, err := f.open(ctx, sys, RemoteRun{ID: id, JSON: asJSON})
	if err != nil {
		return err
	}
	defer w.engine.Client.Close()
	if !flags.Empty() {
		if _, err := f.decide(ctx, w.engine, id, assemble.WhoSays(sys), flags); err != nil {
			return err
		}
	}
	return w.do(ctx, nil)
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

// RemoteRun is a run to start on a Temporal cluster.
type RemoteRun struct {
	ID, Agent string
	JSON      bool   // events are printed as JSON, and nothing else is
	Save      string // the file that the result is written to; "" means none
}

// Do starts the run from a Result, and watches it until it ends or the person stops watching.
func (r RemoteRun) Do(ctx context.Context, sys *cli.System, f *assemble.ClusterFlags, from *pawl.Result,
	msgs []llm.Message) error {
	w, err := remote{f}.open(ctx, sys, r)
	if err != nil {
		return err
	}
	defer w.engine.Client.Close()
	sys.Notice("run " + w.runner.ID)
	if there, err := w.engine.Attended(ctx); err == nil && !there {
		sys.Notice("no worker polls task queue " + w.engine.TaskQueue +
			"; the run waits for one: pawl worker FILE.yaml")
	}
	if len(from.Messages)+len(from.Values) > 0 {
		w.runner.From = from
	}
	return w.do(ctx, msgs)
}

// open connects to a run. Its agent may be empty if the run exists.
func (f remote) open(ctx context.Context, sys *cli.System, r RemoteRun) (*far, error) {
	e, err := f.Dial(ctx, sys)
	if err != nil {
		return nil, err
	}
	e.TaskQueue = f.QueueOf(r.Agent)
	return &far{r, f, e, e.Runner(r.ID, r.Agent), sys}, nil
}

// do starts or watches the run, asks the person at the terminal for decisions, and returns the exit
// status as an error.
func (w *far) do(ctx context.Context, msgs []llm.Message) error {
	sys, out := w.sys, tui.NewScreen(w.sys.Err)
	d := tui.PlainDisplay(sys, out, w.JSON)
	hide, shown := assemble.Secrets(sys.Env, nil), map[string]bool{}
	a := tui.NewAsker(sys, out, cli.NewLines(sys.In), hide)
	for {
		res, err := pawl.Collect(redact.Runner(w.runner, hide).Stream(ctx, msgs...), func(e pawl.Event) {
			// each Stream starts with the first event
			if name := string(e.Kind) + string(e.Path); e.Kind == pawl.EventRunEnded &&
				e.Result.Stop != pawl.StopPending || !shown[name] {
				shown[name] = true
				d.Show(e)
			}
		})
		w.runner.From = nil // the next messages are answers
		if ctx.Err() != nil && (res == nil || res.Stop == pawl.StopPending) {
			return cli.Fail(cli.StatusInterrupted, errors.New("no longer watched: the run continues"),
				w.flags.Command("runs", "resume", w.runner.ID)+" watches again, "+w.flags.Command("runs", "cancel",
					w.runner.ID)+" cancels it")
		}
		if res == nil {
			return w.flags.Failed(err)
		}
		if res.Stop == pawl.StopPending && !w.JSON && sys.InTerm && sys.ErrTerm {
			if msgs = a.DecideOn(ctx, res.Pending, assemble.WhoSays(sys)); len(msgs) > 0 {
				continue
			}
		}
		open := assemble.WaitingCalls(res.Pending)
		end := assemble.Ended(res, err, "", w.Save)
		if res.Stop == pawl.StopPending {
			end = cli.Fail(cli.StatusPending, fmt.Errorf("%s for an answer: %s", assemble.Waits(len(open)),
				assemble.Keys(open)), w.flags.settling(w.runner.ID, open))
		}
		return d.End(res, open, w.Save, end)
	}
}

// settling returns the commands that settle the open calls of a run.
func (f remote) settling(id string, open []assemble.OpenCall) string {
	return assemble.SettlingBy(f.Command, id, open, f.Command("runs", "answer", id, "KEY=RESULT")+
		" if it did, "+f.Command("runs", "approve", id, "KEY")+" to run it again, or deny")
}
