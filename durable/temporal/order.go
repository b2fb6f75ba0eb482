package temporal

import (
	"slices"

	"github.com/pawl-go/pawl"
	"go.temporal.io/sdk/workflow"
)

// order is the order of the calls of one step; see pawl.Parallel.Order.
type order struct {
	before [][]int // nil means that no call waits
	tasks  []pawl.Task
	states []callState
	old    bool // a version in which no call asks before its turn
}

// callState is the state of a call in its order.
type callState int

const (
	callRuns  callState = iota // or has not started
	callOpen                   // it has a question, or waits for a call that has one
	callEnded                  // the calls that it waits for have ended, too
)

// newOrder returns the order of tasks. Before version 3 of the state, each call of a tool with
// Serial keys waited for the one before it, and no other call waited.
func (x *executor) newOrder(tasks []pawl.Task) *order {
	o := &order{tasks: tasks, states: make([]callState, len(tasks)), old: x.flow.in.State < 3}
	if !o.old {
		o.before = pawl.Parallel{}.Order(tasks)
		return o
	}
	o.before = make([][]int, len(tasks))
	last := -1
	for i := range tasks {
		if def := x.remote[tasks[i].Tool()]; def != nil && def.Serial {
			if last >= 0 {
				o.before[i] = []int{last}
			}
			last = i
		}
	}
	return o
}

// turn is the place of a call in its order, on the coroutine of the call. A nil turn waits for
// nothing.
type turn struct {
	*order
	index     int
	coroutine workflow.Context
}

// begin waits until the call may execute or ask its question: no call that it waits for runs.
func (t *turn) begin() {
	if t.old {
		t.until(callEnded)
	} else {
		t.until(callOpen)
	}
}

// heldBy returns the name of an earlier call with a question that the call waits for.
func (t *turn) heldBy() string {
	if t == nil || t.before == nil {
		return ""
	}
	name := ""
	for at := t.openBefore(t.index); at >= 0; at = t.openBefore(at) {
		name = t.tasks[at].Call.Name
	}
	return name
}

func (o *order) openBefore(i int) int {
	for _, j := range o.before[i] {
		if o.states[j] != callEnded {
			return j
		}
	}
	return -1
}

// open records that the call has a question.
func (t *turn) open() {
	if t != nil {
		t.states[t.index] = callOpen
	}
}

// wait lets the calls that wait for this one ask their questions, and waits until all calls that it
// waits for itself have ended.
func (t *turn) wait() {
	if t != nil {
		t.open()
		t.until(callEnded)
	}
}

// finish records that the call has ended, when the calls that it waits for have, too.
func (t *turn) finish() {
	t.wait()
	t.states[t.index] = callEnded
}

// until waits until all calls that the call waits for have at least the state at, or the run has
// ended.
func (t *turn) until(at callState) {
	reached := func() bool {
		return t.before == nil ||
			!slices.ContainsFunc(t.before[t.index], func(j int) bool { return t.states[j] < at })
	}
	if !reached() {
		_ = workflow.Await(t.coroutine, reached)
	}
}
