package server_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

// Runs whose processes have died twice without a new record are resumed one at a time, so that the
// run that takes down its process takes no other with it. After one death all are resumed at once.
func TestSuspectsAreResumedOneAtATime(t *testing.T) {
	const runs = 20
	for _, row := range []struct {
		deaths int
		steps  int   // stored before
		most   int32 // runs that execute at the same time
	}{
		{deaths: 0, most: runs},
		{deaths: 1, most: runs},
		{deaths: 2, most: 1},
		{deaths: 4, most: 1},
		{deaths: 2, steps: 1, most: 1},
	} {
		t.Run(fmt.Sprintf("%d deaths, %d steps", row.deaths, row.steps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var busy, most, ended atomic.Int32
				look := pawl.Func("look", "Looks.", func(context.Context, struct{}) (string, error) {
					n := busy.Add(1)
					defer busy.Add(-1)
					for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
					}
					time.Sleep(time.Second)
					ended.Add(1)
					return "seen", nil
				})
				look.Effect = pawl.EffectRead
				agent := func(turns ...script.Turn) *pawl.Agent {
					model := &runtest.InTurn{Turns: turns}
					return &pawl.Agent{Name: "clerk", Tools: []pawl.Toolset{look}, Model: model}
				}
				looks := script.Call("look", struct{}{})

				j := new(store.MemoryJournal)
				eng := &durable.Engine{Journal: j}
				for i := range runs {
					id := fmt.Sprint("r", i)
					if err := eng.Runner(id, agent()).Enqueue(t.Context(), llm.User("go")); err != nil {
						t.Fatal(err)
					}
					if row.steps > 0 { // the provider is away after it
						away := script.Fail(&llm.ProviderError{Code: llm.CodeServer, Retryable: true})
						if _, err := eng.Runner(id, agent(looks, away)).Run(t.Context()); err == nil {
							t.Fatal("the run has not stopped")
						}
					}
					for n := range row.deaths {
						now := time.Now()
						until := now.Add(time.Second)
						_, err := j.ClaimJournal(t.Context(), store.Scope{}, id, fmt.Sprint(n), now, until)
						if err != nil {
							t.Fatal(err)
						}
						time.Sleep(2 * time.Second)
					}
				}

				ended.Store(0)
				most.Store(0)
				a := agent()
				turns := slices.Repeat([]script.Turn{looks}, row.steps+1)
				a.Model = script.New(append(turns, script.Say("Done."))...)
				s, err := server.New([]*pawl.Agent{a}, j, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close(t.Context())
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
				defer stop()
				s.Recover(ctx)
				if ended.Load() != runs || most.Load() != row.most {
					t.Errorf("%d of %d calls, %d at the same time; want %d", ended.Load(), runs, most.Load(), row.most)
				}
			})
		})
	}
}
