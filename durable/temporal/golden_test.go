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
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

var (
	update        = flag.Bool("update", false, "record the histories of golden that are not in testdata/histories")
	figuresRuns   = flag.Int("runs", soak.N(8, 100), "how many runs TestFigures makes")
	serverScripts = flag.Int("scripts", soak.N(8, 400), "how many random scripts TestConformanceOnServer plays")
)

// golden are the stored histories of earlier runs, which later versions must resume. The number is
// the value of stateVersion. New histories are added. Old ones are never recorded again, because
// active runs of users have their form.
var golden = map[string]string{"pay-1": "pay", "plan-away-1": "plan away", "pay-2": "pay",
	"plan-away-2": "plan away", "pay-3": "pay", "plan-away-3": "plan away", "pay-4": "pay", "plan-away-4": "plan away",
	"pay-5": "pay", "plan-away-5": "plan away"}

// replay replays a golden history with the current workflow and the given agent.
func replay(t *testing.T, a *pawl.Agent, tool, path string) error {
	t.Helper()
	h := readHistory(t, path)
	blobs := new(memory)
	w := (&Engine{Blobs: blobs}).Worker(nil)
	for _, name := range []string{"agent", tool} { // its earlier and its current name
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

func readHistory(t *testing.T, path string) *historypb.History {
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

// Runs that started with an earlier version continue: the current workflow replays their histories.
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
			// Another program in the workflow differs from the history.
			if in, ok := set.(*pawl.Tool); ok && in.Agent() != nil {
				in = in.Clone()
				in.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("done"), nil }
				other.Tools[i] = in
			}
		}
		if err := replay(t, other, tool, path); err == nil || !strings.Contains(err.Error(), "TMPRL1100") {
			t.Errorf("%s: another workflow replayed it: %v", name, err)
		}
		// Tools, instructions and limits equal the recorded ones.
		fewer := agentFor(tool, new(durabletest.Memory))
		fewer.Instructions, fewer.Limits, fewer.Tools = "", pawl.Limits{},
			append([]pawl.Toolset{pawl.Func("more", "", func(context.Context, struct{}) (string, error) { return "", nil })},
				fewer.Tools...)
		if err := replay(t, fewer, tool, path); err != nil {
			t.Errorf("%s: with other tools: %v", name, err)
		}
	}
}

// record makes a run for a tool and stores its history.
func record(t *testing.T, path, tool string) {
	t.Helper()
	addr := cluster(t)
	blobs, world := new(memory), new(durabletest.Memory)
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

// overMemory returns the export and the deliveries of the same run with a journal in memory.
func overMemory(t *testing.T, tool string) (*journal.Export, []durabletest.Delivery) {
	t.Helper()
	var world durabletest.Memory
	x, err := durabletest.Over(new(store.MemoryJournal))(t.Context(), "memory", caseOf(tool), &world)
	if err != nil {
		t.Fatal(err)
	}
	return x, world.All()
}

// The worker forgets each workflow between its tasks, so that every task replays the whole history.
// It executes no call twice, and its result equals the result with a journal in memory.
func TestCold(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	want, all := overMemory(t, "pay")
	got := makeRun(t, addr, "cold-"+filepath.Base(t.TempDir()), "pay", 0, "PAWL_TEMPORAL_COLD=1")
	if bad := durabletest.Violations(got.all, all, 0); len(bad) > 0 || len(got.all) != len(all) {
		t.Errorf("%d deliveries, want %d: %v", len(got.all), len(all), bad)
	}
	if diff := cmp.Diff(form(t, want), form(t, got.export)); diff != "" {
		t.Errorf("the exports differ (-memory +cold):\n%s", diff)
	}
}

func form(t *testing.T, x *journal.Export) string {
	t.Helper()
	b, err := x.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
