package openai

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// failure is the error that a server reports.
type failure struct {
	wire.Failure
	// OpenRouter: the error of the provider behind it, {"error":{…,"metadata":{"raw"}}}
	upstream   string
	generation string // Groq: the model's text instead of a call
}

func readFailure(body []byte) (f failure) {
	f.Failure = wire.ReadFailure(body, func(name string, c *jsonscan.Cursor) bool {
		switch name {
		case "failed_generation":
			f.generation = c.String()
		case "metadata":
			if c.Kind() != jsonscan.Object {
				return false
			}
			// OpenRouter puts the answer of the server behind it into metadata.raw, as text or as
			// JSON. It says what its own message leaves out.
			if raw := wire.Member(c.Raw(), "raw"); len(raw) > 0 && raw[0] == '"' {
				f.upstream = wire.AsText(raw)
			} else {
				f.upstream = wire.Excerpt(raw)
			}
		default:
			return false
		}
		return true
	})
	return f
}

// toError returns the error of a response whose status is not 2xx.
func (d *dialect) toError(status int, h http.Header, body []byte, now time.Time) *llm.ProviderError {
	f := readFailure(body)
	e := d.classify(status, f)
	e.Message = cmp.Or(e.Message, http.StatusText(status))
	wire.SetRetry(e, h, now, wire.RetryIn(f.Message))
	return e
}

// toStreamError returns the error of a failure within a reply with status 200.
func (d *dialect) toStreamError(raw []byte) error {
	f := readFailure(raw)
	e := d.classify(f.Status, f)
	e.Status = f.Status
	if e.Retryable {
		e.RetryAfter = wire.RetryIn(f.Message)
	}
	return e
}

// classify maps a status and a failure to a code. The failure is more specific: an exhausted quota
// has status 400 or 429, a conversation that is too long 400 or 413.
func (d *dialect) classify(status int, f failure) *llm.ProviderError {
	e := &llm.ProviderError{Provider: d.provider, Status: status, Message: f.text()}
	if f.Code == "tool_use_failed" || f.generation != "" {
		e.Code = llm.CodeInvalidRequest
		e.Err = &wire.BadCall{Text: f.generation}
		return e
	}
	// The codes differ between servers, and several have none. So the text counts too, for the
	// causes that a run handles in its own way.
	word := strings.ToLower(f.Code + " " + f.Type)
	text := strings.ToLower(f.Message)
	client := status == 0 || status >= 400 && status < 500
	fixed := wire.StatusCode[status]
	switch {
	case client && (wire.Contains(word, "insufficient_quota", "billing", "credit") ||
		wire.Contains(text, "exceeded your current quota", "insufficient credits", "insufficient balance")):
		e.Code = llm.CodeQuota
	case client && (wire.Contains(word, "context_length", "too_many_tokens", "too_many_prompt_tokens", "string_above_max_length") ||
		wire.Contains(text, "context length", "context window", "too many tokens", "maximum number of tokens",
			"prompt is too long", "input is too long", "input tokens exceed", "length of all messages is too long")):
		e.Code = llm.CodeContextLength
	case client && wire.Contains(word, "content_filter", "content_policy", "moderation", "responsibleai"):
		e.Code = llm.CodeContentFilter
	case fixed != "":
		e.Code = fixed
	case status >= 500:
		e.Code = llm.CodeServer
	case wire.Contains(word, "invalid_api_key", "authentication"):
		e.Code = llm.CodeAuthentication
	case wire.Contains(word, "model_not_found", "not_found"):
		e.Code = llm.CodeNotFound
	case status >= 400:
		e.Code = llm.CodeInvalidRequest
	case wire.Contains(word, "rate_limit", "too_many_requests"):
		e.Code = llm.CodeRateLimit
	case wire.Contains(word, "overloaded"):
		e.Code = llm.CodeOverloaded
	case wire.Contains(word, "timeout"):
		e.Code = llm.CodeTimeout
	case wire.Contains(word, "invalid_prompt", "invalid_request", "image_parse", "invalid_image", "invalid_base64"):
		e.Code = llm.CodeInvalidRequest
	default: // a redirect, or in a stream an unknown type
		e.Code = wire.StatusRange(status)
		if status >= 300 {
			e.Message = cmp.Or(e.Message, wire.Redirected)
		}
	}
	e.Retryable = wire.Retryable(e.Code)
	return e
}

// text returns the provider's message with useful details.
func (f *failure) text() string {
	t := f.Message
	if f.upstream != "" {
		t += " (" + wire.Excerpt([]byte(f.upstream)) + ")"
	}
	if f.generation != "" {
		t += "; the model wrote: " + wire.Excerpt([]byte(f.generation))
	}
	return cmp.Or(t, strings.TrimSpace(f.Code+" "+f.Type))
}
