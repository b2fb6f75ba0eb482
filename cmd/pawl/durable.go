package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/store"
)

// durableFlags make a run survive the process.
type durableFlags struct {
	Durable bool           `group:"durable" help:"Keep the run in the database (--db), step by step: after a crash, an interrupt or an answer that took a week, pawl runs resume goes on with it, and nothing is done twice in silence."`
	Run     string         `group:"durable" name:"run" placeholder:"ID" help:"What the durable run is called. Said again with the same task, the run goes on. Default: a name of its own."`
	Lease   *time.Duration `group:"durable" name:"lease" placeholder:"TIME" help:"How long this process may be silent before another may take the durable run over. Default: 30s."`
}

// check says what cannot be.
func (f *durableFlags) check() error {
	switch {
	case !f.Durable && f.Run != "":
		return usage("pawl run --durable --run "+f.Run+" …", "--run: the run is not durable")
	case !f.Durable && f.Lease != nil:
		return usage("pawl run --durable --lease TIME …", "--lease: the run is not durable")
	case f.Lease != nil && *f.Lease < time.Second:
		return usage("a second and more, such as 30s", "--lease %v is too short", *f.Lease)
	case f.Run == lastRun:
		return usage("another name", "--run last: this stands for the last run")
	case f.Run != "":
		if err := store.CheckID(f.Run); err != nil {
			return usage("a name such as invoice-7", "--run: %v", err)
		}
	}
	return nil
}

// newRunID is a name for a run that has none. Its first letters tell it from others.
func newRunID() string { return strings.ToLower(rand.Text()[:8]) }

// journal is the durable runs of a database and a scope.
type journal struct {
	*durable.Engine
	storeFlags
	at func() time.Time
	db *config.Database // that openRuns opened; nil: somebody else's
}

// newJournal returns the runs of db. lease may be nil.
func newJournal(db store.Journal, f storeFlags, lease *time.Duration) *journal {
	e := &durable.Engine{Journal: db}
	if lease != nil {
		e.Lease = *lease
	}
	return &journal{Engine: e, storeFlags: f, at: time.Now}
}

// scoped is the context of what is done with the runs.
func (j *journal) scoped(ctx context.Context) context.Context {
	return store.WithScope(ctx, j.storeFlags.scope())
}

// command is how a command about a run is typed, with the flags that say where the run is.
func (j *journal) command(words ...string) string {
	text := "pawl " + strings.Join(words, " ")
	if j.DB != "" && !strings.Contains(j.DB, "://") {
		text += " --db " + j.DB
	} else if j.DB != "" {
		text += " --db …" // a password may be in it
	}
	if j.Tenant != "" {
		text += " --tenant " + j.Tenant
	}
	if j.User != "" {
		text += " --user " + j.User
	}
	return text
}

// work is a durable run on its way through this process.
type work struct {
	journal *journal
	runner  *durable.Runner
	setup   *setup
	sys     *system
	out     *screen
	json    bool
	saved   string // where the Result is kept beside; "": nowhere
}

// do runs it, prints what came of it, and turns that into the exit status.
func (w *work) do(ctx context.Context, msgs []pawl.Message) error {
	sys := w.sys
	d := newDisplay(sys, w.out)
	var unwritten error
	if w.json {
		d.show = eventLines(sys.out, &unwritten)
	}
	started := time.Now()
	run := pawl.Runner(w.runner)
	if w.setup.around != nil {
		run = w.setup.around(run)
	}
	res, truth, err := w.setup.follow(w.journal.scoped(ctx), run, msgs, d.show)
	if res == nil {
		if known := w.journal.known(w.runner.ID, err); known != nil {
			return known
		}
		return notBegun(err)
	}
	saved := save(w.saved, res)
	if !w.json {
		d.totals(res.Spent, time.Since(started))
		sys = sys.plain()
		open := w.setup.shown(waitingCalls(truth.Pending))
		if len(open) == 0 {
			open = w.setup.handed(truth)
		}
		if err := printEnd(sys, res, open, d.live); err != nil {
			return errors.Join(err, saved)
		}
	}
	if saved != nil {
		tell(sys.err, saved)
	}
	if end := w.ended(res, err); end != nil {
		return end
	}
	if saved != nil {
		return silent(statusFailed)
	}
	return unwritten
}

// ended turns how the run stopped into the exit status and what there is to say about it.
func (w *work) ended(res *pawl.Result, err error) error {
	id := visible(w.runner.ID)
	resume := w.journal.command("runs", "resume", id)
	if known := w.journal.known(w.runner.ID, err); known != nil {
		return known // this is why the run was left
	}
	switch res.Stop {
	case pawl.StopPending:
		open := waitingCalls(res.Pending)
		return fail(statusPending, fmt.Errorf("%s for an answer: %s", waits(len(open)), keys(open)), w.journal.settling(id, open))
	case pawl.StopCancelled:
		if err == nil {
			return fail(statusInterrupted, errors.New(res.Cause), "")
		}
		return fail(statusInterrupted, errors.New(res.Cause), resume+" goes on with it, "+w.journal.command("runs", "cancel", id)+" gives it up")
	case pawl.StopFailed:
		var f *failure
		if end := w.journal.failed(w.runner.ID, err); err != nil && errors.As(end, &f) && f.status == statusFailed {
			f.hint = strings.TrimPrefix(f.hint+"; "+resume+" tries again from there", "; ")
			return f
		}
	}
	return (&agentFlags{}).ended(res, err, "")
}

// failed says what a run's error means.
func (j *journal) failed(id string, err error) error {
	if known := j.known(id, err); known != nil {
		return known
	}
	return failed(err)
}

// known says what an error of the engine means; nil: it is another one.
func (j *journal) known(id string, err error) error {
	id = visible(id)
	var m *durable.Mismatch
	switch {
	case errors.Is(err, durable.ErrLost):
		return fail(statusFailed, err, j.command("runs", "show", id)+" shows how far it is")
	case errors.As(err, &m):
		return fail(statusFailed, err, "")
	case errors.Is(err, durable.ErrChanged):
		return fail(statusFailed, err, "resume it with what it was begun with, or with --accept-changed-tool NAME; "+j.command("runs", "fork", id, "--at", "STEP")+" begins another run from here")
	case errors.Is(err, durable.ErrCorrupt):
		return fail(statusFailed, err, j.command("runs", "verify", id))
	case errors.Is(err, store.ErrConflict):
		return fail(statusUsage, err, "--run ANOTHER begins another run; "+j.command("runs", "resume", id)+" goes on with this one")
	}
	return nil
}

// settling says how open calls of a run are settled.
func (j *journal) settling(id string, open []openCall) string {
	approve, answer, unknown := false, false, false
	for _, o := range open {
		switch {
		case o.waiting.Outcome == pawl.OutcomeUnknown:
			unknown = true
		case o.waiting.Passive:
			answer = true
		default:
			approve = true
		}
	}
	var ways []string
	if approve {
		ways = append(ways, j.command("runs", "approve|deny", id, "KEY"))
	}
	if answer {
		ways = append(ways, j.command("runs", "answer", id, "KEY=TEXT"))
	}
	if unknown {
		ways = append(ways, "nobody knows whether it happened: "+j.command("effects", "reconcile", id, "KEY")+" --happened RESULT, --again or --never")
	}
	return strings.Join(ways, "; ") + "; then " + j.command("runs", "resume", id)
}
