package pawl

// new_run.go: checks and collects what a run needs before its first step.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/plantext"
	"github.com/pawl-go/pawl/llm"
)

// runOptions are the differences between the ways to start a run.
type runOptions struct {
	whole  bool
	emit   func(Event) // nil means no events
	inside *Invocation // call that the run is nested in; nil means none
	key    llm.Key     // key of the run; "" means "run"
	branch *Branch     // the run is nested in a call of another process; nil means that it is not

	engine Engine // makes the run durable; the zero value means none
}

// newRun returns a run that is ready for its first step.
func (a *Agent) newRun(ctx context.Context, from *Result, msgs []llm.Message, o runOptions) (*run, error) {
	tools, err := a.checkedTools(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{agent: a, name: cmp.Or(a.Name, "agent"), key: cmp.Or(o.key, "run"), res: &Result{},
		inbox: MessageSourceFrom(ctx), stall: stall{limit: a.Limits.LoopThreshold}, parent: parent{o.inside, o.branch}}
	r.out.sink = o.emit
	r.setup.rounds = defaultRounds
	if n := a.Limits.Rounds; n != 0 {
		r.setup.rounds = max(n, 0) // NoRounds is negative
	}
	if from != nil {
		r.res.Spent, r.res.Values = from.Spent, from.Values
	}
	if err := r.accept(from, msgs); err != nil {
		return nil, err
	}
	r.scope = scope{executor: a.Executor, engine: o.engine, canPend: true, whole: o.whole, watched: o.emit != nil}
	if r.scope.executor == nil {
		r.scope.executor = Parallel{}
	}
	if err := r.addTools(ctx, tools, o); err != nil {
		return nil, err
	}
	r.join()
	r.setup.model, r.scope.layers, r.setup.pricer = wrapped(a.Model, a.Middleware)
	if r.setup.instructions, err = r.planned(); err != nil {
		return nil, err
	}
	return r, nil
}

// checkedTools returns the tools of a.Tools. The error is about the agent: no model, a tool that
// cannot be used, a choice of a tool that it does not have.
func (a *Agent) checkedTools(ctx context.Context) ([]*Tool, error) {
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
	return tools, nil
}

// addTools adds the tools of the run itself: the reader of artifacts, and the tool for the answer.
// The middleware checks the tools of the agent and the reader.
func (r *run) addTools(ctx context.Context, tools []*Tool, o runOptions) (err error) {
	a := r.agent
	switch {
	case a.Artifacts != nil:
		if r.scope.shelf, err = r.shelf(ctx); err != nil {
			return err
		}
	case o.inside != nil:
		r.scope.shelf = o.inside.work.task.scope.shelf
	}
	if place := r.scope.shelf; place != nil {
		for _, t := range place.tools {
			if find(tools, t.Name) != nil {
				return fmt.Errorf("tool %s: an agent with Artifacts needs the name; rename the tool", t.Name)
			}
		}
		tools = append(slices.Clip(tools), place.tools...)
	}
	for _, w := range a.Middleware {
		if w.Check != nil {
			if err := w.Check(tools); err != nil {
				return err
			}
		}
	}
	if len(a.Output) > 0 {
		if r.output, err = a.output(tools); err != nil {
			return err
		}
		if t := r.output.tool; t != nil {
			r.scope.answer = t
			tools = append(slices.Clip(tools), t)
		}
	}
	r.scope.tools, r.setup.specs, r.setup.deferred = tools, specs(tools), newDeferred(tools, a.Choice)
	if p, ok := r.scope.executor.(Parallel); ok && !o.whole && slices.ContainsFunc(tools, startsEarly) {
		r.setup.starter = &p
	}
	return nil
}

// join gives the run its slots and its budget: from the enclosing run, or its own.
func (r *run) join() {
	r.scope.budget = &r.own
	if v := r.parent.call; v != nil {
		outer := v.work.task.scope
		r.scope.slots, r.scope.depth, r.scope.within = outer.slots, outer.depth+1, v
		r.scope.canPend = outer.canPend && outer.engine.Replays && r.scope.engine.Replays
		r.resumed.decisions, r.resumed.pending = v.work.task.Decisions, v.work.task.PendingInside
		r.own.open(&r.agent.Limits, r.res.Spent, outer.budget)
		return
	}
	var around *budget
	if b := r.parent.branch; b != nil {
		r.scope.depth, around = b.Depth, b.around(r.res.Spent)
	}
	r.own.open(&r.agent.Limits, r.res.Spent, around)
	r.slots.free = defaultParallel
	if p, ok := parallelOf(r.scope.executor); ok {
		r.slots.free = p.limit()
	}
	r.scope.slots = &r.slots
}

// scope is the part of a run that its calls share.
type scope struct {
	tools    []*Tool
	answer   *Tool  // tool of tools that takes the answer; nil means an answer as text
	layers   layers // middleware around calls
	executor Executor
	slots    *slots // semaphore of the outermost run, shared by nested calls and runs
	budget   *budget
	watched  bool        // the events of the calls have a receiver
	depth    int         // nesting depth of calls
	within   *Invocation // call that these calls are nested in; nil means none
	engine   Engine      // makes the run durable; the zero value means none
	canPend  bool        // calls may become pending
	whole    bool        // replies are requested whole
	remote   bool        // the run is in another process
	shelf    *shelf      // storage for results that are too large for the model; nil means none
}

// planKey is the name of the run value that holds the strategic plan, a JSON object; see
// team.PlanKey.
const planKey = "strategic_plan"

// planned returns the instructions of the agent with the plan of the run. A nested run has the plan
// of the run around it.
func (r *run) planned() (string, error) {
	plan, ok := r.res.Values[planKey]
	if !ok {
		switch {
		case r.parent.call != nil:
			plan, ok = r.parent.call.plan()
		case r.parent.branch != nil:
			plan, ok = r.parent.branch.Plan, r.parent.branch.Plan != nil
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

// plan returns the plan for runs that are nested in the call.
func (v *Invocation) plan() (json.RawMessage, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b, ok := v.set[planKey]; ok {
		return b, true
	}
	b, ok := v.work.task.Values[planKey]
	return b, ok
}
