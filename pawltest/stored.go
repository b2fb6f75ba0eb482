package pawltest

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Kept is the part of a journal that concerns calls: it stores the outcomes of calls in memory as
// JSON, and answers an executed call with its stored outcome. With its Engine, nested calls (plans,
// code) can wait for a decision. It serves one run and its resumptions, and is safe for concurrent
// use. The zero value is ready to use, and executes calls as pawl.Parallel does.
type Kept struct {
	Parallel pawl.Parallel

	mu     sync.Mutex
	stored map[llm.Key]stored
	since  map[llm.Key]time.Time
}

type stored struct {
	call llm.ToolCall
	x    []byte
}

var _ pawl.Executor = (*Kept)(nil)

// Engine returns the engine whose runs have k as their executor.
func (k *Kept) Engine() *pawl.Engine {
	bind := func(a *pawl.Agent, _ llm.Key) *pawl.Agent {
		b := *a
		b.Executor = k
		return &b
	}
	return &pawl.Engine{Bind: bind, Replays: true}
}

// Execute executes the tasks that have not ended yet, and yields the stored outcomes of the others.
func (k *Kept) Execute(ctx context.Context, tasks []pawl.Task) iter.Seq[pawl.Event] {
	return func(yield func(pawl.Event) bool) {
		var open []pawl.Task
		for _, t := range tasks {
			k.mu.Lock()
			was, ok := k.stored[t.Key]
			t.Since = k.since[t.Key]
			if t.Since.IsZero() {
				t.Since = time.Now()
				if k.since == nil {
					k.since = map[llm.Key]time.Time{}
				}
				k.since[t.Key] = t.Since
			}
			k.mu.Unlock()
			if !ok {
				open = append(open, t)
				continue
			}
			var x pawl.Execution
			if err := json.Unmarshal(was.x, &x); err != nil {
				panic("pawltest.Kept: " + err.Error()) // encoding/json wrote it
			}
			if !yield(t.Completed(t.Replayed(was.call, x))) {
				return
			}
		}
		for e := range k.Parallel.Execute(ctx, open) {
			k.keep(open, e)
			if !yield(e) {
				return
			}
		}
	}
}

// keep stores the outcome of one of tasks, if e contains it.
func (k *Kept) keep(tasks []pawl.Task, e pawl.Event) {
	x := e.Execution
	if e.Kind != pawl.EventCallCompleted || x == nil || !x.Outcome.Settled() || x.Outcome == pawl.OutcomeCancelled {
		return
	}
	for _, t := range tasks {
		if t.Key != x.Key {
			continue
		}
		b, err := json.Marshal(x)
		if err != nil {
			panic("pawltest.Kept: " + err.Error()) // an Execution is plain data
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.stored == nil {
			k.stored = map[llm.Key]stored{}
		}
		k.stored[t.Key] = stored{t.Call, b}
		return
	}
}
