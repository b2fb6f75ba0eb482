package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// recovering runs the recovery of a server until the test ends.
func (v *serving) recovering() {
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { v.s.Recover(ctx) })
	v.t.Cleanup(func() { stop(); wg.Wait() })
}

// Runs of agents that are not served do not starve the runs of served agents, however many and old
// they are. Versions of a served agent count as served.
func TestUnservedRunsStarveNone(t *testing.T) {
	const unserved = 1100 // more than one search returns
	j := new(store.MemoryJournal)
	eng := &durable.Engine{Journal: j}
	enqueue := func(id, agent string) {
		t.Helper()
		a := &pawl.Agent{Name: agent, Model: script.New(script.Say("Done."))}
		if err := eng.Runner(id, a).Enqueue(t.Context(), llm.User("hi")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range unserved {
		enqueue(fmt.Sprint("absent", i), "absent")
	}
	for _, agent := range []string{"clerk", "clerk@1", "clerk/side"} {
		enqueue(fmt.Sprintf("%x", agent), agent)
	}

	asked := make(chan bool, 10)
	model := &script.Model{Turns: []script.Turn{script.Loop(script.Func(func(*llm.Request) script.Turn {
		asked <- true
		return script.Say("Done.")
	}))}}
	v := serve(t, func(o *options) {
		o.Journal = j
		o.Agents = []*pawl.Agent{{Name: "clerk@2", Model: model}}
	})
	v.recovering()
	for range 2 { // a side request gets an empty answer without the model
		select {
		case <-asked:
		case <-time.After(10 * time.Second):
			t.Fatal("the runs of the served agent are not resumed")
		}
	}
}
