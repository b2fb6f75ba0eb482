package server_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

// crowd is a provider that is away until a time, and counts its requests.
type crowd struct {
	mu     sync.Mutex
	back   time.Time
	failed []time.Time // the requests while it was away
	first  []time.Time // the requests after that
	busy   int         // requests in progress
	most   int         // the largest number of them
}

// Stream answers a request after a second.
func (c *crowd) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		now := time.Now()
		c.mu.Lock()
		away := now.Before(c.back)
		if away {
			c.failed = append(c.failed, now)
		} else {
			c.first = append(c.first, now)
			c.busy++
			c.most = max(c.most, c.busy)
		}
		c.mu.Unlock()
		if away {
			yield(llm.Delta{}, &llm.ProviderError{Provider: "openai", Status: 503, Code: llm.CodeServer, Retryable: true})
			return
		}

		time.Sleep(time.Second)
		c.mu.Lock()
		c.busy--
		c.mu.Unlock()
		script.New(script.Say("Done.")).Stream(ctx, req)(yield)
	}
}

// refused returns the number of requests so far while it was away.
func (c *crowd) refused() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.failed)
}

// Name returns the name of the model.
func (c *crowd) Name() string { return "openai:gpt" }

// A provider is away for ten minutes. All runs are answered, whether they execute or wait in the
// queue. The provider gets one request in 15 seconds, and is not flooded when it is back. Without
// breakers, each run asks by itself.
func TestBreakerHoldsTheRuns(t *testing.T) {
	const open, queued = 300, 500
	for _, row := range []struct {
		name     string
		probe    time.Duration
		mostAway int // requests while the provider is away
		floods   bool
	}{
		{"one run probes for all", 0, 3 + 10*4, false},
		{"control: each run asks", -1, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &crowd{back: time.Now().Add(10 * time.Minute)}
				journal := new(store.MemoryJournal)
				o := &server.Options{}
				o.Limits.Runs = open
				o.Limits.Queue = queued
				o.Times.Probe = row.probe
				s, err := server.New([]*pawl.Agent{{Name: "clerk", Model: c}}, journal, o)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close(t.Context())

				for i := range open + queued {
					w := httptest.NewRecorder()
					s.ServeHTTP(w, request(t, "POST", "http://127.0.0.1/v1/runs", fmt.Sprintf(`{"id":"r%d","input":"go"}`, i)))
					if w.Code != http.StatusCreated {
						t.Fatalf("status %d: %s", w.Code, w.Body)
					}
				}
				synctest.Wait()
				began := c.refused()
				time.Sleep(30 * time.Minute)
				synctest.Wait()

				states := map[string]int{}
				all, err := journal.JournalRuns(t.Context(), store.Scope{}, "", store.Page{Limit: 1000})
				for _, run := range all {
					states[run.State]++
				}
				if err != nil || states[store.JournalOver] != open+queued {
					t.Errorf("%v, %v; want %d over", states, err, open+queued)
				}
				start := within(c.first, time.Second)
				switch {
				case row.floods && len(c.failed) < 1000:
					t.Errorf("%d requests while the provider was away; the test shows nothing", len(c.failed))
				case !row.floods && len(c.failed) > row.mostAway:
					t.Errorf("%d requests while the provider was away, want at most %d", len(c.failed), row.mostAway)
				case !row.floods && start > 2:
					t.Errorf("%d requests in the first second in which it was back", start)
				}
				t.Logf("%d requests at once at the start, %d while it was away, at most %d at once when it was back, which took %v",
					began, len(c.failed), c.most, c.first[len(c.first)-1].Sub(c.back).Round(time.Second))
			})
		})
	}
}

// within returns the number of times that are less than d after the first.
func within(all []time.Time, d time.Duration) (n int) {
	for _, at := range all {
		if at.Sub(all[0]) < d {
			n++
		}
	}
	return n
}

// A breaker is of one model: the runs of another one go on.
func TestBreakerIsOfOneModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{back: time.Now().Add(10 * time.Minute)}
		well := runtest.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			return script.New(script.Say("Done.")).Stream(ctx, req)
		})
		agents := []*pawl.Agent{{Name: "ill", Model: c}, {Name: "well", Model: well}}
		s, err := server.New(agents, new(store.MemoryJournal), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		for i := range 20 {
			for agent, want := range map[string]int{"ill": 503, "well": 201} {
				w := httptest.NewRecorder()
				r := request(t, "POST", "http://127.0.0.1/v1/runs", fmt.Sprintf(`{"id":"%s%d","agent":"%s","input":"go","wait":true}`, agent, i, agent))
				r.Header.Set("Prefer", "wait=0")
				s.ServeHTTP(w, r)
				if w.Code != want {
					t.Errorf("%s: status %d, want %d: %s", agent, w.Code, want, w.Body)
				}
			}
		}
		if n := len(c.failed); n != 3 {
			t.Errorf("%d requests to the model that is away, want 3", n)
		}
	})
}
