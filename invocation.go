package pawl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Invocation is what a tool, or the middleware around it, can know and do beside its arguments. InvocationFrom finds it. It
// may be used concurrently, until the call has ended.
type Invocation struct {
	Key     llm.Key      // where in the run; a stable key for the call's effect
	Agent   string       // whose run it is
	Call    llm.ToolCall // the call, validated
	Attempt int          // 1 when the tool is begun for the first time

	work    *work
	mu      sync.Mutex
	set     Values
	spent   Spent         // inside of the call
	inner   int           // calls made so far by Do
	ends    *Execution    // a call made inside that ends the run; nil: none
	pending []PendingCall // calls made inside that wait

	emitting              sync.Mutex
	cached, sealed, ended bool
	accepted              bool // the pipe's Call is what was to be carried out; else the call ended before that

	busy  atomic.Bool // the tool is at work
	wrote atomic.Bool // a Write was begun inside this call
}

type invocationKey struct{}

// InvocationFrom returns the call that ctx belongs to; nil outside one.
func InvocationFrom(ctx context.Context) *Invocation {
	v, _ := ctx.Value(invocationKey{}).(*Invocation)
	return v
}

// IdempotencyKey returns a key for what the call does: the same for each attempt of this call, in another process too, and another for any other
// call, or for other arguments. It is made of the tool's name, the canonical arguments, the call's ID, its place in the run and, where an engine
// keeps the run, its ID, 32 hexadecimal digits.
func (v *Invocation) IdempotencyKey() string {
	h := sha256.New()
	if run := v.work.task.scope.engine.Run; run != "" {
		fmt.Fprintf(h, "%d:%s", len(run), run)
	}
	for _, part := range [][]byte{[]byte(v.Call.Name), jsonform.Canonical(v.Call.Args), []byte(v.Call.ID), []byte(v.Key)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Messages returns the conversation as it was when the step began, the reply with the call included: read only. In a call that began early it
// waits until that reply is whole; nil: there will be none, and the call is being dropped.
func (v *Invocation) Messages() []llm.Message {
	if e := v.work.early; e != nil {
		if !e.isWhole() {
			return nil
		}
		return e.messages
	}
	return v.work.task.messages
}

// Tools returns the tools of the run: read only.
func (v *Invocation) Tools() []*Tool { return v.work.task.scope.tools }

// Tool returns the tool that is called: read only.
func (v *Invocation) Tool() *Tool { return v.work.tool }

// WaitForReply waits until the reply that made the call is whole, and reports whether it was. A call that is begun early (Beginner) may still be
// dropped, so a policy that asks a person waits for this first. For other calls it is true at once.
func (v *Invocation) WaitForReply() bool {
	e := v.work.early
	return e == nil || e.isWhole()
}

// CanWait reports whether calls made inside of this one can wait for an answer from outside; else they are refused.
func (v *Invocation) CanWait() bool {
	return v.work.task.scope.waits && v.work.task.scope.engine.Replays
}

// Since returns when the call was begun first: the same time when a Replayer has it carried out again from its beginning, in another process too.
func (v *Invocation) Since() time.Time {
	if t := v.work.task.Since; !t.IsZero() {
		return t
	}
	return v.work.x.Started
}

// FromCache notes on the record that the call was answered with what an earlier one gave: Execution.Cached.
func (v *Invocation) FromCache() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.sealed {
		v.cached = true
	}
}

// Get reads the run's value of that name into the variable that into points to, and reports whether there is one. A call sees the values
// as they were when its step began, and what it set itself.
func (v *Invocation) Get(name string, into any) (bool, error) {
	v.mu.Lock()
	b, ok := v.set[name]
	v.mu.Unlock()
	if !ok {
		if b, ok = v.work.task.Values[name]; !ok {
			return false, nil
		}
	}
	if err := json.Unmarshal(b, into); err != nil {
		return true, fmt.Errorf("value %q: %w", name, err)
	}
	return true, nil
}

// Set sets a value of the run. Later steps see it; of several calls in one step the last in call order wins.
func (v *Invocation) Set(name string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("value %q: %w", name, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.sealed {
		return fmt.Errorf("value %q: the call has ended", name)
	}
	if v.set == nil {
		v.set = Values{}
	}
	v.set[name] = b
	return nil
}

// Emit tells whoever watches the run how the call is getting on. data may be nil; what is no JSON is dropped, and so are words
// emitted after the call has ended.
func (v *Invocation) Emit(text string, data json.RawMessage) {
	if !json.Valid(data) {
		data = nil
	}
	v.send(Event{Kind: EventProgress, Run: v.work.task.Run, Step: v.work.task.Step, Path: v.Key, Text: text, Data: data})
}

func (v *Invocation) send(e Event) {
	if !v.work.task.scope.watched {
		return
	}
	v.emitting.Lock() // held while the event is taken, so that none is on its way when the call has ended
	defer v.emitting.Unlock()
	if !v.ended {
		v.work.emit(e)
	}
}

// close ends what the call can do beside returning; a tool that did not end with its context may still try.
func (v *Invocation) close() {
	v.emitting.Lock()
	v.ended = true
	v.emitting.Unlock()
	v.mu.Lock()
	v.sealed = true
	v.mu.Unlock()
}

// Do carries out calls of the run's tools inside this one, together, each through the whole pipeline, and returns their
// executions in order. What fails is in them; the error is that of ctx, or says that calls are nested too deep.
//
// A call that would have to wait for a person is refused, unless the run's executor is a Replayer: then it waits, with it this one whatever the tool
// makes of it, and once there is an answer the tool is run again from its beginning. It must make the same calls then, and finds what those that have ended
// came to. Do returns an error that says so, and carries out no other. A call that ends the run (Abort, Finish, FailFast) ends this one too,
// and with it the run, whatever the tool makes of it: Do returns an error that says so, and carries out no other.
//
// A tool that calls tools has the effect Compose, and fans out by one Do rather than by goroutines.
func (v *Invocation) Do(ctx context.Context, calls ...llm.ToolCall) ([]Execution, error) {
	t := v.work.task
	if v.busy.Load() && v.work.tool.Effect != EffectCompose {
		return nil, fmt.Errorf("%s makes calls, so its Effect must be Compose: it holds a slot that its calls need", v.work.tool.Name)
	}
	if e := v.work.early; e != nil && !e.isWhole() { // a middleware asks; what it calls may do more than look
		return nil, errDropped
	}
	if t.scope.depth >= maxDepth {
		return nil, fmt.Errorf("calls are nested more than %d deep", maxDepth)
	}
	inner := *t.scope
	inner.depth++
	inner.within = v
	inner.waits = v.CanWait()
	v.mu.Lock()
	if v.sealed {
		v.mu.Unlock()
		return nil, errors.New("the call has ended, and can make no others")
	}
	if v.ends != nil {
		defer v.mu.Unlock()
		return nil, v.ends.control()
	}
	if v.pending != nil {
		v.mu.Unlock()
		return nil, errPending
	}
	first := v.inner
	v.inner += len(calls)
	values := merged(t.Values, v.set)
	v.mu.Unlock()
	tasks := make([]Task, len(calls))
	for i, c := range calls {
		key := v.Key + llm.Key("/s"+strconv.Itoa(first+i))
		if c.ID == "" {
			c.ID = "s" + strconv.Itoa(first+i)
		}
		tasks[i] = Task{Agent: t.Agent, Run: t.Run, Step: t.Step, Key: key, Index: i, Call: c, Values: values, Since: t.Since, scope: &inner, messages: t.messages}
		tasks[i].adopt(t.Decisions, t.PendingInside)
	}
	out := make([]Execution, len(calls))
	for e := range t.scope.executor.Execute(ctx, tasks) {
		if x := e.Execution; x != nil && ownTask(tasks, x) {
			out[x.Index] = *x
		}
		v.send(e)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range out {
		if v.sealed {
			break
		}
		x := &out[i]
		if inner.waits {
			v.pending = append(v.pending, x.Pending...)
		}
		if x.waitsInside() {
			continue
		}
		v.spent.Add(Spent{Calls: begunBeside(x, nil)})
		v.spent.Add(x.Spent)
		if !x.local {
			t.scope.budget.replayed(x)
		}
		if len(out[i].Values) > 0 {
			if v.set == nil {
				v.set = Values{}
			}
			maps.Copy(v.set, out[i].Values)
		}
	}
	if x := ending(out); x != nil && !v.sealed {
		v.ends = x
		return out, x.control()
	}
	if ctx.Err() == nil && v.pending != nil && !v.sealed {
		return out, errPending
	}
	if err := diverged(out); err != nil {
		return out, err
	}
	return out, ctx.Err()
}

// control is the error by which x ended the run.
func (x *Execution) control() error {
	if x.Ends == StopFinished {
		return FinishError(x.Result)
	}
	var ctl *control
	switch {
	case errors.As(x.err, &ctl):
		return x.err
	case x.err != nil:
		return AbortError(x.err)
	}
	return AbortError(errors.New(x.Error))
}

// spend counts what was used inside of the call.
func (v *Invocation) spend(s Spent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.sealed {
		v.spent.Add(s)
	}
}

const maxDepth = 3
