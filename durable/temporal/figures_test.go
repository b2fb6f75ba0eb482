package temporal

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/runtest"
)

// figures are the measurements of the runs of TestFigures.
type figures struct {
	mu                  sync.Mutex
	runs, events, steps int
	bytes               int64
	most, mostBytes     int64 // of one history
	lost                int   // activities with a lost task or worker, in the examined histories
}

// add adds the figures of a history.
func (f *figures) add(ctx context.Context, c client.Client, id string, slow bool) error {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return err
	}
	info, lost := d.GetWorkflowExecutionInfo(), 0
	for it := c.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); slow &&
		it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			return err
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT {
			lost++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events, f.bytes, f.lost = f.events+int(info.GetHistoryLength()), f.bytes+info.GetHistorySizeBytes(), f.lost+lost
	f.most, f.mostBytes = max(f.most, info.GetHistoryLength()), max(f.mostBytes, info.GetHistorySizeBytes())
	return nil
}

// table returns the figures next to the limits of the server.
func (f *figures) table(took time.Duration, delivered, want int) string {
	var b strings.Builder
	row := func(what string, here any, limit string) { fmt.Fprintf(&b, "\n%-28s %12v   %s", what, here, limit) }
	row("", "here", "server's limit")
	row("runs", f.runs, "")
	row("minutes", fmt.Sprintf("%.1f", took.Minutes()), "")
	row("runs a minute", fmt.Sprintf("%.0f", float64(f.runs)/took.Minutes()), "")
	row("writes delivered", delivered, fmt.Sprintf("%d are right", want))
	row("activities lost, repeated", f.lost, "")
	row("events a step", f.events/f.steps, "")
	row("events a run", f.events/f.runs, "of all its histories")
	row("bytes a run", f.bytes/int64(f.runs), "of all its histories")
	row("events, longest history", f.most, "51,200; a new one is suggested at 4,096")
	row("bytes, longest history", f.mostBytes, "52,428,800; a new one is suggested at 4,194,304")
	row("steps until a new history", 4096*f.steps/f.events, "")
	return b.String()
}

// Many concurrent runs on a worker in a process of its own all end. Each write reaches the receiver
// once, and no person is asked. The test prints the figures next to the limits.
func TestFigures(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	const tool = "post" // a Write
	_, all := overMemory(t, tool)
	perRun, requests := len(writes(all)), 0
	for _, d := range all {
		if d.Tool == "model" {
			requests++
		}
	}
	var world durabletest.Memory
	web := httptest.NewServer(durabletest.Serve(&world, func() bool { return false }))
	defer web.Close()
	queue, blobs := "figures-"+filepath.Base(t.TempDir()), t.TempDir()
	stop := new(receiver).work(t, "PAWL_TEMPORAL_WORKER="+addr, "PAWL_TEMPORAL_QUEUE="+queue, "PAWL_TEMPORAL_BLOBS="+blobs, "PAWL_TEMPORAL_TOOL="+tool, "PAWL_TEMPORAL_WORLD="+web.URL,
		"PAWL_TEMPORAL_HEARTBEAT=30s") // the machine may be busy
	defer stop()
	eng, err := dial(addr, queue, Dir(blobs))
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Client.Close()
	eng.Poll = 2 * time.Second
	f, begin := &figures{runs: *figuresRuns, steps: *figuresRuns * requests}, time.Now()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 50)
	for i := range *figuresRuns {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			id, began := fmt.Sprintf("%s-%d", queue, i), time.Now()
			res, err := runtest.Ended(eng.Runner(id, tool).Run(t.Context(), durabletest.ForEffect(tool).Messages()...))
			if err != nil || res.Stop != pawl.StopAnswer {
				t.Errorf("%s: %+v, %v", id, res, err)
				return
			}
			for _, id := range []string{id, id + "/run/4/0/clerk"} {
				if err := f.add(t.Context(), eng.Client, id, time.Since(began) > 29*time.Second); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	times := map[string]int{}
	for _, d := range writes(world.All()) {
		if times[d.Key]++; times[d.Key] > 1 {
			t.Errorf("%s was written %d times", d.Place, times[d.Key])
		}
	}
	if want := perRun * *figuresRuns; len(times) != want {
		t.Errorf("%d writes, want %d", len(times), want)
	}
	t.Log(f.table(took, len(writes(world.All())), perRun**figuresRuns))
}

// writes returns the deliveries of Writes.
func writes(all []durabletest.Delivery) (out []durabletest.Delivery) {
	for _, d := range all {
		if d.Effect == pawl.EffectWrite {
			out = append(out, d)
		}
	}
	return out
}
