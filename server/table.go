package server

// table.go: the table of endpoints. A new endpoint of this API is a row here and a method of call;
// the protocols have tables of their own.

import (
	"slices"

	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/a2a"
	"github.com/pawl-go/pawl/server/internal/anthropic"
	"github.com/pawl-go/pawl/server/internal/openai"
	"github.com/pawl-go/pawl/server/internal/turns"
	"github.com/pawl-go/pawl/server/internal/ui"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// table returns the endpoints of this API and of each protocol.
func (s *Server) table() []web.Route {
	shown := turns.Options{
		HideReasoning: s.options.Front.HideReasoning,
		ShowCalls:     s.options.Front.ShowCalls,
		Hold:          s.options.Front.HoldApprovals,
		ApprovalLink:  s.options.Front.ApprovalLink,
	}
	all := slices.Concat(
		s.serverRoutes(),
		s.runRoutes(),
		s.changeRoutes(),
		s.answerRoutes(),
		s.memoryRoutes(),
		openai.Routes(shown),
		anthropic.Routes(shown),
		ui.Routes(),
	)
	if s.options.A2A != nil {
		all = append(all, a2a.Routes(a2a.Options{
			URL:     s.options.A2A.URL,
			Secured: len(s.options.Access.Tokens) > 0 || s.options.Access.Authenticate != nil,
			Beat:    s.options.Times.Beat,
			Log:     s.options.Log,
		})...)
	}
	return all
}

// paging are the parameters of lists.
var paging = []web.Param{
	{Name: "after", Does: "the last ID of the previous page"},
	{Name: "limit", Does: "maximum number of entries, up to 1000; default 100"},
}

// ofState is the parameter of the list of runs.
var ofState = []web.Param{{Name: "state", Does: "only runs in this state: queued, open, waiting, failed or over"}}

// ofUser is the parameter of endpoints for approvers.
var ofUser = []web.Param{{Name: "user", Does: "the user of the run, if the token approves for that user"}}

// serverRoutes returns the endpoints of the server, its agents and their tools.
func (s *Server) serverRoutes() []web.Route {
	return []web.Route{
		{
			Method: "GET",
			Path:   "/v1/health",
			Does:   "Reports that the server is running. Needs no token.",
			Out:    api.Health{},
			Do:     s.on((*call).health),
		}, {
			Method: "GET",
			Path:   "/v1/ready",
			Does: "Reports whether the server takes new runs: ready, or with the status 503 draining, or " +
				"no_store while the store does not work. Needs no token.",
			Out: api.Health{},
			Do:  s.on((*call).ready),
		}, {
			Method: "GET",
			Path:   "/openapi.json",
			Does:   "Returns this document. Needs no token.",
			Do:     s.on((*call).document),
		}, {
			Method: "GET",
			Path:   "/v1/agents",
			Scope:  api.ScopeRead,
			Does:   "Lists the agents.",
			Out:    api.Agents{},
			Do:     s.on((*call).agents),
		}, {
			Method: "GET",
			Path:   "/v1/tools",
			Scope:  api.ScopeRead,
			Does:   "Lists tools.",
			Query:  []web.Param{{Name: "agent", Does: "only the tools of this agent"}},
			Out:    api.Tools{},
			Do:     s.on((*call).tools),
		}, {
			Method: "POST",
			Path:   "/v1/tools/{name}/call",
			Scope:  api.ScopeTools,
			Does: "Calls a tool. The call is validated, approved and stored like a model's call. 202 means that " +
				"it is pending.",
			In:  api.ToolStart{},
			Out: api.ToolCalled{},
			Do:  s.on((*call).callTool),
		}, {
			Method: "GET",
			Path:   "/v1/schedules",
			Scope:  api.ScopeRead,
			Does:   "Lists schedules.",
			Query:  paging,
			Out:    api.Schedules{},
			Do:     s.on((*call).schedules),
		},
	}
}

// runRoutes returns the endpoints that start runs and show them.
func (s *Server) runRoutes() []web.Route {
	return []web.Route{
		{
			Method: "POST",
			Path:   "/v1/runs",
			Scope:  api.ScopeRun,
			Does:   "Starts or resumes a run. With Accept: text/event-stream the response is its events.",
			In:     api.Start{},
			Out:    api.Run{},
			Status: 201,
			Stream: true,
			Do:     s.on((*call).start),
		}, {
			Method: "GET",
			Path:   "/v1/runs",
			Scope:  api.ScopeRead,
			Does: "Lists runs by ID. With Accept: text/event-stream: an event run for each of them, then the " +
				"event listed, then an event run for each change; gone reports a deleted run.",
			Query:  slices.Concat(ofState, paging),
			Out:    api.Runs{},
			Stream: true,
			Do:     s.on((*call).list),
		}, {
			Method: "GET",
			Path:   "/v1/runs/{id}",
			Scope:  api.ScopeRead,
			Does:   "Returns the state of a run.",
			Out:    api.Run{},
			Do:     s.on((*call).show),
		}, {
			Method: "GET",
			Path:   "/v1/runs/{id}/events",
			Scope:  api.ScopeRead,
			Does: "Streams the events of a run, from the beginning or after Last-Event-ID, until the run has " +
				"ended. The stream stays open while the run is pending.",
			Stream: true,
			Do:     s.on((*call).events),
		}, {
			Method: "GET",
			Path:   "/v1/runs/{id}/export",
			Scope:  api.ScopeRead,
			Does:   "Returns the content of a run, without times.",
			Out:    journal.Export{},
			Do:     s.on((*call).export),
		}, {
			Method: "GET",
			Path:   "/v1/runs/{id}/timeline",
			Scope:  api.ScopeRead,
			Does:   "Returns the times of a run.",
			Out:    journal.Timeline{},
			Do:     s.on((*call).timeline),
		}, {
			Method: "GET",
			Path:   "/v1/runs/{id}/effects",
			Scope:  api.ScopeRead,
			Does:   "Returns the ledger of a run: each call with effects, and its known outcome.",
			Out:    api.Effects{},
			Do:     s.on((*call).effects),
		}, {
			Method: "GET",
			Path:   "/v1/runs/{id}/diff/{other}",
			Scope:  api.ScopeRead,
			Does:   "Returns the differences of two runs.",
			Out:    api.Differences{},
			Do:     s.on((*call).diff),
		},
	}
}

// changeRoutes returns the endpoints that change runs.
func (s *Server) changeRoutes() []web.Route {
	return []web.Route{
		{
			Method: "DELETE",
			Path:   "/v1/runs/{id}",
			Scope:  api.ScopeRun,
			Does:   "Deletes a run with all its data. A run that is executing must be cancelled first.",
			Out:    api.Deleted{},
			Do:     s.on((*call).remove),
		}, {
			Method: "POST",
			Path:   "/v1/runs/{id}/cancel",
			Scope:  api.ScopeRun,
			Does:   "Cancels a run. It is idempotent.",
			Out:    api.Run{},
			Do:     s.on((*call).cancel),
		}, {
			Method: "POST",
			Path:   "/v1/runs/{id}/steer",
			Scope:  api.ScopeRun,
			Does:   "Sends user messages to a run, which adds them to its next request.",
			In:     api.SteerRequest{},
			Out:    api.Run{},
			Do:     s.on((*call).steer),
		}, {
			Method: "POST",
			Path:   "/v1/runs/{id}/fork",
			Scope:  api.ScopeRun,
			Does:   "Starts another run with the first steps of this one.",
			In:     api.Fork{},
			Out:    api.Run{},
			Status: 201,
			Do:     s.on((*call).fork),
		},
	}
}

// answerRoutes returns the endpoints of pending calls.
func (s *Server) answerRoutes() []web.Route {
	return []web.Route{
		{
			Method: "POST",
			Path:   "/v1/runs/{id}/approve",
			Scope:  api.ScopeDecide,
			Does:   "Approves an open call.",
			Query:  ofUser,
			In:     api.Verdict{},
			Out:    api.Run{},
			Do:     s.on((*call).approve),
		}, {
			Method: "POST",
			Path:   "/v1/runs/{id}/deny",
			Scope:  api.ScopeDecide,
			Does:   "Rejects an open call.",
			Query:  ofUser,
			In:     api.Verdict{},
			Out:    api.Run{},
			Do:     s.on((*call).deny),
		}, {
			Method: "POST",
			Path:   "/v1/runs/{id}/answer",
			Scope:  api.ScopeRun,
			Or:     api.ScopeDecide,
			Does:   "Sets the result of an open call. Passive calls need the scope run, others decide.",
			Query:  ofUser,
			In:     api.CallResult{},
			Out:    api.Run{},
			Do:     s.on((*call).answer),
		}, {
			Method: "GET",
			Path:   "/v1/pending",
			Scope:  api.ScopeRead,
			Does:   "Lists the pending calls, also of the users that the token approves for.",
			Query:  slices.Concat(ofUser, paging),
			Out:    api.Inbox{},
			Do:     s.on((*call).inbox),
		},
	}
}

// memoryRoutes returns the endpoints of memories.
func (s *Server) memoryRoutes() []web.Route {
	return []web.Route{
		{
			Method: "GET",
			Path:   "/v1/memories",
			Scope:  api.ScopeRead,
			Does:   "Lists what agents remember of the user, by ID.",
			Query:  paging,
			Out:    api.Memories{},
			Do:     s.on((*call).memories),
		}, {
			Method: "POST",
			Path:   "/v1/memories/{id}/confirm",
			Scope:  api.ScopeDecide,
			Does:   "Confirms a memory, so that models are shown it.",
			In:     api.Confirm{},
			Out:    store.Memory{},
			Do:     s.on((*call).confirm),
		}, {
			Method: "DELETE",
			Path:   "/v1/memories/{id}",
			Scope:  api.ScopeRun,
			Or:     api.ScopeDecide,
			Does:   "Forgets a memory. Stored runs keep what they recalled until they are deleted.",
			Out:    api.Forgotten{},
			Do:     s.on((*call).forget),
		}, {
			Method: "DELETE",
			Path:   "/v1/memories",
			Scope:  api.ScopeRun,
			Or:     api.ScopeDecide,
			Does:   "Forgets the memories that came of a run.",
			Query:  []web.Param{{Name: "run", Does: "the ID of the run"}},
			Out:    api.Forgotten{},
			Do:     s.on((*call).forgetRun),
		},
	}
}
