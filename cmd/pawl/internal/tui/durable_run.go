package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
)

// DurableRun is a durable run that this process executes and shows.
type DurableRun struct {
	Journal *assemble.Journal
	Runner  *durable.Runner
	Setup   *assemble.Setup
	Sys     *cli.System
	Out     *Screen
	JSON    bool   // events are printed as JSON, and nothing else
	Save    string // the file for the result; "" means none
}

// Do executes the run, prints its result, and returns the failure with the exit status. If ctx is
// cancelled with cli.ErrStopped, calls in progress end first.
func (w *DurableRun) Do(ctx context.Context, msgs []llm.Message) error {
	// An interrupt does not cancel the run, which would end it for good. It asks the engine to stop
	// after the calls in progress.
	drain := make(chan struct{})
	w.Journal.Drain = drain
	outer := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(outer, func() {
		if cause := context.Cause(outer); cause != cli.ErrStopped {
			cancel(cause)
		}
		close(drain)
	})()

	d := NewDisplay(w.Sys, w.Out, w.JSON)
	run := pawl.Runner(w.Runner)
	if w.Setup.Around != nil {
		run = w.Setup.Around(run)
	}
	res, truth, err := w.Setup.Follow(w.Journal.Scoped(ctx), run, msgs, d.Show)
	if res == nil {
		if known := w.Journal.Known(w.Runner.ID, err); known != nil {
			return known
		}
		return cli.NotBegun(err)
	}

	open := w.Setup.Shown(assemble.WaitingCalls(truth.Pending))
	if len(open) == 0 {
		open = w.Setup.Shown(assemble.OpenCalls(truth))
	}
	return d.End(res, open, w.Save, w.ended(res, err))
}

// ended returns the failure for the stop reason of the run. nil means an answer.
func (w *DurableRun) ended(res *pawl.Result, err error) error {
	id := cli.Visible(w.Runner.ID)
	resume := w.Journal.Command("runs", "resume", id)
	if known := w.Journal.Known(w.Runner.ID, err); known != nil {
		return known // the cause of the stop
	}

	switch res.Stop.Class() {
	case pawl.ClassWaiting:
		open := assemble.WaitingCalls(res.Pending)
		waiting := fmt.Errorf("%s for an answer: %s", assemble.Waits(len(open)), assemble.Keys(open))
		return cli.Fail(cli.StatusPending, waiting, w.Journal.Settling(id, open))

	case pawl.ClassCancelled:
		if errors.Is(err, pawl.ErrCancelled) { // by another process: the run is over
			return cli.Fail(cli.StatusInterrupted, errors.New(res.Cause), "")
		}
		return cli.Fail(cli.StatusInterrupted, errors.New(res.Cause), resume+" resumes it, "+
			w.Journal.Command("runs", "cancel", id)+" cancels it")

	// A run whose last request failed can be resumed. A run that stalled, or that a limit ended, is
	// over.
	case pawl.ClassFailed:
		if res.Stop == pawl.StopStalled {
			break // the run is over
		}
		var f *cli.Failure
		if end := w.Journal.Failed(w.Runner.ID, err); err != nil && errors.As(end, &f) && f.Status == cli.StatusFailed {
			f.Hint = strings.TrimPrefix(f.Hint+"; "+resume+" resumes it there", "; ")
			return f
		}
	}
	return assemble.Ended(res, err, "", "")
}
