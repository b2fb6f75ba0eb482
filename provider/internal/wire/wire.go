// Package wire is the part that all adapters share: everything between a request's body and a
// reply's body that does not depend on the provider's API.
//
//	llm.Request ─▶ adapter ─ Writer, Toolset ─▶ Client.Send ─▶ net/http
//	llm.Delta   ◀─ adapter ◀─ Emitter ◀─ Decoder ◀─ Read ◀─ a stream of events, or one body
//
// Client sends a request, retries it while that is safe, and enforces its timeouts. Read
// distinguishes a stream from a whole body and passes the events to the adapter's Decoder. Emitter
// numbers the parts of the reply, joins fragments that arrive together, and restores arguments
// written for a changed schema. Writer appends JSON. Toolset has the names and the encoded
// definitions of the tools, and Output the schema of the reply, both in the provider's dialect.
//
// Adapters only translate. Package llm joins the fragments of a reply.
package wire

import (
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// ErrStopped ends a decoder whose consumer wants no more deltas.
var ErrStopped = errors.New("stopped")

// Decoder emits the deltas of one reply. It is used for one reply and is not safe for concurrent
// use.
type Decoder interface {
	Event(data []byte) error // reads one event of a stream
	Over() bool              // reports whether the last event ended the reply
	Stated() bool            // reports whether the reply has said how it ends; events may follow
	Flush() error            // emits what is pending, before the next read
	End() error              // ends the reply, even if the stream broke off
	Whole(body []byte) error // reads a whole reply
}

// Unsupported returns the error of a request that the API cannot express.
func Unsupported(provider, field, format string, args ...any) *llm.ProviderError {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeUnsupported, Message: field + ": " +
		fmt.Sprintf(format, args...)}
}

// Invalid returns the error of a request that no provider accepts.
func Invalid(provider, field, format string, args ...any) *llm.ProviderError {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeInvalidRequest, Message: field + ": " +
		fmt.Sprintf(format, args...)}
}

// Broken returns the error of a reply that cannot be read. It is retryable: the next reply may be
// valid.
func Broken(provider, format string, args ...any) *llm.ProviderError {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeStream, Message: fmt.Sprintf(format, args...),
		Retryable: true}
}
