package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Recover goes on with runs that nobody works on: those of processes that died, and those that were answered while nobody was there. It takes up to limit of all scopes (0:
// 100), eight at a time, and returns when each has stopped, for now or for good, and how many it took. find says what runs a run; with an error it is
// left alone. What went wrong with single runs is in the error; a run that another process took meanwhile is none of it.
func (e *Engine) Recover(ctx context.Context, limit int, find func(store.JournalRun) (pawl.Runner, error)) (int, error) {
	runs, err := e.Journal.AbandonedRuns(ctx, e.clock(), limit)
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

func (e *Engine) recoverOne(ctx context.Context, run store.JournalRun, find func(store.JournalRun) (pawl.Runner, error)) error {
	r, err := find(run)
	if err != nil {
		return err
	}
	_, err = e.Runner(run.ID, r).Run(store.WithScope(ctx, run.Scope))
	return err
}
