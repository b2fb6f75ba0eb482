package runs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/tui"
	"github.com/pawl-go/pawl/durable/temporal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// remote is the runs of a Temporal cluster.
type remote struct{ *assemble.ClusterFlags }

// far is a run on a cluster that this process watches.
type far struct {
	flags  remote
	engine *temporal.Engine
	runner *temporal.Runner
	sys    *cli.System
	out    *tui.Screen
	json   bool
	saved  string
}

// RemoteRun is a run to start on a Temporal cluster.
type RemoteRun struct {
	ID, Agent string
	JSON      bool   // events are printed as JSON, and nothing else is
	Save      string // the file that the result is written to; "" means none
}

// Do starts the run, and watches it until it ends or the person stops watching.
func (r RemoteRun) Do(ctx context.Context, sys *cli.System, f *assemble.ClusterFlags, msgs []llm.Message) error {
	w, err := remote{f}.open(ctx, sys, r.ID, r.Agent, r.JSON, r.Save)
	if err != nil {
		return err
	}
	defer w.engine.Client.Close()
	sys.Notice("run " + w.runner.ID)
	w.attended(ctx)
	return w.do(ctx, msgs)
}

// open connects to a run. The agent may be empty if the run exists.
func (f remote) open(ctx context.Context, sys *cli.System, id, agent string, json bool, saved string) (*far, error) {
	e, err := f.Dial(ctx, sys)
	if err != nil {
		return nil, err
	}
	e.TaskQueue = f.QueueOf(agent)
	return &far{f, e, e.Runner(id, agent), sys, tui.NewScreen(sys.Err), json, saved}, nil
}

// attended prints a notice if no worker polls the task queue.
func (w *far) attended(ctx context.Context) {
	if there, err := w.engine.Attended(ctx); err == nil && !there {
		w.sys.Notice("no worker is at work on task queue " + w.engine.TaskQueue +
			"; the run waits for one: pawl worker FILE.yaml")
	}
}

// do starts or watches the run, asks the person at the terminal for decisions, and returns the exit
// status as an error.
func (w *far) do(ctx context.Context, msgs []llm.Message) error {
	sys := w.sys
	r := tui.NewRenderer(sys, w.out, sys.Colours(sys.ErrTerm), false)
	show := r.Event
	var unwritten error
	if w.json {
		show = assemble.EventLines(sys.Out, &unwritten)
	}
	hide, started, shown := assemble.Secrets(sys.Env, nil), time.Now(), map[string]bool{}
	a := tui.NewAsker(sys, w.out, cli.NewLines(sys.In), hide)
	for {
		res, err := assemble.Follow(redact.Runner(w.runner, hide).Stream(ctx, msgs...), func(e pawl.Event) {
			// each Stream starts with the first event
			if name := string(e.Kind) + string(e.Path); e.Kind == pawl.EventRunEnded &&
				e.Result.Stop != pawl.StopPending || !shown[name] {
				shown[name] = true
				show(e)
			}
		})
		if ctx.Err() != nil && (res == nil || res.Stop == pawl.StopPending) {
			return cli.Fail(cli.StatusInterrupted, errors.New("not watched any more: the run goes on"),
				w.flags.Command("runs", "resume", w.runner.ID)+" watches again, "+w.flags.Command("runs", "cancel",
					w.runner.ID)+" gives it up")
		}
		if res == nil {
			return w.flags.Failed(err)
		}
		if res.Stop == pawl.StopPending && !w.json && sys.InTerm && sys.ErrTerm {
			if msgs = a.DecideOn(ctx, res.Pending, assemble.WhoSays(sys)); len(msgs) > 0 {
				continue
			}
		}
		return w.end(res, err, r, started, unwritten)
	}
}

// end prints the result of the run, and returns the exit status as an error.
func (w *far) end(res *pawl.Result, err error, r *tui.Renderer, started time.Time, unwritten error) error {
	sys, open := w.sys, assemble.WaitingCalls(res.Pending)
	saved := assemble.Save(w.saved, res)
	if !w.json {
		if res.Spent.Requests > 0 {
			r.Totals(res.Spent, time.Since(started))
		}
		if err := assemble.PrintEnd(sys, res, open, false); err != nil {
			return err
		}
	}
	if saved != nil {
		return saved
	}
	if res.Stop == pawl.StopPending {
		return cli.Fail(cli.StatusPending, fmt.Errorf("%s for an answer: %s", assemble.Waits(len(open)),
			assemble.Keys(open)), w.flags.settling(w.runner.ID, open))
	}
	if end := assemble.Ended(res, err, w.saved); end != nil {
		return end
	}
	return unwritten
}

// settling returns the commands that settle the open calls of a run.
func (f remote) settling(id string, open []assemble.OpenCall) string {
	approve, answer, unknown := assemble.Wanted(open)
	var ways []string
	if unknown {
		ways = append(ways, "nobody knows whether it happened: "+f.Command("runs", "answer", id, "KEY=RESULT")+
			" if it did, "+f.Command("runs", "approve", id, "KEY")+" to run it again, or deny")
	}
	if answer {
		ways = append(ways, f.Command("runs", "answer", id, "KEY=TEXT"))
	}
	if approve {
		ways = append(ways, f.Command("runs", "approve|deny", id, "KEY"))
	}
	return strings.Join(ways, "; ")
}
