package core_test

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/redact"
)

// crowd is a barrier: each run waits until all runs of the test have arrived.
type crowd struct {
	size    int64
	here    atomic.Int64
	all, on chan struct{}
}

func newCrowd(size int) *crowd {
	return &crowd{size: int64(size), all: make(chan struct{}), on: make(chan struct{})}
}

func (c *crowd) wait() {
	if c.here.Add(1) == c.size {
		close(c.all)
	}
	<-c.on
}

// held returns the memory of the program in bytes.
func held() (heap, stacks int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse), int64(m.StackInuse)
}

const (
	crowdKey  = "canary-4b1f9c07e2d85a36" // registered as a secret
	crowdPass = "pass phrase of run "     // in an argument that is marked
)

// gatherer is a model that logs in, repeats a secret, waits at the barrier, and answers.
func gatherer(c *crowd) modelFunc {
	return func(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			name := req.Messages[1].Text()
			password := crowdPass + name
			parts := []llm.Part{llm.Reasoning{Text: "the key is " + crowdKey}, call("c", "login", `{"user":"ann","password":"`+password+`"}`)}
			if len(req.Messages) > 2 {
				c.wait()
				parts = []llm.Part{text("I used " + crowdKey[:9]), text(crowdKey[9:] + " and " + password[:20]), text(password[20:] + ". Done.")}
			}
			for i, p := range parts {
				index := i
				if len(req.Messages) > 2 {
					index = 0 // fragments of one text
				}
				if !yield(llm.Delta{Index: index, Part: p, Done: index == i && len(req.Messages) == 2}, nil) {
					return
				}
			}
			yield(llm.Delta{Finish: llm.FinishReasonStop, Usage: &llm.Usage{Input: 100, Output: 20}}, nil)
		}
	}
}

// Many concurrent runs: each is small, none leaks a goroutine, and no observer receives a secret.
// PAWL_CROWD is the number of runs; 10000 proves the documented figure.
func TestManyConcurrentRuns(t *testing.T) {
	size := soak.N(500, 2000)
	if raceDetector {
		size = 200 // slow, and its memory figures say nothing about runs
	}
	if n, err := strconv.Atoi(os.Getenv("PAWL_CROWD")); err == nil {
		size = n
	}
	atTools, atModel := newCrowd(size), newCrowd(size)
	login := &pawl.Tool{Name: "login", Input: json.RawMessage(`{"type":"object","properties":{"user":{"type":"string"},"password":{"type":"string","writeOnly":true}},"required":["user","password"]}`),
		Run: func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			pawl.InvocationFrom(ctx).Emit("with "+crowdKey, json.RawMessage(`{"args":`+string(c.Args)+`}`))
			atTools.wait()
			return llm.TextResult(strings.Repeat("welcome, your token is "+crowdKey+"\n", 20)), nil
		}}
	a := &pawl.Agent{Model: gatherer(atModel), Instructions: "Be brief.", Tools: []pawl.Toolset{login}}
	var secrets, forResults redact.Redactor
	for _, r := range []*redact.Redactor{&secrets, &forResults} {
		if err := r.Add(crowdKey); err != nil {
			t.Fatal(err)
		}
	}
	forResults.AddTools(login) // the runs add the tool to secrets
	var seen, leaks atomic.Int64
	sink := func(v any) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		seen.Add(1)
		if s := string(b); strings.Contains(s, crowdKey) || strings.Contains(s, crowdPass) {
			if leaks.Add(1) < 5 {
				t.Errorf("a secret is told: %s", s)
			}
		}
	}
	event := func(e pawl.Event) { sink(e) }
	goroutines := runtime.NumGoroutine()
	heap, stacks := held()
	var wg sync.WaitGroup
	for i := range size {
		task := llm.User(strconv.Itoa(i))
		wg.Go(func() {
			if i%4 == 0 { // complete, and emitted after the reply
				res, err := a.Run(t.Context(), task)
				if err != nil || !strings.HasSuffix(res.Text(), "Done.") {
					t.Errorf("run %d: %v, %+v", i, err, res)
				}
				sink(forResults.Result(res))
				return
			}
			var r pawl.Runner = redact.Runner(a, &secrets)
			if i%4 == 1 {
				r = observe.Async(observe.Sync(r, event), nil, event)
			}
			var last pawl.Event
			for e, err := range r.Stream(t.Context(), task) {
				if err != nil {
					t.Errorf("run %d: %v", i, err)
				}
				event(e)
				last = e
			}
			if last.Kind != pawl.EventRunEnded || !strings.HasSuffix(last.Result.Text(), "Done.") {
				t.Errorf("run %d ended with %s", i, last.Kind)
			}
		})
	}
	for _, at := range []struct {
		where string
		crowd *crowd
	}{{"their tools", atTools}, {"their models", atModel}} {
		<-at.crowd.all
		h, s := held()
		h, s = (h-heap)/int64(size), (s-stacks)/int64(size)
		each := h + s
		t.Logf("%d runs wait for %s: %.1f KiB each, %.1f of them stacks of %.1f goroutines", size, at.where,
			float64(each)/1024, float64(s)/1024, float64(runtime.NumGoroutine()-goroutines)/float64(size))
		if each > 64<<10 && !raceDetector {
			t.Errorf("a run that waits for %s holds %d bytes, want at most 64 KiB", at.where, each)
		}
		close(at.crowd.on)
	}
	wg.Wait()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines &&
		time.Now().Before(deadline); {
		runtime.Gosched()
	}
	t.Logf("%d events and results seen, %d with a secret; %d goroutines before, %d after", seen.Load(), leaks.Load(), goroutines, runtime.NumGoroutine())
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines before, %d after", goroutines, n)
	}
}

// An idle run with one consumer and no observer holds at most 40 KiB, stacks included. A run that
// waits for a tool has one more goroutine, and a run that waits for its model has the earlier
// calls. The connection to a provider is not included; make bench measures it.
func TestAWaitingRun(t *testing.T) {
	size := 1000
	if n, err := strconv.Atoi(os.Getenv("PAWL_CROWD")); err == nil {
		size = n
	}
	for _, streamed := range []bool{false, true} {
		atTools, atModel := newCrowd(size), newCrowd(size)
		model := modelFunc(func(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				last := llm.Part(text("Done."))
				if len(req.Messages) == 2 {
					last = call("c", "look", `{"path":"/a/b","limit":10,"query":"words"}`)
				} else {
					atModel.wait()
				}
				if yield(llm.Delta{Part: last, Done: true}, nil) {
					yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
				}
			}
		})
		tool := &pawl.Tool{Name: "look", Input: json.RawMessage(lookSchema),
			Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				atTools.wait()
				return llm.TextResult("found"), nil
			}}
		a := &pawl.Agent{Model: model, Instructions: "Be brief.", Tools: []pawl.Toolset{tool}}
		heap, stacks := held()
		var wg sync.WaitGroup
		for range size {
			wg.Go(func() {
				if !streamed {
					if res, err := a.Run(t.Context(), llm.User("go")); err != nil || res.Text() != "Done." {
						t.Errorf("got %+v, %v", res, err)
					}
					return
				}
				for _, err := range a.Stream(t.Context(), llm.User("go")) {
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		for _, at := range []struct {
			where string
			crowd *crowd
		}{{"its tool", atTools}, {"its model", atModel}} {
			<-at.crowd.all
			h, s := held()
			h, s = (h-heap)/int64(size), (s-stacks)/int64(size)
			t.Logf("streamed %v, %d runs: one that waits for %s holds %.1f KiB, %.1f of it stacks", streamed, size, at.where, float64(h+s)/1024, float64(s)/1024)
			if h+s > 40<<10 && !raceDetector {
				t.Errorf("a run that waits for %s holds %d bytes, want at most 40 KiB", at.where, h+s)
			}
			close(at.crowd.on)
		}
		wg.Wait()
	}
}
