// Package observe adds observers to a pawl.Runner: functions that see the events of its runs.
//
//	runner = observe.Sync(runner, log)              // the run waits for log
//	runner = observe.Async(runner, kinds, sendMail) // the run does not wait
//
//	run ──event──▶ Sync(fn) ──▶ Async(fn) ──▶ caller
//	                  │             └─ queue ──▶ fn on its own goroutine, may miss fragments
//	                  └─ fn on the goroutine of the run
//
// Wrap is the base of other runners around a runner, such as redact.Runner. Partial decodes an
// answer while it is being written.
package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// RunnerFunc is a function that implements Runner: a wrapper of another Runner, or
// Agent.ResumeStream with the Result to resume from.
type RunnerFunc func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error]

var _ pawl.Runner = RunnerFunc(nil)

// Stream calls f.
func (f RunnerFunc) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return f(ctx, msgs...)
}

// Wrap returns a Runner whose runs are the runs of r as transformed by stream. If r is an
// OutputRunner, so is the result: stream is then also called for each output.
func Wrap(r pawl.Runner, stream func(pawl.Runner) RunnerFunc) pawl.Runner {
	if r == nil {
		return RunnerFunc(func(context.Context, ...llm.Message) iter.Seq2[pawl.Event, error] {
			return fails(errors.New("observe: the Runner is nil; pass an agent, or another Runner"))
		})
	}
	f := stream(r)
	if o, ok := r.(pawl.OutputRunner); ok {
		return &outputThrough{f, o, stream}
	}
	return f
}

// fails returns the events of a run that cannot start.
func fails(err error) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) { yield(pawl.Event{}, err) }
}

// outputThrough is a Runner around an OutputRunner.
type outputThrough struct {
	RunnerFunc
	inner  pawl.OutputRunner
	stream func(pawl.Runner) RunnerFunc
}

var _ pawl.OutputRunner = (*outputThrough)(nil)

// WithOutput returns the same wrapper around the inner Runner's WithOutput.
func (o *outputThrough) WithOutput(schema json.RawMessage) pawl.Runner {
	return Wrap(o.inner.WithOutput(schema), o.stream)
}

// WithCheck returns the same wrapper around the inner Runner's WithCheck.
func (o *outputThrough) WithCheck(check func(answer json.RawMessage) error) (pawl.Runner, bool) {
	c, ok := o.inner.(pawl.CheckedRunner)
	if !ok {
		return o, false
	}
	r, ok := c.WithCheck(check)
	return Wrap(r, o.stream), ok
}

// FollowUp returns the same wrapper around the inner Runner's FollowUp, and nil if it has none.
func (o *outputThrough) FollowUp(ctx context.Context, res *pawl.Result) (next pawl.Runner, stored bool, err error) {
	f, ok := o.inner.(pawl.FollowedRunner)
	if !ok {
		return nil, false, nil
	}
	next, stored, err = f.FollowUp(ctx, res)
	if err != nil || next == nil {
		return nil, false, err
	}
	return Wrap(next, o.stream), stored, nil
}

// Sync returns r with an observer. fn sees every event before the caller of the run, on the same
// goroutine, so that the run waits for fn. If fn panics, the run continues, and fn receives a gap
// event that counts the missed events before the next event.
//
// Calls of fn do not overlap within a run, but they may overlap for concurrent runs. If r is an
// OutputRunner, so is the result.
func Sync(r pawl.Runner, fn func(pawl.Event)) pawl.Runner {
	return Wrap(r, func(r pawl.Runner) RunnerFunc { return tapped(r, fn) })
}

func tapped(r pawl.Runner, fn func(pawl.Event)) RunnerFunc {
	return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		return func(yield func(pawl.Event, error) bool) {
			o := observer{fn: fn}
			for e, err := range r.Stream(ctx, msgs...) {
				if err == nil {
					o.pass(e)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// Async returns r with an observer on its own goroutine. fn sees the events of kinds in their
// order, one at a time within a run. Nil kinds means all kinds.
//
// The observer never delays the run: events wait in a bounded queue. When the queue is long,
// fragments (text, reasoning, call_delta, progress) are dropped, then events of other kinds, but
// never the end of the run. For dropped events fn receives a gap event that counts them by kind,
// even if kinds does not list it. The same applies to an event at which fn panicked.
//
// At its end the run waits until fn has seen all queued events, but at most 5 seconds and not
// longer than ctx lives. fn then continues without the run. If ctx ended with the run, the wait is
// 100 ms. If r is an OutputRunner, so is the result.
func Async(r pawl.Runner, kinds []pawl.EventKind, fn func(pawl.Event)) pawl.Runner {
	kinds = slices.Clone(kinds)
	return Wrap(r, func(r pawl.Runner) RunnerFunc { return watched(r, kinds, fn) })
}

func watched(r pawl.Runner, kinds []pawl.EventKind, fn func(pawl.Event)) RunnerFunc {
	return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		return func(yield func(pawl.Event, error) bool) {
			q := &observed{observer: observer{fn: fn}, wake: make(chan struct{}, 1), done: make(chan struct{})}
			go q.work()
			defer q.flush(ctx)
			for e, err := range r.Stream(ctx, msgs...) {
				if err == nil && (kinds == nil || slices.Contains(kinds, e.Kind)) {
					q.enqueue(e)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// observer calls fn, and counts the events that fn missed.
type observer struct {
	fn  func(pawl.Event)
	gap pawl.Event // a nil Lost means no gap
}

// pass passes the gap and then e to fn. e may be a gap itself.
func (o *observer) pass(e pawl.Event) {
	if e.Kind == pawl.EventGap {
		o.missed(e, e.Lost, o.gap.Text)
	}
	if gap := o.gap; gap.Lost != nil {
		o.gap = (pawl.Event{})
		if !o.try(gap, gap.Lost) && e.Kind != pawl.EventGap {
			o.missed(e, map[pawl.EventKind]int{e.Kind: 1}, o.gap.Text)
			return
		}
	}
	if e.Kind != pawl.EventGap {
		o.try(e, map[pawl.EventKind]int{e.Kind: 1})
	}
}

// try calls fn, and reports whether it returned. lost holds the events that count as missed if fn
// panics.
func (o *observer) try(e pawl.Event, lost map[pawl.EventKind]int) (ok bool) {
	defer func() {
		if !ok {
			o.missed(e, lost, "the observer panicked: "+fmt.Sprint(recover()))
		}
	}()
	o.fn(e)
	return true
}

// missed counts lost events, up to the place of e.
func (o *observer) missed(e pawl.Event, lost map[pawl.EventKind]int, why string) {
	if o.gap.Lost == nil {
		o.gap = pawl.Event{Kind: pawl.EventGap, Lost: map[pawl.EventKind]int{}}
	}
	o.gap.Run = e.Run
	o.gap.Step = e.Step
	o.gap.Seq = e.Seq
	o.gap.Text = why
	for kind, n := range lost {
		o.gap.Lost[kind] += n
	}
}

const (
	queuedFragments = 256  // with this many entries the queue rejects fragments
	queuedEvents    = 1024 // with this many it rejects everything except the end
	flushTime       = 5 * time.Second
	flushTimeLate   = 100 * time.Millisecond // if the context has ended
)

// observed is an observer with its queue.
type observed struct {
	observer               // used by work only
	wake     chan struct{} // holds a value if there may be work
	done     chan struct{} // closed when work has ended

	mu     sync.Mutex
	queue  []pawl.Event
	drops  observer // counts events dropped since the last entry; its fn is not used
	closed bool
}

func fragment(k pawl.EventKind) bool {
	switch k {
	case pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventProgress:
		return true
	}
	return false
}

// enqueue queues e, or counts it as missed.
func (q *observed) enqueue(e pawl.Event) {
	q.mu.Lock()
	if q.accepts(e) {
		q.owed()
		q.queue = append(q.queue, e)
	} else {
		q.drops.missed(e, map[pawl.EventKind]int{e.Kind: 1}, "")
	}
	q.mu.Unlock()
	q.signal()
}

// accepts reports whether the queue has room for e. The end of the run always has. q.mu is locked.
func (q *observed) accepts(e pawl.Event) bool {
	switch {
	case e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/"):
		return true
	case fragment(e.Kind):
		return len(q.queue) < queuedFragments
	}
	return len(q.queue) < queuedEvents
}

// owed queues the gap before the next event.
func (q *observed) owed() {
	if q.drops.gap.Lost != nil {
		q.queue = append(q.queue, q.drops.gap)
		q.drops.gap = pawl.Event{}
	}
}

func (q *observed) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// work passes queued events to fn until the queue is closed.
func (q *observed) work() {
	defer close(q.done)
	for range q.wake {
		for {
			q.mu.Lock()
			// closed is read together with the queue: events that were queued before the queue
			// closed are passed on.
			batch, closed := q.queue, q.closed
			if len(batch) == 0 {
				q.owed()
				batch = q.queue
			}
			q.queue = nil
			q.mu.Unlock()
			for _, e := range batch {
				q.pass(e)
			}
			if len(batch) > 0 {
				continue
			}
			// The gap is otherwise passed with the next event, and there is none.
			if closed {
				if g := q.gap; g.Lost != nil { // fn panicked at the last event
					q.gap = pawl.Event{}
					q.try(g, g.Lost)
				}
				return
			}
			break
		}
	}
}

// flush closes the queue and waits until fn has seen its events.
func (q *observed) flush(ctx context.Context) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	t := time.NewTimer(flushTime)
	defer t.Stop()
	select {
	case <-q.done:
		return
	case <-t.C:
		return
	// The caller does not wait for the run any more, so it waits only briefly for the observer.
	case <-ctx.Done():
	}
	t.Reset(flushTimeLate)
	select {
	case <-q.done:
	case <-t.C:
	}
}
