package pawl

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// begin begins calls whose tool is Read or Pure, so that dropping one changes nothing. Middleware and approval see the call then; what they do
// not let through is not begun. What the call tells, it tells once Execute takes it, so events stand in the same order as without, and a call
// that was dropped leaves none.
//
// A Read is not begun behind a call of the reply that may change the world: it could miss what that one writes. Nor is a call begun whose Serial
// key an earlier one has, one for which Limits.Calls may not suffice, or any with FailFast or StopOnBlock, which look at the calls before.
func (p Parallel) begin(ctx context.Context, t Task) Task {
	if p.NoEarly || p.FailFast || p.StopOnBlock || t.Refuse != "" || t.scope == nil || t.ahead == nil || !t.ahead.mayBegin(&t, p.limit()) {
		return t
	}
	e := &early{task: [1]Task{t}}
	b := &e.batch
	b.Parallel = Parallel{Limit: 1}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.tasks, b.works, b.emit = e.task[:], make([]work, 1), e.tell
	b.works[0].batch = b
	b.tasks[0].work, b.tasks[0].early = &b.works[0], e
	b.left.Store(1)
	t.begun = e
	b.start()
	return t
}

// headStart reports whether calls of t may begin early.
func headStart(t *Tool) bool { return !t.Passive && (t.Effect == EffectRead || t.Effect == EffectPure) }

// ahead is the calls of a reply that is still being written, as far as they are sealed in call order.
type ahead struct {
	tasks []Task
	part  int // of the reply, to look at next

	// What those before the next one are, as far as somebody asked.
	seen   int
	writes bool
	serial map[string]bool
}

// mayBegin reports whether t can begin without changing what its reply comes to.
func (a *ahead) mayBegin(t *Task, limit int) bool {
	for ; a.seen < t.Index; a.seen++ {
		a.note(&a.tasks[a.seen])
	}
	tool := t.named(t.Call.Name)
	switch {
	case tool == nil || tool == t.scope.answer || !headStart(tool), tool.Effect == EffectRead && a.writes, !t.scope.budget.leaves(t.Index + 1), a.running() >= limit:
		return false
	case tool.Serial != nil:
		return !a.serial[t.serialKey()]
	}
	return true
}

func (a *ahead) note(t *Task) {
	tool := t.named(t.Call.Name)
	if tool == nil {
		return // it will not run
	}
	if !headStart(tool) && !tool.Passive {
		a.writes = true
	}
	if key := t.serialKey(); key != "" {
		if a.serial == nil {
			a.serial = map[string]bool{}
		}
		a.serial[key] = true
	}
}

// running returns how many were begun and have not ended.
func (a *ahead) running() (n int) {
	for i := range a.tasks {
		if e := a.tasks[i].begun; e != nil && e.left.Load() > 0 {
			n++
		}
	}
	return n
}

// take returns what was begun of t, whose reply has turned out whole; nil: nothing. A nil ahead has begun nothing.
func (a *ahead) take(t *Task) *early {
	if a == nil || t.Refuse != "" || t.Index >= len(a.tasks) {
		return nil
	}
	was := &a.tasks[t.Index]
	if was.begun == nil || was.Key != t.Key || was.Call.ID != t.Call.ID || was.Call.Name != t.Call.Name ||
		!bytes.Equal(was.Call.Args, t.Call.Args) && !bytes.Equal(jsonform.Canonical(was.Call.Args), jsonform.Canonical(t.Call.Args)) {
		return nil
	}
	e := was.begun
	was.begun = nil
	e.certain(t.messages)
	return e
}

// begin hands the calls of the reply to the executor as they are sealed, in call order.
func (r *run) begin(ctx context.Context, resp *llm.Response, d llm.Delta) {
	if r.setup.early == nil || !d.Done || d.Finish != "" {
		return
	}
	if r.reply.early == nil {
		r.reply.early = new(ahead)
	}
	a := r.reply.early
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
		t.Refuse, t.Index, t.ahead = r.refusal(resp, c, place), place, a
		a.tasks = append(a.tasks, t)
		a.tasks[place] = r.setup.early.begin(ctx, t)
	}
}

// drop ends what was begun early and nobody took, and waits for it.
func (r *run) drop() {
	a := r.reply.early
	if a == nil {
		return
	}
	r.reply.early = nil
	dropped := slices.DeleteFunc(a.tasks, func(t Task) bool { return t.begun == nil })
	for i := range dropped {
		dropped[i].begun.cancel(errDropped)
	}
	var late <-chan time.Time
	if len(dropped) > 0 {
		t := time.NewTimer(grace)
		defer t.Stop()
		late = t.C
	}
	for i := range dropped {
		e := dropped[i].begun
		select {
		case <-e.over():
		case <-late:
			late = closedTime
			e.works[0].abandon(nil)
			<-e.over()
		}
		if e.x.Attempts > 0 {
			e.task[0].scope.budget.giveBack()
		}
	}
}

// closedTime is the channel of a timer that has fired, and does so for whoever asks.
var closedTime = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

var errDropped = errors.New("the reply came to nothing")

// early is a call that was begun while its reply was being written: a batch of one, which holds back what it tells.
type early struct {
	batch
	task [1]Task

	telling  sync.Mutex
	held     []Event
	sure     bool          // its reply is whole
	messages []llm.Message // with that reply
	whole    chan struct{} // closed when it is; nil until somebody waits for it
	out      func(Event)   // nil: Execute does not have it yet
	step     *batch        // that is told of the end; nil: nobody, or whoever waits for ended
	place    int           // in step
	x        *Execution    // nil: it has not ended
	ended    chan struct{} // closed when it has; nil until somebody waits for it
}

// maxHeld bounds the events that are held back; a tool that tells more waits until its reply is whole.
const maxHeld = 100

// tell is the call's emit, and so called for one event at a time.
func (e *early) tell(ev Event) {
	if ev.Kind == EventCallCompleted && ev.Path == e.task[0].Key {
		e.end(ev.Execution)
		return
	}
	for {
		e.telling.Lock()
		out := e.out
		hold := out == nil && (len(e.held) < maxHeld || e.sure)
		if hold {
			e.held = append(e.held, ev)
		}
		e.telling.Unlock()
		switch {
		case out != nil:
			out(ev)
			return
		case hold || !e.isWhole():
			return
		}
	}
}

// certain notes that the reply is whole, and msgs the transcript with it.
func (e *early) certain(msgs []llm.Message) {
	e.telling.Lock()
	defer e.telling.Unlock()
	e.sure, e.messages = true, msgs
	if e.whole != nil {
		close(e.whole)
	}
}

// isWhole waits until the reply has turned out whole, and reports whether it did.
func (e *early) isWhole() bool {
	e.telling.Lock()
	if e.sure {
		e.telling.Unlock()
		return true
	}
	if e.whole == nil {
		e.whole = make(chan struct{})
	}
	whole := e.whole
	e.telling.Unlock()
	select {
	case <-whole:
		return true
	case <-e.ctx.Done():
	}
	select {
	case <-whole: // before it ended
		return true
	default:
		return false
	}
}

// end is called once, with how the call ended.
func (e *early) end(x *Execution) {
	e.cancel(nil)
	e.telling.Lock()
	e.x = x
	b, place := e.step, e.place
	if e.ended != nil {
		close(e.ended)
	}
	e.telling.Unlock()
	if b != nil {
		x.Index = b.tasks[place].Index
		b.done(place, x)
		b.relieve()
	}
}

// over is closed when the call has ended.
func (e *early) over() <-chan struct{} {
	e.telling.Lock()
	defer e.telling.Unlock()
	if e.ended == nil {
		e.ended = make(chan struct{})
		if e.x != nil {
			close(e.ended)
		}
	}
	return e.ended
}

// join makes the call one of b, which is told of its further events and of its end. It returns the events held back, and how it ended if it did.
func (e *early) join(b *batch, place int) ([]Event, *Execution) {
	e.telling.Lock()
	defer e.telling.Unlock()
	held := e.held
	e.held, e.out = nil, b.emit
	if e.x == nil {
		e.step, e.place = b, place
	} else {
		e.x.Index = b.tasks[place].Index
	}
	return held, e.x
}

// follow is the call's way in an executor that calls Task.Do: it tells what was held back, and what comes, until the call ends.
func (e *early) follow(ctx context.Context, t *Task, emit func(Event)) *Execution {
	e.telling.Lock()
	for _, ev := range e.held {
		emit(ev)
	}
	e.held, e.out = nil, emit
	e.telling.Unlock()
	select {
	case <-e.over():
	case <-ctx.Done():
		e.cancel(context.Cause(ctx))
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-e.over():
		case <-t.C:
			e.works[0].abandon(nil)
			<-e.over()
		}
	}
	e.x.Index = t.Index
	return e.x
}
