package wire

import (
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// StatusCode returns the code for a status with one meaning at all providers, and whether a retry
// may succeed. An empty code means that the status is not one of them.
func StatusCode(status int) (code llm.Code, retryable bool) {
	switch status {
	case 401:
		return llm.CodeAuthentication, false
	case 402:
		return llm.CodeQuota, false
	case 403:
		return llm.CodePermission, false
	case 404, 410:
		return llm.CodeNotFound, false
	case 408, 504:
		return llm.CodeTimeout, true
	case 409, 425: // another request holds a resource that this one needs
		return llm.CodeServer, true
	case 413:
		return llm.CodeContextLength, false
	case 429:
		return llm.CodeRateLimit, true
	case 503, 529:
		return llm.CodeOverloaded, true
	}
	return "", false
}

// Redirected is the message for a redirect without a message.
const Redirected = "the server answered with a redirect; is the base URL right?"

// Contains reports whether s contains one of the words.
func Contains(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// SetRetry sets the wait of e, from the headers or else from other, and applies the header
// X-Should-Retry if the API has it.
func SetRetry(e *llm.ProviderError, h http.Header, now time.Time, other time.Duration) {
	if e.Status == http.StatusTooManyRequests || e.Status >= 500 {
		if e.RetryAfter = RetryAfter(h, now); e.RetryAfter == 0 {
			e.RetryAfter = other
		}
	}
	switch h.Get("X-Should-Retry") {
	case "true":
		e.Retryable = true
	case "false":
		e.Retryable = false
	}
}
