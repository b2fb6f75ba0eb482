package temporal

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/clustertest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// The server is killed twice with SIGKILL during runs and restarted with its file. All runs end,
// each write happens exactly once, and the conversations are the same as without the faults.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	server, err := clustertest.Start(filepath.Join(t.TempDir(), "temporal.db"))
	if errors.Is(err, clustertest.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	tools := soak.N([]string{"post", "charge", planAway}, append(durabletest.Tools(), planAway))
	first, second := soak.N[int64](20, 40), soak.N[int64](60, 120)
	var ticks, kills atomic.Int64
	worlds, mux := map[string]*durabletest.Memory{}, http.NewServeMux()
	restarted := make(chan error, 2)
	for _, tool := range tools {
		w := new(durabletest.Memory)
		worlds[tool] = w
		mux.Handle(worldPath(tool)+"/", http.StripPrefix(worldPath(tool), durabletest.Serve(w, func() bool {
			if n := ticks.Add(1); n == first || n == second {
				kills.Add(1)
				server.Kill()
				restarted <- server.Again()
			}
			return false
		})))
	}
	web := httptest.NewServer(mux)
	defer web.Close()
	blobs := t.TempDir()
	stop := new(receiver).work(t, "PAWL_TEMPORAL_WORKER="+server.Addr, "PAWL_TEMPORAL_QUEUE=killed", "PAWL_TEMPORAL_BLOBS="+blobs, "PAWL_TEMPORAL_TOOL="+strings.Join(tools, ";"), "PAWL_TEMPORAL_WORLD="+web.URL)
	defer stop()
	eng, err := dial(server.Addr, "killed", Dir(blobs))
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Client.Close()
	ctx := t.Context()
	var wg sync.WaitGroup
	for _, tool := range tools {
		wg.Go(func() {
			res, err := drive(ctx, eng, "killed "+tool, tool, worlds[tool])
			if err != nil {
				t.Errorf("%s: %v", tool, err)
				return
			}
			var world durabletest.Memory
			memory := &durable.Engine{Journal: new(store.MemoryJournal)}
			want, err := durabletest.Drive(ctx, memory, "memory", caseOf(tool), &world)
			if err != nil {
				t.Errorf("%s: %v", tool, err)
				return
			}
			if bad := durabletest.Violations(worlds[tool].All(), world.All(), 2); len(bad) > 0 {
				t.Errorf("%s: %v", tool, bad)
			}
			// the first message names the case
			if diff := cmp.Diff(text(t, want.Messages[1:]), text(t, res.Messages[1:])); diff != "" {
				t.Errorf("%s: the conversation differs (-memory +killed):\n%s", tool, diff)
			}
		})
	}
	wg.Wait()
	if kills.Load() != 2 {
		t.Fatalf("the server was killed %d times", kills.Load())
	}
	for range 2 {
		if err := <-restarted; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d runs, %d deliveries, the server killed %d times", len(tools), ticks.Load()/2, kills.Load())
}

// A task that was lost between the server and a worker had no effect: its Write is executed once,
// and no person is asked. Runs of the previous version cannot know this, and ask.
func TestTaskLost(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	for state, unknown := range map[int]bool{1: true, 2: false} {
		eng, err := dial(addr, "lost", new(memory))
		if err != nil {
			t.Fatal(err)
		}
		eng.TaskQueue += string(rune('0' + state))
		var began, did atomic.Int64
		begun, release := make(chan struct{}), make(chan struct{})
		write := pawl.Func("write", "the first one holds the only slot", func(context.Context, struct {
			N int `json:"n"`
		}) (string, error) {
			if began.Add(1) == 1 {
				close(begun)
				<-release
			}
			did.Add(1)
			return "written", nil
		})
		a := &pawl.Agent{Model: script.New(script.Together(script.Call("write", map[string]any{"n": 1}),
			script.Call("write", map[string]any{"n": 2})), script.Say("done")), Tools: []pawl.Toolset{write}}
		inProcess(t, eng, a, &WorkerOptions{Stop: time.Second, Activities: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		id := filepath.Base(t.TempDir()) + eng.TaskQueue
		if _, err := eng.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: eng.TaskQueue},
			workflowName, input{State: state, Agent: "agent", Messages: ask}); err != nil {
			t.Fatal(err)
		}
		<-begun
		stolen, err := eng.Client.WorkflowService().PollActivityTaskQueue(ctx,
			&workflowservice.PollActivityTaskQueueRequest{Namespace: client.DefaultNamespace, Identity: "thief",
				TaskQueue: &taskqueuepb.TaskQueue{Name: eng.TaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL}})
		if err != nil || stolen.GetActivityType().GetName() != activityCall {
			t.Fatalf("%v was stolen: %v", stolen.GetActivityType(), err)
		}
		close(release)
		res, err := runtest.Ended(eng.Runner(id, "agent").Run(ctx))
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Stop == pawl.StopPending; got != unknown || unknown &&
			res.Pending[0].Outcome != pawl.OutcomeUnknown {
			t.Errorf("form %d: stopped by %s with %+v open", state, res.Stop, res.Pending)
		}
		if want := int64(2); !unknown && did.Load() != want {
			t.Errorf("form %d: it was done %d times", state, did.Load())
		}
		if unknown {
			if err := eng.Cancel(ctx, id); err != nil {
				t.Error(err)
			}
		}
	}
}

// The negative control: where the SDK may repeat a Write, the receiver counts it twice.
func TestRepeatedControl(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	_, all := overMemory(t, "post")
	got := makeRun(t, addr, "control-"+filepath.Base(t.TempDir()), "post", 4, "PAWL_TEMPORAL_REPEATS=1")
	bad := durabletest.Violations(got.all, all, got.kills)
	if got.kills != 1 || len(bad) != 1 || !strings.Contains(bad[0], "a write of post, happened 2 times") {
		t.Errorf("%d workers were killed; found: %q", got.kills, bad)
	}
}

// A long run within a call continues in new histories of its own, independent of the enclosing run.
// Its result equals the result in memory.
func TestBranchContinues(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	eng, err := dial(addr, "continues", new(memory))
	if err != nil {
		t.Fatal(err)
	}
	eng.Events = 100
	var did atomic.Int64
	inProcess(t, eng, nested(pawl.Limits{}, steps(40), step(pawl.EffectRead, &did)), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	id := filepath.Base(t.TempDir())
	var replies, calls int
	var res *pawl.Result
	for e, err := range eng.Runner(id, "agent").Stream(ctx, ask...) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case pawl.EventResponseReceived:
			replies++
		case pawl.EventCallCompleted:
			calls++
		case pawl.EventRunEnded:
			res = e.Result
		}
	}
	if res.Text() != "done" || did.Load() != 40 || res.Spent.Requests != 45 || res.Spent.Calls != 42 ||
		replies != 45 || calls != 42 {
		t.Errorf("it says %q; %d steps were taken, %+v spent; %d replies and %d calls were told", res.Text(), did.Load(), res.Spent, replies, calls)
	}
	x, err := eng.Export(ctx, id)
	if err != nil || len(x.Replies) != 45 || len(x.Calls) != 42 {
		t.Errorf("the export has %d replies and %d calls: %v", len(x.Replies), len(x.Calls), err)
	}
	runs, err := eng.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowId = '" + id + "/run/1/0/middle/1/0/inner'"})
	// The list of runs follows the state of the runs.
	for try := 0; err == nil && len(runs.Executions) < 3 && try < 100; try++ {
		runs, err = eng.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowId = '" + id + "/run/1/0/middle/1/0/inner'"})
	}
	if err != nil || len(runs.Executions) < 3 {
		t.Errorf("the innermost run took %d histories: %v", len(runs.GetExecutions()), err)
	}
}

// Random runs have the same result on a real server as with a journal in memory.
func TestConformanceOnServer(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	eng, err := dial(addr, "conform", new(memory))
	if err != nil {
		t.Fatal(err)
	}
	eng.Heartbeat = 30 * time.Second // the machine may be busy
	w := inProcess(t, eng, nil, nil)
	name := filepath.Base(t.TempDir())
	durabletest.Conform(t, *serverScripts, func(ctx context.Context, id string, c *durabletest.Case,
		world durabletest.World) (*journal.Export, error) {
		id = name + "-" + id
		if err := w.Add(ctx, id, c.Agent(world)); err != nil {
			return nil, err
		}
		run, msgs := eng.Runner(id, id), c.Messages()
		for range 50 {
			res, err := runtest.Ended(run.Run(ctx, msgs...))
			if err != nil {
				return nil, err
			}
			if res.Stop != pawl.StopPending {
				return eng.Export(ctx, id)
			}
			if msgs, err = durabletest.Answers(ctx, world, res.Pending); err != nil {
				return nil, err
			}
		}
		return nil, errors.New("it asks for ever")
	})
	t.Logf("%d scripts", *serverScripts)
}
