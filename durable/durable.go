// Package durable makes runs survive the process. A run is stored step by step in a journal
// (store.Journal, in one file with store/sqlite). It resumes from there after a crash, a restart or
// a decision that took a week. No side effect is repeated silently.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	…
//	eng := &durable.Engine{Journal: db}
//	res, err := eng.Runner("invoice-7", agent).Run(ctx, llm.User("Pay invoice 7."))
//
// The same line starts and resumes the run: a run that exists is resumed. Its past is replayed from
// the journal through the same loop, and nothing of it is executed again.
//
//	         reply ─▶ stored ─▶ approval ─▶ intent stored ─▶ THE TOOL ─▶ outcome stored ─▶ next
//	after a crash:    replayed              nothing to do               replayed
//
// The guarantees, which docs/durable.md explains with the effect of each fault:
//
//	R1  a stored result is never computed again
//	R2  a call that may change something starts only after its intent and the reply that
//	    made it are on disk
//	R3  after a crash, Read and Pure calls may repeat, Idempotent calls repeat with the
//	    same key, and Compose calls repeat and find the results of their calls
//	R4  an interrupted Write is not repeated: its outcome is unknown, and it waits for
//	    the tool's Reconcile or for a person's decision
//	R5  one writer for each run, by a fenced lease
//	R6  a replay compares each request with the original request
//	R7  counters and budgets are never reset
//	R8  fragments of text are not stored: observers receive the number of the attempt
//	R9  a run is over, or works, or is queued, or waits for an answer to an open
//	    question, or has failed with a reason
//
// Decide, Cancel and Steer act on a run from outside. Recover resumes the runs of processes that
// died, and CheckLiveness finds runs that break R9. Effects lists the side effects of a run. Verify
// checks that its journal was not changed. Export returns it as JSON, which is the same for every
// engine.
package durable

// durable.go: Engine, and its defaults.

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Engine stores runs in a journal. Fill in a literal; only Journal is required. An Engine may serve
// any number of concurrent runs, and must not be changed during one. The store.Scope of the context
// is the owner of a run; without it, the owner is the zero Scope.
type Engine struct {
	// Journal stores the runs. It is required.
	Journal store.Journal
	// Lease is the time without a sign of life after which another process may take over the runs
	// of this one. 0 means 30 s.
	Lease time.Duration
	// Look is the interval at which a run looks for what other processes have written to it, such
	// as a cancellation. 0 means a third of Lease. A run also looks with each write of its own.
	Look time.Duration
	// WaitLease is the time for which Run and Stream wait until the process that has the run
	// releases it, or until its lease ends: after a crash and a restart, a time of at least Lease.
	// 0 means that they return ErrLost at once.
	WaitLease time.Duration

	// Agents are the agents whose runs Recover resumes and Abandoned lists: store.DueQuery.Agents.
	// Thousands of runs of other agents do not delay theirs. Nil means the runs of all agents.
	Agents []string

	// AcceptChanges continues runs with the present agent, which the journal records. False means
	// that a run continues with the agent that it began with: its instructions, choice, settings,
	// the name of its model and the texts of its tools. If a tool is gone, has another schema,
	// effect or address, or if the model has another provider, the run is rejected with ErrChanged,
	// and its state is JournalFailed until it is resumed with the former program.
	AcceptChanges bool
	// AcceptChangedTools names tools that may have changed or be absent. It accepts nothing else.
	// Nil means none.
	AcceptChangedTools []string

	// Retry is the time during which a write is repeated while its error is store.ErrUnavailable.
	// The records, such as the outcomes of calls that have ended, are held in memory meanwhile. 0
	// means 20 s, a negative number means no repetition.
	Retry time.Duration

	// Outage is the time for which a run stays open although its model's provider cannot be reached
	// or answers with a temporary error: a rate limit, an overload, an error of the server or of
	// the network. The run stops with that error after the model's own quick attempts, and is due
	// again after a pause (JournalRun.Next), which grows to five minutes: see Summary.Waiting.
	// After this time it is JournalFailed. 0 means 24 h, and less than 0 means none.
	Outage time.Duration
	// Crashes is the number of processes that may die in a row while they execute a run, without a
	// new record. The run is then JournalFailed with the code "crashed", so that it does not take
	// down the next process; a person can resume it. 0 means 5, and less than 0 means no limit.
	Crashes int64

	// Report receives the errors that concern the operation of a run: each failed write or renewal
	// (store.ErrUnavailable), a lost lease (ErrLost), a changed program (ErrChanged) and clocks
	// that differ (ErrClock). It must be fast and safe for concurrent use. Nil drops them.
	Report func(run string, err error)

	// Drain is closed when the process is about to end: calls in progress end and are recorded, no
	// other call starts, requests to models are cut, and each run stops with the cause ErrDrained.
	// It is then open and without a lease, so that another process continues it at once. To limit
	// the time for the calls, cancel the context of the runs. Nil means never.
	Drain <-chan struct{}

	now   func() time.Time // for tests; nil means time.Now
	swept atomic.Int64     // the time of the last sweep, in ns; 0 means none: see Abandoned
}

// Runner returns the run of r with the given ID. r is an Agent, or a Runner made of agents. The
// first Run or Stream with messages starts the run, and each later one resumes it. A run needs an
// ID: without one it could not be resumed.
func (e *Engine) Runner(id string, r pawl.Runner) *Runner {
	return &Runner{ID: id, engine: e, runner: r}
}

// lease returns Lease or its default.
func (e *Engine) lease() time.Duration { return cmp.Or(e.Lease, 30*time.Second) }

// outage returns Outage or its default.
func (e *Engine) outage() time.Duration { return cmp.Or(e.Outage, defaultOutage) }

// report passes on an error that concerns operation. The end of a replay is none.
func (e *Engine) report(run string, err error) {
	if e.Report != nil && !errors.Is(err, errOver) {
		e.Report(run, err)
	}
}

// clock returns the present time.
func (e *Engine) clock() time.Time {
	if e.now != nil {
		return e.now()
	}
	return time.Now()
}

// scope returns the owner of the runs that ctx refers to.
func scope(ctx context.Context) store.Scope {
	s, _ := store.ScopeFrom(ctx)
	return s
}
