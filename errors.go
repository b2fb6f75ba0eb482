package pawl

// errors.go: the control errors of tools and middleware, and the error types of a run.

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/internal/panics"
	"github.com/pawl-go/pawl/llm"
)

// Causes of a cancelled context (context.WithCancelCause) that a run distinguishes.
var (
	// ErrCancelled gives up the task: active calls are cancelled, every open call gets a result
	// that says so, and the run ends with StopCancelled. With every other cause open calls stay
	// open, so that the run can be resumed.
	ErrCancelled = errors.New("cancelled")
	// ErrTime means that Limits.Time is used up. The run ends with StopLimit.
	ErrTime = errors.New("the time limit was reached")
)

// ErrNotFound is the error for a tool that a Registry does not have, and for an artifact that is
// not stored, or no longer.
var ErrNotFound = errors.New("not found")

// StopError is the error of a run that ended without a plain answer: Result.Stop is StopPending,
// StopLimit, StopStalled or StopCancelled. It is also the error of Result.Err for StopFailed.
//
// errors.Is finds ErrCancelled in the error of a run that was given up, and ErrTime in the error of
// a run whose time was used up.
type StopError struct {
	Reason StopReason // Result.Stop
	Result *Result    // of the run, with the pending calls; it can be resumed
	// Err is the cause with which the context interrupted the run, or the *OutputError of an answer
	// in a stored Result. nil means another reason.
	Err error
}

// Error returns what stopped the run, and what to do next.
func (e *StopError) Error() string {
	text := string(e.Reason)
	next := e.Reason.next()
	res := cmp.Or(e.Result, new(Result))
	if res.Cause != "" {
		text += ": " + res.Cause
	}
	switch {
	case e.Reason == StopLimit:
		next = "raise " + res.Limit.setting() + " and Resume"
	case e.Reason == StopCancelled && e.Err != nil:
		next = "Resume executes the open calls"
	}
	return text + "; " + next
}

// Unwrap returns Err.
func (e *StopError) Unwrap() error { return e.Err }

// Is reports whether target is ErrCancelled and the run was given up, or ErrTime and its time was
// used up.
func (e *StopError) Is(target error) bool {
	return target == ErrCancelled && e.Reason == StopCancelled && e.Err == nil ||
		target == ErrTime && e.Result != nil && e.Result.Limit == "time"
}

// ToolError is the error of a run that a call ended: the executor has FailFast, or the tool
// returned AbortError.
type ToolError struct {
	Execution Execution // of the call
	// Err is the error of the tool. nil means that the execution was read from JSON.
	Err error
}

// Error returns the name of the tool and its error.
func (e *ToolError) Error() string {
	text := e.Execution.Error
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	return fmt.Sprintf("tool %s: %s", e.Execution.Call.Name, text)
}

// Unwrap returns Err.
func (e *ToolError) Unwrap() error { return e.Err }

// TranscriptError means that the messages of a run are not a conversation that a model can
// continue.
type TranscriptError struct {
	Index int    // of the message, from 0
	Text  string // the fault, and what would be right
}

// Error returns the index of the message and the fault.
func (e *TranscriptError) Error() string { return fmt.Sprintf("message %d: %s", e.Index, e.Text) }

// ExecutionError is an error of a Model that contains an Execution for the failed step. The loop
// records it. Drivers use it for a reply whose decision they could not read.
type ExecutionError interface {
	error
	FailedExecution() Execution
}

// LimitError is an error of a Model or of the middleware around it that ends the run with
// StopLimit: a limit that only it knows was reached, such as the context window (history.Window).
//
// LimitReached returns Result.Limit and Result.Cause.
type LimitError interface {
	error
	LimitReached() (name LimitName, cause string)
}

// FieldError is a mistake in a field of an agent: see Agent.Check.
type FieldError struct {
	Field string // such as Limits.Cost or Tools[2]
	Err   error  // what is wrong, and what would be right
}

// Error returns the field and the mistake.
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// control is an error by which a tool or a middleware ends the run.
type control struct {
	ends   StopReason // StopFailed or StopFinished
	result llm.ToolResult
	err    error
}

func (c *control) Error() string {
	if c.err != nil {
		return c.err.Error()
	}
	return "finished: " + c.result.Text()
}

func (c *control) Unwrap() error { return c.err }

// AbortError returns an error that ends the run as failed, for tools and middleware. The other
// calls of the step end and are recorded first. The error of the run unwraps to err. A nil err ends
// the run, too.
func AbortError(err error) error {
	if err == nil {
		err = errors.New("the run was aborted, and no error says why")
	}
	return &control{ends: StopFailed, err: err}
}

// PanicError is the error of a run whose model, toolset or middleware panicked. A panic of a tool
// is the outcome of its call instead, and a panic of a receiver of events reaches the caller of the
// run.
type PanicError = panics.Error

// FinishError returns an error that ends the run as successful, for tools and middleware. The call
// gets result, the other calls of the step end and are recorded, and the run stops with
// StopFinished without a further request.
func FinishError(result llm.ToolResult) error { return &control{ends: StopFinished, result: result} }

// BlockError returns an error by which a middleware rejects a call. The model gets the reason as
// the result of the call. The tool does not run.
func BlockError(reason string) error { return &blocked{reason} }

type blocked struct{ reason string }

func (b *blocked) Error() string { return b.reason }

// RetryableError marks err as a temporary fault of the infrastructure, such as a lost connection or
// a busy server. The pipeline retries the call if the tool's Effect allows it. The model gets the
// error only if the retries fail too. A nil err returns nil.
func RetryableError(err error) error {
	if err == nil {
		return nil
	}
	return &retryable{err}
}

// IsRetryable reports whether err is a temporary fault: a RetryableError, or a timeout. It is for
// middleware that sees the error of a call.
func IsRetryable(err error) bool {
	var r *retryable
	var f *failure
	return errors.As(err, &r) || errors.As(err, &f) && f.repeat
}

type retryable struct{ err error }

func (r *retryable) Error() string { return r.err.Error() }
func (r *retryable) Unwrap() error { return r.err }
