package pawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/llm"
)

const (
	defaultTimeout = 60 * time.Second
	maxRetries     = 2
	retryDelay     = 100 * time.Millisecond
	grace          = 5 * time.Second // for a cancelled tool to end, before the run goes on without it
)

// attempts runs the tool, and repeats it after a timeout or a fault that may pass where its effect allows that.
func (p *pipe) attempts(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	retries := 0
	switch p.tool.Effect {
	case Pure, Read, Idempotent:
		retries = maxRetries
	}
	for try := 0; ; try++ {
		if err := p.intend(ctx, c); err != nil {
			return llm.ToolResult{}, err
		}
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
		*b = begun{p, c, p.x.Attempts, p.tool, p.x.Decision}
		p.event(Event{Kind: EventCallStarted, Call: &b.call, Attempt: b.attempt})
		res, err := p.attempt(ctx, b)
		if err == nil || try == retries || ctx.Err() != nil || !IsRetryable(err) {
			return res, err
		}
		p.notice("retry", fmt.Sprintf("attempt %d failed: %v", p.x.Attempts, err))
		if !wait(ctx, retryDelay<<try) {
			return res, err
		}
	}
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
func (p *pipe) attempt(ctx context.Context, b *begun) (res llm.ToolResult, err error) {
	c := &p.ctx
	if c.inv != nil {
		c = new(callCtx) // the first attempt's stays over
	}
	c.Context, c.inv = ctx, &p.inv
	limit := p.tool.timeout()
	var now time.Time
	if limit > 0 {
		now = time.Now()
		c.deadline = now.Add(limit)
	}
	p.task.lease.begin(b, now, limit)
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
		if p.tool.Effect == Write || p.inv.wrote.Load() && !p.task.scope.replays {
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
func (p *pipe) run(ctx context.Context, c llm.ToolCall) (res llm.ToolResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	p.inv.busy.Store(true)
	defer p.inv.busy.Store(false)
	res, err = p.tool.Run(ctx, c)
	if p.waitsInside() {
		return llm.ToolResult{}, errWaits
	}
	return res, err
}

// panicked keeps the panic for the record and its text, stack and paths from the model.
func panicked(v any) error {
	return &failure{outcome: OutcomePanicked, text: "The tool failed unexpectedly and gave no result.", err: fmt.Errorf("panic: %v", v)}
}
