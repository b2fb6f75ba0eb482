package runs

// follow.go: watches a run that another process executes, by what the journal has of it.

import (
	"context"
	"iter"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

const (
	// followEvery is the interval at which a follower looks for new records.
	followEvery = 250 * time.Millisecond
	// followWaiting is the longest interval for a run that waits for the provider of its model.
	followWaiting = 2 * time.Second
	// restFactor limits what a follower costs. Each look reads the records that are new, and
	// replays the run from the records in memory. The next one comes after so many times its
	// duration; the end of the run does not wait.
	restFactor = 9

	// lookEvery is the interval at which a run looks for what other processes have written to it.
	lookEvery = time.Second
)

// follower is a Runner that yields the events of a run which another process executes: each step
// when the journal has it, and the end. It needs no lease and executes nothing. If that process
// ends, the follower waits for the next one.
type follower struct {
	engine *durable.Engine
	scope  store.Scope
	id     string
	agent  *pawl.Agent
}

// Stream yields the events until the run stops.
func (f *follower) Stream(ctx context.Context, _ ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		var done int
		var seen int64 = -1
		stored := f.engine.FollowEvents(f.id, f.agent)
		var next time.Time        // when new records are looked at again
		var said *durable.Waiting // the outage that the readers know of
		for {
			head, err := f.engine.Journal.JournalRun(ctx, f.scope, f.id)
			if err != nil {
				yield(pawl.Event{}, err)
				return
			}

			stopped := head.State != store.JournalOpen
			began := time.Now()
			changed := head.Records != seen && !began.Before(next)
			if stopped || changed {
				var more bool
				done, more = emit(ctx, stored, done, stopped, yield)
				if !more || stopped {
					return
				}
				seen = head.Records
				next = time.Now().Add(restFactor * time.Since(began))
			}
			w := outageIn(head)
			if w != nil && (said == nil || said.Tries != w.Tries || !said.Since.Equal(w.Since)) {
				said = w
				if !yield(outageNotice(w), nil) {
					return
				}
			}
			select {
			case <-time.After(lookAfter(w)):
			case <-ctx.Done():
				yield(pawl.Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

// lookAfter returns the time to the next look at a run that waits for w. Nil means that it works.
func lookAfter(w *durable.Waiting) time.Duration {
	if w == nil {
		return followEvery
	}
	return min(max(followEvery, time.Until(w.Next)), followWaiting)
}

// emit yields the stored events after the first done ones: the events of whole steps, because the
// order within a step may still change, or all if the run has stopped. The notice about the attempt
// comes at once, so that readers know that the run is followed. emit returns the number of events
// that were yielded so far, and whether more may follow.
func emit(ctx context.Context, stored pawl.Runner, done int, stopped bool,
	yield func(pawl.Event, error) bool) (now int, more bool) {
	var waiting []pawl.Event
	n := 0
	for e, err := range stored.Stream(ctx) {
		if err != nil {
			yield(pawl.Event{}, err)
			return done, false
		}
		n++
		if n <= done {
			continue
		}

		waiting = append(waiting, e)
		whole := n == 1 || isStep(e)
		if !whole && !stopped {
			continue
		}
		for _, w := range waiting {
			if !yield(w, nil) {
				return done, false
			}
		}
		waiting = nil
		done = n
	}
	return done, true
}
