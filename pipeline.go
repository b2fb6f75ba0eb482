package pawl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	defaultTimeout   = 60 * time.Second
	defaultMaxResult = 32 << 10
	maxRetries       = 2
	retryDelay       = 100 * time.Millisecond
	grace            = 5 * time.Second // for a cancelled tool to end, before the run goes on without it
)

// Do carries out the call: THE PIPELINE, the same for every call, whoever made it. It never fails; what went wrong is in the
// Execution, and in its Result, worded for the model.
//
//	known? ▶ arguments parse, repair ▶ coerce, validate ▶ before-middleware (change, block) ▶ validate again ▶ approval ▶ budget
//	▶ slot ▶ timeout, retry ▶ run, recover ▶ after-middleware ▶ cap ▶ result
//
// emit is called with what happens on the way, from goroutines of the call too, but never after Do returned.
func (t Task) Do(ctx context.Context, emit func(Event)) Execution { return *t.do(ctx, emit) }

// do is Do without a copy of the Execution, which nobody changes any more.
func (t *Task) do(ctx context.Context, emit func(Event)) *Execution {
	now := time.Now()
	p := &pipe{task: t, emit: emit, started: now, x: Execution{Key: t.Key, Index: t.Index, Call: t.Call, Attempts: t.Attempt, Started: now}}
	res, err := p.checked(ctx)
	p.settle(res, err)
	p.x.Ended = time.Now()
	return &p.x
}

// pipe is one call on its way through the pipeline.
type pipe struct {
	task *Task
	emit func(Event)
	x    Execution
	tool *Tool
	inv  Invocation
	ok   ToolCall // the call as it was last validated

	started time.Time
	first   begun   // the first attempt
	ctx     callCtx // of the first attempt
}

// failure is an error of the pipeline itself, with its outcome and its words for the model.
type failure struct {
	outcome Outcome
	text    string // for the model
	err     error  // for the record; may be nil
	repeat  bool   // the same call may work when it is repeated
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
func (p *pipe) checked(ctx context.Context) (res ToolResult, err error) {
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
	if p.ok, err = p.validate(p.task.Call, true); err != nil {
		return res, err
	}
	p.inv.Key, p.inv.Agent, p.inv.Call, p.inv.pipe = p.task.Key, p.task.Agent, p.ok, p
	if s.wrap != nil || s.approve != nil { // the tool finds it in its callCtx
		ctx = context.WithValue(ctx, invocationKey{}, &p.inv)
	}
	if s.wrap == nil {
		return p.admitted(ctx, p.ok)
	}
	res, err = s.wrap(p.admitted)(ctx, p.ok)
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
func (p *pipe) validate(c ToolCall, mending bool) (ToolCall, error) {
	s := p.task.scope
	tool := find(s.tools, c.Name)
	if tool == nil {
		return c, &failure{outcome: OutcomeUnknownTool, text: unknownTool(c.Name, s.tools)}
	}
	p.tool = tool
	sch, err := tool.schema()
	if err != nil {
		return c, &failure{outcome: OutcomeError, text: "The tool " + tool.Name + " cannot be used.", err: err}
	}
	empty := len(bytes.TrimSpace(c.Args)) == 0
	if empty {
		c.Args = json.RawMessage("{}") // only where the schema allows it: it is checked like any other
	}
	args, repairs, faults, err := sch.read(c.Args, mending && !tool.NoRepair && !empty)
	if err == nil && len(faults) == 0 {
		c.Args = args
		p.x.Repairs = append(p.x.Repairs, repairs...)
		return c, nil
	}
	switch {
	case err != nil:
		return c, fail(OutcomeInvalid, "The arguments of %s are not valid JSON: %s. Send one JSON object that fits the tool's schema%s You sent: %s",
			tool.Name, syntaxText(err), sch.example(", for example: %s.", "."), clip(string(c.Args), 200))
	case empty:
		return c, fail(OutcomeInvalid, "The call of %s has no arguments, but it needs them:%s%s", tool.Name, message(faults), sch.example("\nArguments of the right form, with your own values: %s", ""))
	}
	return c, fail(OutcomeInvalid, "The arguments of %s do not fit its schema:%s%s", tool.Name, message(faults), sch.example("\nArguments of the right form, with your own values: %s", ""))
}

// syntaxText says what is wrong with text that is no JSON, without the decoder's name.
func syntaxText(err error) string {
	var se *json.SyntaxError
	if errors.As(err, &se) {
		return fmt.Sprintf("%s at byte %d", se.Error(), se.Offset)
	}
	if err.Error() == "unexpected EOF" || err.Error() == "EOF" {
		return "it ends too early"
	}
	return err.Error()
}

func unknownTool(name string, tools []*Tool) string {
	text := fmt.Sprintf("Unknown tool %q. Available tools: %s", clip(name, 80), names(tools))
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Name
	}
	if n := nearest(name, all); n != "" {
		text += fmt.Sprintf(". Did you mean %q?", n)
	}
	return text
}

// admitted is what the middleware wraps: it checks a changed call again, asks whether it may run, and runs it.
func (p *pipe) admitted(ctx context.Context, c ToolCall) (ToolResult, error) {
	if c.Name != p.ok.Name || !bytes.Equal(c.Args, p.ok.Args) {
		var err error
		if c, err = p.validate(c, false); err != nil {
			return ToolResult{}, err
		}
		p.ok = c
	}
	c.ID = p.task.Call.ID // whatever a middleware made of it
	p.x.Call, p.inv.Call = c, c
	if res, err, done := p.approved(ctx, c); done {
		return res, err
	}
	s := p.task.scope
	if err := s.budget.take(); err != nil {
		return ToolResult{}, err
	}
	if p.tool.Effect != Compose { // it acts through inner calls, and they take slots
		if !s.take(ctx, p.task.lease) {
			return ToolResult{}, notBegun(ctx)
		}
		defer s.release(p.task.lease)
	}
	if ctx.Err() != nil {
		return ToolResult{}, notBegun(ctx)
	}
	return p.attempts(ctx, c)
}

// approved settles the question whether the call may run. done means that it may not, or need not: res or err, or an open
// question on the Execution, is how it ended.
func (p *pipe) approved(ctx context.Context, c ToolCall) (res ToolResult, err error, done bool) {
	why := ""
	question := OutcomePending
	switch s := p.task.scope; {
	case p.tool.Passive:
	case p.task.Asked == OutcomeUnknown:
		question = OutcomeUnknown
	case s.approve == nil:
		return res, nil, false
	default:
		a := s.approve(ctx, c, p.tool)
		if ctx.Err() != nil {
			return res, notBegun(ctx), true // it may have answered for that reason alone
		}
		switch a.Verdict {
		case Allow:
			return res, nil, false
		case Ask:
			why = a.Reason
		default:
			return res, denied(a.Reason), true
		}
	}
	w := Waiting{Key: p.task.Key, Call: c, Outcome: question, Attempt: p.task.Attempt, Why: why, Passive: p.tool.Passive}
	w.Digest = digest(w, p.tool)
	for _, d := range p.task.Decisions {
		if d.Digest != w.Digest {
			p.notice("decision_refused", "the decision by "+d.By+" answers another question: tool, arguments, attempt or question differ")
			continue
		}
		p.x.Decision = &d
		switch {
		case d.Result != nil:
			return *d.Result, nil, true
		case !d.Approve:
			return res, denied(d.Reason), true
		case !p.tool.Passive:
			return res, nil, false
		}
	}
	if !p.task.scope.waits {
		return res, fail(OutcomeDenied, "Not run: %s needs an answer from outside, and a call made inside another call cannot wait for one here. Call it directly.", p.tool.Name), true
	}
	p.x.Waiting = []Waiting{w}
	return res, fail(question, "It waits for an answer."), true // an error, so that no middleware takes it for done
}

func denied(reason string) error {
	if reason == "" {
		return fail(OutcomeDenied, "Denied: this call may not run. Do not repeat it.")
	}
	return fail(OutcomeDenied, "Denied: %s", reason)
}

// digest binds an answer to the question, the attempt, the tool with its schema, and the canonical arguments.
func digest(w Waiting, t *Tool) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%d\x00%s\x00%s\x00", w.Key, w.Outcome, w.Attempt, t.Name, canonical(t.Input))
	h.Write(canonical(w.Call.Args))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// canonical returns JSON with sorted names and no spaces, numbers as they were written; text that is no JSON as it is.
func canonical(b json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return b
	}
	if out, err := json.Marshal(v); err == nil {
		return out
	}
	return b
}

// attempts runs the tool, and repeats it after a timeout or a fault that may pass where its effect allows that.
func (p *pipe) attempts(ctx context.Context, c ToolCall) (ToolResult, error) {
	retries := 0
	switch p.tool.Effect {
	case Pure, Read, Idempotent:
		retries = maxRetries
	}
	for try := 0; ; try++ {
		p.x.Attempts++
		if p.tool.Effect == Write {
			for v := p.task.scope.within; v != nil; v = v.pipe.task.scope.within {
				v.wrote.Store(true)
			}
		}
		p.inv.Attempt = p.x.Attempts
		b := &p.first
		if b.pipe != nil {
			b = new(begun) // the first stays as it is
		}
		*b = begun{p, c, p.x.Attempts}
		p.event(Event{Kind: EventCallStarted, Call: &b.call, Attempt: b.attempt})
		res, err := p.attempt(ctx, b)
		if err == nil || try == retries || ctx.Err() != nil || !mayPass(err) {
			return res, err
		}
		p.notice("retry", fmt.Sprintf("attempt %d failed: %v", p.x.Attempts, err))
		if !wait(ctx, retryDelay<<try) {
			return res, err
		}
	}
}

func mayPass(err error) bool {
	var r *retryable
	var f *failure
	return errors.As(err, &r) || errors.As(err, &f) && f.repeat
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt runs the tool once, for no longer than its timeout.
func (p *pipe) attempt(ctx context.Context, b *begun) (res ToolResult, err error) {
	c := &p.ctx
	if c.inv != nil {
		c = new(callCtx) // the first attempt's stays over
	}
	c.Context, c.inv = ctx, &p.inv
	limit := p.tool.timeout()
	if limit > 0 {
		c.deadline = time.Now().Add(limit)
	}
	p.task.lease.begin(b, limit)
	res, err = p.run(c, b.call)
	p.task.lease.end()
	cause := error(nil)
	if err != nil && c.Err() != nil {
		cause = context.Cause(c)
	}
	c.end()
	if cause == nil {
		return res, err
	}
	var ctl *control
	if errors.As(err, &ctl) {
		return res, err
	}
	if cause == errTimeout {
		return res, p.timedOut(err)
	}
	return res, p.interrupted(ctx, err)
}

var (
	errTimeout = errors.New("the tool's time is over")
	errGone    = errors.New("the tool's goroutine is gone")
	errLeft    = errors.New("it did not end when it was told to, and was left behind")
)

// timeout is how long one attempt may take; 0: as long as it likes.
func (t *Tool) timeout() time.Duration {
	switch {
	case t.Timeout < 0, t.Timeout == 0 && t.Effect == Compose:
		return 0
	case t.Timeout == 0:
		return defaultTimeout
	}
	return t.Timeout
}

// timedOut is the error of a call that took too long.
func (p *pipe) timedOut(err error) error {
	return &failure{outcome: OutcomeTimeout, err: err, repeat: true,
		text: fmt.Sprintf("%s did not end within %v%s", p.tool.Name, p.tool.timeout(), p.mayHaveHappened())}
}

// interrupted is the error of a call that was begun and then cancelled.
func (p *pipe) interrupted(ctx context.Context, err error) error {
	f := &failure{outcome: OutcomeCancelled, err: err}
	switch cause := context.Cause(ctx); cause {
	case ErrCancelled:
		f.text = "Cancelled while it ran" + p.mayHaveHappened()
	case errFailFast:
		f.text = "Ended because another call of this step failed" + p.mayHaveHappened()
	default:
		f.text = "Interrupted" + p.mayHaveHappened()
		// A call that composes would repeat the Writes inside it. An engine that records finds them done instead.
		if p.tool.Effect == Write || p.inv.wrote.Load() {
			f.outcome = OutcomeUnknown
		}
	}
	return f
}

func (p *pipe) mayHaveHappened() string {
	switch p.tool.Effect {
	case Write, Idempotent, Compose:
		return ". What it does may have happened."
	}
	return "."
}

// notBegun is the error of a call that was cancelled before it began.
func notBegun(ctx context.Context) error {
	if context.Cause(ctx) == errFailFast {
		return fail(OutcomeSkipped, "Not run: another call of this step failed.")
	}
	return fail(OutcomeCancelled, "Not run: the run was cancelled.")
}

// run calls the tool and turns a panic into an error.
func (p *pipe) run(ctx context.Context, c ToolCall) (res ToolResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	p.inv.busy.Store(true)
	defer p.inv.busy.Store(false)
	return p.tool.Run(ctx, c)
}

// panicked keeps the panic for the record and its text, stack and paths from the model.
func panicked(v any) error {
	return &failure{outcome: OutcomePanicked, text: "The tool failed unexpectedly and gave no result.", err: fmt.Errorf("panic: %v", v)}
}

// settle turns what came back through the middleware into the outcome and the result.
func (p *pipe) settle(res ToolResult, err error) {
	x := &p.x
	if p.inv.pipe != nil {
		p.inv.close()
		x.Values, x.Spent = p.inv.set, p.inv.spent
	}
	x.err = err
	switch {
	case len(x.Waiting) > 0:
		x.Outcome = x.Waiting[0].Outcome
		return
	case err != nil:
		if res = p.failed(err); len(x.Waiting) > 0 {
			return
		}
	default:
		x.Outcome = OutcomeOK
		if res.IsError {
			x.Outcome, x.Error = OutcomeError, clip(res.Text(), 500)
		}
	}
	if len(res.Parts) == 0 && res.Data != nil {
		res.Parts = []Part{Text{Text: string(res.Data)}}
	}
	res.Parts = tellable(res.Parts)
	limit := defaultMaxResult
	if p.tool != nil && p.tool.MaxResult != 0 {
		limit = p.tool.MaxResult
	}
	res.Parts = capped(res.Parts, limit)
	res.CallID, res.Key = p.task.Call.ID, p.task.Key
	x.Result = res
}

// failed notes how the call failed, and words it for the model.
func (p *pipe) failed(err error) ToolResult {
	x := &p.x
	var (
		f   *failure
		ctl *control
		b   *blocked
	)
	switch {
	case errors.As(err, &ctl):
		x.Ends = ctl.ends
		if ctl.ends == EndsFinished {
			x.Outcome = OutcomeOK
			return ctl.result
		}
		x.Outcome, x.Error = OutcomeError, ctl.Error()
		return ErrorResult("Stopped: " + ctl.Error())
	case errors.As(err, &b):
		x.Outcome, x.Error = OutcomeBlocked, b.reason
		return ErrorResult("Blocked: " + b.reason)
	case errors.As(err, &f):
		x.Outcome, x.Error = f.outcome, f.Error()
		if p.task.Asked == OutcomeUnknown && x.Attempts == p.task.Attempt && f.outcome != OutcomeUnknown {
			return ErrorResult(f.text + " It was begun before and interrupted: what it does may have happened.")
		}
		if f.outcome == OutcomeUnknown {
			w := Waiting{Key: p.task.Key, Call: x.Call, Outcome: OutcomeUnknown, Attempt: x.Attempts, Why: f.text}
			w.Digest = digest(w, p.tool)
			x.Waiting = []Waiting{w}
		}
		return ErrorResult(f.text)
	}
	x.Outcome, x.Error = OutcomeError, err.Error()
	return ErrorResult(err.Error())
}

func (p *pipe) event(e Event) {
	e.Run, e.Step, e.Path = p.task.Run, p.task.Step, p.task.Key
	p.inv.send(e)
}

func (p *pipe) notice(code, text string) { p.event(Event{Kind: EventNotice, Code: code, Text: text}) }
