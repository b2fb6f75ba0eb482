package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/test/load"
	"github.com/pawl-go/pawl/internal/test/speed"
)

// The sides of a comparison. Each other side is the name of a speed.Kind.
const (
	byHand = "by-hand" // a loop on net/http and encoding/json
	// net/http alone: the requests of the loop by hand, and replies that are only read
	limit = "limit"
)

// task is what one process measures. It is passed to it as JSON.
type task struct {
	Side    string        `json:"side"`
	Wire    string        `json:"wire"`
	Job     load.Job      `json:"job"`
	Stream  bool          `json:"stream"`
	History int           `json:"history"`
	Tools   int           `json:"tools"`
	Conc    int           `json:"conc"` // runs at once
	URL     string        `json:"url"`
	Dir     string        `json:"dir"`
	Dur     time.Duration `json:"dur"`
	Warm    time.Duration `json:"warm"`
}

// report is what a process has measured: figures of one run, except for the memory, which is of the
// process.
type report struct {
	Runs   int64   `json:"runs"`
	CPU    float64 `json:"cpu_us"`
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
	Wall   float64 `json:"wall_us"` // elapsed time divided by runs
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	RSS    float64 `json:"rss_kb"`  // the peak of the process
	Base   float64 `json:"base_kb"` // before its first run
}

// measureSide does the task that text describes, and prints the report.
func measureSide(ctx context.Context, text string, out io.Writer) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	// The default keeps two idle connections, so that plain HTTP would connect anew.
	transport := http.DefaultTransport.(*http.Transport)
	transport.MaxIdleConns = max(4096, t.Conc)
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns

	run, done, err := t.start()
	if err != nil {
		return err
	}
	defer done()
	var r report
	r.Base = usage().rss
	if _, err := t.loop(ctx, run, t.Warm); err != nil {
		return err
	}

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	first := usage()
	began := time.Now()
	took, err := t.loop(ctx, run, t.Dur)
	if err != nil {
		return err
	}
	elapsed := time.Since(began)
	last := usage()
	runtime.ReadMemStats(&after)

	slices.Sort(took)
	runs := float64(len(took))
	r.Runs = int64(len(took))
	r.CPU = micros(last.cpu-first.cpu) / runs
	r.Allocs = float64(after.Mallocs-before.Mallocs) / runs
	r.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / runs
	r.Wall = micros(elapsed) / runs
	r.P50 = micros(took[len(took)/2])
	r.P99 = micros(took[len(took)*99/100])
	r.RSS = last.rss
	return json.NewEncoder(out).Encode(r)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// start returns the function that makes one run of the task's side.
func (t *task) start() (run speed.Run, done func(), err error) {
	switch t.Side {
	case byHand:
		return newHand(t, http.DefaultTransport).run, func() {}, nil
	case limit:
		run, err := newLimit(t)
		return run, func() {}, err
	}
	s := &speed.Setup{
		Job:     t.Job,
		Stream:  t.Stream,
		Wire:    t.Wire,
		URL:     t.URL,
		History: t.History,
		Tools:   t.Tools,
		Dir:     t.Dir,
		Sync:    true,
		Listen:  true,
	}
	run, err = s.Start(t.Side)
	return run, s.Close, err
}

// loop makes runs for d, t.Conc at once, at least one each. It returns how long each took.
func (t *task) loop(ctx context.Context, run speed.Run, d time.Duration) (took []time.Duration, err error) {
	var (
		all sync.WaitGroup
		mu  sync.Mutex
		end = time.Now().Add(d)
	)
	for range t.Conc {
		all.Go(func() {
			mine, failed := repeat(ctx, run, end)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			if failed != nil {
				err = failed
			}
		})
	}
	all.Wait()
	return took, err
}

// repeat makes runs until end.
func repeat(ctx context.Context, run speed.Run, end time.Time) (took []time.Duration, err error) {
	for {
		began := time.Now()
		text, err := run(ctx)
		if err != nil {
			return took, err
		}
		if !strings.Contains(text, load.Answer) {
			return took, fmt.Errorf("the run ended with %.80q", text)
		}
		now := time.Now()
		took = append(took, now.Sub(began))
		if now.After(end) {
			return took, nil
		}
	}
}

// used is what this process has used so far.
type used struct {
	cpu time.Duration // user and system
	rss float64       // the peak, in KB
}
