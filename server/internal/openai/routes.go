// Package openai serves agents by OpenAI's Chat Completions and Responses: an agent is a model, and
// the client executes the tools in its request.
//
//	request ─▶ asked ─▶ open ─▶ turn: of the request, or of an earlier request that it repeats
//	turn ─▶ follow ─▶ reply
//
// A turn is the part of a run that answers one request. The ID of a call that the client executes
// contains the run, so that results resume the run of their call.
package openai

// routes.go: the endpoints.

import (
	"encoding/json"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
)

// Options are what the replies show.
type Options struct {
	HideReasoning bool // leaves reasoning_content out of Chat Completions
	ShowCalls     bool // adds a line for each call of the agent's own tools to it
}

// handler has what the endpoints share.
type handler struct {
	Options
	window window
}

// call is a request to an endpoint.
type call struct {
	*web.Call
	handler *handler
}

type object = map[string]any

// Routes returns the endpoints.
func Routes(o Options) []web.Route {
	h := &handler{Options: o}
	on := func(do func(*call) error) func(*web.Call) error {
		return func(c *web.Call) error { return do(&call{c, h}) }
	}
	absent := func(message, hint string) func(*web.Call) error {
		return func(*web.Call) error { return runs.Fault("not_found", message, hint) }
	}
	raw := json.RawMessage{}
	all := []web.Route{
		{
			Method: "POST",
			Path:   "/v1/chat/completions",
			Scope:  api.ScopeRun,
			Does: "OpenAI's Chat Completions: an agent is a model. " +
				"The client executes the tools in its request.",
			In:     raw,
			Out:    raw,
			Stream: true,
			Do:     on((*call).chat),
		}, {
			Method: "POST",
			Path:   "/v1/responses",
			Scope:  api.ScopeRun,
			Does:   "OpenAI's Responses: an agent is a model. The client executes the tools in its request.",
			In:     raw,
			Out:    raw,
			Stream: true,
			Do:     on((*call).responses),
		}, {
			Method: "GET",
			Path:   "/v1/responses/{id}",
			Scope:  api.ScopeRun,
			Does:   "Returns a stored response in OpenAI's form.",
			Out:    raw,
			Do:     on((*call).showResponse),
		}, {
			Method: "DELETE",
			Path:   "/v1/responses/{id}",
			Scope:  api.ScopeRun,
			Does: "Deletes the run of a response with all its data. " +
				"A run that is executing must be cancelled first.",
			Out: raw,
			Do:  on((*call).deleteResponse),
		}, {
			Method: "GET",
			Path:   "/v1/models",
			Scope:  api.ScopeRun,
			Does:   "Lists the agents in the form of OpenAI's list of models.",
			Out:    raw,
			Do:     on((*call).models),
		}, {
			Method: "GET",
			Path:   "/v1/models/{model}",
			Scope:  api.ScopeRun,
			Does:   "Returns an agent in the form of OpenAI's model.",
			Out:    raw,
			Do:     on((*call).models),
		}, {
			Path:   "/v1/embeddings",
			Hidden: true,
			Do:     absent("agents have no embeddings", "ask the provider of an embedding model"),
		}, {
			Path:   "/v1/completions",
			Hidden: true,
			Do:     absent("agents answer conversations only", "POST /v1/chat/completions"),
		},
	}
	for i := range all {
		all[i].Lax = true
		all[i].Fail = func(c *web.Call, e *api.Error) { (&call{c, h}).writeError(e) }
	}
	return all
}
