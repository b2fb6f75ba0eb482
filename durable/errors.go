package durable

// errors.go: the errors of runs that cannot continue here.

import (
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

var (
	// ErrChanged is in the tree of an error for a run that cannot be replayed, because its agent,
	// tools or instructions have changed.
	ErrChanged = errors.New("the program has changed")
	// ErrCorrupt is in the tree of an error for a journal that differs from what was written.
	ErrCorrupt = store.ErrCorrupt
	// ErrLost is in the tree of an error for a run that another process has taken over.
	ErrLost = errors.New("another process has the run")
	// ErrCrashed is in the tree of the error for a run that is not resumed because several
	// processes died in a row while they executed it: see Engine.Crashes.
	ErrCrashed = errors.New("the processes that executed the run died")
	// ErrDrained is the cause with which runs stop after Engine.Drain was closed. The run stays
	// open, and its lease is released.
	ErrDrained = errors.New("the process ends")
	// ErrClock is in the tree of an error that Engine.Report receives when the run is resumed with
	// records from the future: the clock of this process is more than a second behind the clock of
	// the process that wrote them. Unless the database has a clock of its own, leases hold by these
	// clocks, so that a process whose clock is ahead takes over runs that another one still
	// executes. The run continues.
	ErrClock = errors.New("the clocks of the processes differ")
)

// LimitError is the error, with ErrChanged, for a run that ended at a limit and that is resumed
// with other limits. Its end does not change: Engine.Fork copies the run up to Step, and the copy
// runs with them.
type LimitError struct {
	Run   string // the ID
	Cause string // Result.Cause of the run
	Step  int    // the number of steps that a fork can copy
}

// Error returns the end of the run, and what to do.
func (e *LimitError) Error() string {
	return fmt.Sprintf("run %s has ended at its limit (%s) and does not go on under another one: "+
		"Fork it at step %d, and run the fork", e.Run, e.Cause, e.Step)
}

// Unwrap returns ErrChanged.
func (e *LimitError) Unwrap() error { return ErrChanged }

// limited returns the error for a run that has ended at a limit and has another one now. An answer
// for which the limit asked is no part of a fork.
func limited(h *record.History, run string) error {
	first, n := h.Steps()
	last := h.Replies[llm.Key(fmt.Sprintf("run/%d/model", first+n-1))]
	if last != nil && !last.Response.Message.HasCalls() {
		n--
	}
	return &LimitError{run, h.End.Cause, n}
}
