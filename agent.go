package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Agent is a model with tools, instructions and limits. Fill in a literal; only Model is required. An Agent may be used by many
// runs at once and must not be changed meanwhile.
type Agent struct {
	Name         string          // for events and records; "": "agent"
	Instructions string          // put in front of the conversation as a system message; "": none
	Model        llm.Model       // what decides
	Tools        []Toolset       // what it may call, in the order it sees them
	Choice       llm.ToolChoice  // for the first request of a run; then a forced choice is auto
	Output       json.RawMessage // JSON Schema that the answer must fit: see Result.Output; nil: free text
	Limits       Limits          // zero: 20 rounds
	Executor     Executor        // nil: Parallel{}
	Middleware   []Middleware    // around model requests and calls; the first is outermost
	Settings     llm.Settings    // sent with each request
	Artifacts    Artifacts       // keeps what results are too long to tell, and offers result_read to read it; nil: it is lost, or kept by the run around
}

// Limits bound a run, the calls and runs inside it included. What was used survives Resume. Reaching a limit is never
// reported as success: the run stops with StopLimit, and Result.Cause names the limit.
//
// A model turns in a circle when it makes the same call to the same result, Repeats times among twice as many calls, or when calls of one tool
// fail in as many steps with nothing between them that worked. It is told so in the result; a call made as often again, or failures in three
// times as many steps, end the run with StopStalled.
type Limits struct {
	Rounds        int           // steps whose calls are carried out; 0: 20 (Run), 1 (Generate); NoRounds: none. N rounds make at most N+1 requests
	Calls         int           // calls begun; those past it are answered with a result that says so; 0: no limit
	CallsPerStep  int           // calls of one reply that are carried out; the rest are answered so; 0: no limit
	Tokens        int           // input and output, over all requests; 0: no limit
	Cost          float64       // US dollars; the Model must be a Pricer, or the run fails at once; 0: no limit
	Time          time.Duration // from the start of Run, Stream or Resume; 0: no limit
	Corrections   int           // answers that do not fit Agent.Output and are sent back, each a request more; 0: 2; negative: none
	LoopThreshold int           `json:"Repeats"` // how often a model may turn in a circle before it is told so, see below; 0: 3; at most 50; negative: for ever
	AtLimit       AtLimit       // what the last request is when a limit is reached
}

// NoRounds as Limits.Rounds: no call is ever run.
const NoRounds = -1

const defaultRounds = 20

// AtLimit is what a run does with its last request: when the rounds are used up, when a call was refused for Limits.Calls, and when one more request like
// the last would reach Limits.Tokens or Limits.Cost.
type AtLimit int

const (
	AtLimitDefault AtLimit = iota // Answer for Run and Stream, Return for Generate
	AtLimitAnswer                 // ask with tool choice none, so that there is an answer
	AtLimitReturn                 // ask as usual, and hand the calls back to the caller, not run
)

// rounds returns the number of rounds; n is the default.
func (l Limits) rounds(n int) int {
	switch {
	case l.Rounds < 0:
		return 0
	case l.Rounds == 0:
		return n
	}
	return l.Rounds
}

// Runner is whatever carries out a task and tells of it: an Agent, a team, a durable or a remote run. The sequence ends after
// run_ended, which carries the Result, or with an error; a run that fails yields both, the event first.
// Breaking out of the loop ends the run; what it left open stays open.
type Runner interface {
	Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[Event, error]
}

var _ Runner = (*Agent)(nil)

// Run carries out the task in msgs, a transcript or a single message, and returns how it ended. Replies are asked for whole.
//
// The error is not nil when the run failed (the model did, a tool aborted it, msgs are no conversation) or ctx ended with a
// cause other than ErrCancelled. The Result is there all the same, unless nothing was begun: it can be resumed.
func (a *Agent) Run(ctx context.Context, msgs ...llm.Message) (*Result, error) {
	return a.run(ctx, nil, msgs, runOptions{whole: true})
}

// Stream carries out the same run as Run, and tells of it as it happens. Replies are streamed.
func (a *Agent) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[Event, error] {
	return a.stream(ctx, nil, msgs)
}

// Resume goes on from a Result: open calls are settled first, with the Decisions and results in msgs; other messages follow them.
// What was spent counts on. Messages that are neither cannot be given while calls still pend unanswered: the error says which.
func (a *Agent) Resume(ctx context.Context, from *Result, msgs ...llm.Message) (*Result, error) {
	return a.run(ctx, from, msgs, runOptions{whole: true})
}

// ResumeStream is Resume, told as it happens.
func (a *Agent) ResumeStream(ctx context.Context, from *Result, msgs ...llm.Message) iter.Seq2[Event, error] {
	return a.stream(ctx, from, msgs)
}

// Generate is the client-level call: a run of a with one round at most, whose further calls are handed back, unless
// a.Limits says otherwise. The Result has every step and the summed usage.
func Generate(ctx context.Context, a *Agent, msgs ...llm.Message) (*Result, error) {
	g := *a
	g.Limits.Rounds = max(g.Limits.rounds(1), 0)
	if g.Limits.Rounds == 0 {
		g.Limits.Rounds = NoRounds
	}
	if g.Limits.AtLimit == AtLimitDefault {
		g.Limits.AtLimit = AtLimitReturn
	}
	return g.Run(ctx, msgs...)
}

var errBroken = errors.New("the caller broke off")

func (a *Agent) stream(ctx context.Context, from *Result, msgs []llm.Message) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		more := true
		_, err := a.run(ctx, from, msgs, runOptions{emit: func(e Event) {
			if more && !yield(e, nil) {
				more = false
				cancel(errBroken)
			}
		}})
		if err != nil && more {
			yield(Event{}, err)
		}
	}
}

// runOptions is what differs between the ways to start a run.
type runOptions struct {
	whole  bool
	emit   func(Event) // nil: nobody watches
	inside *Invocation // the call that the run is made in; nil: none
	key    llm.Key     // name of the run; "": "run"
	branch *Branch     // the run is made inside of a call elsewhere; nil: it is not

	durable string // the ID that an engine knows it by; "": there is none
}

// run prepares a run, goes through the loop, and closes it.
func (a *Agent) run(ctx context.Context, from *Result, msgs []llm.Message, o runOptions) (*Result, error) {
	e := engineOf(ctx, o.inside)
	if o.durable = e.run; e.engine != nil {
		a = e.engine.Bind(a)
	}
	r, err := a.prepare(ctx, from, msgs, o)
	if err != nil {
		return nil, err
	}
	if d := a.Limits.Time; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = endsAfter(ctx, d)
		defer cancel()
	}
	defer r.leave(ctx) // where a model or whoever watches panics
	if r.sink != nil {
		r.emit(Event{Kind: EventRunStarted, Agent: r.name, Offered: r.scope.tools})
		r.tellMends()
	}
	stop, err := StopFailed, r.affordable()
	if err == nil {
		stop, err = r.loop(ctx)
	}
	r.leave(ctx)
	r.res.Stop = stop
	r.res.Messages = append(r.res.Messages, r.then...) // what still waits for open calls is not lost
	ended := Event{Kind: EventRunEnded, Result: r.res}
	if err != nil {
		ended.Error = err.Error()
		if r.res.Cause == "" {
			r.res.Cause = err.Error()
		}
	}
	r.emit(ended)
	return r.res, err
}

// leave ends what the run has begun and holds; once is enough.
func (r *run) leave(ctx context.Context) {
	r.drop()
	r.paid(llm.Usage{})
	if in := r.inbox; in != nil {
		r.inbox = nil
		r.res.Unread = in.Close(ctx)
	}
	if r.branch != nil {
		r.branch.refused(r.own.outer)
	}
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
	if b, ok := r.scope.executor.(Beginner); ok && !o.whole && slices.ContainsFunc(tools, headStart) {
		r.beginner = b
	}
	r.scope.replays, r.scope.durable = replays(r.scope.executor), o.durable
	r.scope.recorder, _ = r.scope.executor.(Recorder)
	r.model, r.scope.layers, r.pricer = wrapped(a.Model, a.Middleware)
	r.inbox = MessageSourceFrom(ctx)
	if o.inside != nil {
		outer := o.inside.work.task.scope
		r.scope.slots, r.scope.depth = outer.slots, outer.depth+1
		r.scope.waits = outer.waits && outer.replays && r.scope.replays
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
