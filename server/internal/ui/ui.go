// Package ui serves agents to web front ends: to useChat of the AI SDK, and by AG-UI. Both are
// streams of package uistream over the runs of package conversation.
package ui

// ui.go: the endpoints of both protocols.

import (
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/web"
)

type call struct{ conversation.Call }

type object = map[string]any

// on converts a handler of this package.
func on(do func(*call) error) func(*web.Call) error {
	return func(c *web.Call) error { return do(&call{conversation.Call{Call: c}}) }
}

// raw is a value of the bodies of both protocols, whose forms the protocols define.
var raw = json.RawMessage{}

// sdk are the parameters of useChat's endpoints.
var sdk = []web.Param{
	{Name: "sdk", Does: "major version of the npm package ai: 6, the default, or 7"},
	{Name: "agent", Does: "the agent of /api/chat, if there are several"},
}

// Routes returns the endpoints.
func Routes() []web.Route { return slices.Concat(chatRoutes(), aguiRoutes()) }

func chatRoutes() []web.Route {
	return []web.Route{
		{
			Method: "POST",
			Path:   "/v1/ui/{agent}",
			Scope:  api.ScopeRun,
			Or:     api.ScopeDecide,
			Does: "Vercel's AI SDK: starts or continues the run of a message of useChat. " +
				"The response is a UI message stream.",
			Query:  sdk,
			In:     raw,
			Stream: true,
			Lax:    true,
			Do:     on((*call).chat),
		}, {
			Method: "GET",
			Path:   "/v1/ui/{agent}/{chat}",
			Scope:  api.ScopeRead,
			Does:   "Returns a conversation as UIMessages.",
			Query:  sdk,
			Out:    raw,
			Do:     on((*call).messages),
		}, {
			Method: "GET",
			Path:   "/v1/ui/{agent}/{chat}/stream",
			Scope:  api.ScopeRead,
			Does:   "Streams the message in progress from its beginning. 204 means that there is none.",
			Query:  sdk,
			Stream: true,
			Do:     on((*call).resume),
		}, {
			Method: "POST",
			Path:   "/v1/ui/{agent}/{chat}/stop",
			Scope:  api.ScopeRun,
			Does:   "Cancels the newest run of a conversation. It is idempotent.",
			Query:  sdk,
			Status: 204,
			Do:     on((*call).stop),
		}, {
			Method: "POST",
			Path:   "/api/chat",
			Scope:  api.ScopeRun,
			Or:     api.ScopeDecide,
			Does:   "POST /v1/ui/{agent} for the agent that the body names, or for the only one.",
			Query:  sdk,
			In:     raw,
			Stream: true,
			Lax:    true,
			Do:     on((*call).chat),
		}, {
			Method: "GET",
			Path:   "/api/chat/{chat}/stream",
			Scope:  api.ScopeRead,
			Does:   "GET /v1/ui/{agent}/{chat}/stream for the only agent.",
			Query:  sdk,
			Stream: true,
			Do:     on((*call).resume),
		},
	}
}

func aguiRoutes() []web.Route {
	return []web.Route{
		{
			Method: "POST",
			Path:   "/v1/agui/{agent}",
			Scope:  api.ScopeRun,
			Or:     api.ScopeDecide,
			Does: "AG-UI: starts or continues a run, or attaches to the one with the same threadId and runId. " +
				"The response is its events.",
			Query:  []web.Param{{Name: "inner", Does: "1 for the runs inside calls, with AG-UI 1.0"}},
			In:     raw,
			Stream: true,
			Lax:    true,
			Do:     on((*call).agui),
		}, {
			Method: "GET",
			Path:   "/v1/agui/{agent}",
			Scope:  api.ScopeRead,
			Does:   "Returns the AgentCapabilities of AG-UI.",
			Out:    raw,
			Do:     on((*call).capabilities),
		},
	}
}
