package openai

// error.go: errors in the form of OpenAI's API.

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/web"
)

// unrepeated maps statuses after which clients of OpenAI's API repeat a request to statuses after
// which they do not.
var unrepeated = map[int]int{
	http.StatusConflict:   http.StatusUnprocessableEntity,
	http.StatusBadGateway: http.StatusFailedDependency,
}

// writeError answers with an error.
func (c *call) writeError(e *api.Error) {
	status := e.Status
	if to, ok := unrepeated[status]; ok {
		status = to
		c.Writer.Header().Set("X-Should-Retry", "false")
	}
	if e.Code == "needs_decision" {
		status = http.StatusLocked
	}
	if c.isLangChain() && status >= http.StatusUnprocessableEntity && status <= http.StatusFailedDependency {
		status = http.StatusConflict // the status for states that it does not repeat
	}

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

// isLangChain reports whether the client is LangChain's in JavaScript. It repeats requests by
// itself, after all but a few statuses of its own, and always states that it does not.
func (c *call) isLangChain() bool { return strings.HasPrefix(c.Request.UserAgent(), "langchainjs") }

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
