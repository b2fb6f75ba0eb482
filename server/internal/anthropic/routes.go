// Package anthropic serves agents by Anthropic's Messages: an agent is a model, and the client
// executes the tools in its request.
//
// It translates requests and replies; package turns has what happens between them.
package anthropic

// routes.go: the endpoints.

import (
	"encoding/json"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/turns"
	"github.com/pawl-go/pawl/server/internal/web"
)

// handler has what the endpoints share.
type handler struct{ *turns.Handler }

// call is a request to an endpoint.
type call struct{ *turns.Call }

type object = map[string]any

// on converts a handler of this package.
func (h *handler) on(do func(*call) error) func(*web.Call) error {
	return func(c *web.Call) error { return do(h.call(c)) }
}

// call returns a request.
func (h *handler) call(c *web.Call) *call {
	return &call{&turns.Call{Call: c, Handler: h.Handler}}
}

// raw is a body whose form Anthropic defines.
var raw = json.RawMessage{}

// Routes returns the endpoints.
func Routes(o turns.Options) []web.Route {
	h := &handler{&turns.Handler{Options: o}}
	all := []web.Route{
		{
			Method: "POST",
			Path:   "/v1/messages",
			Scope:  api.ScopeRun,
			Does:   "Anthropic's Messages: an agent is a model. The client executes the tools in its request.",
			In:     raw,
			Out:    raw,
			Stream: true,
			Do:     h.on((*call).messages),
		}, {
			Method: "POST",
			Path:   "/v1/messages/count_tokens",
			Scope:  api.ScopeRun,
			Does: "Estimates the tokens of a request to /v1/messages, with the instructions and the tools of " +
				"the agent. It starts no run.",
			In:  raw,
			Out: raw,
			Do:  h.on((*call).countTokens),
		},
	}
	for i := range all {
		all[i].Lax = true
		all[i].Fail = func(c *web.Call, e *api.Error) { h.call(c).writeError(e) }
	}
	return all
}
