package pawl

import (
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// Causes of a cancelled context, by context.WithCancelCause, that a run tells apart.
var (
	// ErrCancelled says that the task was given up: running calls are ended, every open call gets a result that says
	// so, and the run ends with StopCancelled. Any other cause leaves open calls open, for Resume.
	ErrCancelled = errors.New("cancelled")
	// ErrTime says that Limits.Time has passed. The run ends with StopLimit.
	ErrTime = errors.New("the time limit was reached")
)

// ErrNotFound is the error for a tool that a Registry does not have, and for an artifact that is not
// stored, or no longer.
var ErrNotFound = errors.New("not found")

// ToolError is the error of a run that failed because a call did: the executor has FailFast, or the tool asked for it
// with Abort.
type ToolError struct {
	Execution Execution
	Err       error // what the tool returned; nil when it came from elsewhere as plain data
}

// Error names the tool and says what it did.
func (e *ToolError) Error() string {
	text := e.Execution.Error
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	return fmt.Sprintf("tool %s: %s", e.Execution.Call.Name, text)
}

// Unwrap returns what the tool returned.
func (e *ToolError) Unwrap() error { return e.Err }

// TranscriptError says that the messages given to a run are no conversation that a model can continue.
type TranscriptError struct {
	Index int    // the message, from 0
	Text  string // what is wrong with it, and what would be right
}

// Error names the message and what is wrong with it.
func (e *TranscriptError) Error() string { return fmt.Sprintf("message %d: %s", e.Index, e.Text) }

// ExecutionError is an error that carries an execution for the failed step: a driver that could not read a decision leaves
// the failed attempt on record so. The loop records it.
type ExecutionError interface {
	error
	FailedExecution() Execution
}

// A control error tells the pipeline what a tool or a middleware wants done beside its result.
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

// AbortError returns the error by which a tool or a middleware ends the run as failed. The other calls of the step are
// finished and recorded first. The run's error unwraps to err.
func AbortError(err error) error { return &control{ends: StopFailed, err: err} }

// FinishError returns the error by which a tool or a middleware ends the run well: its call is answered with result, the other
// calls of the step are finished and recorded, and the run stops with StopFinished before the model is asked again.
func FinishError(result llm.ToolResult) error { return &control{ends: StopFinished, result: result} }

// BlockError returns the error by which a middleware refuses a call. The model is told the reason; nothing runs.
func BlockError(reason string) error { return &blocked{reason} }

type blocked struct{ reason string }

func (b *blocked) Error() string { return b.reason }

// RetryableError marks err as a fault of the infrastructure that may pass (a lost connection, a busy server). The pipeline
// repeats the call where the tool's Effect allows it, and tells the model only when that did not help.
func RetryableError(err error) error { return &retryable{err} }

// IsRetryable reports whether err says that a call failed for a fault that may pass: Retryable was said of it, or its time was over. It is for
// middleware that sees what a call gave.
func IsRetryable(err error) bool {
	var r *retryable
	var f *failure
	return errors.As(err, &r) || errors.As(err, &f) && f.repeat
}

type retryable struct{ err error }

func (r *retryable) Error() string { return r.err.Error() }
func (r *retryable) Unwrap() error { return r.err }
