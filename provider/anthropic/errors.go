package anthropic

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// toError returns the error of a response whose status is not 2xx.
func toError(status int, h http.Header, body []byte, now time.Time) *llm.ProviderError {
	f := wire.ReadFailure(body, nil)
	e := classify(status, f)
	wire.SetRetry(e, h, now, max(untilReset(h, now), wire.RetryIn(f.Message)))
	return e
}

// untilReset returns the time until the last exhausted rate limit resets, from the API's headers.
// 0 means that none is exhausted.
func untilReset(h http.Header, now time.Time) (wait time.Duration) {
	for _, of := range [...]string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		if h.Get("Anthropic-Ratelimit-"+of+"-Remaining") != "0" {
			continue
		}
		if t, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+of+"-Reset")); err == nil {
			wait = max(wait, t.Sub(now))
		}
	}
	return wait
}

// toStreamError returns the error of a failure within a reply with status 200.
func toStreamError(raw []byte) error {
	f := wire.ReadFailure(raw, nil)
	return classify(f.Status, f)
}

// classify maps a status and a failure to a code. The failure is more specific: an exhausted
// quota, a conversation that is too long and a content filter all have status 400.
func classify(status int, f wire.Failure) *llm.ProviderError {
	word := cmp.Or(f.Type, f.Name) // from Anthropic, or from Vertex AI
	e := &llm.ProviderError{Provider: provider, Status: status, Message: f.Message}
	e.Message = cmp.Or(e.Message, word)
	if e.Message == "" && (status < 300 || status > 399) {
		e.Message = http.StatusText(status)
	}
	text := strings.ToLower(f.Message)
	client := status == 0 || status >= 400 && status < 500
	set := func(code llm.Code, again bool) *llm.ProviderError {
		e.Code, e.Retryable = code, again
		return e
	}
	if client {
		switch {
		case wire.Contains(text, "credit balance", "usage limits", "spend limit"):
			return set(llm.CodeQuota, false)
		case wire.Contains(text, "prompt is too long", "exceed context limit", "context window", "context length", "too many tokens", "input is too long", "input tokens exceed"):
			return set(llm.CodeContextLength, false)
		case wire.Contains(text, "bound to a different conversation"):
			return set(llm.CodeBoundThinking, false)
		case wire.Contains(text, "content filtering policy", "blocked by content filter"):
			return set(llm.CodeContentFilter, false)
		}
	}
	switch word {
	case "overloaded_error":
		return set(llm.CodeOverloaded, true)
	case "rate_limit_error", "RESOURCE_EXHAUSTED":
		return set(llm.CodeRateLimit, true)
	case "timeout_error", "DEADLINE_EXCEEDED":
		return set(llm.CodeTimeout, true)
	case "authentication_error", "UNAUTHENTICATED":
		return set(llm.CodeAuthentication, false)
	case "permission_error", "PERMISSION_DENIED":
		return set(llm.CodePermission, false)
	case "not_found_error", "NOT_FOUND":
		return set(llm.CodeNotFound, false)
	case "request_too_large":
		return set(llm.CodeContextLength, false)
	case "billing_error":
		return set(llm.CodeQuota, false)
	case "invalid_request_error", "INVALID_ARGUMENT", "FAILED_PRECONDITION":
		return set(llm.CodeInvalidRequest, false)
	case "UNAVAILABLE":
		return set(llm.CodeOverloaded, true)
	}
	if code, again := wire.StatusCode(status); code != "" {
		return set(code, again)
	}
	switch {
	case status == 524:
		return set(llm.CodeTimeout, true)
	case status >= 500:
		return set(llm.CodeServer, true)
	case status >= 400:
		return set(llm.CodeInvalidRequest, false)
	case status >= 300:
		e.Message = cmp.Or(e.Message, wire.Redirected)
		return set(llm.CodeNotFound, false)
	}
	return set(llm.CodeServer, true) // in a stream, with an unknown type: api_error and others
}
