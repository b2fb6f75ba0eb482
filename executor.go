package pawl

// executor.go: Task, Executor and Parallel: the calls of one step, in order or together.

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Task is one tool call to execute. Its exported fields are plain data and may be sent to another
// process; Agent.Attach makes a received Task executable there.
type Task struct {
	Agent string       `json:"agent"`
	Run   llm.Key      `json:"run"`
	Step  int          `json:"step"`
	Key   llm.Key      `json:"key"`
	Index int          `json:"index"` // the place among the open calls of the step
	Call  llm.ToolCall `json:"call"`

	Decisions []llm.Decision `json:"decisions,omitzero"` // for this call and for its nested calls
	Values    Values         `json:"values,omitzero"`    // of the run, at the start of the step

	// Refuse is the reason, for the model, why the call must not run. Empty means that it may run.
	Refuse  string `json:"refuse,omitzero"`
	Attempt int    `json:"attempt,omitzero"` // the number of earlier attempts

	// Pending is the question of the call when the run was resumed. nil means none. PendingInside
	// has the questions of its nested calls.
	Pending       *PendingCall  `json:"question,omitzero"`
	PendingInside []PendingCall `json:"inside,omitzero"`

	// Since is the time when the call first became open. It stays the same when the call is
	// executed again. The zero time means that it is not recorded.
	Since time.Time `json:"since,omitzero"`

	scope     *scope
	messages  []llm.Message // the conversation at the start of the step
	earlyCall *earlyCall    // executes the call already; nil means that it did not start early
}

// Tool returns the tool that the call names. It must not be changed. nil means that the run has no
// such tool, or that the task came from another process.
func (t Task) Tool() *Tool {
	if t.scope == nil {
		return nil
	}
	return find(t.scope.tools, t.Call.Name)
}

// Completed returns the call_completed event for a result of Do.
func (t Task) Completed(x Execution) Event { return t.completed(&x) }

func (t *Task) completed(x *Execution) Event {
	return Event{Kind: EventCallCompleted, Run: t.Run, Step: t.Step, Path: t.Key, Execution: x}
}

// Executor executes the tool calls of one step.
//
// Execute yields the events of those calls as they happen, among them exactly one call_completed
// per task, on the goroutine that ranges over the sequence. When the sequence ends, every call has
// ended. If the caller breaks out of the range, Execute cancels the remaining calls and waits for
// them. An Executor must be safe for concurrent use.
//
// Most programs use Parallel. Implement Executor to run calls on another machine: call Task.Do
// there, and yield Task.Completed here.
type Executor interface {
	Execute(ctx context.Context, tasks []Task) iter.Seq[Event]
}

// Parallel executes the calls of a step in parallel. A single call of a tool with EffectPure runs
// on the caller's goroutine. Calls with the same Serial key run one after another, in call order.
type Parallel struct {
	// Limit is the number of tools that a run executes at the same time, nested calls included.
	// 0 means 10.
	Limit int

	// FailFast means that the first failed call cancels the others, that no further call starts,
	// and that the run fails with a *ToolError.
	FailFast bool

	// StopOnBlock means that a blocked call ends the step: the calls after it are skipped, and the
	// run continues. Calls then run one after another, so that the outcome is the same each time.
	StopOnBlock bool

	// NoEarly means that no call starts before its reply is complete. Otherwise, in a streamed run,
	// calls with EffectRead or EffectPure start while the model is still writing the reply.
	NoEarly bool
}

var _ Executor = Parallel{}

const defaultParallel = 10

func (p Parallel) limit() int {
	if p.Limit > 0 {
		return p.Limit
	}
	return defaultParallel
}

// errFailFast is the cause with which FailFast cancels the other calls of a step.
var errFailFast = errors.New("another call of this step failed")

// Execute executes tasks.
func (p Parallel) Execute(ctx context.Context, tasks []Task) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		ordered := p.StopOnBlock
		if len(tasks) == 1 && tasks[0].earlyCall == nil {
			// A single call that only computes cannot be abandoned: a goroutine would cost more
			// than most such calls.
			tool := tasks[0].Tool()
			ordered = ordered || tool == nil || tool.Effect == EffectPure && tool.Timeout <= 0
		}
		switch {
		case ordered:
			p.inOrder(ctx, tasks, yield)
		case len(tasks) > 0:
			p.together(ctx, tasks, yield)
		}
	}
}

// inOrder executes tasks one after another on this goroutine.
func (p Parallel) inOrder(ctx context.Context, tasks []Task, yield func(Event) bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex // a tool may emit from goroutines of its own
	more := true
	emit := func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if more && !yield(e) {
			more = false
			cancel(nil)
		}
	}
	for i := range tasks {
		t := &tasks[i]
		x := t.do(ctx, emit)
		if p.FailFast && x.Outcome.Failed() && x.Ends == "" {
			x.Ends = StopFailed
			cancel(errFailFast)
		}
		emit(t.completed(x))
		if p.StopOnBlock && x.Outcome == OutcomeBlocked {
			for j := range tasks[i+1:] {
				tasks[i+1+j].Refuse = "Not run: the call before it, " + t.Call.Name + ", was blocked."
			}
		}
	}
}

// together executes tasks on up to Limit goroutines. All calls have ended when it returns, except
// for tools that ignored the end of their context: these are abandoned after a grace period.
func (p Parallel) together(ctx context.Context, tasks []Task, yield func(Event) bool) {
	b := &batch{Parallel: p, tasks: tasks, works: make([]work, len(tasks)), rest: len(tasks),
		events: make(chan completion, len(tasks)), over: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.emit = func(e Event) { b.send(completion{Event: e}) }
	defer b.cancel(nil)
	if len(tasks) > 1 {
		b.turns = serialTurns(tasks)
	}
	for i := range tasks {
		if tasks[i].earlyCall != nil {
			b.rest--
			continue
		}
		w := &b.works[i]
		w.task, w.ctx = &tasks[i], b.ctx
		w.end = func(x *Execution) {
			if w.state.Load() == workAbandoned {
				b.startWorker() // in place of the goroutine that the tool still holds
			}
			b.done(i, x)
		}
	}
	b.run(yield)
}

// batch is the tasks of one step during their execution.
type batch struct {
	Parallel
	ctx    context.Context // ends when together returns
	cancel context.CancelCauseFunc
	tasks  []Task
	works  []work // one per task; unused for a task that started early
	turns  []turn // nil means that no task has a Serial key
	emit   func(Event)
	events chan completion
	over   chan struct{} // closed when no event is received any more

	rest    int          // tasks that did not start early
	next    atomic.Int64 // the next task to execute
	started atomic.Int64 // workers, and calls that started early
	fresh   atomic.Int64 // workers that have not looked for a task yet
}

// completion is an event that may complete a task of the batch.
type completion struct {
	Event
	ends  bool
	index int // of that task
}

// run executes the tasks and yields their events.
func (b *batch) run(yield func(Event) bool) {
	defer func() { // the tasks have ended, or yield has panicked
		b.cancelEarly()
		close(b.over)
	}()
	more := true
	emit := func(e Event) {
		if more && !yield(e) {
			more = false
			b.cancel(nil)
		}
	}
	// Without an observer, the completions are yielded together, so that an executor that stores
	// them needs one commit.
	var completed []*Execution
	if s := b.tasks[0].scope; s != nil && !s.watched {
		completed = make([]*Execution, len(b.tasks))
	}
	left := len(b.tasks)
	complete := func(i int, x *Execution) {
		if left--; completed != nil {
			completed[i] = x
		} else {
			emit(b.tasks[i].completed(x))
		}
	}
	// Early calls count towards the limit until they have ended.
	b.started.Store(int64(left - b.rest))
	if b.rest > 0 {
		b.startNext()
	}
	if b.rest < left {
		b.joinEarly(emit, complete)
	}
	for ended := b.ctx.Done(); left > 0; {
		select {
		case e := <-b.events:
			if e.ends {
				complete(e.index, e.Execution)
			} else {
				emit(e.Event)
			}
		case <-ended:
			ended = nil
			b.cancelEarly()
			go b.abandonLate()
		}
	}
	for i, x := range completed {
		emit(b.tasks[i].completed(x))
	}
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
			b.settled(i, x)
			complete(i, x)
			b.replaceEarly()
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

// replaceEarly starts a worker in place of a call that started early and has ended.
func (b *batch) replaceEarly() {
	if b.rest > 0 && b.next.Load() < int64(len(b.tasks)) {
		b.startWorker()
	}
}

// startNext starts one more worker, up to the limit, unless a worker is still looking for its first
// task.
func (b *batch) startNext() {
	if b.fresh.Load() == 0 && b.started.Add(1) <= int64(b.limit()) {
		b.startWorker()
	}
}

func (b *batch) startWorker() {
	b.fresh.Add(1)
	go b.work()
}

// work executes the remaining tasks in order. With each task it starts another worker for the next
// one: short calls are over before many workers have started.
func (b *batch) work() {
	i := int(b.next.Add(1)) - 1
	b.fresh.Add(-1)
	for ; i < len(b.tasks); i = int(b.next.Add(1)) - 1 {
		if i+1 < len(b.tasks) {
			b.startNext()
		}
		if b.tasks[i].earlyCall != nil {
			continue
		}
		if b.turns != nil {
			b.turns[i].wait()
		}
		if !b.works[i].execute(b.emit) {
			return // abandoned; another worker has replaced this goroutine
		}
	}
}

// send sends an event to run, unless run has ended early because yield panicked.
func (b *batch) send(e completion) {
	select {
	case b.events <- e:
	case <-b.over:
	}
}

// done completes task i.
func (b *batch) done(i int, x *Execution) {
	b.settled(i, x)
	b.send(completion{b.tasks[i].completed(x), true, i})
}

// settled applies the outcome of task i to the other tasks.
func (b *batch) settled(i int, x *Execution) {
	if b.FailFast && x.Outcome.Failed() && x.Ends == "" {
		x.Ends = StopFailed
		b.cancel(errFailFast)
	}
	if b.turns != nil {
		b.turns[i].pass()
	}
}

// abandonLate is called when the context ends. It abandons the calls that have not ended after the
// grace period.
func (b *batch) abandonLate() {
	t := time.NewTimer(abandonGrace)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.over:
	}
	for i := range b.works {
		w := &b.works[i]
		if e := b.tasks[i].earlyCall; e != nil {
			w = &e.work
		}
		w.abandon(nil)
	}
}

// ownTask reports whether x belongs to one of tasks, and not to a nested call.
func ownTask(tasks []Task, x *Execution) bool {
	return x.Index < len(tasks) && tasks[x.Index].Key == x.Key
}

// turn orders a task after the previous task with the same Serial key.
type turn struct{ before, done chan struct{} }

func (t turn) wait() {
	if t.before != nil {
		<-t.before
	}
}

func (t turn) pass() {
	if t.done != nil {
		close(t.done)
	}
}

// serialTurns returns nil if no task has a Serial key. Workers take tasks in order, so that a task
// never waits for a later one: there is no deadlock.
func serialTurns(tasks []Task) []turn {
	var turns []turn
	var last map[string]chan struct{}
	for i := range tasks {
		key := tasks[i].serialKey()
		if key == "" {
			continue
		}
		if turns == nil {
			turns = make([]turn, len(tasks))
			last = map[string]chan struct{}{}
		}
		turns[i] = turn{last[key], make(chan struct{})}
		last[key] = turns[i].done
	}
	return turns
}

// serialKey returns the Serial key of the call. Empty means none.
func (t Task) serialKey() (key string) {
	tool := t.Tool()
	if tool == nil || tool.Serial == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			key = "" // the arguments are not validated yet; the pipeline will report the fault
		}
	}()
	return tool.Serial(tool.meant(t.Call.Args))
}

// slots limits the number of tools that execute at the same time in a run, nested calls and nested
// runs included. It is a semaphore in order of arrival that allocates nothing while a slot is free.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{}
}

// acquire takes a slot for w. It returns false if ctx has ended first.
func (s *slots) acquire(ctx context.Context, w *work) bool {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		w.slot.Store(true)
		return true
	}
	mine := make(chan struct{})
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()
	select {
	case <-mine:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.waiting, mine); i >= 0 {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return false
		} // otherwise the slot arrived in the meantime
	}
	w.slot.Store(true)
	return true
}

// release passes the slot of w to the call that has waited longest. It does nothing if w holds no
// slot: the call may have been abandoned in the meantime, or may end after that.
func (s *slots) release(w *work) {
	if !w.slot.CompareAndSwap(true, false) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
}
