package pawltest

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Kept is the part of a journal that concerns calls: it stores the outcomes of calls in memory as
// JSON, and answers an executed call with its stored outcome. With its Engine, nested calls (plans,
// code) can wait for a decision. It serves one run and its resumptions, and is safe for concurrent
// use. The zero value is ready to use.
type Kept struct {
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

// Do executes a call that has not ended yet, and returns the stored outcome of a call that has.
func (k *Kept) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
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
	if ok {
		var x pawl.Execution
		if err := json.Unmarshal(was.x, &x); err != nil {
			return x, err
		}
		return t.Replayed(was.call, x), nil
	}

	x := t.Do(ctx, emit)
	return x, k.keep(t, x)
}

// keep stores the outcome of t, if x is one.
func (k *Kept) keep(t pawl.Task, x pawl.Execution) error {
	if !x.Outcome.Settled() || x.Outcome == pawl.OutcomeCancelled {
		return nil
	}
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stored == nil {
		k.stored = map[llm.Key]stored{}
	}
	k.stored[t.Key] = stored{t.Call, b}
	return nil
}
