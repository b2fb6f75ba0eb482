// Package ui serves agents to front ends: useChat of the AI SDK, and AG-UI.
package ui

import (
	"encoding/json"

	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/web"
)

type call struct{ conversation.Call }

type object = map[string]any

// Routes returns the endpoints.
func Routes() []web.Route {
	on := func(f func(*call) error) func(*web.Call) error {
		return func(c *web.Call) error { return f(&call{conversation.Call{Call: c}}) }
	}
	raw := json.RawMessage{}
	sdk := []web.Param{{Name: "sdk", Does: "major version of the npm package ai: 6, the default, or 7"}, {Name: "agent", Does: "the agent of /api/chat, if there are several"}}
	start := web.Route{Method: "POST", Scope: access.ScopeRun, Or: access.ScopeDecide, In: raw, Stream: true, Open: true}
	post := func(path, does string, query []web.Param, do func(*call) error) web.Route {
		r := start
		r.Path, r.Does, r.Query, r.Do = path, does, query, on(do)
		return r
	}
	return []web.Route{
		post("/v1/ui/{agent}", "Vercel's AI SDK: starts or continues the run of a message of useChat. The response is a UI message stream.", sdk, (*call).Ui),
		{Method: "GET", Path: "/v1/ui/{agent}/{chat}", Scope: access.ScopeRead, Does: "Returns a conversation as UIMessages.", Query: sdk, Out: raw, Do: on((*call).UiMessages)},
		{Method: "GET", Path: "/v1/ui/{agent}/{chat}/stream", Scope: access.ScopeRead, Does: "Streams the message in progress from its beginning. 204 means that there is none.", Query: sdk, Stream: true, Do: on((*call).UiStream)},
		{Method: "POST", Path: "/v1/ui/{agent}/{chat}/stop", Scope: access.ScopeRun, Does: "Cancels the newest run of a conversation. It is idempotent.", Query: sdk, Status: 204, Do: on((*call).UiStop)},
		post("/api/chat", "POST /v1/ui/{agent} for the agent that the body names, or for the only one.", sdk, (*call).Ui),
		{Method: "GET", Path: "/api/chat/{chat}/stream", Scope: access.ScopeRead, Does: "GET /v1/ui/{agent}/{chat}/stream for the only agent.", Query: sdk, Stream: true, Do: on((*call).UiStream)},
		post("/v1/agui/{agent}", "AG-UI: starts or continues a run, or attaches to the one with the same threadId and runId. The response is its events.",
			[]web.Param{{Name: "inner", Does: "1 for the runs inside calls, with AG-UI 1.0"}}, (*call).Agui),
		{Method: "GET", Path: "/v1/agui/{agent}", Scope: access.ScopeRead, Does: "Returns the AgentCapabilities of AG-UI.", Out: raw, Do: on((*call).AguiAbout)},
	}
}
