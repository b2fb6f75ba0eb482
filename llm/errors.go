package llm

import (
	"fmt"
	"strings"
	"time"
)

// Code is what went wrong at a provider, from a closed list.
type Code string

// The codes of a ProviderError.
const (
	CodeAuthentication Code = "authentication"  // the key is missing or wrong
	CodePermission     Code = "permission"      // the key may not do this
	CodeNotFound       Code = "not_found"       // no such model or address
	CodeInvalidRequest Code = "invalid_request" // the provider refused the request as it is
	CodeContextLength  Code = "context_length"  // the conversation is too long for the model
	CodeContentFilter  Code = "content_filter"  // refused for its content
	CodeRateLimit      Code = "rate_limit"      // too many requests; later may work
	CodeQuota          Code = "quota"           // nothing left to spend
	CodeOverloaded     Code = "overloaded"      // the provider has no room now
	CodeServer         Code = "server"          // the provider failed
	CodeTimeout        Code = "timeout"         // no answer in time
	CodeNetwork        Code = "network"         // the connection failed
	CodeStream         Code = "stream"          // the reply broke off or could not be read
	CodeUnsupported    Code = "unsupported"     // the provider cannot do what was asked; nothing was sent
)

// ProviderError is the error of a request to a provider, whatever the provider. Its text never holds a key.
type ProviderError struct {
	Provider   string        // "openai"
	Status     int           // HTTP status; 0 when there was none
	Code       Code          // what went wrong
	Message    string        // in the provider's words, or ours
	Retryable  bool          // the same request may work later
	RetryAfter time.Duration // what the provider asked to wait; 0: it did not say
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
