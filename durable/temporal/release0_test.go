package temporal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/script"
)

// The histories of golden hold approvals, children and plans. These histories hold one plain run
// that release 0 continued in new histories. Release 0 wrote them, and they must not be written
// again: -update writes them only if none exist.
const continuedParts = 3

func continuedPath(part int) string {
	return filepath.Join("testdata", "histories", fmt.Sprintf("continued-2-part%d.json", part))
}

func continuedAgent() *pawl.Agent {
	return &pawl.Agent{Instructions: "Go on.", Model: script.New(steps(8)...),
		Tools: []pawl.Toolset{step(pawl.EffectWrite, new(atomic.Int64))}, Limits: pawl.Limits{Rounds: 20}}
}

func TestContinuedHistoriesOfRelease0(t *testing.T) {
	if _, err := os.Stat(continuedPath(1)); *update && os.IsNotExist(err) {
		recordContinued(t)
	}
	ends := map[string]int{}
	for part := 1; part <= continuedParts; part++ {
		path := continuedPath(part)
		if err := replay(t, continuedAgent(), "continued", path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		h := readHistory(t, path)
		ends[strings.TrimPrefix(h.Events[len(h.Events)-1].EventType.String(), "WorkflowExecution")]++
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(t.TempDir(), "other.json") // a history of another workflow
		changed := bytes.ReplaceAll(b, []byte(`"activityType":{"name":"pawl.`), []byte(`"activityType":{"name":"pawl.other-`))
		if err := os.WriteFile(other, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := replay(t, continuedAgent(), "continued", other); bytes.Equal(b, changed) || err == nil ||
			!strings.Contains(err.Error(), "TMPRL1100") {
			t.Errorf("%s: with other activities it is replayed: %v", path, err)
		}
	}
	if ends["ContinuedAsNew"] != continuedParts-1 || ends["Completed"] != 1 {
		t.Errorf("got the ends %v, want all but one continued", ends)
	}
}

// recordContinued makes the run and writes the histories of its chain.
func recordContinued(t *testing.T) {
	t.Helper()
	addr := cluster(t)
	c, err := client.Dial(client.Options{HostPort: addr, DataConverter: Converter(new(memory)),
		Logger: silent{}, Identity: "golden"})
	if err != nil {
		t.Fatal(err)
	}
	eng := &Engine{Client: c, Blobs: new(memory), TaskQueue: "golden-continued", Poll: 50 * time.Millisecond, Events: 45}
	w := inProcess(t, eng, nil, nil)
	if err := w.Add(t.Context(), "continued", continuedAgent()); err != nil {
		t.Fatal(err)
	}
	id := "golden-continued-" + filepath.Base(t.TempDir())
	res, err := runtest.Ended(eng.Runner(id, "continued").Run(t.Context(), ask...))
	if err != nil || res.Text() != "done" {
		t.Fatalf("%v, error %v", res, err)
	}
	read := func(run string) *historypb.History {
		h := new(historypb.History)
		for it := c.GetWorkflowHistory(t.Context(), id, run, false,
			enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
			e, err := it.Next()
			if err != nil {
				t.Fatal(err)
			}
			h.Events = append(h.Events, e)
		}
		return h
	}
	run := read("").Events[0].GetWorkflowExecutionStartedEventAttributes().GetFirstExecutionRunId()
	part := 0
	for run != "" {
		part++
		h := read(run)
		run = h.Events[len(h.Events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		b, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(continuedPath(part),
			append(bytes.ReplaceAll(b, []byte(`},{"eventId"`), []byte("},\n{\"eventId\"")), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if part != continuedParts {
		t.Fatalf("%d histories were written, want %d: change Engine.Events here", part, continuedParts)
	}
}
