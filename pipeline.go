package pawl

// pipeline.go: the checks of a call: known, valid, changed, approved, within the budget.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/conversation"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// Do executes the call. It is THE PIPELINE, the same for every call:
//
//	refused by the loop? ▶ known? ▶ parse, repair ▶ validate
//	▶ middleware (change, block) ▶ validate again
//	▶ approval ▶ middleware around approved calls ▶ budget ▶ slot ▶ timeout, retry
//	▶ run, recover ▶ the way back through the middleware ▶ truncate ▶ result
//
// Do never fails: failures are recorded in the Execution, and its Result is worded for the model. A
// tool that does not return when ctx ends, or after its Timeout, is abandoned: its goroutine still
// runs. Do passes events to emit, also from goroutines of the tool, but never after it has
// returned. nil means no reader.
func (t Task) Do(ctx context.Context, emit func(Event)) Execution {
	if emit == nil {
		emit = func(Event) {}
	}
	w := &work{task: &t}
	if t.runsHere() {
		return *w.run(ctx, emit)
	}

	return *w.runApart(ctx, emit)
}

// runApart executes the call on a goroutine of its own. It abandons a tool that does not return
// when ctx ends.
func (w *work) runApart(ctx context.Context, emit func(Event)) *Execution {
	ended := make(chan *Execution, 1)
	w.ctx = ctx
	w.end = func(_ *work, x *Execution) { ended <- x }
	go w.execute(emit)
	select {
	case x := <-ended:
		return x
	case <-ctx.Done():
	}

	grace := time.NewTimer(abandonGrace)
	defer grace.Stop()
	select {
	case x := <-ended:
		return x
	case <-grace.C:
		w.abandon(nil)
		return <-ended
	}
}

// runsHere reports whether the call runs on the goroutine of its caller: it is short or is not
// executed, or the run is a workflow, which has no goroutines.
func (t *Task) runsHere() bool {
	return t.scope == nil || t.inWorkflow() || t.Refuse != "" || t.isShort()
}

// isShort reports whether a goroutine of its own would cost more than most such calls: the call
// only computes, and has no time limit after which it is abandoned.
func (t *Task) isShort() bool {
	if t.earlyCall != nil {
		return false
	}
	tool := t.Tool()
	return tool == nil || tool.Effect == EffectPure && tool.Timeout <= 0
}

// inWorkflow reports whether the run is a workflow.
func (t *Task) inWorkflow() bool { return t.scope != nil && t.scope.engine.Schedule != nil }

// execute executes the call and completes it. It reports false if another goroutine has abandoned
// the call in the meantime.
func (w *work) execute(emit func(Event)) bool {
	returned := false
	defer func() {
		if returned {
			return
		}
		err := errGone // the tool ended the goroutine, as t.FailNow does
		if v := recover(); v != nil {
			err = panicked(v)
		}
		w.abandon(err)
	}()
	x := w.run(w.ctx, emit)
	returned = true
	if !w.state.CompareAndSwap(workRuns, workEnded) {
		return false
	}
	w.end(w, x)
	return true
}

// run executes the call.
func (w *work) run(ctx context.Context, emit func(Event)) *Execution {
	w.emit, w.exec = emit, newExecution(w.task)
	res, err := w.checked(ctx)
	w.complete(ctx, res, err)
	w.exec.Ended = time.Now()
	return &w.exec
}

func newExecution(t *Task) Execution {
	return Execution{Key: t.Key, Index: t.Index, Call: t.Call, Attempts: t.Attempt, Started: time.Now(), local: true}
}

// failure is an error of the pipeline, with its outcome and its text for the model.
type failure struct {
	outcome Outcome
	text    string // for the model
	err     error  // for the record; may be nil
	repeat  bool   // whether the same call may succeed later
	limit   int    // the Limits.Calls that refused the call

	certainty delivery.Certainty // of a call that had started
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

// checked looks up the tool, validates the call, and sends it through the middleware.
func (w *work) checked(ctx context.Context) (res llm.ToolResult, err error) {
	s := w.task.scope
	switch {
	case s == nil:
		return res, fail(OutcomeError, "The call cannot be executed here.")
	case w.task.Refuse != "":
		return res, fail(OutcomeSkipped, "%s", w.task.Refuse)
	case ctx.Err() != nil:
		return res, notStarted(ctx)
	}
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	w.exec.Call, err = w.validate(ctx, w.task.Call, true)
	if err != nil {
		return res, err
	}
	w.inv.Key, w.inv.Agent, w.inv.Call, w.inv.work = w.task.Key, w.task.Agent, w.exec.Call, w
	l := &s.layers
	w.with = callContext{ctx, &w.inv}
	ctx = &w.with
	if s.remote && s.engine.Conversation != nil {
		ctx = conversation.With(ctx, s.engine.Conversation)
	}
	switch {
	case l.tool != nil:
		res, err = l.tool(w.admitted)(ctx, w.exec.Call)
	case l.approved != nil:
		res, err = w.admitted(ctx, w.exec.Call)
	default:
		return w.admitted(ctx, w.exec.Call)
	}
	if isEndOf(ctx, err) && !ours(err) {
		// A middleware returned because the run ends.
		err = notStarted(ctx)
		if w.exec.Attempts > w.task.Attempt {
			err = w.interrupted(ctx, err)
		}
	}
	return res, err
}

// isEndOf reports whether ctx has ended, and err says so.
func isEndOf(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// ours reports whether err itself states how the call ended.
func ours(err error) bool {
	var (
		f   *failure
		ctl *control
		b   *blocked
	)
	return errors.As(err, &f) || errors.As(err, &ctl) || errors.As(err, &b)
}

// validate finds the tool of c and validates the arguments against its schema. With repair,
// arguments that nearly fit are repaired if there is only one way and the tool allows it, or by
// Tool.Repair. The repairs are recorded in the Execution.
func (w *work) validate(ctx context.Context, c llm.ToolCall, repair bool) (llm.ToolCall, error) {
	s := w.task.scope
	tool := find(s.tools, c.Name)
	if tool == nil {
		return c, &failure{outcome: OutcomeUnknownTool, text: unknownTool(c.Name, s.tools)}
	}
	w.tool = tool
	sch, err := tool.schema()
	if err != nil {
		return c, &failure{outcome: OutcomeError, text: "The tool " + tool.Name + " cannot be used.", err: err}
	}
	args, repairs, refusal := tool.repaired(ctx, sch, c.Args, repair)
	if refusal != "" && ctx.Err() != nil {
		return c, notStarted(ctx)
	}
	if refusal != "" {
		c.Args = args
		return c, fail(OutcomeInvalid, "%s", refusal)
	}
	c.Args = args
	w.exec.Repairs = append(w.exec.Repairs, repairs...)
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

// admitted is the function that the middleware wraps: it runs the call if it may run.
func (w *work) admitted(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	res, done, err := w.cleared(ctx, c)
	around := w.task.scope.layers.approved
	switch {
	case done:
		return res, err
	case around != nil:
		return around(w.approvedCall)(ctx, w.exec.Call)
	}
	return w.approvedCall(ctx, w.exec.Call)
}

// cleared validates c again if a middleware changed it, makes it the call to execute, and asks
// whether it may run. done means that it must not or need not run: the outcome is res, err, or an
// open question in the Execution.
func (w *work) cleared(ctx context.Context, c llm.ToolCall) (res llm.ToolResult, done bool, err error) {
	if w.changed(c) {
		c, err = w.validate(ctx, c, false)
		if err != nil {
			return res, true, err
		}
	}
	// A middleware may have made a call of it that must not start early.
	if w.holder != nil && !startsEarly(w.tool) && !w.holder.isWhole() {
		return res, true, notStarted(ctx)
	}
	c.ID = w.task.Call.ID // a middleware cannot change it
	w.inv.accepted = true
	w.inv.Call = c
	w.exec.Call = c
	res, done, err = w.approved(ctx)
	if !done && w.held() {
		return res, true, fail(OutcomePending, "Not run yet: the call before it, %s, waits for an answer.", w.task.HeldBy)
	}
	return res, done, err
}

func (w *work) changed(c llm.ToolCall) bool {
	return c.Name != w.exec.Call.Name || !bytes.Equal(c.Args, w.exec.Call.Args)
}

// approvedCall runs an approved call. If a middleware has changed it since, it needs a new
// approval.
func (w *work) approvedCall(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	if w.changed(c) {
		if res, done, err := w.cleared(ctx, c); done {
			return res, err
		}
	}
	s := w.task.scope
	if w.tool != s.answer {
		if err := s.budget.charge(); err != nil {
			return llm.ToolResult{}, err
		}
	}
	// A composing tool acts through nested calls, which take slots themselves.
	if w.tool.Effect != EffectCompose && s.slots.Acquire(ctx, &w.slot) {
		defer s.slots.Release(&w.slot)
	}
	if ctx.Err() != nil {
		if w.tool != s.answer {
			s.budget.refund()
		}
		return llm.ToolResult{}, notStarted(ctx)
	}
	return w.attempts(ctx)
}

// held reports whether the call must not run, because an earlier call has an open question.
func (w *work) held() bool { return w.task.HeldBy != "" && w.tool.writes() }

// writes reports whether a call may change the world itself.
func (t *Tool) writes() bool {
	e := t.Effect.Assumed()
	return e == EffectWrite || e == EffectIdempotent
}

// noticeUnstated emits a notice, before the first executed call of a tool whose effect is not
// stated, that names all such tools of the run. Nested runs emit none: a tree has one notice.
func (r *run) noticeUnstated(tasks []Task) {
	if r.warned || r.scope.within != nil || r.out.sink == nil {
		return
	}
	called := slices.ContainsFunc(tasks, func(t Task) bool { return t.Refuse == "" && t.Tool().unstated() })
	if !called {
		return
	}
	r.warned = true

	var names []string
	for _, t := range r.scope.tools {
		if t.unstated() {
			names = append(names, t.Name)
		}
	}
	r.emit(Event{Kind: EventNotice, Path: r.key, Code: "effect_unstated", Text: "no effect is stated for " +
		strings.Join(names, ", ") + ": calls run together, are never retried or cached and never start early, " +
		"and wait for a person after a crash; set Tool.Effect"})
}
