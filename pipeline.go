package pawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// Do carries out the call: THE PIPELINE, the same for every call, whoever made it. It never fails; what went wrong is in the
// Execution, and in its Result, worded for the model.
//
//	known? ▶ arguments parse, repair ▶ coerce, validate ▶ before-middleware (change, block) ▶ validate again ▶ approval
//	▶ middleware around approved calls ▶ budget ▶ slot ▶ timeout, retry ▶ run, recover ▶ after-middleware ▶ cap ▶ result
//
// emit is called with what happens on the way, from goroutines of the call too, but never after Do returned.
func (t Task) Do(ctx context.Context, emit func(Event)) Execution { return *t.do(ctx, emit) }

// do is Do without a copy of the Execution, which nobody changes any more.
func (t *Task) do(ctx context.Context, emit func(Event)) *Execution {
	if t.begun != nil {
		return t.begun.follow(ctx, t, emit)
	}
	p := t.work
	if p == nil || p.task != nil { // the task is in no batch, or is done once more
		p = new(work)
	}
	p.task, p.emit, p.x = t, emit, newExecution(t)
	res, err := p.checked(ctx)
	p.settle(ctx, res, err)
	p.x.Ended = time.Now()
	return &p.x
}

func newExecution(t *Task) Execution {
	return Execution{Key: t.Key, Index: t.Index, Call: t.Call, Attempts: t.Attempt, Started: time.Now(), here: true}
}

// work is a call on its way through the pipeline. Its fields belong to the goroutine that executes the call, except for the atomic ones
// and the Invocation: a work in a batch may be abandoned by another goroutine.
type work struct {
	task *Task
	emit func(Event)
	x    Execution // its Call is the one that was last validated
	tool *Tool
	inv  Invocation

	batch   *batch // nil means that the call is waited for, however long it takes
	index   int    // in batch
	state   atomic.Int32
	started atomic.Pointer[Execution] // x when the last attempt started; nil before the first
	watched atomic.Pointer[Execution] // the attempt whose timer runs
	slot    atomic.Bool               // whether it holds a slot
}

// failure is an error of the pipeline itself, with its outcome and its words for the model.
type failure struct {
	outcome Outcome
	text    string // for the model
	err     error  // for the record; may be nil
	repeat  bool   // the same call may work when it is repeated
	limit   int    // Limits.Calls, which refused it
}

func (f *failure) Error() string {
	if f.err != nil {
		return f.err.Error()
	}
	return f.text
}

func (f *failure) Unwrap() error { return f.err }

func fail(o Outcome, format string, args ...any) error {
	return &failure{outcome: o, text: fmt.Sprintf(format, args...)}
}

// checked looks the tool up, validates the call, and sends it through the middleware.
func (p *work) checked(ctx context.Context) (res llm.ToolResult, err error) {
	s := p.task.scope
	switch {
	case s == nil:
		return res, fail(OutcomeError, "The call cannot be carried out here.")
	case p.task.Refuse != "":
		return res, fail(OutcomeSkipped, "%s", p.task.Refuse)
	case ctx.Err() != nil:
		return res, notBegun(ctx)
	}
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	if p.x.Call, err = p.validate(p.task.Call, true); err != nil {
		return res, err
	}
	p.inv.Key, p.inv.Agent, p.inv.Call, p.inv.work = p.task.Key, p.task.Agent, p.x.Call, p
	l := &s.layers
	ctx = context.WithValue(ctx, invocationKey{}, &p.inv)
	switch {
	case l.tool != nil:
		res, err = l.tool(p.admitted)(ctx, p.x.Call)
	case l.approved != nil:
		res, err = p.admitted(ctx, p.x.Call)
	default:
		return p.admitted(ctx, p.x.Call)
	}
	if err != nil && ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) && !ours(err) {
		if err = notBegun(ctx); p.x.Attempts > p.task.Attempt { // a middleware gave up because the run ends
			err = p.interrupted(ctx, err)
		}
	}
	return res, err
}

// ours reports whether err says how the call ended.
func ours(err error) bool {
	var (
		f   *failure
		ctl *control
		b   *blocked
	)
	return errors.As(err, &f) || errors.As(err, &ctl) || errors.As(err, &b)
}

// validate finds the call's tool and checks the arguments in full against its own schema. With mending, what nearly fits is mended if
// it can mean one thing only and the tool allows it; what was mended is on the Execution.
func (p *work) validate(c llm.ToolCall, mending bool) (llm.ToolCall, error) {
	s := p.task.scope
	tool := p.task.named(c.Name)
	if tool == nil {
		return c, &failure{outcome: OutcomeUnknownTool, text: unknownTool(c.Name, s.tools)}
	}
	p.tool = tool
	sch, err := tool.schema()
	if err != nil {
		return c, &failure{outcome: OutcomeError, text: "The tool " + tool.Name + " cannot be used.", err: err}
	}
	args, repairs, refusal := sch.Arguments(tool.Name, c.Args, mending && !tool.NoRepair)
	if refusal != "" {
		c.Args = args
		return c, fail(OutcomeInvalid, "%s", refusal)
	}
	c.Args = args
	p.x.Repairs = append(p.x.Repairs, repairs...)
	return c, nil
}

func unknownTool(name string, tools []*Tool) string {
	text := fmt.Sprintf("Unknown tool %q. Available tools: %s", text.Clip(name, 80), names(tools))
	if slices.ContainsFunc(tools, func(t *Tool) bool { return t.Deferred }) {
		text += ", and more that " + toolSearch + " finds"
	}
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Name
	}
	if n := nearest.Word(name, all); n != "" {
		text += fmt.Sprintf(". Did you mean %q?", n)
	}
	return text
}

// admitted is what the middleware wraps: it asks whether the call may run, and runs it.
func (p *work) admitted(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	c, res, done, err := p.cleared(ctx, c)
	switch around := p.task.scope.layers.approved; {
	case done:
		return res, err
	case around != nil:
		return around(p.carriedOut)(ctx, c)
	}
	return p.carriedOut(ctx, c)
}

// cleared checks a changed call again, and asks whether it may run. done means that it may not, or need not: res or err, or an open
// question on the Execution, is how it ended.
func (p *work) cleared(ctx context.Context, c llm.ToolCall) (_ llm.ToolCall, res llm.ToolResult, done bool, err error) {
	if p.changed(c) {
		if c, err = p.validate(c, false); err != nil {
			return c, res, true, err
		}
	}
	if e := p.task.early; e != nil && !headStart(p.tool) && !e.isWhole() { // a middleware made another call of it
		return c, res, true, notBegun(ctx)
	}
	c.ID = p.task.Call.ID // whatever a middleware made of it
	p.take(c)
	c, res, done, err = p.approved(ctx, c)
	p.take(c)
	return c, res, done, err
}

func (p *work) changed(c llm.ToolCall) bool {
	return c.Name != p.x.Call.Name || !bytes.Equal(c.Args, p.x.Call.Args)
}

// take makes c the call that is carried out.
func (p *work) take(c llm.ToolCall) { p.inv.taken, p.x.Call, p.inv.Call = true, c, c }

// carriedOut runs a call that was approved. What a middleware has changed since is a new call to decide on.
func (p *work) carriedOut(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	if p.changed(c) {
		if _, res, done, err := p.cleared(ctx, c); done {
			return res, err
		}
	}
	s := p.task.scope
	if p.tool != s.answer {
		if err := s.budget.take(); err != nil {
			return llm.ToolResult{}, err
		}
	}
	slot := p.tool.Effect != EffectCompose && s.take(ctx, p) // what composes acts through inner calls, and they take slots
	if slot {
		defer s.release(p)
	}
	if ctx.Err() != nil {
		if p.tool != s.answer {
			s.budget.giveBack()
		}
		return llm.ToolResult{}, notBegun(ctx)
	}
	return p.attempts(ctx, p.x.Call)
}
