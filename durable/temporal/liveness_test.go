package temporal

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// A run without a worker is stuck, and is not when it has one.
func TestCheckLiveness(t *testing.T) {
	addr := cluster(t)
	if addr == "" {
		return
	}
	id := "liveness-" + strings.ToLower(t.Name())
	eng, err := dial(addr, id, new(Memory))
	if err != nil {
		t.Fatal(err)
	}
	run := eng.Runner(id, "agent")
	if err := run.start(t.Context(), []llm.Message{llm.User("go")}); err != nil {
		t.Fatal(err)
	}
	stuck := func() *durable.StuckRun {
		all, err := eng.CheckLiveness(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(all, func(r durable.StuckRun) bool { return r.Run == id }); i >= 0 {
			return &all[i]
		}
		return nil
	}
	var r *durable.StuckRun
	for tick := time.Tick(100 * time.Millisecond); r == nil; <-tick {
		r = stuck()
	}
	if r.State != "open" || !strings.Contains(r.Why, "no worker of "+id) || time.Since(r.Since) < eng.heartbeat() {
		t.Errorf("%+v", r)
	}
	inProcess(t, eng, &pawl.Agent{Model: script.New(script.Say("done"))}, nil)
	if res, err := run.Run(t.Context()); err != nil || res.Text() != "done" {
		t.Fatalf("%+v, %v", res, err)
	}
	if r := stuck(); r != nil {
		t.Errorf("after its end: %+v", r)
	}
}
