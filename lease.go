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
	call     ToolCall
	attempt  int
	tool     *Tool
	decision *Decision
}

// begin notes that the tool begins. Once limit, if there is one, and a grace period have passed it is left behind, unless end was
// called. A nil lease does nothing.
func (l *lease) begin(b *begun, limit time.Duration) {
	if l == nil {
		return
	}
	l.begun.Store(b)
	if limit > 0 {
		until := time.Now().Add(limit + grace).UnixNano()
		l.until.Store(until)
		l.batch.watch(until)
	}
}

func (l *lease) end() {
	if l != nil {
		l.until.Store(0)
	}
}

// watch sees to it that late looks at the leases at the given time, or before it. One timer serves the batch.
func (b *batch) watch(until int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looks != 0 && b.looks <= until || b.closed {
		return
	}
	b.looks = until
	d := time.Until(time.Unix(0, until))
	if b.timer == nil {
		b.timer = time.AfterFunc(d, b.late)
	} else {
		b.timer.Reset(d)
	}
}

// late leaves behind what is over its time, and looks again when the next one will be.
func (b *batch) late() {
	b.mu.Lock()
	b.looks = 0
	b.mu.Unlock()
	now := time.Now().UnixNano()
	var next int64
	for i := range b.leases {
		switch until := b.leases[i].until.Load(); {
		case until == 0:
		case until <= now:
			b.leases[i].leave(errTimeout)
		case next == 0 || until < next:
			next = until
		}
	}
	if next != 0 {
		b.watch(next)
	}
}

// close ends the watch.
func (b *batch) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
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
	p.x = Execution{Key: p.task.Key, Index: p.task.Index, Call: p.task.Call, Attempts: p.task.Attempt, Started: time.Now(), here: true}
	err := notBegun(b.ctx)
	if was := l.begun.Load(); was != nil {
		inv := &was.pipe.inv
		inv.close()
		p.x.Values, p.x.Spent = inv.set, inv.spent // nobody changes them any more
		p.inv.wrote.Store(was.pipe.inv.wrote.Load())
		p.tool, p.x.Call, p.x.Attempts, p.x.Started = was.tool, was.call, was.attempt, was.pipe.started
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
	p.settle(b.ctx, ToolResult{}, err)
	p.x.Ended = time.Now()
	p.task.scope.release(l)
	go b.work() // in place of the goroutine that is lost
	b.done(l.index, &p.x)
}

// take takes one of the run's slots, which release gives back; false when ctx ended first.
func (s *scope) take(ctx context.Context, l *lease) bool {
	select {
	case s.slots <- struct{}{}:
	default:
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	if l != nil {
		l.slot.Store(true)
	}
	return true
}

// release gives the slot of a call back, once, whether the call ended or was left behind.
func (s *scope) release(l *lease) {
	if l == nil || l.slot.CompareAndSwap(true, false) {
		<-s.slots
	}
}
