package durable

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Recover resumes runs that no process works on: runs of processes that died, and runs that
// received their answer later. It resumes at most limit runs of all scopes, eight at a time; 0
// means 100. It returns when each has stopped, temporarily or finally, with the number of resumed
// runs.
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
	slots := make(chan struct{}, 8)
	for _, run := range runs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := e.recoverOne(ctx, run, find)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, ErrLost):
			case err != nil:
				bad = append(bad, fmt.Errorf("run %s: %w", run.ID, err))
				taken++
			default:
				taken++
			}
		})
	}
	wg.Wait()
	return taken, errors.Join(bad...)
}

func (e *Engine) recoverOne(ctx context.Context, run store.JournalRun,
	find func(store.JournalRun) (pawl.Runner, error)) (err error) {
	defer func() { // the panic of one run must not end the process, which has other runs
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
