package pawl

// early.go: calls that start while their reply is still being written.

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// errDropped is the cause that ends early calls of a reply that cannot be used.
var errDropped = errors.New("the reply came to nothing")

// startsEarly reports whether calls of t may start early: dropping such a call changes nothing.
func startsEarly(t *Tool) bool {
	return !t.Passive && (t.Effect == EffectRead || t.Effect == EffectPure)
}

// ahead is the calls of a reply that is still being written, as far as they are sealed, in call
// order.
type ahead struct {
	tasks []Task
	part  int // of the reply, to read next

	// The properties of the first tasks, as far as mayStart needed them.
	seen   int
	writes bool
	serial map[string]bool
}

// startSealed starts the calls of the reply that are sealed, in call order, as far as p allows.
func (r *run) startSealed(ctx context.Context, p *Parallel, resp *llm.Response) {
	if r.reply.ahead == nil {
		r.reply.ahead = new(ahead)
	}
	a := r.reply.ahead
	for ; a.part < len(resp.Message.Parts); a.part++ {
		if _, ok := resp.Message.Parts[a.part].(llm.ToolCall); !ok {
			continue
		}
		c, sealed := resp.Sealed(a.part).(llm.ToolCall)
		if !sealed {
			return
		}
		place := len(a.tasks)
		t := r.task(r.history.replies+1, place, c)
		t.Refuse = r.refusal(resp, c, place)
		t.Index = place
		if a.mayStart(&t, p) {
			t.earlyCall = startEarlyCall(ctx, t)
		}
		a.tasks = append(a.tasks, t)
	}
}

// mayStart reports whether t can start without a change of what its reply comes to. Middleware and
// approval see the call when it starts; a call that they do not let through does not run.
//
// A call with EffectRead does not start after a call of the reply that may change the world, unless
// one of both tools is Concurrent: it could miss that change. A call does not start either if an
// earlier one has its Serial key, if Limits.Calls may not suffice, or with FailFast or StopOnBlock,
// which depend on the earlier calls.
func (a *ahead) mayStart(t *Task, p *Parallel) bool {
	ordered := p.FailFast || p.StopOnBlock
	if p.NoEarly || ordered || t.Refuse != "" {
		return false
	}
	for ; a.seen < t.Index; a.seen++ {
		a.note(&a.tasks[a.seen])
	}
	tool := t.Tool()
	switch {
	case tool == nil || tool == t.scope.answer || !startsEarly(tool), tool.rank() == rankShared && a.writes,
		!t.scope.budget.leaves(t.Index + 1), a.running() >= p.limit():
		return false
	case tool.Serial != nil:
		return !a.serial[t.serialKey()]
	}
	return true
}

func (a *ahead) note(t *Task) {
	tool := t.Tool()
	if tool == nil {
		return // it will not run
	}
	if !startsEarly(tool) && tool.rank() != rankFree {
		a.writes = true
	}
	if key := t.serialKey(); key != "" {
		if a.serial == nil {
			a.serial = map[string]bool{}
		}
		a.serial[key] = true
	}
}

// running returns the number of calls that started and have not ended.
func (a *ahead) running() (n int) {
	for i := range a.tasks {
		if e := a.tasks[i].earlyCall; e != nil && !e.hasEnded() {
			n++
		}
	}
	return n
}

// take returns the early start of t, whose reply is now complete. nil means that t did not start.
func (a *ahead) take(t *Task) *earlyCall {
	if t.Refuse != "" || t.Index >= len(a.tasks) {
		return nil
	}
	was := &a.tasks[t.Index]
	if was.earlyCall == nil || !was.sameCall(t) {
		return nil
	}
	e := was.earlyCall
	was.earlyCall = nil
	e.confirm(t.messages)
	return e
}

// sameCall reports whether the complete reply has the call of t as it was when it was sealed.
func (t *Task) sameCall(complete *Task) bool {
	c := &complete.Call
	if t.Key != complete.Key || t.Call.ID != c.ID || t.Call.Name != c.Name {
		return false
	}
	return bytes.Equal(t.Call.Args, c.Args) ||
		bytes.Equal(jsonform.Canonical(t.Call.Args), jsonform.Canonical(c.Args))
}

// drop cancels the early calls that no task has taken, and waits for them.
func (a *ahead) drop() {
	dropped := slices.DeleteFunc(a.tasks, func(t Task) bool { return t.earlyCall == nil })
	if len(dropped) == 0 {
		return
	}
	for i := range dropped {
		dropped[i].earlyCall.cancel(errDropped)
	}
	late, stop := context.WithTimeout(context.Background(), abandonGrace)
	defer stop()
	for i := range dropped {
		if x := dropped[i].earlyCall.wait(late); x.Attempts > 0 {
			dropped[i].scope.budget.refund()
		}
	}
}

// earlyCall is a call that starts while the model is writing its reply. Its events are held until
// the reply is complete, so that they have the same order as without early start, and so that a
// dropped call leaves no event.
type earlyCall struct {
	work   work
	task   Task
	cancel context.CancelCauseFunc // of work.ctx
	whole  chan struct{}           // closed when the reply is complete
	ended  chan struct{}           // closed when the call has ended

	mu       sync.Mutex
	held     []Event
	messages []llm.Message    // with the reply; nil means that the reply is not complete yet
	out      func(Event)      // nil means that events are held
	then     func(*Execution) // called when the call ends; nil means no call
	exec     *Execution       // nil means that the call has not ended
}

// startEarlyCall starts the call of t.
func startEarlyCall(ctx context.Context, t Task) *earlyCall {
	e := &earlyCall{task: t, whole: make(chan struct{}), ended: make(chan struct{})}
	w := &e.work
	w.ctx, e.cancel = context.WithCancelCause(ctx)
	w.task, w.holder, w.end = &e.task, e, e.end
	go w.execute(e.emit)
	return e
}

// maxHeld is the number of events that are held. A tool that emits more waits for its reply.
const maxHeld = 100

// emit holds an event, or passes it on. It is called for one event at a time.
func (e *earlyCall) emit(ev Event) {
	for {
		e.mu.Lock()
		out := e.out
		hold := out == nil && (len(e.held) < maxHeld || e.messages != nil)
		if hold {
			e.held = append(e.held, ev)
		}
		e.mu.Unlock()
		switch {
		case out != nil:
			out(ev)
			return
		case hold || !e.isWhole():
			return
		}
	}
}

// confirm records that the reply is complete. msgs is the conversation with the reply.
func (e *earlyCall) confirm(msgs []llm.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.messages = msgs
	close(e.whole)
}

// isWhole waits until the reply is complete. It returns false if the call has been cancelled first.
func (e *earlyCall) isWhole() bool {
	select {
	case <-e.whole:
	case <-e.work.ctx.Done():
	}
	select { // both may be the case
	case <-e.whole:
		return true
	default:
		return false
	}
}

// end is called once, when the call has ended.
func (e *earlyCall) end(_ *work, x *Execution) {
	e.cancel(nil)
	e.mu.Lock()
	e.exec = x
	then := e.then
	e.mu.Unlock()
	close(e.ended)
	if then != nil {
		then(x)
	}
}

func (e *earlyCall) hasEnded() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// wait returns the outcome of the call. It abandons the call when late ends.
func (e *earlyCall) wait(late context.Context) *Execution {
	select {
	case <-e.ended:
	case <-late.Done():
		e.work.abandon(nil)
		<-e.ended
	}
	return e.exec
}

// join makes the call task i of b, which receives its further events and its end. It returns the
// held events, and the outcome if the call has ended.
func (e *earlyCall) join(b *batch, i int) ([]Event, *Execution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := e.held
	e.held = nil
	e.out = b.emit
	if e.exec != nil {
		e.exec.Index = b.tasks[i].Index
		return held, e.exec
	}
	e.then = func(x *Execution) {
		x.Index = b.tasks[i].Index
		b.done(i, x, true)
	}
	return held, nil
}

// joinEarly adds the calls that started early to the batch, in call order. Their events so far are
// emitted, and calls that have ended are completed.
func (b *batch) joinEarly(emit func(Event), complete func(int, *Execution)) {
	for i := range b.tasks {
		e := b.tasks[i].earlyCall
		if e == nil {
			continue
		}
		held, x := e.join(b, i)
		for _, ev := range held {
			emit(ev)
		}
		if x != nil {
			b.settled(x)
			complete(i, x)
			b.pass(i, x, true)
		}
	}
}

// cancelEarly cancels the calls that started early. Their context is not the context of the batch.
func (b *batch) cancelEarly() {
	if b.rest == len(b.tasks) {
		return
	}
	for i := range b.tasks {
		if e := b.tasks[i].earlyCall; e != nil {
			e.cancel(context.Cause(b.ctx))
		}
	}
}
