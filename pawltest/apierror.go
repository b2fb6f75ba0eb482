package pawltest

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
	"github.com/pawl-go/pawl/script"
)

// toAPIError returns the error of an API for an error of the model.
func toAPIError(err error) *wire.Error {
	e := &wire.Error{Status: 500, Message: err.Error()}
	var p *llm.ProviderError
	if errors.As(err, &p) {
		e.Message = p.Message
		e.Reason = string(p.Code)
		if p.Status != 0 {
			e.Status = p.Status
		}
		if p.RetryAfter > 0 {
			e.RetryAfter = strconv.Itoa(int(p.RetryAfter.Seconds()))
		}
	}
	var exhausted *script.ExhaustedError
	if errors.As(err, &exhausted) {
		e.Status = 400
	}
	return e
}

// writeError answers with an error. fault may replace body and content type.
func writeError(w http.ResponseWriter, e *wire.Error, api string, fault *Fault) {
	e.RetryAfter = cmp.Or(fault.RetryAfter, e.RetryAfter)
	_, err := strconv.Atoi(e.RetryAfter)
	inBody := api == Gemini && err == nil
	if e.RetryAfter != "" && !inBody {
		w.Header().Set("Retry-After", e.RetryAfter)
	}

	switch api {
	case Anthropic:
		w.Header().Set("Request-Id", "req_sim")
	case Chat, Responses:
		w.Header().Set("X-Request-Id", "req_sim")
	}

	body := e.Body(api)
	if fault.Body != nil {
		body = fault.Body
	}
	f := *fault
	f.Break = false
	raw(w, e.Status, "application/json", &f, body)
}
