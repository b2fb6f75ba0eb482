package temporal

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/longreply"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// inBackground names the agent whose replies the provider computes in the background.
const inBackground = "background"

// backgroundAgent asks the simulator at url.
func backgroundAgent(url string) *pawl.Agent {
	return longreply.Agent(url, 10*time.Millisecond, &http.Transport{DisableKeepAlives: true})
}

// A worker is killed while the provider computes the third reply. The next worker fetches that
// reply: the provider is asked once for each reply.
func TestBackgroundKilled(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	r := &receiver{at: 1}
	busy := func(id string, n int) bool {
		return n == 1 || strings.HasPrefix(id, "resp_sim_3_") && n == 2 && r.tick()
	}
	s, err := pawltest.NewSimulator(longreply.Talker(), &pawltest.SimulatorOptions{Background: busy})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, dir := "background-killed", t.TempDir()
	stop := r.work(t, "PAWL_TEMPORAL_WORKER="+addr, "PAWL_TEMPORAL_QUEUE="+id, "PAWL_TEMPORAL_BLOBS="+dir,
		"PAWL_TEMPORAL_TOOL="+inBackground, "PAWL_TEMPORAL_WORLD="+s.URL)
	defer stop()
	eng, err := dial(addr, id, Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Client.Close()
	res, err := runtest.Ended(eng.Runner(id, inBackground).Run(t.Context(), llm.User("go")))
	if err != nil || res.Text() != "That is all." {
		t.Fatalf("%+v, %v", res, err)
	}
	if asked, _, cancelled := longreply.Counted(s); asked != longreply.Turns || cancelled != 0 || r.kills != 1 {
		t.Errorf("%d workers were killed, want 1; the provider was asked %d times, want %d; %d replies were cancelled",
			r.kills, asked, longreply.Turns, cancelled)
	}
}

// A worker that stops leaves the reply at the provider, and another worker fetches it. A cancelled
// run cancels the reply.
func TestBackgroundEnds(t *testing.T) {
	t.Parallel()
	addr := cluster(t)
	for _, cancels := range []bool{false, true} {
		t.Run(fmt.Sprint("cancelled ", cancels), func(t *testing.T) {
			waits, polled := make(chan struct{}), 0
			busy := func(id string, n int) bool {
				if !strings.HasPrefix(id, "resp_sim_3_") {
					return false
				}
				if polled++; polled == 2 {
					close(waits)
				}
				return cancels || n <= 2
			}
			s, err := pawltest.NewSimulator(longreply.Talker(), &pawltest.SimulatorOptions{Background: busy})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			id := fmt.Sprint("background-ends-", cancels)
			blobs := new(memory)
			start := func() (*Engine, func()) {
				eng, err := dial(addr, id, blobs)
				if err != nil {
					t.Fatal(err)
				}
				w := eng.Worker(&WorkerOptions{Stop: time.Millisecond})
				if err := w.Add(t.Context(), inBackground, backgroundAgent(s.URL)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				return eng, func() {
					cancel()
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
			}
			eng, stop := start()
			defer eng.Client.Close()
			done := make(chan *pawl.Result, 1)
			go func() {
				res, _ := eng.Runner(id, inBackground).Run(t.Context(), llm.User("go"))
				done <- res
			}()
			<-waits
			if cancels {
				if err := eng.Cancel(t.Context(), id); err != nil {
					t.Error(err)
				}
			} else {
				stop()
				var other *Engine
				other, stop = start()
				defer other.Client.Close()
			}
			res := <-done
			stop()
			want, text := longreply.Turns, "That is all."
			if cancels {
				want, text = 3, "Step 2 of a long way."
			}
			asked, _, cancelled := longreply.Counted(s)
			if asked != want || cancelled > 0 != cancels || res == nil || res.Text() != text {
				t.Errorf("%+v; the provider was asked %d times, want %d; %d replies were cancelled", res, asked, want, cancelled)
			}
		})
	}
}
