package cases

import (
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Refusals are errors of a provider. An API that has no word for one of them leaves out its part.
func Refusals() map[string]llm.ProviderError {
	later := func(status int, code llm.Code, after time.Duration) llm.ProviderError {
		return llm.ProviderError{Status: status, Code: code, Retryable: true, RetryAfter: after}
	}
	return map[string]llm.ProviderError{
		"invalid request": {Status: 400, Code: llm.CodeInvalidRequest},
		"authentication":  {Status: 401, Code: llm.CodeAuthentication},
		"permission":      {Status: 403, Code: llm.CodePermission},
		"not found":       {Status: 404, Code: llm.CodeNotFound},
		"context length":  {Status: 400, Code: llm.CodeContextLength},
		"content filter":  {Status: 400, Code: llm.CodeContentFilter},
		"quota":           {Status: 402, Code: llm.CodeQuota},
		"rate limit":      later(429, llm.CodeRateLimit, 0),
		"retry after":     later(429, llm.CodeRateLimit, 7*time.Second),
		"server":          later(500, llm.CodeServer, 0),
		"overloaded":      later(529, llm.CodeOverloaded, 0),
	}
}
