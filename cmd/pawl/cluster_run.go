package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/temporal"
	"github.com/pawl-go/pawl/store"
)

// remote is the runs of a Temporal cluster.
type remote struct{ *clusterFlags }

// far is a run on a cluster, seen from here.
type far struct {
	flags  remote
	engine *temporal.Engine
	runner *temporal.Runner
	sys    *system
	out    *screen
	json   bool
	saved  string
}

// onCluster carries the task out on a Temporal cluster.
func (c *runCmd) onCluster(ctx context.Context, sys *system) error {
	name, err := c.agentThere(sys)
	if err != nil {
		return err
	}
	switch {
	case c.durableFlags.Run == lastRun:
		return usage("another name", "--run last: this stands for the last run")
	case c.durableFlags.Run != "":
		if err := store.CheckID(c.durableFlags.Run); err != nil {
			return usage("a name such as invoice-7", "--run: %v", err)
		}
	}
	from, msgs, err := c.start(sys)
	if err != nil {
		return err
	}
	if err := savable("--save", c.Save); err != nil {
		return err
	}
	w := remoteRun{ID: cmp.Or(c.durableFlags.Run, newRunID()), Agent: name, JSON: c.JSON, Save: c.Save}
	return w.Do(ctx, sys, &c.clusterFlags, append(from.Messages, msgs...))
}

// remoteRun is a run to start on a Temporal cluster.
type remoteRun struct {
	ID, Agent string
	JSON      bool   // events are printed as JSON, and nothing else is
	Save      string // the file that the result is written to; "" means none
}

// Do starts the run, and watches it until it ends or the person stops watching.
func (r remoteRun) Do(ctx context.Context, sys *system, f *clusterFlags, msgs []pawl.Message) error {
	w, err := remote{f}.open(ctx, sys, r.ID, r.Agent, r.JSON, r.Save)
	if err != nil {
		return err
	}
	defer w.engine.Client.Close()
	sys.tell("run " + w.runner.ID)
	w.attended(ctx)
	return w.do(ctx, msgs)
}

// agentThere returns the name of the agent. What else makes an agent is said to the worker.
func (c *runCmd) agentThere(sys *system) (string, error) {
	flags := given(&c.agentFlags)
	delete(flags, "Agent")
	if len(flags) > 0 {
		field, _ := reflect.TypeFor[agentFlags]().FieldByName(slices.Min(slices.Collect(maps.Keys(flags))))
		return "", usage("say it in the agent's file, which pawl worker is given", "%s: on Temporal the agent is the worker's", flagName(field))
	}
	for flag, said := range map[string]bool{"--durable": c.Durable, "--lease": c.Lease != nil, "--plan": c.Plan != "", "--record, --replay": c.recordFlags != (recordFlags{}), "--approve, --deny, --answer": !c.settleFlags.empty()} {
		if said {
			return "", usage("see docs/temporal.md", "%s: this is not there with --engine temporal", flag)
		}
	}
	if !reflect.ValueOf(c.telemetryFlags).IsZero() {
		return "", usage("telemetry is the worker's", "--engine temporal: this process has nothing to tell a collector")
	}
	if c.File == "" {
		if c.Agent == "" {
			return "", usage(`pawl run FILE.yaml --engine temporal "…", or --agent NAME`, "it is not known which agent of the workers to run")
		}
		return c.Agent, nil
	}
	a, err := c.read(c.File, sys)
	if err != nil {
		return "", err
	}
	return a.Name, nil
}

// open connects with a run; agent may be "" for one that is there.
func (f remote) open(ctx context.Context, sys *system, id, agent string, json bool, saved string) (*far, error) {
	e, err := f.dial(ctx, sys)
	if err != nil {
		return nil, err
	}
	e.TaskQueue = f.queueOf(agent)
	return &far{f, e, e.Runner(id, agent), sys, newScreen(sys.err), json, saved}, nil
}

// attended says so when nobody is there to do the work.
func (w *far) attended(ctx context.Context) {
	if there, err := w.engine.Attended(ctx); err == nil && !there {
		w.sys.tell("no worker is at work on task queue " + w.engine.TaskQueue + "; the run waits for one: pawl worker FILE.yaml")
	}
}

// do begins the run, or goes on waiting for it, asks the person at the terminal what it asks, and turns what came of it into the exit status.
func (w *far) do(ctx context.Context, msgs []pawl.Message) error {
	sys := w.sys
	r := newRenderer(sys, w.out, sys.colours(sys.errTerm), false)
	show := r.event
	var unwritten error
	if w.json {
		show = eventLines(sys.out, &unwritten)
	}
	hide, started, told := secrets(sys.env, nil), time.Now(), map[string]bool{}
	a := newAsker(sys, w.out, newLines(sys.in), hide)
	for {
		res, err := follow(pawl.Redact(w.runner, hide).Stream(ctx, msgs...), func(e pawl.Event) {
			if name := string(e.Kind) + string(e.Path); e.Kind == pawl.EventRunEnded && e.Result.Stop != pawl.StopPending || !told[name] { // each wait is told from the beginning
				told[name] = true
				show(e)
			}
		})
		if ctx.Err() != nil && (res == nil || res.Stop == pawl.StopPending) {
			return fail(statusInterrupted, errors.New("not watched any more: the run goes on"), w.flags.command("runs", "resume", w.runner.ID)+" watches again, "+w.flags.command("runs", "cancel", w.runner.ID)+" gives it up")
		}
		if res == nil {
			return w.flags.failed(err)
		}
		if res.Stop == pawl.StopPending && !w.json && sys.inTerm && sys.errTerm {
			if msgs = a.decideOn(ctx, res.Pending, whoSays(sys)); len(msgs) > 0 {
				continue
			}
		}
		return w.end(res, err, r, started, unwritten)
	}
}

// end prints what came of the run.
func (w *far) end(res *pawl.Result, err error, r *renderer, started time.Time, unwritten error) error {
	sys, open := w.sys, waitingCalls(res.Pending)
	saved := save(w.saved, res)
	if !w.json {
		if res.Spent.Requests > 0 {
			r.totals(res.Spent, time.Since(started))
		}
		if err := printEnd(sys, res, open, false); err != nil {
			return err
		}
	}
	if saved != nil {
		return saved
	}
	if res.Stop == pawl.StopPending {
		return fail(statusPending, fmt.Errorf("%s for an answer: %s", waits(len(open)), keys(open)), w.flags.settling(w.runner.ID, open))
	}
	if end := (&agentFlags{}).ended(res, err, w.saved); end != nil {
		return end
	}
	return unwritten
}

// settling says how open calls of a run are settled.
func (f remote) settling(id string, open []openCall) string {
	ways := map[string]bool{}
	for _, o := range open {
		switch {
		case o.question().Outcome == pawl.OutcomeUnknown:
			ways["nobody knows whether it happened: "+f.command("runs", "answer", id, "KEY=RESULT")+" if it did, "+f.command("runs", "approve", id, "KEY")+" to run it again, or deny"] = true
		case o.question().Passive:
			ways[f.command("runs", "answer", id, "KEY=TEXT")] = true
		default:
			ways[f.command("runs", "approve|deny", id, "KEY")] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(ways)), "; ")
}
