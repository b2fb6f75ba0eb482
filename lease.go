package pawl

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// The states of a work. Whoever leaves workRuns completes the call.
const (
	workRuns int32 = iota
	workEnded
	workAbandoned
)

// watch starts the timer of an attempt: the tool is abandoned if it has not returned within its timeout and the grace period. stop ends
// the watch.
func (w *work) watch(started *Execution, limit time.Duration) (stop func()) {
	if w.batch == nil || limit <= 0 {
		return func() {}
	}
	w.watched.Store(started)
	timer := time.AfterFunc(limit+grace, func() {
		if w.watched.CompareAndSwap(started, nil) {
			w.abandon(errTimeout)
		}
	})
	return func() {
		w.watched.Store(nil)
		timer.Stop()
	}
}

// abandon completes the call without waiting for its tool; what the tool returns later is dropped. why is errTimeout, errGone, or nil if
// the context of the batch has ended. The goroutine of the tool may still use w, so the result is made in another work, of what was known
// when the attempt started.
func (w *work) abandon(why error) {
	if !w.state.CompareAndSwap(workRuns, workAbandoned) {
		return
	}
	b := w.batch
	task := &b.tasks[w.index]
	a := &work{task: task, x: newExecution(task)}
	a.inv.taken = true
	err := notBegun(b.ctx)
	if started := w.started.Load(); started != nil {
		w.inv.close()
		a.x, a.tool = *started, w.tool
		a.x.Index = task.Index
		a.x.Values, a.x.Spent = w.inv.set, w.inv.used() // they do not change any more
		a.inv.wrote.Store(w.inv.wrote.Load())
		switch why {
		case errTimeout:
			err = a.timedOut(errAbandoned)
		case errGone:
			err = panicked("the tool ended its goroutine")
		default:
			err = a.interrupted(b.ctx, errAbandoned)
		}
	}
	a.settle(b.ctx, llm.ToolResult{}, err)
	a.x.Ended = time.Now()
	task.scope.release(w)
	b.worker() // in place of the goroutine that is lost
	b.done(w.index, &a.x)
}

// take takes one of the run's slots, which release gives back; false when ctx ended first.
func (s *scope) take(ctx context.Context, w *work) bool {
	if !s.slots.take(ctx) {
		return false
	}
	if w.batch != nil {
		w.slot.Store(true)
	}
	return true
}

// release gives the slot of a call back, once, whether the call ended or was left behind.
func (s *scope) release(w *work) {
	if w.batch == nil || w.slot.CompareAndSwap(true, false) {
		s.slots.give()
	}
}
