package openai

// error.go: errors in the form of OpenAI's API.

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
	web.WriteBytes(c.Writer, status, errorBody(e, kindOf(status), c.Secrets))
}

// kindOf returns OpenAI's type of an error with that status.
func kindOf(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// errorBody returns an error as JSON without secrets.
func errorBody(e *api.Error, kind string, secrets *redact.Redactor) []byte {
	message := e.Message
	if e.Hint != "" {
		message += " (" + e.Hint + ")"
	}
	said := object{
		"message": secrets.String(message),
		"type":    kind,
		"param":   nil,
		"code":    e.Code,
	}
	if e.Run != "" {
		said["run"] = e.Run
	}
	b, _ := json.Marshal(object{"error": said}) // text always marshals
	return b
}
