package openai

// error.go: errors in the form of OpenAI's API.

import (
	"encoding/json"
	"net/http"

	"github.com/pawl-go/pawl/server/api"
)

// writeError answers with an error.
func (c *call) writeError(e *api.Error) {
	c.WriteError(e, func(status int) []byte { return c.errorBody(e, kindOf(status)) })
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
func (c *call) errorBody(e *api.Error, kind string) []byte {
	said := object{
		"message": c.MessageOf(e),
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
