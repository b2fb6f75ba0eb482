package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/store"
)

// runsCmd is about durable runs.
type runsCmd struct {
	List    runsListCmd    `cmd:"" help:"List runs, the last one first."`
	Show    runsShowCmd    `cmd:"" help:"Show what happened in one."`
	Resume  runsResumeCmd  `cmd:"" help:"Go on with one: after a crash, an interrupt, a fault or an answer."`
	Cancel  runsCancelCmd  `cmd:"" help:"Give one up. Its open calls get a result that says so."`
	Approve runsApproveCmd `cmd:"" help:"Let calls run that wait for it."`
	Deny    runsDenyCmd    `cmd:"" help:"Refuse calls that wait."`
	Answer  runsAnswerCmd  `cmd:"" help:"Give calls that wait their results."`
	Verify  runsVerifyCmd  `cmd:"" help:"Check that nobody changed what was kept."`
	Replay  runsReplayCmd  `cmd:"" help:"Play one back, offline, and compare its requests byte for byte."`
	Fork    runsForkCmd    `cmd:"" help:"Begin another run with the first steps of one."`
	Diff    runsDiffCmd    `cmd:"" help:"Show where two runs differ."`
	Delete  runsDeleteCmd  `cmd:"" help:"Remove runs with all that was kept of them."`
}

// lastRun stands for the run that was written to last.
const lastRun = "last"

// runArg is a run, as a person types it.
type runArg struct {
	ID string `arg:"" name:"RUN" help:"As pawl runs list shows it, or its first letters, or last."`
}

// openRuns opens the database with the runs. Close them. The name of its file means the same in any folder then, since the agent of a run is made in the one it was begun in.
func (f *storeFlags) openRuns(sys *system) (*journal, error) {
	typed := *f
	if f.DB != "" && !strings.Contains(f.DB, "://") {
		if path, err := filepath.Abs(f.DB); err == nil {
			f.DB = path
		}
	}
	d, db, err := f.open(sys, false)
	if err != nil {
		var f *failure
		if errors.As(err, &f) && strings.HasPrefix(f.hint, "pawl knowledge add") {
			f.hint = "pawl run --durable makes it"
		}
		return nil, err
	}
	j := newJournal(db, typed, nil)
	j.db = d
	return j, nil
}

// openRun opens the database with the runs, and finds the one that a person named: see find. Close them.
func (f *storeFlags) openRun(ctx context.Context, sys *system, name string) (*journal, store.JournalRun, error) {
	j, err := f.openRuns(sys)
	if err != nil {
		return nil, store.JournalRun{}, err
	}
	r, err := j.find(ctx, name)
	if err != nil {
		j.Close()
		return nil, store.JournalRun{}, err
	}
	return j, r, nil
}

// Close closes the database that openRuns opened.
func (j *journal) Close() { _ = j.db.Close() } // it is only read, or each write has told how it went

func runID(r store.JournalRun) string { return r.ID }

// all returns the runs of the scope, the last one first; with a state, those in it.
func (j *journal) all(ctx context.Context, state string) ([]store.JournalRun, error) {
	runs, err := everything(func(p store.Page) ([]store.JournalRun, error) {
		return j.Journal.JournalRuns(ctx, j.scope(), state, p)
	}, runID)
	slices.SortStableFunc(runs, func(a, b store.JournalRun) int { return b.Updated.Compare(a.Updated) })
	return runs, err
}

// find returns the run that a person named: by its ID, by letters with which no other begins, or as the last.
func (j *journal) find(ctx context.Context, name string) (store.JournalRun, error) {
	if name != lastRun && name != "" {
		r, err := j.Journal.JournalRun(ctx, j.scope(), name)
		if err == nil || !errors.Is(err, store.ErrNotFound) && store.CheckID(name) == nil {
			return r, err
		}
	}
	runs, err := j.all(ctx, "")
	if err != nil {
		return store.JournalRun{}, err
	}
	if name == lastRun {
		if len(runs) == 0 {
			return store.JournalRun{}, fail(statusFailed, errors.New("there is no run yet"), j.command("run")+" --durable … begins one")
		}
		return runs[0], nil
	}
	var found []store.JournalRun
	for _, r := range runs {
		if name != "" && strings.HasPrefix(r.ID, name) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return store.JournalRun{}, unknown("run", name, names(runs, runID), j.command("runs", "list"))
	}
	ids := names(found[:min(len(found), 5)], runID)
	slices.Sort(ids)
	return store.JournalRun{}, fail(statusFailed, fmt.Errorf("%s begin with %s: %s", count(len(found), "run"), name, strings.Join(ids, ", ")), "a letter more tells them apart")
}

// hide returns what hides the secrets of a run, and those that more hides (nil: the keys of this environment alone): arguments that its tools mark, and what the variables hold whose values were hidden when it
// was begun.
func (j *journal) hide(ctx context.Context, sys *system, id string, more *pawl.Redactor) (*pawl.Redactor, error) {
	meta, err := j.Meta(j.scoped(ctx), id)
	if err != nil {
		return nil, j.failed(id, err)
	}
	var held []string
	if n := readNote(meta); n != nil {
		for _, name := range n.Secret {
			held = append(held, strings.TrimSpace(sys.env(name)))
		}
	}
	if more == nil {
		more = secrets(sys.env, nil)
	}
	r, err := j.Redactor(j.scoped(ctx), id, more)
	if err == nil {
		addKeys(r, held)
	}
	return r, err
}

// stateOf words how a run stands.
func (j *journal) stateOf(r store.JournalRun) string {
	switch {
	case r.State == store.JournalOpen && r.Owner != "" && r.Until.After(j.at()):
		return "running"
	case r.State == store.JournalOpen:
		return "interrupted"
	case r.State == store.JournalOver:
		return string(cmp.Or(summaryOf(r).Stop, "over"))
	}
	return r.State
}

// summaryOf is what a run came to so far; the zero Summary, when it has not stopped yet.
func summaryOf(r store.JournalRun) (s durable.Summary) {
	_ = json.Unmarshal(r.Summary, &s) // it was written by package durable
	return s
}

type runsListCmd struct {
	State string `enum:"open,waiting,failed,over," default:"" placeholder:"STATE" help:"Those in this state alone: open (running, or interrupted), waiting (for an answer), failed (may work when resumed), over."`
	JSON  bool   `name:"json" help:"Print a JSON list."`
	storeFlags
	engineFlags
}

// Help says what the states are.
func (*runsListCmd) Help() string {
	return `running: a process is at work on it; interrupted: none is, and pawl runs resume goes on with it; waiting: for an answer, see pawl inbox; failed: by a fault that may pass; else why it is over: answer, finished, limit, stalled, cancelled. With --engine temporal: open, over, or how the cluster ended it.`
}

// Run lists the runs of the user.
func (c *runsListCmd) Run(sys *system) error {
	if err := c.engineFlags.check(&c.storeFlags); err != nil {
		return err
	}
	if c.away() {
		return remote{&c.clusterFlags}.list(sys, c.State, c.JSON)
	}
	j, err := c.openRuns(sys)
	if err != nil {
		return err
	}
	defer j.Close()
	runs, err := j.all(context.Background(), c.State)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(sys.out, runs)
	}
	w := tabwriter.NewWriter(sys.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTATE\tREQUESTS\tCOST\tLAST\tTASK")
	for _, r := range runs {
		s, requests, cost := summaryOf(r), "", ""
		if s.Spent.Requests > 0 {
			requests = grouped(s.Spent.Requests)
		}
		if s.Spent.Usage.Cost > 0 {
			cost = dollars(s.Spent.Usage.Cost)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", visible(r.ID), j.stateOf(r), requests, cost, moment(r.Updated, ""), line(secrets(sys.env, nil).String(r.Task), 50))
	}
	return w.Flush()
}

type runsDeleteCmd struct {
	IDs []string `arg:"" name:"RUN" help:"As pawl runs list shows them, whole."`
	storeFlags
}

// Run removes what it can, and tells of the first that is not there.
func (c *runsDeleteCmd) Run(sys *system) error {
	j, err := c.openRuns(sys)
	if err != nil {
		return err
	}
	defer j.Close()
	ctx := context.Background()
	return deleted(sys.out, c.IDs, func(id string) error {
		r, err := j.Journal.JournalRun(ctx, j.scope(), id)
		if err != nil {
			return err
		}
		if j.stateOf(r) == "running" {
			return fmt.Errorf("run %s: a process is at work on it; %s first", id, j.command("runs", "cancel", id))
		}
		return j.Journal.DeleteJournal(ctx, j.scope(), id)
	}, func(id string) error {
		runs, err := j.all(ctx, "")
		if err != nil {
			return err
		}
		return unknown("run", id, names(runs, runID), j.command("runs", "list"))
	})
}

type runsVerifyCmd struct {
	runArg
	Heads []string `name:"head" sep:"none" placeholder:"HASH" help:"A hash that was printed before, and kept elsewhere: it must still be in the chain. May be given again."`
	storeFlags
}

// Help says what is checked.
func (*runsVerifyCmd) Help() string {
	return `Each record of a run has a hash of itself and of all before it. Whoever keeps the last one elsewhere can tell later, with --head, that nothing was taken away at the end either.`
}

// Run checks the chain.
func (c *runsVerifyCmd) Run(sys *system) error {
	ctx := context.Background()
	j, r, err := c.openRun(ctx, sys, c.ID)
	if err != nil {
		return err
	}
	defer j.Close()
	v, err := j.Verify(j.scoped(ctx), r.ID, c.Heads...)
	if err != nil {
		return fail(statusFailed, err, "what is kept of the run is not what was written; do not resume it")
	}
	_, err = fmt.Fprintf(sys.out, "%s: %s in order, head %s\n", visible(r.ID), count(int(v.Records), "record"), v.Head)
	return err
}

// free waits until no process holds the run: one that died holds it until its lease ends. It returns when that is over, or the process shows that it lives.
func (j *journal) free(ctx context.Context, sys *system, id string) error {
	first, err := j.Journal.JournalRun(ctx, j.scope(), id)
	if err != nil || first.Owner == "" || !first.Until.After(j.at()) {
		return err
	}
	sys.tell(fmt.Sprintf("another process has the run; if it is dead, it is free at %s: waiting", first.Until.Local().Format(time.TimeOnly)))
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return fail(statusInterrupted, errors.New("interrupted while another process had the run"), "")
		case <-t.C:
		}
		now, err := j.Journal.JournalRun(ctx, j.scope(), id)
		switch {
		case err != nil:
			return err
		case now.Owner == "" || !now.Until.After(j.at()):
			return nil
		case now.Owner != first.Owner || !now.Until.Equal(first.Until):
			return fail(statusFailed, fmt.Errorf("run %s: %w, and it lives", id, durable.ErrLost), j.command("runs", "cancel", id)+" has it stop")
		}
	}
}
