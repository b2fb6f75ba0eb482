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

// words has the codes for the types of Anthropic and the names of Vertex AI.
var words = map[string]llm.Code{
	"overloaded_error": llm.CodeOverloaded, "UNAVAILABLE": llm.CodeOverloaded,
	"rate_limit_error": llm.CodeRateLimit, "RESOURCE_EXHAUSTED": llm.CodeRateLimit,
	"timeout_error": llm.CodeTimeout, "DEADLINE_EXCEEDED": llm.CodeTimeout,
	"authentication_error": llm.CodeAuthentication, "UNAUTHENTICATED": llm.CodeAuthentication,
	"permission_error": llm.CodePermission, "PERMISSION_DENIED": llm.CodePermission,
	"not_found_error": llm.CodeNotFound, "NOT_FOUND": llm.CodeNotFound,
	"request_too_large": llm.CodeContextLength, "billing_error": llm.CodeQuota,
	"invalid_request_error": llm.CodeInvalidRequest, "INVALID_ARGUMENT": llm.CodeInvalidRequest,
	"FAILED_PRECONDITION": llm.CodeInvalidRequest,
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
	// Only an error of the request is looked at closely. The text of a server's fault may contain
	// such words by chance. Status 0 is an error within a stream.
	if status == 0 || status >= 400 && status < 500 {
		switch {
		case wire.Contains(text, "credit balance", "usage limits", "spend limit"):
			e.Code = llm.CodeQuota
		case wire.Contains(text, "prompt is too long", "exceed context limit", "context window",
			"context length", "too many tokens", "input is too long", "input tokens exceed"):
			e.Code = llm.CodeContextLength
		case wire.Contains(text, "bound to a different conversation"):
			e.Code = llm.CodeBoundThinking
		case wire.Contains(text, "content filtering policy", "blocked by content filter"):
			e.Code = llm.CodeContentFilter
		}
	}
	e.Code = cmp.Or(e.Code, words[word], wire.StatusCode[status])
	switch {
	case e.Code != "":
	case status == 524:
		e.Code = llm.CodeTimeout
	case status >= 300 && status < 400:
		e.Message = cmp.Or(e.Message, wire.Redirected)
	}
	e.Code = cmp.Or(e.Code, wire.StatusRange(status))
	e.Retryable = wire.Retryable(e.Code)
	return e
}
