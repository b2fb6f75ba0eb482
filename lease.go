package pawl

import (
	"context"
	"sync/atomic"
	"time"
)

// lease is what a call that runs beside others shares with them: it may be left behind. A tool that does not end when its context does
// cannot hold the run; the call gets its result without it, and what the tool returns later is dropped.
type lease struct {
	batch *batch
	index int
	state atomic.Int32
	begun atomic.Pointer[begun]
	slot  atomic.Bool // a slot is held
}

const (
	leaseRuns int32 = iota
	leaseEnded
	leaseLeft
)

// begun is what is known of a call when its tool begins. It is not changed afterwards.
type begun struct {
	pipe    *pipe
	call    ToolCall
	attempt int
}

// begin notes that the tool begins, and leaves it behind once the limit and a grace period have passed. stop ends the watch. A nil lease
// watches nothing.
func (l *lease) begin(p *pipe, c ToolCall, limit time.Duration) (stop func() bool) {
	if l == nil {
		return func() bool { return true }
	}
	l.begun.Store(&begun{p, c, p.x.Attempts})
	if limit <= 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(limit+grace, func() { l.leave(errTimeout) }).Stop
}

// leave gives the call its result without waiting for the tool. why is errTimeout, or nil when the batch's context ended.
func (l *lease) leave(why error) {
	if !l.state.CompareAndSwap(leaseRuns, leaseLeft) {
		return
	}
	b := l.batch
	p := pipe{task: b.tasks[l.index]}
	p.x = Execution{Key: p.task.Key, Index: p.task.Index, Call: p.task.Call, Attempts: p.task.Attempt, Started: time.Now()}
	err := notBegun(b.ctx)
	if was := l.begun.Load(); was != nil {
		was.pipe.inv.close()
		p.tool, p.x.Call, p.x.Attempts, p.x.Started = was.pipe.tool, was.call, was.attempt, was.pipe.started
		if why == errTimeout {
			err = p.timedOut(errLeft)
		} else {
			err = p.interrupted(b.ctx, errLeft)
		}
	}
	p.settle(ToolResult{}, err)
	p.x.Ended = time.Now()
	l.release(p.task.scope)
	go b.work() // in place of the goroutine that is lost
	b.done(l.index, p.x)
}

// take takes one of the run's slots and returns what gives it back; false when ctx ended first.
func (l *lease) take(ctx context.Context, s *scope) (release func(), ok bool) {
	select {
	case s.slots <- struct{}{}:
	default:
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, false
		}
	}
	if l == nil {
		return func() { <-s.slots }, true
	}
	l.slot.Store(true)
	return func() { l.release(s) }, true
}

func (l *lease) release(s *scope) {
	if l.slot.CompareAndSwap(true, false) {
		<-s.slots
	}
}
