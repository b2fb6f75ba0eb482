package pawl

// new_run.go: checks and collects what a run needs before its first step.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/panics"
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
	check  *inspection // Agent.Check; nil means a run

	engine Engine // makes the run durable; the zero value means none
}

// newRun returns a run that is ready for its first step.
func (a *Agent) newRun(ctx context.Context, from *Result, msgs []llm.Message, o runOptions) (*run, error) {
	r := &run{
		started: *a,
		name:    cmp.Or(a.Name, "agent"),
		key:     cmp.Or(o.key, "run"),
		res:     &Result{},
		inbox:   RunOptionsFrom(ctx).Messages,
		stall:   stall{limit: a.Limits.LoopThreshold},
		parent:  parent{o.inside, o.branch},
	}
	r.agent = &r.started
	r.out.sink = o.emit
	r.setup.rounds = defaultRounds
	if n := a.Limits.Rounds; n != 0 {
		r.setup.rounds = max(n, 0) // NoRounds is negative
	}
	if from != nil {
		r.res.Spent, r.res.Values = from.Spent, from.Values

		// A forced choice (Agent.Choice) is for the first request of a task. A Result that ends
		// with a message of the user has no answer to that task yet.
		n := len(from.Messages)
		r.history.answered = from.Spent.Requests > 0 && (n == 0 || from.Messages[n-1].Role != llm.RoleUser)
	}
	var f faults
	r.prepare(ctx, o, &f)
	if len(f) > 0 {
		return nil, errors.Join(f...)
	}
	if err := r.accept(from, msgs); err != nil {
		return nil, err
	}
	r.join()
	var err error
	r.setup.instructions, r.scope.label, err = r.planned()
	if err != nil {
		return nil, err
	}
	r.history.authors.begin(r.scope.label)
	if o.engine.Bind == nil { // an engine guards the model that it asks: see InnerModel
		r.setup.model = panics.Model(r.setup.model)
	}

	// Last, because a run that does not start must leave the Result to another Resume.
	if err := r.claim(from); err != nil {
		return nil, err
	}
	return r, nil
}

// errResumedTwice is the error of a Resume whose Result has calls that another Resume executes.
var errResumedTwice = errors.New("the open calls of this Result belong to an earlier Resume; continue with the Result " +
	"that it returned. thread.Runner and durable runs execute a decision once, also for copies of a Result")

// claim marks from if this run may execute a write among its open calls. It returns an error if
// another run has marked it: a decision would count twice.
func (r *run) claim(from *Result) error {
	if from == nil {
		return nil
	}
	open, _ := openCalls(r.res.Messages)
	writes := slices.ContainsFunc(open, func(c llm.ToolCall) bool {
		t := find(r.scope.tools, c.Name)
		if t == nil || t.Passive {
			return false // nothing of it is executed here
		}
		return t.Effect.Assumed() == EffectWrite || t.Effect == EffectCompose
	})
	if !writes {
		return nil
	}
	if !atomic.CompareAndSwapUint32(&from.claimed, 0, 1) {
		return errResumedTwice
	}
	r.resumed.claimed = from
	return nil
}

// disclaim releases the Result that the run has marked, if the calls of its first step still wait
// as they did before: their decisions were not used.
func (r *run) disclaim(execs []Execution) {
	from := r.resumed.claimed
	if from == nil {
		return
	}
	r.resumed.claimed = nil
	done := func(x Execution) bool { return x.Outcome.Settled() || newCalls(&x, from.Pending) > 0 }
	if !slices.ContainsFunc(execs, done) {
		atomic.StoreUint32(&from.claimed, 0)
	}
}

// Check returns the faults of the agent, one in a line, or nil. Each names its field, such as
// Tools[2] or Limits.Cost, and says what would be right.
//
// A run makes the same checks when it starts, and returns the same error. Check also finds faults
// of the agents among the tools, except in their middleware, and options of the model that are not
// valid, such as a missing key. A run finds these when it uses them. Check sends nothing to the
// model. It asks each Toolset for its tools, once, within ctx; a run asks again when it starts,
// because tools may change.
func (a *Agent) Check(ctx context.Context) error {
	if err := a.startable(ctx); err != nil {
		return err
	}
	return errors.Join(a.inspect(ctx, &inspection{seen: map[*Agent]bool{}})...)
}

// inspection is the state of Agent.Check.
type inspection struct {
	seen  map[*Agent]bool
	inner bool // the agent is a tool, so that the agent around it may replace its middleware
	costs bool // an agent around this one has a limit on cost
}

func (a *Agent) inspect(ctx context.Context, in *inspection) (f faults) {
	in.seen[a] = true
	r := &run{agent: a, key: "check", res: &Result{}}
	r.prepare(ctx, runOptions{check: in}, &f)
	// a fallback checks all its models
	if m, ok := llm.As[llm.Checker](r.setup.model); ok {
		f.add("Model", m.Check())
	}
	return f
}

// faults are the mistakes in an agent.
type faults []error

// joined is an error of errors.Join.
type joined interface {
	Unwrap() []error
}

// add adds err, or each of the errors that it joins. nil adds nothing.
func (f *faults) add(field string, err error) {
	if err == nil {
		return
	}
	all := []error{err}
	if several, ok := err.(joined); ok {
		all = several.Unwrap()
	}
	for _, err := range all {
		*f = append(*f, &FieldError{field, err})
	}
}

// addIf adds a text if the condition holds.
func (f *faults) addIf(condition bool, field, text string) {
	if condition {
		f.add(field, errors.New(text))
	}
}

// prepare checks the agent, and sets what the run has of it: its model, tools and output.
func (r *run) prepare(ctx context.Context, o runOptions, f *faults) {
	a := r.agent
	r.scope = scope{
		parallel: a.Parallel,
		executor: a.Executor,
		engine:   o.engine,
		canPend:  true,
		whole:    o.whole,
		watched:  o.emit != nil,
	}
	var err error
	r.setup.model, r.scope.layers, r.setup.pricer, err = wrapped(a.Model, a.Middleware)
	if err != nil {
		*f = append(*f, err)
	}
	a.Limits.check(f)
	f.addIf(a.Parallel.Limit < 0, "Parallel.Limit", "it is negative; 0 means 10")
	f.addIf(a.Settings.MaxTokens < 0, "Settings.MaxTokens", "it is negative; 0 means the provider's default")
	for _, name := range slices.Sorted(maps.Keys(a.Settings.Options)) {
		o := a.Settings.Options[name]
		f.addIf(len(o) > 0 && !jsonscan.IsObject(o), "Settings.Options["+name+"]", `not a JSON object, such as {"seed":7}`)
	}
	r.addTools(ctx, a.tools(ctx, o.check, f), o, f)
	if costs := a.Limits.Cost > 0 || o.check != nil && o.check.costs; err == nil && costs && !r.priced() {
		f.add("Limits.Cost", r.unpriced())
	}
}

// tools returns the tools of a.Tools. in is not nil in Agent.Check.
func (a *Agent) tools(ctx context.Context, in *inspection, f *faults) []*Tool {
	all := make([]*Tool, 0, len(a.Tools))
	from := make(map[string]int, len(a.Tools))
	for i, set := range a.Tools {
		tools, err := toolsOf(ctx, set)
		if err != nil {
			f.add(fmt.Sprintf("Tools[%d]", i), err)
		}
		for _, t := range tools {
			err := t.Check()
			if first, ok := from[t.Name]; ok && t.Name != "" {
				err = errors.Join(err, fmt.Errorf(
					"two tools are named %q, and the first is in Tools[%d]; rename one, or put a Prefix around its toolset",
					t.Name, first))
			} else {
				from[t.Name] = i
			}
			if err != nil {
				f.add(fmt.Sprintf("Tools[%d]", i), err)
			}

			// Agents can be tools of each other, so that each is inspected once.
			if in != nil && t.agent != nil && !in.seen[t.agent] {
				inner := &inspection{seen: in.seen, inner: true, costs: in.costs || a.Limits.Cost > 0}
				for _, err := range t.agent.inspect(ctx, inner) {
					f.add(fmt.Sprintf("Tools[%d]", i), fmt.Errorf("agent %s: %w", t.Name, err))
				}
			}
			all = append(all, t)
		}
	}
	return all
}

// addTools adds the tools of the run itself: the reader of artifacts, and the tool for the answer.
// The middleware checks the tools of the agent and the reader.
func (r *run) addTools(ctx context.Context, tools []*Tool, o runOptions, f *faults) {
	a := r.agent
	f.add("Choice", a.Choice.Check(specs(tools)))
	switch {
	case a.Artifacts != nil:
		var err error
		r.scope.shelf, err = r.shelf(ctx)
		f.add("Artifacts", err)
	// A nested run reads and stores in the store of the run around it, under its own keys.
	case o.inside != nil:
		r.scope.shelf = o.inside.work.task.scope.shelf
	}
	if place := r.scope.shelf; place != nil {
		for _, t := range place.tools {
			has := find(tools, t.Name)

			// The agent may have listed the reader among its tools itself.
			f.addIf(has != nil && has != t, "Artifacts",
				"the tool "+t.Name+" reads them; rename the other tool of that name")
			if has != t {
				tools = append(slices.Clip(tools), t)
			}
		}
	}
	if o.check == nil || !o.check.inner {
		for i, w := range a.Middleware {
			f.add(fmt.Sprintf("Middleware[%d]", i), w.check(tools))
		}
		twice(a.Middleware, tools, f)
	}
	if len(a.Output) > 0 {
		var err error
		r.output, err = a.output(r.setup.model, tools)
		f.add("Output", err)
		if err == nil && r.output.tool != nil {
			r.scope.answer = r.output.tool
			tools = append(slices.Clip(tools), r.output.tool)
		}
	}
	r.scope.tools, r.setup.specs, r.setup.deferred = tools, specs(tools), newDeferred(tools, a.Choice)
	if r.scope.executor == nil && !o.whole && slices.ContainsFunc(tools, startsEarly) {
		r.setup.starter = &r.scope.parallel
	}
}

// join gives the run its slots and its budget: from the enclosing run, or its own.
func (r *run) join() {
	r.scope.budget = &r.own
	if v := r.parent.call; v != nil {
		outer := v.work.task.scope
		r.scope.slots, r.scope.depth, r.scope.within = outer.slots, outer.depth+1, v

		// When the nested call has its answer, the call around it runs again from its beginning.
		// Without an engine that replays both runs, its effects would repeat.
		r.scope.canPend = outer.canPend && outer.engine.Replays && r.scope.engine.Replays
		r.resumed.decisions = v.work.task.Decisions
		r.resumed.pending = v.work.task.PendingInside
		r.own.open(&r.agent.Limits, r.res.Spent, outer.budget)
		return
	}
	var around *budget
	if b := r.parent.branch; b != nil {
		r.scope.depth, around = b.Depth, b.around(r.res.Spent)
	}
	r.own.open(&r.agent.Limits, r.res.Spent, around)
	r.slots.Free = r.scope.parallel.limit()
	r.scope.slots = &r.slots
}

// planKey is the name of the run value that holds the strategic plan, a JSON object; see
// team.PlanKey.
const planKey = "strategic_plan"

// planned returns the instructions of the agent with the plan of the run. A nested run has the plan
// of the run around it. The label is the one of the instructions: a plan is a text of a model, and
// what that model had read is not known.
func (r *run) planned() (string, llm.Label, error) {
	plan, ok := r.res.Values[planKey]
	if !ok {
		switch {
		case r.parent.call != nil:
			plan, ok = r.parent.call.plan()
		case r.parent.branch != nil:
			plan = r.parent.branch.Plan
			ok = r.parent.branch.Plan != nil
		}
		if ok {
			r.res.Values = merged(r.res.Values, Values{planKey: plan})
		}
	}
	if !ok {
		label := llm.Operator.Label()
		if r.agent.Label != nil {
			label = r.agent.Label
		}
		return r.agent.Instructions, *label, nil
	}
	block, err := plantext.Block(plan)
	if err != nil {
		return "", llm.Label{}, fmt.Errorf("value %q: %w", planKey, err)
	}
	if r.agent.Instructions == "" {
		return block, llm.Label{}, nil
	}
	return strings.TrimRight(r.agent.Instructions, "\n") + "\n\n" + block, llm.Label{}, nil
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
