// Package turns answers the requests of the APIs of model providers: an agent is a model, and the
// client executes the tools in its request.
//
//	request ─▶ Asked ─▶ Accept ─▶ Turn: of the request, or of an earlier request that it repeats
//	Turn ─▶ Follow ─▶ Reply
//
// A turn is the part of a run that answers one request. The ID of a call that the client executes
// contains the run, so that results resume the run of their call. A package of an API translates
// its requests to Asked, and Reply to its responses.
package turns

// turns.go: Handler, and Call, a request to an endpoint.

import (
	"net/http"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// Options are what the replies show, and when they end.
type Options struct {
	HideReasoning bool // leaves out the reasoning of models
	ShowCalls     bool // adds a line for each call of the agent's own tools to it

	// Hold keeps a stream open while a call waits for a person. Otherwise it ends with an error.
	Hold bool
	// ApprovalLink is server.Front.ApprovalLink. Nil means none.
	ApprovalLink func(owner store.Scope, agent, run string, call pawl.PendingCall) string
}

// Handler has what the endpoints of an API share. It is safe for concurrent use.
type Handler struct {
	Options
	window window
}

// Call is a request to an endpoint.
type Call struct {
	*web.Call
	Handler *Handler
}

// unrepeated maps statuses after which the providers' clients repeat a request to statuses after
// which they do not.
var unrepeated = map[int]int{
	http.StatusConflict:   http.StatusUnprocessableEntity,
	http.StatusBadGateway: http.StatusFailedDependency,
}

// StatusOf returns the status of the answer to a request that failed, and sets the header that
// keeps clients from repeating it.
func (c *Call) StatusOf(e *api.Error) int {
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
	return status
}

// WriteError answers a request that failed. body returns the error in the form of the API.
func (c *Call) WriteError(e *api.Error, body func(status int) []byte) {
	status := c.StatusOf(e)
	web.SetRetryAfter(c.Writer, e)
	web.WriteBytes(c.Writer, status, body(status))
}

// MessageOf returns the message of an error with its hint, without secrets.
func (c *Call) MessageOf(e *api.Error) string {
	message := e.Message
	if e.Hint != "" {
		message += " (" + e.Hint + ")"
	}
	return c.Secrets.String(message)
}

// isLangChain reports whether the client is LangChain's in JavaScript. It repeats requests by
// itself, after all but a few statuses of its own, and always states that it does not.
func (c *Call) isLangChain() bool { return strings.HasPrefix(c.Request.UserAgent(), "langchainjs") }

// isClaudeCode reports whether the client is Claude Code. It repeats requests by itself and always
// states that it does not; a stream that failed it repeats as a whole request.
func (c *Call) isClaudeCode() bool { return strings.HasPrefix(c.Request.UserAgent(), "claude-cli/") }

// Encode returns v as JSON without secrets.
func (c *Call) Encode(v any) []byte {
	b, err := c.Marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return b
}
