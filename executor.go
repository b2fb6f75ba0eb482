package pawl

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

// Task is one call to be carried out. Its exported fields are plain data and may travel; Do needs the run that made it.
type Task struct {
	Agent         string         `json:"agent"`
	Run           llm.Key        `json:"run"`
	Step          int            `json:"step"`
	Key           llm.Key        `json:"key"`
	Index         int            `json:"index"` // the call's place among its step's open calls; Execution.Index repeats it
	Call          llm.ToolCall   `json:"call"`
	Decisions     []llm.Decision `json:"decisions,omitzero"` // what was said of this call, and of those made inside of it
	Values        Values         `json:"values,omitzero"`    // the run's, at the start of the step
	Refuse        string         `json:"refuse,omitzero"`    // why the call must not run, for the model; "": it may
	Attempt       int            `json:"attempt,omitzero"`   // how often the call was begun before
	Pending       *PendingCall   `json:"question,omitzero"`  // what it waited for when the run was resumed; nil: nothing
	PendingInside []PendingCall  `json:"inside,omitzero"`    // what calls made inside of it waited for when the run was resumed
	Since         time.Time      `json:"since,omitzero"`     // since when it is open: the same when it is carried out again; zero: nobody keeps that

	scope    *scope
	tool     *Tool         // that the call names; nil: it is looked up, or there is none
	messages []llm.Message // the transcript at the start of the step

	work  *work  // its place in a batch; nil means that Do makes one
	ahead *ahead // with Begin: the reply as far as it is known
	begun *early // what Begin began of it; nil: nothing
	early *early // the call is begun while its reply is being written; nil: it is not
}

// Executor carries out the calls of one step. Execute yields what happens, and for each task one call_completed event with its
// Execution; it yields on the goroutine that ranges over it, and all calls have ended before it returns. When the
// caller breaks off, running calls are cancelled and waited for. An Executor may be used concurrently.
//
// Parallel is the one to use. Others wrap tasks: they run Task.Do where and when they like, and yield Completed.
type Executor interface {
	Execute(ctx context.Context, tasks []Task) iter.Seq[Event]
}

// Completed returns the call_completed event for what Do returned.
func (t Task) Completed(x Execution) Event { return t.completed(&x) }

func (t *Task) completed(x *Execution) Event {
	return Event{Kind: EventCallCompleted, Run: t.Run, Step: t.Step, Path: t.Key, Execution: x}
}

// Parallel carries out the calls of a step together. A single call of a Pure tool runs on the caller's goroutine. Calls with the same Serial
// key run one after another, in call order.
type Parallel struct {
	Limit    int  // how many tools run at once in a run, inner calls included; 0: 10
	FailFast bool // at the first failed call begin no other, cancel those that run, and fail the run with *ToolError

	// StopOnBlock: a blocked call ends the step. The calls after it are skipped, and the run goes on. So that this means the
	// same each time, calls are then carried out one after another.
	StopOnBlock bool

	// NoEarly: no call begins before its reply is whole. Else those that only look do, while the model still writes (see Begin).
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

// apart reports whether the call must be able to be left behind, when it is made by itself: all but those that only compute, which a goroutine would
// cost more than most of them do.
func (t *Task) apart() bool {
	if t.scope == nil {
		return false
	}
	tool := t.named(t.Call.Name)
	return tool != nil && (tool.Effect != EffectPure || tool.Timeout > 0)
}

// errFailFast is the cause with which FailFast cancels the other calls of a step.
var errFailFast = errors.New("another call of this step failed")

// Execute carries out tasks.
func (p Parallel) Execute(ctx context.Context, tasks []Task) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if len(tasks) == 1 && tasks[0].begun == nil && !tasks[0].apart() || p.StopOnBlock {
			p.inOrder(ctx, tasks, yield)
		} else if len(tasks) > 0 {
			p.together(ctx, tasks, yield)
		}
	}
}

// inOrder carries out tasks one after another on this goroutine.
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

// together carries out tasks on up to Limit goroutines. They have all ended when it returns, but for a tool that did not end when its
// context did: after a grace period the step goes on without it.
func (p Parallel) together(ctx context.Context, tasks []Task, yield func(Event) bool) {
	b := batch{Parallel: p, tasks: tasks, works: make([]work, len(tasks)), events: make(chan completion, len(tasks)), over: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.emit = b.send
	defer b.cancel(nil)
	if len(tasks) > 1 {
		b.turns = serialTurns(tasks)
	}
	for i := range b.works {
		b.works[i].batch, b.works[i].index = &b, i
		tasks[i].work = &b.works[i]
	}
	b.left.Store(int64(len(tasks)))
	b.run(yield)
}

// run executes the tasks and yields their events.
func (b *batch) run(yield func(Event) bool) {
	defer b.end()
	more := true
	tell := func(e Event) {
		if more && !yield(e) {
			more = false
			b.cancel(nil)
		}
	}
	left := len(b.tasks)
	// Without an observer, the completions are yielded together, so that an executor that stores them
	// needs one commit.
	var completed []*Execution
	if s := b.tasks[0].scope; s != nil && !s.watched {
		completed = make([]*Execution, len(b.tasks))
	}
	b.startRest()
	for i := range b.tasks { // calls begun early come first, in call order
		t := &b.tasks[i]
		if t.begun == nil {
			continue
		}
		held, x := t.begun.join(b, i)
		for _, e := range held {
			tell(e)
		}
		if x != nil {
			b.settled(i, x)
			if completed != nil {
				completed[i] = x
			} else {
				tell(t.completed(x))
			}
			left--
			b.relieve()
		}
	}
	for ended := b.ctx.Done(); left > 0; {
		select {
		case e := <-b.events:
			if e.ends {
				left--
			}
			if e.ends && completed != nil {
				completed[e.index] = e.Execution
			} else {
				tell(e.Event)
			}
		case <-ended:
			ended = nil
			b.endEarly()
			go b.hurry()
		}
	}
	for i, x := range completed {
		tell(b.tasks[i].completed(x))
	}
}

// end is called when the tasks have ended, or whoever ranges over the events has panicked.
func (b *batch) end() {
	b.endEarly()
	close(b.over)
}

// endEarly ends the calls that were begun early, whose context is not that of the batch.
func (b *batch) endEarly() {
	for i := range b.tasks {
		if e := b.tasks[i].begun; e != nil {
			e.cancel(context.Cause(b.ctx))
		}
	}
}

// batch is one step's tasks on their way.
type batch struct {
	Parallel
	ctx    context.Context // it ends with together, where a call could run on
	cancel context.CancelCauseFunc
	tasks  []Task
	works  []work // one per task
	turns  []turn // nil means that no task has a Serial key
	next   atomic.Int64
	rest   int          // tasks that were not begun early
	begun  atomic.Int64 // workers started, and calls begun early
	fresh  atomic.Int64 // workers started that have not looked for a task yet
	left   atomic.Int64 // tasks without their completion
	emit   func(Event)
	over   chan struct{} // closed when nobody waits for more

	events chan completion // nil in a batch of one call that began early
}

// start starts a worker more, up to the limit, unless one is on its way.
func (b *batch) start() {
	if b.fresh.Load() == 0 && b.begun.Add(1) <= int64(b.limit()) {
		b.worker()
	}
}

func (b *batch) worker() {
	b.fresh.Add(1)
	go b.work()
}

// startRest starts the first worker for what was not begun early. What was runs beside, and counts towards the limit until it has ended.
func (b *batch) startRest() {
	early := 0
	for i := range b.tasks {
		if b.tasks[i].begun != nil {
			early++
		}
	}
	b.begun.Store(int64(early))
	if b.rest = len(b.tasks) - early; b.rest > 0 {
		b.start()
	}
}

// relieve starts a worker in place of a call that was begun early and has ended.
func (b *batch) relieve() {
	if b.rest > 0 && b.next.Load() < int64(len(b.tasks)) {
		b.worker()
	}
}

// work carries out the tasks that nobody has taken, in order. With each it takes, it sees to it that another worker looks for the next: short calls
// are over before many were started.
func (b *batch) work() {
	i := int(b.next.Add(1)) - 1
	b.fresh.Add(-1)
	for ; i < len(b.tasks); i = int(b.next.Add(1)) - 1 {
		if i+1 < len(b.tasks) {
			b.start()
		}
		if b.tasks[i].begun != nil {
			continue // it has joined the batch as it is
		}
		if b.turns != nil {
			b.turns[i].wait()
		}
		if !b.execute(i) {
			return // left behind, and this goroutine was replaced
		}
	}
}

// execute executes task i, and reports false if it was abandoned meanwhile.
func (b *batch) execute(i int) bool {
	w := &b.works[i]
	returned := false
	defer func() {
		if !returned { // the tool ended the goroutine, as t.FailNow does
			w.abandon(errGone)
		}
	}()
	x := b.tasks[i].do(b.ctx, b.emit)
	returned = true
	if !w.state.CompareAndSwap(workRuns, workEnded) {
		return false
	}
	b.done(i, x)
	return true
}

// completion is an event, and whether it completes one of the batch's own tasks.
type completion struct {
	Event
	ends  bool
	index int // of that task in the batch
}

func (b *batch) send(e Event) { b.tell(completion{Event: e}) }

func (b *batch) tell(e completion) {
	select {
	case b.events <- e:
	case <-b.over: // whoever ranged over the events has panicked
	}
}

func (b *batch) done(i int, x *Execution) {
	b.settled(i, x)
	if b.events != nil {
		b.tell(completion{b.tasks[i].completed(x), true, i})
	} else {
		b.emit(b.tasks[i].completed(x)) // it began early
	}
	b.left.Add(-1)
}

// settled lets the others know how task i ended.
func (b *batch) settled(i int, x *Execution) {
	if b.FailFast && x.Outcome.Failed() && x.Ends == "" {
		x.Ends = StopFailed
		b.cancel(errFailFast)
	}
	if b.turns != nil {
		b.turns[i].pass()
	}
}

// hurry is called when the context ends: what has not ended a grace period later is left behind.
func (b *batch) hurry() {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.over:
	}
	for i := range b.works {
		w := &b.works[i]
		if e := b.tasks[i].begun; e != nil {
			w = &e.works[0]
		}
		w.abandon(nil)
	}
}

// ownTask reports whether x is of one of tasks, and not of a call made inside one.
func ownTask(tasks []Task, x *Execution) bool {
	return x.Index < len(tasks) && tasks[x.Index].Key == x.Key
}

// turn orders a task after the one before it with the same Serial key.
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

// serialTurns returns nil when no task has a Serial key. Workers take tasks in order, so the task waited for was taken
// before the one that waits: there is no deadlock.
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

func (t Task) serialKey() (key string) {
	if t.scope == nil {
		return ""
	}
	tool := t.named(t.Call.Name)
	if tool == nil || tool.Serial == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			key = "" // the arguments are not checked yet; the pipeline will say what is wrong with them
		}
	}()
	return tool.Serial(tool.meant(t.Call.Args))
}

// slots is how many tools may be at work in a run at once, inner calls and inner runs included: a semaphore, first come first served, that
// allocates nothing while there is room.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{}
}

// take takes a slot, which give gives back; false when ctx ended first.
func (s *slots) take(ctx context.Context) bool {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return true
	}
	mine := make(chan struct{})
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, mine)
	if i < 0 {
		return true // it was handed over meanwhile
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return false
}

// give hands a slot to who has waited longest.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
}
