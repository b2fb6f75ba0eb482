// Package openai serves agents by OpenAI's Chat Completions and Responses.
package openai

import (
	"encoding/json"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
)

// Options is what the endpoints may show.
type Options = runs.Options

// Handler answers the requests of OpenAI's clients. The zero value is ready.
type Handler struct{ window Window }

// call is a request to an endpoint.
type call struct {
	*web.Call
	h *Handler
}

// Routes returns the endpoints.
func (h *Handler) Routes() []web.Route {
	on := func(f func(*call) error) func(*web.Call) error {
		return func(c *web.Call) error { return f(&call{c, h}) }
	}
	all := []web.Route{
		{Method: "POST", Path: "/v1/chat/completions", Scope: access.ScopeRun,
			Does: "OpenAI's Chat Completions: an agent is a model. The client executes the tools in its request.",
			In:   json.RawMessage{}, Out: json.RawMessage{}, Stream: true, Do: on((*call).Chat)},
		{Method: "POST", Path: "/v1/responses", Scope: access.ScopeRun,
			Does: "OpenAI's Responses: an agent is a model. The client executes the tools in its request.",
			In:   json.RawMessage{}, Out: json.RawMessage{}, Stream: true, Do: on((*call).Responses)},
		{Method: "GET", Path: "/v1/responses/{id}", Scope: access.ScopeRun, Does: "Returns a stored response in OpenAI's form.",
			Out: json.RawMessage{}, Do: on((*call).ShowResponse)},
		{Method: "DELETE", Path: "/v1/responses/{id}", Scope: access.ScopeRun,
			Does: "Deletes the run of a response with all its data. A run that is executing must be cancelled first.",
			Out:  json.RawMessage{}, Do: on((*call).DeleteResponse)},
		{Method: "GET", Path: "/v1/models", Scope: access.ScopeRun, Does: "Lists the agents in the form of OpenAI's list of models.",
			Out: json.RawMessage{}, Do: on((*call).Models)},
		{Method: "GET", Path: "/v1/models/{model}", Scope: access.ScopeRun, Does: "Returns an agent in the form of OpenAI's model.",
			Out: json.RawMessage{}, Do: on((*call).Models)},
	}
	for i := range all {
		all[i].Loose = true
		all[i].Fail = WriteError
	}
	return all
}

// WriteError answers in the form of OpenAI's API.
func WriteError(c *web.Call, e *api.Error) { (&call{Call: c}).openAIError(e) }
