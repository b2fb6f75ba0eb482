package pawl

// executor.go: Executor, where a call is executed, and Parallel: how the calls of one step are
// executed together.

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Executor decides where a call is executed: in this process, or on another machine. When a call is
// executed is the run's concern: it keeps the order of calls and the limit of calls at the same
// time (Agent.Parallel), and emits call_completed.
//
// Most programs need none. An Executor for other machines sends the Task there, calls Engine.Attach
// and Task.Do in that process, and returns the Execution here. Task.RunRemote adds the limits of
// the run. pawltest.TestExecutor tests an implementation.
type Executor interface {
	// Do executes the call of t and returns its Execution, when the call has ended. It is called
	// from several goroutines at the same time, once for each call. When ctx ends, Do cancels the
	// call and returns soon. After 10 seconds the run continues without it, as after an error that
	// says nothing about the effect.
	//
	// emit receives the events of the call and of what is nested in it, in their order. It is never
	// nil, may be called from several goroutines, and does nothing after Do has returned. Do does
	// not emit the call_completed of t.
	//
	// An error means that the call was not sent, or that no outcome of it arrived. The Execution is
	// then ignored. If the error is a *delivery.Error with NotSent or Refused, the call had no
	// effect, and fails with a result for the model. After any other error it may have had one: a
	// call of a tool with EffectWrite becomes a question, and any other call fails. If ctx has
	// ended, a call that had no effect stays open.
	//
	// The run checks the Execution. Its Key and its Call.ID are equal to t's, its Outcome is on the
	// list, and the emitted events belong to the call; otherwise the run stops with StopFailed and
	// an *ExecutorError. An execution with OutcomeUnknown, or with OutcomePending unless
	// t.HeldBy is set, has its question in Pending: of this call or of a call nested in it, with
	// the Digest that Task.Do made. Where it is missing, the run asks whether the call took effect.
	Do(ctx context.Context, t Task, emit func(Event)) (Execution, error)
}

// Parallel says how the calls of a step are executed: in parallel, except for calls that wait for
// earlier ones (Effect). A waiting call takes no goroutine and no place in Limit.
type Parallel struct {
	// Limit is the number of tools that a run executes at the same time, nested calls included.
	// 0 means 10.
	Limit int

	// FailFast means that the first failed call cancels the others, that no further call starts,
	// and that the run fails with a *ToolError.
	FailFast bool

	// StopOnBlock means that a blocked call ends the step: the calls after it are skipped, and the
	// run continues. Each call then waits for the call before it, so that the outcome is the same
	// each time.
	StopOnBlock bool

	// NoEarly means that no call starts before its reply is complete. Otherwise, in a streamed run
	// without an Executor, calls with EffectRead or EffectPure start while the model is still
	// writing the reply.
	NoEarly bool
}

const defaultParallel = 10

func (p Parallel) limit() int {
	if p.Limit > 0 {
		return p.Limit
	}
	return defaultParallel
}

// errFailFast is the cause with which FailFast cancels the other calls of a step.
var errFailFast = errors.New("another call of this step failed")

// execute executes the calls of one step, or of one Invocation.Do, and returns their executions in
// call order. All calls have ended when it returns, except for tools that ignored the end of their
// context: these are abandoned after a grace period. emit receives the events on this goroutine.
func (s *scope) execute(ctx context.Context, tasks []Task, emit func(Event)) []Execution {
	if len(tasks) == 0 {
		return nil
	}
	stored, done := s.stored(ctx, tasks)
	defer done()
	local := s.executor == nil && stored == nil

	execs := make([]Execution, len(tasks))
	complete := func(i int, x *Execution) {
		execs[i] = *x
		execs[i].Index = i
		wasStored := stored != nil && stored[i] != nil
		if store := s.engine.Store; store != nil && !wasStored {
			store(ctx, tasks[i], &execs[i])
		}
		emit(tasks[i].completed(&execs[i]))
	}
	switch {
	case s.engine.Schedule != nil:
		s.engine.Schedule(ctx, tasks, func(ctx context.Context, t Task) Execution {
			x := t.by(ctx, s.executor, emit)
			complete(t.Index, &x)
			return x
		})
	case local && len(tasks) == 1 && tasks[0].isShort():
		complete(0, s.parallel.alone(ctx, &tasks[0], emit))
	default:
		newBatch(ctx, s, tasks).run(stored, emit, complete)
	}
	return settle(ctx, tasks, execs)
}

// stored returns the executions of tasks that the engine has stored, by index. nil means none.
func (s *scope) stored(ctx context.Context, tasks []Task) (execs []*Execution, done func()) {
	if begin := s.engine.Begin; begin != nil {
		return begin(ctx, tasks)
	}
	return nil, func() {}
}

// alone executes t on this goroutine.
func (p Parallel) alone(ctx context.Context, t *Task, emit func(Event)) *Execution {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := &callEvents{task: t, out: emit} // a tool may emit from goroutines of its own
	x := (&work{task: t}).run(ctx, events.emit)
	if p.FailFast && x.Outcome.Failed() && x.Ends == "" {
		x.Ends = StopFailed
	}
	return x
}

// newBatch returns the batch of tasks, which are of s.
func newBatch(ctx context.Context, s *scope, tasks []Task) *batch {
	b := &batch{
		Parallel: s.parallel,
		executor: s.executor,
		tasks:    tasks,
		works:    make([]work, len(tasks)),
		rest:     len(tasks),
		events:   make(chan completion, len(tasks)),
		over:     make(chan struct{}),
	}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.emit = func(e Event) { b.send(completion{Event: e}) }
	if len(tasks) > 1 {
		b.turns = s.parallel.turns(tasks)
	}
	if b.executor != nil {
		b.sent = make([]callEvents, len(tasks))
		for i := range tasks {
			b.sent[i].task = &tasks[i]
			b.sent[i].out = b.emit
		}
	}

	end := b.ended
	for i := range tasks {
		w := &b.works[i]

		// It runs on a goroutine of its own already; see joinEarly.
		if tasks[i].earlyCall != nil {
			b.rest--
			w.taken = true
			continue
		}
		w.task = &tasks[i]
		w.ctx = b.ctx
		w.end = end
	}
	return b
}

// batch is the tasks of one step during their execution.
type batch struct {
	Parallel
	executor Executor        // nil means that the calls are executed here
	ctx      context.Context // ends when run returns
	cancel   context.CancelCauseFunc
	tasks    []Task
	works    []work       // one per task; unused for a task that started early
	sent     []callEvents // one per task, of the calls by the Executor
	emit     func(Event)
	events   chan completion
	over     chan struct{} // closed when no event is received any more

	rest int // tasks that did not start early

	mu      sync.Mutex // guards the following fields, and work.taken
	turns   []turn     // nil means that no task waits for another
	next    int        // all tasks before it are taken
	running int        // workers, and calls that started early
	fresh   bool       // whether a worker has not looked for its first task yet
}

// completion is an event that may complete a task of the batch.
type completion struct {
	Event
	ends  bool
	index int // of that task
}

// run executes the tasks that have no stored execution. It passes their events to emit, and the
// executions of all tasks to complete.
func (b *batch) run(stored []*Execution, emit func(Event), complete func(int, *Execution)) {
	defer func() { // the tasks have ended, or emit has panicked
		b.cancelEarly()
		close(b.over)
		b.cancel(nil)
	}()
	left := len(b.tasks)
	ended := func(i int, x *Execution) {
		left--
		complete(i, x)
	}

	// Early calls count towards the limit until they have ended.
	b.mu.Lock()
	b.running = left - b.rest
	for i, x := range stored {
		if x != nil {
			b.works[i].taken = true
			b.works[i].state.Store(workEnded) // it cannot be abandoned
		}
	}
	b.grow()
	b.mu.Unlock()
	if b.rest < left {
		b.joinEarly(emit, ended)
	}
	for i, x := range stored {
		if x != nil {
			b.settled(x)
			ended(i, x)
			b.pass(i, x, false)
		}
	}

	for over := b.ctx.Done(); left > 0; {
		select {
		case e := <-b.events:
			if e.ends {
				ended(e.index, e.Execution)
			} else {
				emit(e.Event)
			}
		case <-over:
			over = nil
			b.cancelEarly()
			go b.abandonLate()
		}
	}
}

// grow starts a worker for the next task, if there is one and the limit allows it, unless another
// worker is still looking for its first task: that worker starts the next one. b.mu is locked.
func (b *batch) grow() {
	if !b.fresh && b.running < b.limit() && b.ready() >= 0 {
		b.fresh = true
		b.running++
		go b.work()
	}
}

// ready returns the first task that is not taken and has its turn; -1 if there is none. b.mu is
// locked.
func (b *batch) ready() int {
	for b.next < len(b.tasks) && b.works[b.next].taken {
		b.next++
	}
	for i := b.next; i < len(b.tasks); i++ {
		if !b.works[i].taken && (b.turns == nil || b.turns[i].open == 0) {
			return i
		}
	}
	return -1
}

// take returns the next task for a worker, and starts another worker for the task after it. -1
// means that the worker ends: the call that ends next takes the tasks that wait for it.
func (b *batch) take(first bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if first {
		b.fresh = false
	}
	i := b.ready()
	if i < 0 {
		b.running--
		return -1
	}
	b.works[i].taken = true
	b.grow()
	return i
}

// work executes the remaining tasks in order. With each task it starts another worker for the next
// one: short calls are over before many workers have started.
func (b *batch) work() {
	for i := b.take(true); i >= 0; i = b.take(false) {
		isDone := false
		if b.executor != nil {
			isDone = b.workBy(i)
		} else {
			isDone = b.works[i].execute(b.emit)
		}
		if !isDone {
			return // abandoned; another worker has replaced this goroutine
		}
	}
}

// send sends an event to run, unless run has ended early because emit panicked.
func (b *batch) send(e completion) {
	select {
	case b.events <- e:
	case <-b.over:
	}
}

// ended completes the task of w.
func (b *batch) ended(w *work, x *Execution) {
	b.done(w.task.Index, x, w.state.Load() == workAbandoned)
}

// done completes task i. freed means that a worker ends with it, or that its tool still holds the
// goroutine of one.
func (b *batch) done(i int, x *Execution, freed bool) {
	b.settled(x)
	b.send(completion{Event{Execution: x}, true, i})
	b.pass(i, x, freed)
}

// settled applies FailFast to the outcome of a task.
func (b *batch) settled(x *Execution) {
	if b.FailFast && x.Outcome.Failed() && x.Ends == "" {
		x.Ends = StopFailed
		b.cancel(errFailFast)
	}
}

// abandonLate is called when the context ends. It abandons the calls that have not ended after the
// grace period.
func (b *batch) abandonLate() {
	grace := abandonGrace
	if b.executor != nil {
		grace = executorGrace
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.over:
	}

	started := b.takeAll()
	for i := range b.works {
		e := b.tasks[i].earlyCall
		switch {
		case e != nil:
			e.work.abandon(nil)
		case b.executor != nil:
			b.abandonBy(i, started[i])
		default:
			b.works[i].abandon(nil)
		}
	}
}

// takeAll takes all tasks, so that none starts any more, and returns which were taken before.
func (b *batch) takeAll() (started []bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	started = make([]bool, len(b.works))
	for i := range b.works {
		started[i] = b.works[i].taken
		b.works[i].taken = true
	}
	return started
}

// pass records that task i has ended, or has an open question, so that the tasks that wait for it
// have their turn. freed means that its worker, or its early start, no longer counts.
func (b *batch) pass(i int, x *Execution, freed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turns != nil {
		held := b.tasks[i].HeldBy
		if held == "" && !x.Outcome.Settled() {
			held = b.tasks[i].Call.Name
		}
		for _, j := range b.turns[i].then {
			b.turns[j].open--

			// A task that is taken has started, or has its stored execution.
			if t := &b.tasks[j]; t.HeldBy == "" && !b.works[j].taken {
				t.HeldBy = held
			}
		}
	}
	if b.StopOnBlock && x.Outcome == OutcomeBlocked {
		// Each of them waits for the call before it, so that none has started.
		for j := range b.tasks[i+1:] {
			b.tasks[i+1+j].Refuse = "Not run: the call before it, " + b.tasks[i].Call.Name + ", was blocked."
		}
	}
	if freed && b.works[i].taken {
		b.running--
	}
	b.works[i].taken = true
	b.grow()
}
