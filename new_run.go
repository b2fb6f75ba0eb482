package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/plantext"
	"github.com/pawl-go/pawl/llm"
)

// runOptions is what differs between the ways to start a run.
type runOptions struct {
	whole  bool
	emit   func(Event) // nil: nobody watches
	inside *Invocation // the call that the run is made in; nil: none
	key    llm.Key     // name of the run; "": "run"
	branch *Branch     // the run is made inside of a call elsewhere; nil: it is not

	engine Engine // makes the run durable; the zero value means none
}

func (a *Agent) prepare(ctx context.Context, from *Result, msgs []llm.Message, o runOptions) (*run, error) {
	if a.Model == nil {
		return nil, errors.New("agent has no model")
	}
	tools, err := Toolsets(a.Tools).Tools(ctx)
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	for _, t := range tools {
		if err := t.Check(); err != nil {
			return nil, err
		}
	}
	if len(tools) > 0 {
		if err := a.Choice.Check(specs(tools)); err != nil {
			return nil, err
		}
	}
	r := &run{agent: a, name: a.Name, key: o.key, whole: o.whole, sink: o.emit, res: &Result{}, rounds: a.Limits.rounds(defaultRounds),
		stall: stall{limit: a.Limits.LoopThreshold}}
	if r.name == "" {
		r.name = "agent"
	}
	if r.key == "" {
		r.key = "run"
	}
	if from != nil {
		r.res.Spent, r.res.Values = from.Spent, from.Values
	}
	if err := r.take(from, msgs); err != nil {
		return nil, err
	}
	place, err := r.shelf(ctx, o)
	if err != nil {
		return nil, err
	}
	if place != nil {
		for _, t := range place.tools {
			if find(tools, t.Name) != nil {
				return nil, fmt.Errorf("tool %s: an agent with Artifacts needs the name; rename the tool", t.Name)
			}
		}
		tools = append(slices.Clip(tools), place.tools...)
	}
	for _, w := range a.Middleware {
		if w.Check != nil {
			if err := w.Check(tools); err != nil {
				return nil, err
			}
		}
	}
	if r.output, err = a.output(tools); err != nil {
		return nil, err
	}
	if r.output != nil && r.output.tool != nil {
		tools = append(slices.Clip(tools), r.output.tool)
	}
	r.scope = scope{tools: tools, answer: r.output.answerTool(), executor: a.Executor, waits: true, whole: o.whole, watched: o.emit != nil, shelf: place}
	r.specs = specs(tools)
	r.later = newLater(tools, a.Choice)
	if r.scope.executor == nil {
		r.scope.executor = Parallel{}
	}
	if p, ok := r.scope.executor.(Parallel); ok && !o.whole && slices.ContainsFunc(tools, headStart) {
		r.beginner = &p
	}
	r.scope.engine = o.engine
	r.model, r.scope.layers, r.pricer = wrapped(a.Model, a.Middleware)
	r.inbox = MessageSourceFrom(ctx)
	if o.inside != nil {
		outer := o.inside.work.task.scope
		r.scope.slots, r.scope.depth = outer.slots, outer.depth+1
		r.scope.waits = outer.waits && outer.engine.Replays && r.scope.engine.Replays
		r.decisions, r.waiting = o.inside.work.task.Decisions, o.inside.work.task.PendingInside
		r.scope.within, r.inside = o.inside, o.inside
		r.own.open(&a.Limits, r.res.Spent, outer.budget)
	} else {
		var around *budget
		if o.branch != nil {
			r.scope.depth, around = o.branch.Depth, o.branch.around(r.res.Spent)
			r.branch = o.branch
		}
		limit := defaultParallel
		if p, ok := parallelOf(r.scope.executor); ok {
			limit = p.limit()
		}
		r.slots.free = limit
		r.scope.slots = &r.slots
		r.own.open(&a.Limits, r.res.Spent, around)
	}
	r.scope.budget = &r.own
	if r.instructions, err = r.planned(); err != nil {
		return nil, err
	}
	return r, nil
}

// scope is what the calls of a run share.
type scope struct {
	tools    []*Tool
	answer   *Tool  // one of tools, by which the answer is given; nil: as text
	layers   layers // the middleware around calls
	executor Executor
	slots    *slots // one semaphore a run, inner calls and inner runs included
	budget   *budget
	watched  bool        // whether anybody observes the events of the calls
	depth    int         // of calls inside calls
	within   *Invocation // the call that these calls are made in; nil: none
	engine   Engine      // makes the run durable; the zero value means none
	waits    bool        // whether a call may pend here
	whole    bool        // whether replies are asked for whole
	away     bool        // whether the run is carried out in another process
	shelf    *shelf      // where what is too large for the model is kept; nil: nowhere
}

// planKey names the value of a run that is its strategic plan: a JSON object, see team.PlanKey.
const planKey = "strategic_plan"

// planned returns the agent's instructions with the plan that the run has been given; a run inside a call has that of the run around it.
func (r *run) planned() (string, error) {
	plan, ok := r.res.Values[planKey]
	if !ok {
		switch {
		case r.inside != nil:
			plan, ok = r.inside.plan()
		case r.branch != nil:
			plan, ok = r.branch.Plan, r.branch.Plan != nil
		}
		if ok {
			r.res.Values = merged(r.res.Values, Values{planKey: plan})
		}
	}
	if !ok {
		return r.agent.Instructions, nil
	}
	block, err := plantext.Block(plan)
	if err != nil {
		return "", fmt.Errorf("value %q: %w", planKey, err)
	}
	if r.agent.Instructions == "" {
		return block, nil
	}
	return strings.TrimRight(r.agent.Instructions, "\n") + "\n\n" + block, nil
}

// plan returns the plan that runs made inside the call are shown.
func (v *Invocation) plan() (json.RawMessage, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b, ok := v.set[planKey]; ok {
		return b, true
	}
	b, ok := v.work.task.Values[planKey]
	return b, ok
}
