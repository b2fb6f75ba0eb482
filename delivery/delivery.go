// Package delivery states how far a call came that got no outcome: whether it may have taken
// effect.
//
//	res, err := client.Do(req)
//	if err != nil {
//		text := "the shop cannot be reached"
//		return llm.ToolResult{}, delivery.NewError(delivery.NotSent, text, err)
//	}
//
// A tool that does its work elsewhere returns an Error. The pipeline of package pawl does the rest:
// the model reads whether the call may have happened, and the Execution, its event and the ledger
// of a durable run state it.
package delivery

import "github.com/pawl-go/pawl/llm"

// Certainty is what is known about a started call that has no result of its tool: whether it may
// have taken effect. It is empty if the tool returned, and for calls that only read.
type Certainty string

// The certainties. After NotSent and Refused the call has certainly had no effect.
const (
	// The call did not leave this process: there was no connection, or the program did not start.
	NotSent Certainty = "not_sent"
	// The call arrived and was refused before any work: no valid token, no session, too many
	// requests, a server that is overloaded.
	Refused Certainty = "refused"
	// The call was sent, and its outcome is unknown. It may have happened.
	Unknown Certainty = "unknown"
)

// NoEffect reports whether the call has certainly had no effect: c is NotSent or Refused.
func (c Certainty) NoEffect() bool { return c == NotSent || c == Refused }

// Error is the error of a tool that got no outcome of its call.
type Error struct {
	// How far the call came.
	Certainty Certainty
	// Result is what the model reads about the fault. The pipeline adds the words of Certainty.
	Result llm.ToolResult
	// Err is the cause. nil means that Result says it. A pawl.RetryableError in its tree lets the
	// pipeline retry the call, if the effect of the tool allows it.
	Err error
}

// NewError returns an Error whose Result is a failed one with text. err may be nil.
func NewError(c Certainty, text string, err error) *Error {
	return &Error{Certainty: c, Result: llm.ErrorResult(text), Err: err}
}

// Error returns the text of the cause, or of Result.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Result.Text()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
