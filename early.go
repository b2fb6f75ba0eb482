package pawl

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
)

// Beginner is an Executor that can begin a call while the model still writes the reply it is in. Parallel is one. An executor that records
// is none: a call must not start before the reply that made it is kept.
//
// Begin is given the calls of a reply in call order, each as soon as its arguments are sealed and all calls before it are. It returns t, begun
// or not, and does not block. If the reply turns out whole and the call is what it was, Execute is given the same Task, and takes what
// was begun for it. Otherwise ctx ends, and what was begun is waited for and dropped.
type Beginner interface {
	Begin(ctx context.Context, t Task) Task
}

var _ Beginner = Parallel{}

// Begin begins calls whose tool is Read or Pure, so that dropping one changes nothing. Middleware and approval see the call then; what they do
// not let through is not begun. What the call tells, it tells once Execute takes it, so events stand in the same order as without, and a call
// that was dropped leaves none.
//
// A Read is not begun behind a call of the reply that may change the world: it could miss what that one writes. Nor is a call begun whose Serial
// key an earlier one has, one for which Limits.Calls may not suffice, or any with FailFast or StopOnBlock, which look at the calls before.
func (p Parallel) Begin(ctx context.Context, t Task) Task {
	if p.NoEarly || p.FailFast || p.StopOnBlock || t.Refuse != "" || t.scope == nil || t.ahead == nil || !t.ahead.mayBegin(&t, p.limit()) {
		return t
	}
	e := &early{task: [1]Task{t}, taken: make(chan struct{})}
	b := &e.batch
	b.Parallel = Parallel{Limit: 1}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.tasks, b.leases = e.task[:], e.lease[:]
	b.leases[0].batch = b
	b.tasks[0].lease, b.tasks[0].early = &b.leases[0], e
	b.over, b.all, b.emit = make(chan struct{}), make(chan struct{}), e.tell
	b.left.Store(1)
	e.unhook = context.AfterFunc(b.ctx, b.hurry)
	t.begun = e
	b.start()
	return t
}

// headStart reports whether calls of t may begin early.
func headStart(t *Tool) bool { return !t.Passive && (t.Effect == Read || t.Effect == Pure) }

// ahead is the calls of a reply that is still being written, as far as they are sealed in call order.
type ahead struct {
	tasks []Task
	part  int    // of the reply, to look at next
	scope *scope // of all of them

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
	tool := find(t.scope.tools, t.Call.Name)
	switch {
	case tool == nil || tool == t.scope.answer || !headStart(tool), tool.Effect == Read && a.writes, !t.scope.budget.leaves(t.Index + 1), a.running() >= limit:
		return false
	case tool.Serial != nil:
		return !a.serial[t.serialKey()]
	}
	return true
}

func (a *ahead) note(t *Task) {
	tool := find(t.scope.tools, t.Call.Name)
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

// take returns what was begun of t; nil: nothing.
func (a *ahead) take(t *Task) *early {
	if t.Refuse != "" || t.Index >= len(a.tasks) {
		return nil
	}
	was := &a.tasks[t.Index]
	if was.begun == nil || was.Key != t.Key || was.Call.ID != t.Call.ID || was.Call.Name != t.Call.Name ||
		!bytes.Equal(was.Call.Args, t.Call.Args) && !bytes.Equal(canonical(was.Call.Args), canonical(t.Call.Args)) {
		return nil
	}
	e := was.begun
	was.begun = nil
	return e
}

// begin hands the calls of the reply to the executor as they are sealed, in call order.
func (r *run) begin(ctx context.Context, resp *Response, d Delta) {
	if r.beginner == nil || !d.Done || d.Finish != "" {
		return
	}
	a := &r.ahead
	for ; a.part < len(resp.Message.Parts); a.part++ {
		if _, ok := resp.Message.Parts[a.part].(ToolCall); !ok {
			continue
		}
		c, sealed := resp.part(a.part).(ToolCall)
		if !sealed {
			return
		}
		if a.scope == nil {
			s := r.scope
			s.messages = r.res.Messages
			a.scope = &s
		}
		place := len(a.tasks)
		t := r.task(r.replies+1, place, c, a.scope)
		t.Refuse, t.Index, t.ahead = r.refusal(resp, c, place), place, a
		a.tasks = append(a.tasks, t)
		a.tasks[place] = r.beginner.Begin(ctx, t)
	}
}

// drop ends what nobody took, and waits for it.
func (a *ahead) drop() {
	dropped := slices.DeleteFunc(a.tasks, func(t Task) bool { return t.begun == nil })
	for i := range dropped {
		dropped[i].begun.cancel(errDropped)
	}
	for i := range dropped {
		e := dropped[i].begun
		<-e.all
		if e.x.Attempts > 0 {
			e.task[0].scope.budget.giveBack()
		}
		e.end()
	}
	*a = ahead{}
}

var errDropped = errors.New("the reply came to nothing")

// early is a call that was begun while its reply was being written: a batch of one, which holds back what it tells.
type early struct {
	batch
	task   [1]Task
	lease  [1]lease
	unhook func() bool
	taken  chan struct{} // closed once Execute has it
	x      *Execution    // set when all is closed

	telling sync.Mutex
	held    []Event
	out     func(Event) // nil: it is not taken yet
	scope   *scope      // of the step, once it is taken
}

// maxHeld bounds the events that are held back; a tool that tells more waits until it is taken.
const maxHeld = 100

// tell is the call's emit.
func (e *early) tell(ev Event) {
	if ev.Kind == EventCallCompleted && ev.Path == e.task[0].Key {
		e.x = ev.Execution
		return
	}
	e.telling.Lock()
	out := e.out
	if out == nil && len(e.held) < maxHeld {
		e.held = append(e.held, ev)
		e.telling.Unlock()
		return
	}
	e.telling.Unlock()
	if out == nil {
		if !e.whole() {
			return
		}
		e.telling.Lock()
		out = e.out
		e.telling.Unlock()
	}
	out(ev)
}

// whole waits until the reply has turned out whole, and reports whether it did.
func (e *early) whole() bool {
	select {
	case <-e.taken:
		return true
	case <-e.ctx.Done():
	}
	select {
	case <-e.taken: // before it ended
		return true
	default:
		return false
	}
}

// follow is the call's way from here on, in place of the pipeline: it tells what was held back, and what comes, until the call ends.
func (e *early) follow(ctx context.Context, t *Task, emit func(Event)) *Execution {
	stop := context.AfterFunc(ctx, func() { e.cancel(context.Cause(ctx)) })
	e.telling.Lock()
	e.scope = t.scope
	for _, ev := range e.held {
		emit(ev)
	}
	e.held, e.out = nil, emit
	e.telling.Unlock()
	close(e.taken)
	<-e.all
	stop()
	e.end()
	x := e.x
	x.Index = t.Index
	return x
}

func (e *early) end() {
	e.unhook()
	e.close()
	e.cancel(nil)
}
