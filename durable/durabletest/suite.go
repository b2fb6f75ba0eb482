// Package durabletest requires the same behavior of all engines that make runs durable: package
// durable over each journal, and others.
//
//	func TestConformance(t *testing.T) {
//		durabletest.Conform(t, 1000, func(ctx context.Context, id string, c *durabletest.Case,
//			w durabletest.World) (*journal.Export, error) { … })
//	}
//
// A Case is a run to execute. Random cases use every kind of call: alone, concurrent, in plans and
// by agents that are tools. ForEffect has the cases of one effect, for tests that kill processes.
// Violations returns the effects on the World of the tools that crashes must not cause.
package durabletest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/runerr"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Make executes the run of a case with the given ID, answers its questions with Answers until it
// ends, and returns its export.
type Make func(ctx context.Context, id string, c *Case, w World) (*journal.Export, error)

// Conform executes n random runs on an engine, eight at a time. It compares each export, and the
// deliveries to the world, with the same run over a journal in memory.
func Conform(t *testing.T, n int, run Make) {
	t.Helper()
	memory := Over(new(store.MemoryJournal))
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for seed := next.Add(1) - 1; seed < uint64(n) && !t.Failed(); seed = next.Add(1) - 1 {
				if err := compare(t.Context(), seed, memory, run); err != nil {
					t.Errorf("%s: %v", Random(seed).Name, err)
				}
			}
		})
	}
	wg.Wait()
}

// compare executes the run of a seed on both.
func compare(ctx context.Context, seed uint64, one, other Make) error {
	var forms [2]string
	var worlds [2]Memory
	for i, run := range []Make{one, other} {
		x, err := run(ctx, fmt.Sprintf("run-%d", seed), Random(seed), &worlds[i])
		if err != nil {
			return err
		}
		form, err := x.JSON()
		if err != nil {
			return err
		}
		forms[i] = string(form)
	}
	if diff := cmp.Diff(forms[0], forms[1]); diff != "" {
		return fmt.Errorf("the exports differ (-memory +here):\n%s", diff)
	}
	if bad := Violations(worlds[1].All(), worlds[0].All(), 0); len(bad) > 0 {
		return fmt.Errorf("%v", bad)
	}
	return nil
}

// Over executes runs with package durable over j.
func Over(j store.Journal) Make {
	return func(ctx context.Context, id string, c *Case, w World) (*journal.Export, error) {
		eng := &durable.Engine{Journal: j}
		if _, err := Drive(ctx, eng, id, c, w); err != nil {
			return nil, err
		}
		return eng.Export(ctx, id)
	}
}

// Drive starts or resumes the run of a case, and answers its questions, until it ends or fails.
// Every other case is streamed.
func Drive(ctx context.Context, eng *durable.Engine, id string, c *Case, w World) (*pawl.Result, error) {
	run, msgs := eng.Runner(id, c.Agent(w)), c.Messages()
	for range 50 {
		res, err := once(ctx, run, c.number%2 == 1, msgs)
		if err = runerr.Cause(err); err != nil || res.Stop != pawl.StopPending {
			return res, err
		}
		msgs, err = Answers(ctx, w, res.Pending)
		if err != nil {
			return res, err
		}
	}
	return nil, errors.New("it asks for ever")
}

// once resumes a run until it stops.
func once(ctx context.Context, run *durable.Runner, stream bool, msgs []llm.Message) (*pawl.Result, error) {
	if !stream {
		return run.Run(ctx, msgs...)
	}
	return pawl.Collect(run.Stream(ctx, msgs...), nil)
}
