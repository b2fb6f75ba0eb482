package temporal

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

var (
	update        = flag.Bool("update", false, "record the histories of golden that are not in testdata/histories")
	figuresRuns   = flag.Int("runs", soak.N(15, 100), "how many runs TestFigures makes")
	serverScripts = flag.Int("scripts", soak.N(15, 1000), "how many random scripts TestConformanceOnServer plays")
)

// golden are the histories that are kept: what runs made, and what later versions must go on with.
// The number is that of stateVersion. New ones are added; old ones are never recorded again, or
// whoever has such runs under way loses them.
var golden = map[string]string{"pay-1": "pay", "plan-away-1": "plan away", "pay-2": "pay", "plan-away-2": "plan away"}

// replay has the workflow of now, with that agent, replay a golden history.
func replay(t *testing.T, a *pawl.Agent, tool, path string) error {
	t.Helper()
	h := history(t, path)
	blobs := new(Memory)
	w := (&Engine{Blobs: blobs}).Worker(nil)
	for _, name := range []string{"agent", tool} { // as it was called, and is now
		if err := w.Add(t.Context(), name, a); err != nil {
			t.Fatal(err)
		}
	}
	r, err := sdkworker.NewWorkflowReplayerWithOptions(
		sdkworker.WorkflowReplayerOptions{DataConverter: Converter(blobs)})
	if err != nil {
		t.Fatal(err)
	}
	w.registerWorkflow(r)
	id := h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	return r.ReplayWorkflowHistoryWithOptions(silent{}, h,
		sdkworker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}})
}

func history(t *testing.T, path string) *historypb.History {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Runs that began with an earlier version go on: their histories are replayed by the workflow of
// now.
func TestGolden(t *testing.T) {
	for name, tool := range golden {
		path := filepath.Join("testdata", "histories", name+".json")
		if _, err := os.Stat(path); *update && os.IsNotExist(err) {
			record(t, path, tool)
		}
		if err := replay(t, agentFor(tool, new(durabletest.Memory)), tool, path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		other := agentFor(tool, new(durabletest.Memory))
		for i, set := range other.Tools {
			// What runs in the workflow comes to something else.
			if in, ok := set.(*pawl.Tool); ok && in.Agent() != nil {
				in = in.Clone()
				in.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("done"), nil }
				other.Tools[i] = in
			}
		}
		if err := replay(t, other, tool, path); err == nil || !strings.Contains(err.Error(), "TMPRL1100") {
			t.Errorf("%s: another workflow replayed it: %v", name, err)
		}
		// Tools, instructions and limits are those that were recorded.
		fewer := agentFor(tool, new(durabletest.Memory))
		fewer.Instructions, fewer.Limits, fewer.Tools = "", pawl.Limits{},
			append([]pawl.Toolset{pawl.Func("more", "", func(context.Context, struct{}) (string, error) { return "", nil })},
				fewer.Tools...)
		if err := replay(t, fewer, tool, path); err != nil {
			t.Errorf("%s: with other tools: %v", name, err)
		}
	}
}

// record makes a run for a tool, and keeps its history.
func record(t *testing.T, path, tool string) {
	t.Helper()
	addr := cluster(t)
	if addr == "" {
		t.Fatal("there is no server to record with")
	}
	blobs, world := new(Memory), new(durabletest.Memory)
	c, err := client.Dial(client.Options{HostPort: addr, DataConverter: Converter(blobs), Logger: silent{}, Identity: "golden"})
	if err != nil {
		t.Fatal(err)
	}
	eng := &Engine{Client: c, Blobs: blobs, TaskQueue: "golden-" + tool, Poll: 50 * time.Millisecond}
	w := inProcess(t, eng, nil, nil)
	if err := w.Add(t.Context(), tool, agentFor(tool, world)); err != nil {
		t.Fatal(err)
	}
	id := "golden-" + tool + "-" + filepath.Base(t.TempDir())
	if _, err := drive(t.Context(), eng, id, tool, world); err != nil {
		t.Fatal(err)
	}
	var h historypb.History
	for it := c.GetWorkflowHistory(t.Context(), id, "", false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	b, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(&h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(bytes.ReplaceAll(b, []byte(`},{"eventId"`), []byte("},\n{\"eventId\"")), '\n'),
		0o644); err != nil {
		t.Fatal(err)
	}
}

// overMemory is the export and the deliveries of the same run over a journal in memory.
func overMemory(t *testing.T, tool string) (*durable.Export, []durabletest.Delivery) {
	t.Helper()
	var world durabletest.Memory
	x, err := durabletest.Over(new(store.MemoryJournal))(t.Context(), "memory", caseOf(tool), &world)
	if err != nil {
		t.Fatal(err)
	}
	return x, world.All()
}

// A worker that forgets each workflow between its tasks, so that all is replayed again and again,
// carries nothing out twice, and comes to what a journal in memory does.
func TestCold(t *testing.T) {
	addr := cluster(t)
	if addr == "" {
		return
	}
	t.Parallel()
	want, all := overMemory(t, "pay")
	got := makeRun(t, addr, "cold-"+filepath.Base(t.TempDir()), "pay", 0, "PAWL_TEMPORAL_COLD=1")
	if bad := durabletest.Violations(got.all, all, 0); len(bad) > 0 || len(got.all) != len(all) {
		t.Errorf("%d deliveries, want %d: %v", len(got.all), len(all), bad)
	}
	if diff := cmp.Diff(form(t, want), form(t, got.export)); diff != "" {
		t.Errorf("the exports differ (-memory +cold):\n%s", diff)
	}
}

func form(t *testing.T, x *durable.Export) string {
	t.Helper()
	b, err := x.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
