package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// RunnerFunc is a Runner that is a function: a Runner around another one, or Agent.ResumeStream with the Result it goes on from.
type RunnerFunc func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error]

var _ pawl.Runner = RunnerFunc(nil)

// Stream calls f.
func (f RunnerFunc) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return f(ctx, msgs...)
}

// Around returns the Runner whose runs are those of r, told through what stream makes of r. If r is an OutputRunner, so is what Around returns: stream
// is then asked for each output too.
func Wrap(r pawl.Runner, stream func(pawl.Runner) RunnerFunc) pawl.Runner {
	f := stream(r)
	if o, ok := r.(pawl.OutputRunner); ok {
		return &outputThrough{f, func(schema json.RawMessage) pawl.Runner { return Wrap(o.WithOutput(schema), stream) }}
	}
	return f
}

// outputThrough is a Runner around an OutputRunner.
type outputThrough struct {
	RunnerFunc
	with func(schema json.RawMessage) pawl.Runner
}

var _ pawl.OutputRunner = (*outputThrough)(nil)

// WithOutput returns the same Runner around what the inner one's WithOutput returns.
func (o *outputThrough) WithOutput(schema json.RawMessage) pawl.Runner { return o.with(schema) }

// Tap returns r with an observer: fn sees every event before whoever ranges over the run does, on the same goroutine, so the run waits for
// it. When fn panics the run goes on, and before the next event fn is given a gap that counts what it missed. fn is called for one run at a
// time, but for several runs of the Runner at once. If r is an OutputRunner, so is what Tap returns.
func Sync(r pawl.Runner, fn func(pawl.Event)) pawl.Runner {
	return Wrap(r, func(r pawl.Runner) RunnerFunc { return tapped(r, fn) })
}

func tapped(r pawl.Runner, fn func(pawl.Event)) RunnerFunc {
	return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		return func(yield func(pawl.Event, error) bool) {
			o := observer{fn: fn}
			for e, err := range r.Stream(ctx, msgs...) {
				if err == nil {
					o.tell(e)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// On returns r with an observer on a goroutine of its own: fn sees the events of kinds (nil: all) in their order, one at a time within a
// run. It never holds the run up: what comes faster than fn takes it waits in a bounded queue, and once that is long, fragments (text,
// reasoning, call_delta, progress) are dropped, then events of other kinds, never the end of the run. Where some are missing fn is given a gap that counts them
// by kind, whatever the kinds asked for; so it is for an event that fn panicked at.
//
// At its end the run waits until fn has seen all that waits, but no longer than ctx lives and 5 seconds; then fn goes on by itself. When
// ctx has ended with the run, it waits 100 ms. If r is an OutputRunner, so is what On returns.
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
					q.put(e)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// observer calls fn, and counts what it did not see.
type observer struct {
	fn  func(pawl.Event)
	gap pawl.Event // Lost is nil: none
}

// tell gives fn what it missed, then e, which may be more that it missed.
func (o *observer) tell(e pawl.Event) {
	if e.Kind == pawl.EventGap {
		o.missed(e, e.Lost, o.gap.Text)
	}
	if gap := o.gap; gap.Lost != nil {
		if o.gap = (pawl.Event{}); !o.try(gap, gap.Lost) && e.Kind != pawl.EventGap {
			o.missed(e, map[pawl.EventKind]int{e.Kind: 1}, o.gap.Text)
			return
		}
	}
	if e.Kind != pawl.EventGap {
		o.try(e, map[pawl.EventKind]int{e.Kind: 1})
	}
}

// try calls fn, and reports whether it came back. lost is what it missed if it did not.
func (o *observer) try(e pawl.Event, lost map[pawl.EventKind]int) (ok bool) {
	defer func() {
		if !ok {
			o.missed(e, lost, "the observer panicked: "+fmt.Sprint(recover()))
		}
	}()
	o.fn(e)
	return true
}

// missed counts what was lost, up to the place of e.
func (o *observer) missed(e pawl.Event, lost map[pawl.EventKind]int, why string) {
	if o.gap.Lost == nil {
		o.gap = pawl.Event{Kind: pawl.EventGap, Lost: map[pawl.EventKind]int{}}
	}
	o.gap.Run, o.gap.Step, o.gap.Seq, o.gap.Text = e.Run, e.Step, e.Seq, why
	for kind, n := range lost {
		o.gap.Lost[kind] += n
	}
}

const (
	queuedFragments = 256  // entries with which the queue takes no more fragments
	queuedEvents    = 1024 // with which it takes nothing but the end
	flushTime       = 5 * time.Second
	flushTimeLate   = 100 * time.Millisecond // when the context has ended
)

// observed is an observer with its queue.
type observed struct {
	observer               // used by work alone
	wake     chan struct{} // holds one when there may be something to do
	done     chan struct{} // closed when work has ended

	mu     sync.Mutex
	queue  []pawl.Event
	drops  observer // what was dropped since the last entry; its fn is not used
	closed bool
}

func fragment(k pawl.EventKind) bool {
	switch k {
	case pawl.EventText, pawl.EventReasoning, pawl.EventCallDelta, pawl.EventProgress:
		return true
	}
	return false
}

// put queues e, or counts it as missed.
func (q *observed) put(e pawl.Event) {
	end := e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/")
	q.mu.Lock()
	if n := len(q.queue); !end && (n >= queuedEvents || n >= queuedFragments && fragment(e.Kind)) {
		q.drops.missed(e, map[pawl.EventKind]int{e.Kind: 1}, "")
	} else {
		q.owed()
		q.queue = append(q.queue, e)
	}
	q.mu.Unlock()
	q.signal()
}

// owed queues the gap before what comes next.
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

// work gives fn what is queued until the queue is closed.
func (q *observed) work() {
	defer close(q.done)
	for range q.wake {
		for {
			q.mu.Lock()
			batch, closed := q.queue, q.closed
			if len(batch) == 0 {
				q.owed()
				batch = q.queue
			}
			q.queue = nil
			q.mu.Unlock()
			for _, e := range batch {
				q.tell(e)
			}
			if len(batch) > 0 {
				continue
			}
			if closed {
				if g := q.gap; g.Lost != nil { // it panicked at the last one
					q.gap = pawl.Event{}
					q.try(g, g.Lost)
				}
				return
			}
			break
		}
	}
}

// flush closes the queue and waits until fn has seen what is in it.
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
	case <-ctx.Done():
	}
	t.Reset(flushTimeLate)
	select {
	case <-q.done:
	case <-t.C:
	}
}
