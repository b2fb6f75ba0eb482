package temporal

import (
	"slices"
	"strings"
	"testing"
	"time"

	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/clustertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// quiet is a server that has no runs of other tests. CheckLiveness asks about every open run of a
// server, and waits for each run without a worker.
var quiet clustertest.Shared

// A run without a worker is stuck, and is not when it has one.
func TestCheckLiveness(t *testing.T) {
	t.Parallel()
	addr := quiet.Address(t)
	id := "liveness-" + strings.ToLower(t.Name())
	eng, err := dial(addr, id, new(memory))
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

// A run that waits for a question is not stuck while a worker can show it. A run that waits without
// a question is.
func TestCheckLivenessOfWaitingRuns(t *testing.T) {
	t.Parallel()
	addr := quiet.Address(t)
	stuck := func(eng *Engine) string {
		t.Helper()
		all, err := eng.CheckLiveness(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(all, func(r durable.StuckRun) bool { return r.Run == eng.TaskQueue }); i >= 0 {
			return all[i].Why
		}
		return ""
	}
	eng, err := dial(addr, "waits-"+t.TempDir(), new(memory))
	if err != nil {
		t.Fatal(err)
	}
	asks := &pawl.Agent{Model: script.New(script.Call("form", nil)),
		Tools: []pawl.Toolset{&pawl.Tool{Name: "form", Passive: true}}}
	t.Run("worker", func(t *testing.T) {
		same, err := dial(addr, eng.TaskQueue, eng.Blobs)
		if err != nil {
			t.Fatal(err)
		}
		inProcess(t, same, asks, nil)
		res, err := runtest.Ended(eng.Runner(eng.TaskQueue, "agent").Run(t.Context(), ask...))
		if err != nil || len(res.Pending) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		if why := stuck(eng); why != "" {
			t.Errorf("a waiting run is stuck: %s", why)
		}
	})
	defer eng.Client.Close()
	if why := stuck(eng); !strings.Contains(why, "shows for what") {
		t.Errorf("without a worker: %q", why)
	}

	empty := &Engine{Client: eng.Client, Blobs: eng.Blobs, TaskQueue: "empty-" + t.TempDir()}
	w := sdkworker.New(eng.Client, empty.TaskQueue, sdkworker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ input) error {
		waits := func() (State, error) { return State{Waits: true}, nil }
		if err := workflow.SetQueryHandler(ctx, queryState, waits); err != nil {
			return err
		}
		workflow.GetSignalChannel(ctx, signalCancel).Receive(ctx, nil)
		return nil
	}, workflow.RegisterOptions{Name: workflowName})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := empty.Runner(empty.TaskQueue, "agent").start(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	for tick := time.Tick(100 * time.Millisecond); ; <-tick {
		if why := stuck(empty); strings.Contains(why, "no question is open") {
			break
		} else if why != "" {
			t.Fatal(why)
		}
	}
	if err := empty.Cancel(t.Context(), empty.TaskQueue); err != nil {
		t.Error(err)
	}
}
