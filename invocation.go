package pawl

// invocation.go: what a tool can know and do during its call.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// errOutside is the error of the methods of a nil Invocation.
var errOutside = errors.New("there is no call: the context is not of a call of a tool; " +
	"Toolsets.Execute makes a call outside of a run")

// IdempotencyKey returns a key for the effect of the call: 32 hexadecimal digits. The key is the
// same for each attempt of this call, also in another process, and differs for any other call and
// for other arguments. It depends on the name of the tool, the canonical arguments, the call's ID,
// its place in the run, and the ID of the run if an engine stores it.
func (v *Invocation) IdempotencyKey() string {
	if v == nil {
		return ""
	}
	h := sha256.New()
	if run := v.work.task.scope.engine.Run; run != "" {
		fmt.Fprintf(h, "%d:%s", len(run), run)
	}
	c := &v.Call
	for _, part := range [][]byte{[]byte(c.Name), jsonform.Canonical(c.Args), []byte(c.ID), []byte(v.Key)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Messages returns a copy of the conversation at the start of the step, with the reply that made
// the call. In a call that started early it waits until the reply is complete. nil means that the
// reply will not be complete, and that the call is cancelled.
func (v *Invocation) Messages() []llm.Message {
	if v == nil {
		return nil
	}
	msgs := v.work.task.messages
	if e := v.work.holder; e != nil {
		if !e.isWhole() {
			return nil
		}
		msgs = e.messages
	}
	out := make([]llm.Message, len(msgs))
	for i, m := range msgs {
		out[i] = m.Clone()
	}
	return out
}

// Tools returns the tools of the run. They must not be changed.
func (v *Invocation) Tools() []*Tool {
	if v == nil {
		return nil
	}
	return v.work.task.scope.tools
}

// Tool returns the called tool. It must not be changed.
func (v *Invocation) Tool() *Tool {
	if v == nil {
		return nil
	}
	return v.work.tool
}

// WaitForReply waits until the reply that made the call is complete, and reports whether it was. A
// call that starts early may still be dropped, so a policy that asks a person waits first. For
// other calls it returns true at once.
func (v *Invocation) WaitForReply() bool {
	if v == nil {
		return false
	}
	e := v.work.holder
	return e == nil || e.isWhole()
}

// CanWait reports whether nested calls can wait for an answer from outside. If not, such calls are
// refused.
func (v *Invocation) CanWait() bool {
	return v != nil && v.work.task.scope.canPend && v.work.task.scope.engine.Replays
}

// Since returns the time when the call first started. It stays the same when an engine executes the
// call again from its beginning, also in another process.
func (v *Invocation) Since() time.Time {
	if v == nil {
		return time.Time{}
	}
	if t := v.work.task.Since; !t.IsZero() {
		return t
	}
	return v.work.exec.Started
}

// Sending states that the call may take effect from now on. A tool with StatesSending calls it
// immediately before the first byte of the call leaves the process. It returns nil when the engine
// of the run has stored the intent of the call. After an error nothing may be sent.
//
// Further calls of Sending return what the first one returned. For other tools, and for a nil v, it
// returns nil.
func (v *Invocation) Sending(ctx context.Context) error {
	if v == nil || v.work.late == nil {
		return nil
	}
	return v.work.late.Begin(func() error {
		x := v.work.started.Load()
		return v.work.intend(ctx, x.Call, x.Attempts)
	})
}

// FromCache records that the result is the result of an earlier call: Execution.Cached.
func (v *Invocation) FromCache() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.sealed {
		v.cached = true
	}
}

// Get reads the run's value with the given name into the variable that into points to, and reports
// whether it exists. A call sees the values from the start of its step, and the values that it set.
func (v *Invocation) Get(name string, into any) (bool, error) {
	if v == nil {
		return false, errOutside
	}
	v.mu.Lock()
	b, ok := v.set[name]
	v.mu.Unlock()
	if !ok {
		b, ok = v.work.task.Values[name]
		if !ok {
			return false, nil
		}
	}
	if err := json.Unmarshal(b, into); err != nil {
		return true, fmt.Errorf("value %q: %w", name, err)
	}
	return true, nil
}

// Label returns the label of the arguments of the call, for what is stored of them: the join of the
// conversation, and of the results of the calls before it in the calls around it. In a process that
// has no conversation it is nil, which means a stranger.
func (v *Invocation) Label() *llm.Label {
	if v == nil || len(v.work.task.messages) == 0 {
		return nil
	}
	a := new(authors)
	a.begin(v.work.task.scope.label)
	a.add(v.work.task.messages)
	for around := v.work.task.scope.within; around != nil; around = around.work.task.scope.within {
		around.mu.Lock()
		if around.read != nil {
			a.join(around.read.label)
		}
		around.mu.Unlock()
	}
	return a.label.Shared()
}

// composed returns the label of a result that is made of the results of nested calls: of what the
// program of a call, whose author had read the conversation, made of them. nil means that the call
// made no calls.
func (v *Invocation) composed() *llm.Label {
	v.mu.Lock()
	made := v.read != nil
	var read llm.Label
	if made {
		read = v.read.label
	}
	v.mu.Unlock()
	if !made {
		return nil
	}

	var l llm.Label
	if around := v.Label(); around != nil {
		l = *around
	}
	l = l.Join(read)
	return &l
}

// noteResult records the label of the result of a nested call. v.mu is locked.
func (v *Invocation) noteResult(x *Execution) {
	if !x.Outcome.Settled() {
		return
	}
	if v.read == nil {
		v.read = &authors{label: llm.Label{By: llm.Operator, Readers: everybody}}
	}
	l, _ := llm.Message{Parts: []llm.Part{x.Result}}.Label()
	v.read.join(l)
	v.read.addSources([]llm.Source{{Kind: "tool", Name: x.Call.Name}})
}

// Set sets a value of the run. Later steps see it. If several calls of one step set a value, the
// last call in call order wins.
func (v *Invocation) Set(name string, value any) error {
	if v == nil {
		return errOutside
	}
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

// Emit emits a progress event. data may be nil; data that is not JSON is dropped. After the call
// has ended, Emit does nothing.
func (v *Invocation) Emit(text string, data json.RawMessage) {
	if v == nil {
		return
	}
	if !json.Valid(data) {
		data = nil
	}
	t := v.work.task
	v.send(Event{Kind: EventProgress, Run: t.Run, Step: t.Step, Path: v.Key, Text: text, Data: data})
}

func (v *Invocation) send(e Event) {
	if !v.work.task.scope.watched {
		return
	}
	v.emitting.Lock() // held during emit, so that no event is in flight when the call has ended
	defer v.emitting.Unlock()
	if !v.ended {
		v.work.emit(e)
	}
}

// close ends the abilities of the call. A tool that ignores its context may still try to use them.
func (v *Invocation) close() {
	v.emitting.Lock()
	v.ended = true
	v.emitting.Unlock()
	v.mu.Lock()
	v.sealed = true
	v.mu.Unlock()
}

// Do executes calls of the run's tools within this one, in parallel, each through the whole
// pipeline, and returns their executions in order. Failures are recorded in the executions. The
// error is the error of ctx, or states that calls are nested too deep.
//
// A call that needs an answer from outside is refused, unless CanWait. Otherwise it becomes
// pending, and this call with it: Do then returns an error, and executes no further call. Once
// there is an answer, the tool runs again from its beginning. It must make the same calls, and
// receives the stored outcomes of the calls that have ended. A nested call that ends the run
// (AbortError, FinishError, FailFast) ends this call and the run: Do then returns an error, and
// executes no further call.
//
// A tool that makes calls must have EffectCompose. To make several calls in parallel, it passes
// them to one Do; goroutines of its own are not needed.
func (v *Invocation) Do(ctx context.Context, calls ...llm.ToolCall) ([]Execution, error) {
	if v == nil {
		return nil, errOutside
	}
	t := v.work.task
	if v.busy.Load() && v.work.tool.Effect != EffectCompose {
		return nil, fmt.Errorf("%s makes calls, so its Effect must be Compose: it holds a slot that its calls need",
			v.work.tool.Name)
	}
	// Middleware may make calls, too, and they may have side effects.
	if e := v.work.holder; e != nil && !e.isWhole() {
		return nil, errDropped
	}
	if t.scope.depth >= maxDepth {
		return nil, fmt.Errorf("calls are nested more than %d deep", maxDepth)
	}
	inner := *t.scope
	inner.depth++
	inner.within = v
	inner.canPend = v.CanWait()
	tasks, err := v.nested(&inner, calls)
	if err != nil {
		return nil, err
	}
	execs := t.scope.execute(ctx, tasks, v.send)
	return execs, v.collect(ctx, execs)
}

// nested returns the tasks of nested calls. Their keys continue the numbers of earlier nested
// calls. The error means that the call can make no further calls.
func (v *Invocation) nested(inner *scope, calls []llm.ToolCall) ([]Task, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.sealed:
		return nil, errors.New("the call has ended, and can make no others")
	case v.ends != nil:
		return nil, v.ends.control()
	case v.pending != nil:
		return nil, errPending
	}
	t := v.work.task
	values := merged(t.Values, v.set)
	tasks := make([]Task, len(calls))
	for i, c := range calls {
		id := "s" + strconv.Itoa(v.inner)
		v.inner++
		if c.ID == "" {
			c.ID = id
		}
		tasks[i] = Task{Agent: t.Agent, Run: t.Run, Step: t.Step, Key: v.Key + llm.Key("/"+id), Index: i, Call: c,
			Values: values, Since: t.Since, scope: inner, messages: t.messages}
		tasks[i].adopt(t.Decisions, t.PendingInside)
	}
	return tasks, nil
}

// collect adds the usage, the values and the open questions of nested calls to the call. The error
// is the error of Do.
func (v *Invocation) collect(ctx context.Context, nested []Execution) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.sealed {
		for i := range nested {
			x := &nested[i]
			if v.CanWait() {
				v.pending = append(v.pending, x.Pending...)
			}

			// Its tool runs again from the beginning, and counts then.
			if x.waitsInside() {
				continue
			}
			v.noteResult(x)
			v.spent.Add(Spent{Calls: newCalls(x, nil)})
			v.spent.Add(x.Spent)
			if !x.local {
				v.work.task.scope.budget.replayed(x)
			}
			v.set = merged(v.set, x.Values)
		}
		if x := ending(nested); x != nil {
			v.ends = x
			return x.control()
		}
		if ctx.Err() == nil && v.pending != nil {
			return errPending
		}
	}
	if err := diverged(nested); err != nil {
		return err
	}
	return ctx.Err()
}

// control returns the error with which x ended the run.
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

// spend counts the usage of a nested run.
func (v *Invocation) spend(s Spent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.sealed {
		v.spent.Add(s)
	}
}

const maxDepth = 3
