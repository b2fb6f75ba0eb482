package pawl

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// lease is what a call that runs beside others shares with them: it may be left behind. A tool that does not end when its context does
// cannot hold the run; the call gets its result without it, and what the tool returns later is dropped.
type lease struct {
	batch *batch
	index int
	state atomic.Int32
	begun atomic.Pointer[begun]
	slot  atomic.Bool  // a slot is held
	until atomic.Int64 // when the tool is left behind, in Unix nanoseconds; 0: not watched
}

const (
	leaseRuns int32 = iota
	leaseEnded
	leaseLeft
)

// begun is what is known of a call when its tool begins. It is not changed afterwards.
type begun struct {
	pipe     *pipe
	call     llm.ToolCall
	attempt  int
	tool     *Tool
	decision *llm.Decision
}

// begin notes that the tool begins at now. Once limit, if there is one, and a grace period have passed it is left behind, unless end was
// called. A nil lease does nothing.
func (l *lease) begin(b *begun, now time.Time, limit time.Duration) {
	if l == nil {
		return
	}
	l.begun.Store(b)
	if limit > 0 {
		until := now.Add(limit + grace).UnixNano()
		l.until.Store(until)
		b.pipe.task.scope.alarm.by(l.batch, until, limit+grace)
	}
}

func (l *lease) end() {
	if l != nil {
		l.until.Store(0)
	}
}

// close is called when nobody waits for the batch any more.
func (b *batch) close() {
	if s := b.tasks[0].scope; s != nil {
		s.alarm.forget(b)
	}
	if b.over != nil {
		close(b.over)
	}
}

// leave gives the call its result without waiting for the tool. why is errTimeout, errGone, or nil when the batch's context ended.
func (l *lease) leave(why error) {
	if !l.state.CompareAndSwap(leaseRuns, leaseLeft) {
		return
	}
	b := l.batch
	p := &pipe{task: &b.tasks[l.index]}
	p.inv.taken = true
	p.x = Execution{Key: p.task.Key, Index: p.task.Index, Call: p.task.Call, Attempts: p.task.Attempt, Started: time.Now(), here: true}
	err := notBegun(b.ctx)
	if was := l.begun.Load(); was != nil {
		inv := &was.pipe.inv
		inv.close()
		p.x.Values, p.x.Spent = inv.set, inv.used() // nobody changes them any more
		p.inv.wrote.Store(was.pipe.inv.wrote.Load())
		p.tool, p.x.Call, p.x.Attempts, p.x.Started = was.tool, was.call, was.attempt, was.pipe.x.Started
		p.x.Decision = was.decision
		switch why {
		case errTimeout:
			err = p.timedOut(errLeft)
		case errGone:
			err = panicked("the tool ended its goroutine")
		default:
			err = p.interrupted(b.ctx, errLeft)
		}
	}
	p.settle(b.ctx, llm.ToolResult{}, err)
	p.x.Ended = time.Now()
	p.task.scope.release(l)
	b.worker() // in place of the goroutine that is lost
	b.done(l.index, &p.x)
}

// take takes one of the run's slots, which release gives back; false when ctx ended first.
func (s *scope) take(ctx context.Context, l *lease) bool {
	if !s.slots.take(ctx) {
		return false
	}
	if l != nil {
		l.slot.Store(true)
	}
	return true
}

// release gives the slot of a call back, once, whether the call ended or was left behind.
func (s *scope) release(l *lease) {
	if l == nil || l.slot.CompareAndSwap(true, false) {
		s.slots.give()
	}
}
