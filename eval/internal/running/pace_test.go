package running_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/eval/internal/running"
	"github.com/pawl-go/pawl/eval/internal/suite"
)

// gateway refuses requests above a number a second, with Retry-After. It refuses at once, and
// answers after the time that a model takes: a worker has no second request before it is known
// that a first one was refused.
type gateway struct {
	most int

	mu      sync.Mutex
	window  time.Time
	begun   int
	asked   atomic.Int64
	refused atomic.Int64
}

// RoundTrip answers like a server.
func (g *gateway) RoundTrip(*http.Request) (*http.Response, error) {
	g.asked.Add(1)
	g.mu.Lock()
	now := time.Now()
	if now.Sub(g.window) >= time.Second {
		g.window = now
		g.begun = 0
	}
	g.begun++
	isOver := g.begun > g.most
	g.mu.Unlock()

	w := httptest.NewRecorder()
	if isOver {
		g.refused.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	} else {
		time.Sleep(200 * time.Millisecond)
	}
	return w.Result(), nil
}

// send sends requests by workers until each was answered, and repeats refused ones.
func send(t *testing.T, transport http.RoundTripper, workers, requests int) {
	var left atomic.Int64
	left.Store(int64(requests))
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				for {
					r := httptest.NewRequest(http.MethodPost, "http://model.test/", nil)
					res, err := transport.RoundTrip(r)
					if err != nil {
						t.Error(err)
						return
					}
					if res.StatusCode == http.StatusOK {
						break
					}
				}
			}
		})
	}
	all.Wait()
}

// TestPace sends 1,000 requests of 64 workers to a gateway of 50 requests a second. None is lost.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{most: 50}
		paces := running.NewPaces(nil)
		send(t, running.Around(paces, g, "m"), 64, 1000)
		if refused := g.refused.Load(); refused*100 > 3*g.asked.Load() {
			t.Errorf("%d of %d requests were refused, want at most 3 %%", refused, g.asked.Load())
		}
	})
}

// TestStatedPace keeps the pace of the suite: no request is refused.
func TestStatedPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gateway{most: 50}
		paces := running.NewPaces(map[string]suite.Pace{"m": {Requests: 40 * 60}})
		began := time.Now()
		send(t, running.Around(paces, g, "m"), 64, 400)
		if g.refused.Load() != 0 {
			t.Errorf("%d requests were refused", g.refused.Load())
		}
		if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("400 requests at 40 a second took %s", took)
		}
	})
}
