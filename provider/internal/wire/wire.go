// Package wire is what the adapters of all providers share: everything between a body of bytes and a body of bytes that has
// nothing to do with what a provider's API looks like.
//
//	llm.Request ─▶ adapter ─ Writer, Toolset ─▶ Client.Send ─▶ net/http
//	llm.Delta   ◀─ adapter ◀─ Emitter ◀─ Decoder ◀─ Read ◀─ a stream of events, or one body
//
// Client sends a request, repeats it while that is safe, and keeps its timeouts. Read tells a stream from a whole body, whatever
// was asked for, and gives the events to the adapter's Decoder. Emitter numbers the parts of the reply. Writer appends
// JSON, Toolset keeps the names and the encoded definitions of tools, Output the schema of the reply, both in the provider's dialect; what a
// model wrote for a changed schema is turned back by the Emitter.
//
// Adapters translate and do nothing else; the core joins the fragments.
package wire

import (
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// ErrStopped unwinds a decoder whose consumer wants no more.
var ErrStopped = errors.New("stopped")

// Decoder makes deltas of one reply. It is used for one reply and not concurrently.
type Decoder interface {
	Event(data []byte) error // one event of a stream
	Over() bool              // that event was the last one, as the API says it
	Flush() error            // yield what is held back: the next event is waited for
	End() error              // the stream is over, or ended without saying so
	Whole(body []byte) error // a whole reply
}

// Unsupported is the refusal of something that the API has no form for.
func Unsupported(provider, field, format string, args ...any) *llm.ProviderError {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeUnsupported, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// Invalid is the refusal of a request that no provider could read.
func Invalid(provider, field, format string, args ...any) *llm.ProviderError {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeInvalidRequest, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// Broken is the error of a reply that cannot be read. The same request may well be answered better.
func Broken(provider, format string, args ...any) *llm.ProviderError {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeStream, Message: fmt.Sprintf(format, args...), Retryable: true}
}
