package durable

// step.go: step, which lets the records of calls that start or end at the same time share a commit.

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// gather is the time that a record waits for others in the same commit.
const gather = 2 * time.Millisecond

// step is the open calls of one step, or of one Invocation.Do. A record waits for the records that
// are about to be added, and not for a clock:
//
//	in parallel:  intents of all ─▶ commit ─▶ ends of all ─▶ commit
//	in order:     intent 1 ─▶ commit ─▶ end 1, intent 2 ─▶ commit ─▶ end 2 ─▶ commit
//
// The clock (gather) limits the wait, since a call may be held up: by a policy, by a slot, by its
// own work.
type step struct {
	ctx context.Context // of the run

	mu      sync.Mutex
	waits   map[llm.Key]int         // the number of calls that a call waits for
	then    map[llm.Key][]llm.Key   // the calls that wait for a call
	coming  map[llm.Key]bool        // calls that have their turn, and have not started yet
	reads   map[llm.Key]pawl.Effect // of the calls that started without an intent
	running int                     // calls that execute
	added   map[llm.Key]int         // the number of added records that have the end of a call
	came    chan struct{}           // closed when no call is coming; nil means that nothing waits
	quiet   chan struct{}           // closed when none runs either, or after a commit; as came
}

// newStep returns the step of tasks. A call that executes no tool, or only other calls, is not
// awaited.
func newStep(ctx context.Context, tasks []pawl.Task) *step {
	st := &step{
		ctx:    ctx,
		waits:  map[llm.Key]int{},
		then:   map[llm.Key][]llm.Key{},
		coming: map[llm.Key]bool{},
		reads:  map[llm.Key]pawl.Effect{},
		added:  map[llm.Key]int{},
	}

	// StopOnBlock holds more calls back than this order. A commit then waits for the whole of
	// gather.
	before := pawl.Parallel{}.Order(tasks)
	for i, t := range tasks {
		tool := t.Tool()
		if tool == nil || tool.Effect == pawl.EffectCompose || t.Refuse != "" {
			continue
		}
		if before == nil || len(before[i]) == 0 {
			st.coming[t.Key] = true
			continue
		}
		st.waits[t.Key] = len(before[i])
		for _, j := range before[i] {
			st.then[tasks[j].Key] = append(st.then[tasks[j].Key], t.Key)
		}
	}
	return st
}

// enter records that a call executes.
func (st *step) enter() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.running++
}

// startsRead records that the call at key starts without an intent, because it only reads.
func (st *step) startsRead(key llm.Key, effect pawl.Effect) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.reads[key] = effect
	st.arrive(key)
}

// readEffect returns the effect of a call that started without an intent. The zero value means that
// it did not.
func (st *step) readEffect(key llm.Key) pawl.Effect {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.reads[key]
}

// intends records that the intent of the call at key is added.
func (st *step) intends(key llm.Key) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.arrive(key)
}

// ends records that the end of the call at key is among the first added records of the session. The
// calls that waited for it have their turn.
func (st *step) ends(key llm.Key, added int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.running--
	st.added[key] = added
	for _, next := range st.then[key] {
		st.waits[next]--
		if st.waits[next] == 0 {
			st.coming[next] = true
		}
	}
	delete(st.then, key)
	st.arrive(key)
}

// addedBy returns the number of added records that have the end of the call at key. 0 means that it
// has no record.
func (st *step) addedBy(key llm.Key) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.added[key]
}

// arrive records that the call at key is not coming any more. st.mu is locked.
func (st *step) arrive(key llm.Key) {
	delete(st.coming, key)
	if len(st.coming) > 0 {
		return
	}
	release(&st.came)
	if st.running == 0 {
		release(&st.quiet)
	}
}

// stored records that a commit has records of the step.
func (st *step) stored() {
	st.mu.Lock()
	defer st.mu.Unlock()
	release(&st.quiet)
}

// awaitIntents waits for the calls that are coming.
func (st *step) awaitIntents() {
	st.await(&st.came, func() bool { return len(st.coming) == 0 })
}

// awaitEnds waits for the calls that are coming or running, unless the record of the caller is
// stored meanwhile.
func (st *step) awaitEnds(isStored func() bool) {
	st.await(&st.quiet, func() bool { return len(st.coming) == 0 && st.running == 0 || isStored() })
}

// await waits until isOver, for no longer than gather. *changed is closed when isOver may have
// changed. isOver is called with st.mu locked.
func (st *step) await(changed *chan struct{}, isOver func() bool) {
	var limit <-chan time.Time
	for {
		st.mu.Lock()
		if isOver() {
			st.mu.Unlock()
			return
		}
		if *changed == nil {
			*changed = make(chan struct{})
		}
		change := *changed
		st.mu.Unlock()

		if limit == nil {
			limit = time.After(gather)
		}
		select {
		case <-change:
		case <-limit:
			return
		}
	}
}

// release closes *c, if anything waits for it.
func release(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
