package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// flow is the state of a plan in execution.
type flow struct {
	steps []*node
	made  int // calls made so far
}

// node is a step with its references and its results.
type node struct {
	step
	number int
	tree   any   // decoded args; nil means that they contain no references
	refs   []ref // references in args
	wave   int   // index of the steps that run together, from 0
	runs   []runOf
	status string
	reason string // why the step has no result
}

// runOf is one call of a step: its only call, or the call for one item of each.
type runOf struct {
	item    any
	index   int
	call    llm.ToolCall
	skipped string // why the call was not made; empty means that it was made
	failed  string // why the call could not be made
	done    *pawl.Execution
}

// possible reports whether the call can be made.
func (r *runOf) possible() bool { return r.skipped == "" && r.failed == "" }

const (
	statusOK      = "ok"
	statusError   = "error"
	statusSkipped = "skipped"
)

// newFlow returns the plan of steps without references.
func newFlow(steps []step) *flow {
	p := &flow{steps: make([]*node, len(steps))}
	for i, s := range steps {
		p.steps[i] = &node{step: s, number: i}
	}
	return p
}

// waves returns the steps in waves; the steps of one wave run together.
func (p *flow) waves() [][]*node {
	var out [][]*node
	for _, n := range p.steps {
		for len(out) <= n.wave {
			out = append(out, nil)
		}
		out[n.wave] = append(out[n.wave], n)
	}
	return out
}

// calls returns the calls of a wave. A call that cannot be made is recorded in its step.
func (p *flow) calls(wave []*node) []llm.ToolCall {
	var calls []llm.ToolCall
	for _, n := range wave {
		p.expand(n)
		for i := range n.runs {
			if n.runs[i].possible() {
				calls = append(calls, n.runs[i].call)
			}
		}
	}
	p.made += len(calls)
	return calls
}

// record stores the executions of a wave's calls, which are in the order of calls.
func (p *flow) record(wave []*node, executions []pawl.Execution) {
	for _, n := range wave {
		for i := range n.runs {
			if n.runs[i].possible() {
				n.runs[i].done = &executions[0]
				executions = executions[1:]
			}
		}
	}
}

// expand creates the calls of a step whose sources have ended.
func (p *flow) expand(n *node) {
	for _, d := range n.sources() {
		src := p.steps[d]
		switch {
		case src.settled() == statusSkipped:
			n.status = statusSkipped
			n.reason = fmt.Sprintf("Not run: it takes from step %d, which was skipped.", d)
			return
		case src.settled() == statusError && src.Each == nil:
			// Of a source with each, the items that succeeded are still of use; the others are
			// null.
			n.status = statusError
			n.reason = fmt.Sprintf("Not run: it takes from step %d, which failed.", d)
			return
		}
	}

	if n.Each == nil {
		n.runs = []runOf{p.make(n, nil, 0)}
		return
	}

	list, fault := p.list(n)
	if left := p.left(n); fault == "" && len(list) > left {
		fault = fmt.Sprintf("Not run: each: %s has %d items, and the plan can make %d more calls (%d in all). "+
			"Take fewer, or send the rest in another plan.", n.Each.From, len(list), left, maxCalls)
	}
	if fault != "" {
		n.status = statusError
		n.reason = fault
		return
	}

	n.runs = make([]runOf, len(list))
	for i, item := range list {
		n.runs[i] = p.make(n, item, i)
	}
}

// left returns how many calls n may make: the limit minus the calls made and minus one for each
// later step.
func (p *flow) left(n *node) int {
	used := p.made
	for _, m := range p.steps {
		switch {
		case m == n || m.wave < n.wave:
		case m.wave == n.wave && m.number < n.number:
			used += len(m.runs)
		default:
			used++
		}
	}
	return max(maxCalls-used, 0)
}

// list returns the items for which the step runs.
func (p *flow) list(n *node) ([]any, string) {
	v, err := p.value(n.Each.ref, nil)
	if err != nil {
		return nil, "Not run: each: " + err.Error() + "."
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Sprintf("Not run: each takes a list, and %s is %s.", n.Each.From, kindOf(v))
	}
	return list, ""
}

// make creates one call of a step.
func (p *flow) make(n *node, item any, index int) runOf {
	r := runOf{item: item, index: index, call: llm.ToolCall{Name: n.Tool, Args: n.Args}}
	// A condition that cannot be decided must not count as false: the step fails.
	if n.When != nil {
		holds, err := p.holds(n.When, &r)
		switch {
		case err != nil:
			r.failed = "Not run: when: " + err.Error() + "."
			return r
		case !holds:
			r.skipped = "Not run: its when does not hold."
			return r
		}
	}

	if n.tree == nil {
		return r
	}
	filled, err := p.filled(n.tree, &r)
	if err == nil {
		r.call.Args, err = jsonform.Marshal(filled)
	}
	if err != nil {
		r.failed = "Not run: args: " + err.Error() + "."
	}
	return r
}

// sources returns the steps whose values n uses.
func (n *node) sources() []int {
	var out []int
	for _, r := range n.allRefs() {
		if r.step >= 0 {
			out = append(out, r.step)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// settled returns the status of the step over all of its calls.
func (n *node) settled() string {
	if n.status != "" {
		return n.status
	}
	n.status = statusOK
	if n.Each == nil {
		n.status = n.runs[0].status()
		return n.status
	}
	for i := range n.runs {
		if n.runs[i].status() == statusError {
			n.status = statusError
		}
	}
	return n.status
}

func (r *runOf) status() string {
	switch {
	case r.skipped != "":
		return statusSkipped
	case r.failed != "", r.done.Outcome != pawl.OutcomeOK:
		return statusError
	}
	return statusOK
}

// announce emits a progress event that names the calls about to run and marks the calls that may
// change something outside.
func (p *flow) announce(v *pawl.Invocation) {
	var writes []string
	last := 0
	for _, n := range p.steps {
		last = max(last, n.wave)
		t := toolOf(v, n.Tool)
		if t == nil {
			continue
		}
		switch t.Effect.Assumed() {
		case pawl.EffectWrite, pawl.EffectIdempotent:
			writes = append(writes, fmt.Sprintf("step %d (%s)", n.number, n.Tool))
		}
	}

	text := fmt.Sprintf("a plan of %d steps in %d waves", len(p.steps), last+1)
	if len(writes) > 0 {
		text += "; these may change the world: " + strings.Join(writes, ", ")
	}
	v.Emit(text, nil)
}
