// Package whatif replays stored runs under a change: another model, other instructions, tools,
// rules or limits. It says which of them would have ended in the same way, and how the others
// differ, without an effect on the world.
//
//	trial := &whatif.Trial{Journal: db, Change: whatif.Change{Instructions: true}}
//	run, err := trial.Replay(ctx, "invoice-7", changed)
//	…
//	fmt.Println(run.Verdict, run.Changes)
//
// What happens to a request and to a call:
//
//	a request that is equal to the stored one    its stored reply, free
//	another request                              the model is asked; Offline: the replay stops
//	a call that is equal to a stored one         its stored result
//	another call of a Write                      a ledger (Run.Shadowed); it is never executed
//	another call that reads                      the replay stops; LiveReads: it is executed
//	another call that computes or composes       it is executed; its nested calls as above
//
// A person is asked nothing: an equal question gets its stored answer, and a new one stays open.
package whatif

// whatif.go: Trial and Change.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Trial replays stored runs under a change. Fill in a literal; only Journal is required. A Trial
// may replay several runs concurrently, and must not be changed meanwhile.
type Trial struct {
	// Journal has the runs. It is only read.
	Journal store.Journal
	// Change is what differs from the stored runs. The zero value changes only limits.
	Change Change
	// Offline stops a replay at the first request that differs. No model is asked.
	Offline bool
	// LiveReads executes calls with EffectRead whose result is not stored. They read the present
	// world, which may have changed since the run. False stops the replay at such a call.
	LiveReads bool
	// Budget is the number of US dollars for the requests of all replays together. A replay stops
	// before the first request after the budget is used up. 0 means no limit.
	Budget float64
	// Result returns the result of a Write that is not executed. Nil means the text "Done.".
	Result func(tool *pawl.Tool, call llm.ToolCall) llm.ToolResult

	mu    sync.Mutex
	spent float64 // US dollars
	leaks bool    // for tests: tools are not replaced, so that a Write would be executed
}

// Change names the parts that the present agent brings. Each other part is as it was when the run
// began, except for limits, which journals do not have and the present agent always brings. Only
// All concerns nested agents.
type Change struct {
	// Instructions means the instructions of the present agent.
	Instructions bool
	// Model means the model of the present agent.
	Model bool
	// Settings means the settings of the present agent, with its tool choice.
	Settings bool
	// Tools means that the tools that the run began without are offered. A tool that the present
	// agent does not have is never offered.
	Tools bool
	// Rules means that each call passes the rules and the other middleware of the present agent,
	// also a call whose outcome is stored.
	Rules bool
	// All means everything, also of nested agents.
	All bool
}

// judges reports whether calls pass the middleware again.
func (c Change) judges() bool { return c.Rules || c.All }

// ErrLeak is the error of a replay that stopped because a call was about to be executed that must
// not be. The call was not executed.
var ErrLeak = errors.New("a call was about to be executed outside of the replay")

// ErrNotEnded is the error for a run that has not stopped yet.
var ErrNotEnded = errors.New("the run has not stopped yet")

// Replay replays the run with that ID by r, the present agent, and compares what it does with what
// is stored. The store.Scope of ctx is the owner of the run. The error is store.ErrNotFound if
// there is no such run, and ErrNotEnded for a run in progress. A replay that stops early is no
// error: Run.Stopped says why.
func (t *Trial) Replay(ctx context.Context, id string, r pawl.Runner) (*Run, error) {
	owner, _ := store.ScopeFrom(ctx)
	h, err := record.Load(ctx, t.Journal, owner, id, time.Now())
	if err != nil {
		return nil, err
	}
	if h.End == nil {
		return nil, fmt.Errorf("run %s: %w", id, ErrNotEnded)
	}
	in, err := h.Begin.Input()
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := newSession(t, h, cancel)
	core := &pawl.Engine{Run: id, Bind: s.bind, Replays: true, Begin: s.begin, Intend: s.intend}
	res, err := start(pawl.WithRunOptions(ctx, pawl.RunOptions{Engine: core, Messages: s}), in, r)
	if errors.Is(s.stopped, ErrLeak) {
		return nil, fmt.Errorf("run %s: %w", id, s.stopped)
	}
	if res == nil && s.stopped == nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	return s.report(id, res), nil
}

// start executes r with the input of the run.
func start(ctx context.Context, in record.Input, r pawl.Runner) (*pawl.Result, error) {
	agent, ok := r.(*pawl.Agent)
	switch {
	case ok && in.From != nil:
		return agent.Resume(ctx, in.From, in.Messages...)
	case ok:
		return agent.Run(ctx, in.Messages...)
	case in.From != nil:
		return nil, errors.New("it was begun from a Result, by an Agent, and this is none")
	}
	return pawl.Collect(r.Stream(ctx, in.Messages...), nil)
}

// affords reports whether the budget allows one more request.
func (t *Trial) affords() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Budget <= 0 || t.spent < t.Budget
}

// pay adds the cost of a request.
func (t *Trial) pay(dollars float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spent += dollars
}
