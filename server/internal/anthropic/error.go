package anthropic

// error.go: errors in the form of Anthropic's API.

import (
	"encoding/json"
	"net/http"

	"github.com/pawl-go/pawl/server/api"
)

// writeError answers with an error.
func (c *call) writeError(e *api.Error) {
	c.WriteError(e, func(status int) []byte { return c.errorBody(e, status) })
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
func (c *call) errorBody(e *api.Error, status int) []byte {
	b, _ := json.Marshal(object{"type": "error", "error": object{ // text always marshals
		"type":    kindOf(status),
		"message": c.MessageOf(e),
		"code":    e.Code,
	}})
	return b
}
