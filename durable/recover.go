package durable

// recover.go: finds the runs that no process works on, and resumes them.

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Recover resumes runs that no process works on: runs of processes that died, and runs that
// received their answer later. It resumes at most limit runs of all scopes and of Agents, eight at
// a time; 0 means 100. It returns when each has stopped, temporarily or finally, with the number of
// resumed runs.
//
// find returns the Runner of a run. If it returns an error, the run is skipped. The error of
// Recover joins the errors of single runs. A run that another process has taken over is not an
// error.
func (e *Engine) Recover(ctx context.Context, limit int, find func(store.JournalRun) (pawl.Runner, error)) (int,
	error) {
	runs, err := e.Abandoned(ctx, limit)
	if err != nil {
		return 0, err
	}

	var wg sync.WaitGroup
	var mu sync.Mutex
	var bad []error
	taken := 0
	count := func(run store.JournalRun, err error) {
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, ErrLost) {
			return
		}
		taken++
		if err != nil {
			bad = append(bad, fmt.Errorf("run %s: %w", run.ID, err))
		}
	}

	slots := make(chan struct{}, recoveredAtOnce)
	for _, run := range runs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			count(run, e.recoverOne(ctx, run, find))
		})
	}
	wg.Wait()
	return taken, errors.Join(bad...)
}

// recoveredAtOnce is the number of runs that Recover executes concurrently.
const recoveredAtOnce = 8

// recoverOne resumes a run until it stops. A panic of the run is its error, because the process has
// other runs.
func (e *Engine) recoverOne(ctx context.Context, run store.JournalRun,
	find func(store.JournalRun) (pawl.Runner, error)) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()

	r, err := find(run)
	if err != nil {
		return err
	}
	_, err = e.Runner(run.ID, r).Run(store.WithScope(ctx, run.Scope))
	if errorOf(err) == "" {
		return nil // it has stopped by itself, with or without an answer
	}
	return err
}

// sweepEvery is the time between two searches for waiting runs without a question. A search reads
// the whole journal of each waiting run.
const sweepEvery = time.Hour

// Abandoned lists the runs of all scopes that a process should resume: at most limit runs that are
// due (store.Journal.DueRuns); 0 means 100. Runs of agents that are not in Agents are left out. The
// first call, and one call in each hour, adds the waiting runs without an open question, which
// earlier versions may have left.
func (e *Engine) Abandoned(ctx context.Context, limit int) ([]store.JournalRun, error) {
	now := e.clock()
	runs, err := e.Journal.DueRuns(ctx, store.DueQuery{Now: now, Agents: e.Agents, Limit: limit})
	if err != nil || !e.sweeps(now) {
		return runs, err
	}

	for r, err := range e.Journal.UnendedRuns(ctx) {
		if err != nil {
			return runs, err
		}
		if r.State != store.JournalWaiting {
			continue
		}
		why, _, err := e.stuck(ctx, r)
		if err != nil {
			return runs, err
		}
		if why != "" {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// sweeps reports whether this call searches for waiting runs without a question, and records it.
func (e *Engine) sweeps(now time.Time) bool {
	last := e.swept.Load()
	if last != 0 && now.Sub(time.Unix(0, last)) < sweepEvery {
		return false
	}
	return e.swept.CompareAndSwap(last, now.UnixNano()) // one of several concurrent calls
}
