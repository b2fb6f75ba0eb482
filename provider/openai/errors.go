package openai

import (
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// failure is what a server says of an error.
type failure struct {
	wire.Failure
	upstream   string // OpenRouter: what the provider behind it said, {"error":{…,"metadata":{"raw"}}}
	generation string // Groq: what the model wrote instead of a call
}

func readFailure(body []byte) (f failure) {
	f.Failure = wire.ReadFailure(body, func(name string, c *jsonscan.Cursor) bool {
		switch name {
		case "failed_generation":
			f.generation = c.String()
		case "metadata":
			if !c.Object() {
				return false
			}
			for k, ok := c.Key(); ok; k, ok = c.Key() {
				if string(k) != "raw" {
					continue
				}
				if c.Kind() == jsonscan.String {
					f.upstream = c.String()
				} else {
					f.upstream = wire.Excerpt(c.Raw())
				}
			}
		default:
			return false
		}
		return true
	})
	return f
}

// toError makes the error of an answer with an HTTP status.
func (d *dialect) toError(status int, h http.Header, body []byte, now time.Time) *llm.ProviderError {
	f := readFailure(body)
	e := d.classify(status, f)
	if e.Message == "" {
		e.Message = http.StatusText(status)
	}
	if status == http.StatusTooManyRequests || status >= 500 {
		if e.RetryAfter = wire.RetryAfter(h, now); e.RetryAfter == 0 {
			e.RetryAfter = wire.RetryIn(f.Message)
		}
	}
	switch h.Get("X-Should-Retry") {
	case "true":
		e.Retryable = true
	case "false":
		e.Retryable = false
	}
	return e
}

// toStreamError makes the error of a failure inside a reply, which came with status 200.
func (d *dialect) toStreamError(raw []byte) error {
	f := readFailure(raw)
	e := d.classify(f.Status, f)
	e.Status = f.Status
	if e.Retryable {
		e.RetryAfter = wire.RetryIn(f.Message)
	}
	return e
}

// classify maps a status and what the body says to a code. The body is the better witness: providers send a spent
// quota as 400 or 429, and a conversation that is too long as 400 or 413.
func (d *dialect) classify(status int, f failure) *llm.ProviderError {
	e := &llm.ProviderError{Provider: d.provider, Status: status, Message: f.text()}
	word := strings.ToLower(f.Code + " " + f.Type)
	text := strings.ToLower(f.Message)
	says := func(s string, words ...string) bool {
		for _, w := range words {
			if strings.Contains(s, w) {
				return true
			}
		}
		return false
	}
	client := status == 0 || status >= 400 && status < 500
	switch {
	case client && (says(word, "insufficient_quota", "billing", "credit") || says(text, "exceeded your current quota", "insufficient credits", "insufficient balance")):
		e.Code = llm.CodeQuota
	case client && (says(word, "context_length", "too_many_tokens", "too_many_prompt_tokens", "string_above_max_length") ||
		says(text, "context length", "context window", "too many tokens", "maximum number of tokens", "prompt is too long", "length of all messages is too long")):
		e.Code = llm.CodeContextLength
	case client && says(word, "content_filter", "content_policy", "moderation", "responsibleai"):
		e.Code = llm.CodeContentFilter
	case status == 401:
		e.Code = llm.CodeAuthentication
	case status == 402:
		e.Code = llm.CodeQuota
	case status == 403:
		e.Code = llm.CodePermission
	case status == 404 || status == 410:
		e.Code = llm.CodeNotFound
	case status == 408 || status == 504:
		e.Code, e.Retryable = llm.CodeTimeout, true
	case status == 409 || status == 425:
		e.Code, e.Retryable = llm.CodeServer, true // another request holds what this one needs
	case status == 413:
		e.Code = llm.CodeContextLength
	case status == 429:
		e.Code, e.Retryable = llm.CodeRateLimit, true
	case status == 503 || status == 529:
		e.Code, e.Retryable = llm.CodeOverloaded, true
	case status >= 500:
		e.Code, e.Retryable = llm.CodeServer, true
	case says(word, "invalid_api_key", "authentication"):
		e.Code = llm.CodeAuthentication
	case says(word, "model_not_found", "not_found"):
		e.Code = llm.CodeNotFound
	case status >= 400:
		e.Code = llm.CodeInvalidRequest
	case says(word, "rate_limit", "too_many_requests"):
		e.Code, e.Retryable = llm.CodeRateLimit, true
	case says(word, "overloaded"):
		e.Code, e.Retryable = llm.CodeOverloaded, true
	case says(word, "timeout"):
		e.Code, e.Retryable = llm.CodeTimeout, true
	case says(word, "invalid_prompt", "invalid_request", "image_parse", "invalid_image", "invalid_base64"):
		e.Code = llm.CodeInvalidRequest
	case status >= 300:
		e.Code = llm.CodeNotFound // a redirect: this is not the address of the API
		if e.Message == "" {
			e.Message = "the server answered with a redirect; is the base URL right?"
		}
	default:
		e.Code, e.Retryable = llm.CodeServer, true // said in a stream, without a word that we know
	}
	return e
}

// text is the provider's message, with what makes it useful.
func (f *failure) text() string {
	t := f.Message
	if f.upstream != "" {
		t += " (" + wire.Excerpt([]byte(f.upstream)) + ")"
	}
	if f.generation != "" {
		t += "; the model wrote: " + wire.Excerpt([]byte(f.generation))
	}
	if t == "" {
		t = strings.TrimSpace(f.Code + " " + f.Type)
	}
	return t
}
