// Package openai serves agents by OpenAI's Chat Completions and Responses: an agent is a model, and
// the client executes the tools in its request.
//
// It translates requests and replies; package turns has what happens between them.
package openai

// routes.go: the endpoints.

import (
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/turns"
	"github.com/pawl-go/pawl/server/internal/web"
)

// Routes returns the endpoints.
func Routes(o turns.Options) []web.Route {
	h := &handler{&turns.Handler{Options: o}}
	all := slices.Concat(h.chatRoutes(), h.responseRoutes(), absentRoutes())
	for i := range all {
		all[i].Lax = true
		all[i].Fail = func(c *web.Call, e *api.Error) { h.call(c).writeError(e) }
	}
	return all
}

// raw is a body whose form OpenAI defines.
var raw = json.RawMessage{}

// chatRoutes returns the endpoints of Chat Completions and of models.
func (h *handler) chatRoutes() []web.Route {
	return []web.Route{
		{
			Method: "POST",
			Path:   "/v1/chat/completions",
			Scope:  api.ScopeRun,
			Does: "OpenAI's Chat Completions: an agent is a model. " +
				"The client executes the tools in its request.",
			In:     raw,
			Out:    raw,
			Stream: true,
			Do:     h.on((*call).chat),
		}, {
			Method: "GET",
			Path:   "/v1/models",
			Scope:  api.ScopeRun,
			Does:   "Lists the agents in the form of OpenAI's list of models.",
			Out:    raw,
			Do:     h.on((*call).models),
		}, {
			Method: "GET",
			Path:   "/v1/models/{model}",
			Scope:  api.ScopeRun,
			Does:   "Returns an agent in the form of OpenAI's model.",
			Out:    raw,
			Do:     h.on((*call).models),
		},
	}
}

// responseRoutes returns the endpoints of Responses and of their conversations.
func (h *handler) responseRoutes() []web.Route {
	return []web.Route{
		{
			Method: "POST",
			Path:   "/v1/responses",
			Scope:  api.ScopeRun,
			Does:   "OpenAI's Responses: an agent is a model. The client executes the tools in its request.",
			In:     raw,
			Out:    raw,
			Stream: true,
			Do:     h.on((*call).responses),
		}, {
			Method: "GET",
			Path:   "/v1/responses/{id}",
			Scope:  api.ScopeRun,
			Does: "Returns a stored response in OpenAI's form. With stream=true the response is its " +
				"events from the beginning.",
			Query:  []web.Param{{Name: "stream", Does: "true for the events"}},
			Out:    raw,
			Stream: true,
			Do:     h.on((*call).showResponse),
		}, {
			Method: "GET",
			Path:   "/v1/responses/{id}/input_items",
			Scope:  api.ScopeRun,
			Does:   "Lists the items that a stored response was made from, the newest first.",
			Query: []web.Param{
				{Name: "order", Does: "asc for the oldest first"},
				{Name: "limit", Does: "maximum number of items, up to 100; default 20"},
				{Name: "after", Does: "the last ID of the previous page"},
			},
			Out: raw,
			Do:  h.on((*call).inputItems),
		}, {
			Method: "POST",
			Path:   "/v1/responses/{id}/cancel",
			Scope:  api.ScopeRun,
			Does:   "Cancels the run of a response and returns the response. It is idempotent.",
			Out:    raw,
			Do:     h.on((*call).cancelResponse),
		}, {
			Method: "POST",
			Path:   "/v1/conversations",
			Scope:  api.ScopeRun,
			Does:   "Returns a new ID for the member conversation of POST /v1/responses.",
			In:     raw,
			Out:    raw,
			Do:     h.on((*call).createConversation),
		}, {
			Method: "DELETE",
			Path:   "/v1/responses/{id}",
			Scope:  api.ScopeRun,
			Does: "Deletes the run of a response with all its data. " +
				"A run that is executing must be cancelled first.",
			Out: raw,
			Do:  h.on((*call).deleteResponse),
		},
	}
}

// absentRoutes returns endpoints of OpenAI's API that agents do not have, with what to do instead.
func absentRoutes() []web.Route {
	absent := func(message, hint string) func(*web.Call) error {
		return func(*web.Call) error { return runs.Fault("not_found", message, hint) }
	}
	uncounted := absent("tokens are not counted before a request", "usage of a response has their number")
	return []web.Route{
		{
			Method: "GET",
			Path:   "/v1/responses/input_tokens",
			Hidden: true,
			Do:     uncounted,
		}, {
			Method: "POST",
			Path:   "/v1/responses/input_tokens",
			Hidden: true,
			Do:     uncounted,
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
}
