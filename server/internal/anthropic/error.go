package anthropic

// error.go: errors in the form of Anthropic's API.

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/web"
)

// writeError answers with an error.
func (c *call) writeError(e *api.Error) {
	status := c.StatusOf(e)
	if e.RetryAfter > 0 {
		c.Writer.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	web.WriteBytes(c.Writer, status, errorBody(e, status, c.Secrets))
}

// kinds are Anthropic's types of errors by their status.
var kinds = map[int]string{
	http.StatusUnauthorized:          "authentication_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestTimeout:        "timeout_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusFailedDependency:      "api_error",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusServiceUnavailable:    "overloaded_error",
}

// kindOf returns Anthropic's type of an error with that status.
func kindOf(status int) string {
	kind, ok := kinds[status]
	switch {
	case ok:
		return kind
	case status >= http.StatusInternalServerError:
		return "api_error"
	}
	return "invalid_request_error"
}

// errorBody returns an error as JSON without secrets. Its member code is of this API.
func errorBody(e *api.Error, status int, secrets *redact.Redactor) []byte {
	message := e.Message
	if e.Hint != "" {
		message += " (" + e.Hint + ")"
	}
	b, _ := json.Marshal(object{"type": "error", "error": object{ // text always marshals
		"type":    kindOf(status),
		"message": secrets.String(message),
		"code":    e.Code,
	}})
	return b
}
