// Package durable lets runs survive the process. A run is kept step by step in a journal (store.Journal: in one file with store/sqlite), and goes on from there after a
// crash, a restart or a decision that took a week; no side effect is repeated in silence.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	…
//	eng := &durable.Engine{Journal: db}
//	res, err := eng.Runner("invoice-7", agent).Run(ctx, llm.User("Pay invoice 7."))
//
// The same line begins the run and goes on with it: a run that is there is resumed. What went before is played back from the journal, through the same loop,
// and nothing of it is done again.
//
//	                reply ──▶ kept ──▶ its calls: approval ──▶ intent kept ──▶ THE TOOL ──▶ outcome kept ──▶ next request
//	after a crash:  played back                               nothing to do              played back
//
// What can be relied on (docs/durable.md says it at length, with what each fault comes to):
//
//	R1  a result that was kept is never computed again
//	R2  a call starts only after its intent is on disk, and with it the reply that made it
//	R3  after a crash Read and Pure calls may repeat, Idempotent ones repeat with the same key, Compose ones repeat and find what their calls did
//	R4  a Write that was interrupted is not repeated: its outcome is unknown, and it waits for the tool's Reconcile or for somebody who knows
//	R5  one writer a run, by a fenced lease
//	R6  playing back compares each request with the one that was made
//	R7  counters and budgets are never reset
//	R8  fragments of text are not kept: who watches is told the attempt
//
// Decide, Cancel and Steer speak to a run from outside; Recover goes on with the runs of the dead; Effects lists what a run did to the world; Verify checks that
// nobody changed its journal; Export gives it as JSON, the same on every engine.
package durable

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Engine keeps runs in a journal. Fill in a literal; only Journal is required. It may be used by many runs at once, and must not be changed meanwhile. Whose
// runs they are is said by the store.Scope of the context; without one they are the zero Scope's.
type Engine struct {
	Journal store.Journal
	Lease   time.Duration // how long a process may be silent before another takes its runs over; 0: 30 s

	// AcceptChangedTools names tools that may differ from what they were when the run was kept, or be gone. It is noted in the journal. A run whose
	// tools changed otherwise is refused with ErrChanged.
	AcceptChangedTools []string

	now func() time.Time // for tests; nil: time.Now
}

var (
	// ErrChanged is in the tree of an error for a run that cannot be played back, because agent, tools or instructions are not what they were.
	ErrChanged = errors.New("the program has changed")
	// ErrCorrupt is in the tree of an error for a journal that is not what was written.
	ErrCorrupt = errors.New("the journal is damaged")
	// ErrLost is in the tree of an error for a run that another process has taken over.
	ErrLost = errors.New("another process has the run")
	// ErrExpired is in the tree of an error for a yes that came too late.
	ErrExpired = errors.New("the time to answer is over")
)

// stateVersion is the form of the records. A journal of another form is refused.
const stateVersion = 1

// Runner returns the run with that ID of whatever r runs: an Agent, or what is made of agents. It is begun by the first Run or Stream with messages, and resumed by each
// further one. With id "" it gets one of its own.
func (e *Engine) Runner(id string, r pawl.Runner) *Runner {
	return &Runner{ID: cmp.Or(id, rand.Text()), engine: e, runner: r}
}

func (e *Engine) lease() time.Duration { return cmp.Or(e.Lease, 30*time.Second) }

func (e *Engine) clock() time.Time {
	if e.now != nil {
		return e.now()
	}
	return time.Now()
}

// scope is whose runs ctx is about.
func scope(ctx context.Context) store.Scope {
	s, _ := store.ScopeFrom(ctx)
	return s
}
