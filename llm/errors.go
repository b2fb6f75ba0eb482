package llm

// errors.go: ProviderError and its codes.

import (
	"fmt"
	"strings"
	"time"
)

// Code is the kind of a ProviderError, from a closed list.
type Code string

// The codes of a ProviderError.
const (
	CodeAuthentication Code = "authentication"  // the key is missing or wrong
	CodePermission     Code = "permission"      // the key does not allow this request
	CodeNotFound       Code = "not_found"       // the model or the address does not exist
	CodeInvalidRequest Code = "invalid_request" // the provider rejected the request
	CodeContextLength  Code = "context_length"  // the conversation exceeds the context window
	CodeContentFilter  Code = "content_filter"  // the content was rejected
	CodeRateLimit      Code = "rate_limit"      // too many requests; a later request may succeed
	CodeQuota          Code = "quota"           // the account has no credit left
	CodeOverloaded     Code = "overloaded"      // the provider has no capacity at the moment
	CodeServer         Code = "server"          // the provider failed
	CodeTimeout        Code = "timeout"         // no reply within the time limit
	CodeNetwork        Code = "network"         // the connection failed
	CodeStream         Code = "stream"          // the reply ended early or could not be read
	// The stream stated something twice, in two ways. Fragments were lost or repeated on the way.
	CodeStreamInconsistent Code = "stream_inconsistent"
	CodeMalformedReply     Code = "malformed_reply" // the reply announces calls, and has none
	// The reasoning that was sent back does not belong to the messages or the tools before it.
	CodeBoundThinking Code = "bound_thinking"
	// The provider does not support the request; it was not sent.
	CodeUnsupported Code = "unsupported"
)

// ProviderError is the error of a request to any provider. Its text never contains a key.
type ProviderError struct {
	Provider   string        // "openai"
	Status     int           // HTTP status; 0 means no response
	Code       Code          // the kind of error
	Message    string        // the provider's text, or the adapter's
	Retryable  bool          // the same request may succeed later
	RetryAfter time.Duration // the wait that the provider asks for; 0 means that it states none
	Err        error         // the cause; may be nil
}

// Error returns "openai: rate_limit (429): …".
func (e *ProviderError) Error() string {
	var b strings.Builder
	if e.Provider != "" {
		b.WriteString(e.Provider + ": ")
	}
	b.WriteString(string(e.Code))
	if e.Status != 0 {
		fmt.Fprintf(&b, " (%d)", e.Status)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	} else if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *ProviderError) Unwrap() error { return e.Err }
