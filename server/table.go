package server

import (
	"encoding/json"
	"net/http"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/store"
)

// table returns all endpoints of the API.
func (s *Server) table() []route {
	paging := []param{{"after", "the id that the part before ended with"}, {"limit", "how many at most, up to 1000; default 100"}}
	return []route{
		{method: "GET", path: "/v1/health", does: "Says that the server is there. Without a token.", out: Health{}, do: (*call).health},
		{method: "GET", path: "/openapi.json", does: "This document. Without a token.", do: (*call).document},

		{method: "GET", path: "/v1/agents", scope: ScopeRead, does: "Lists the agents.", out: Agents{}, do: (*call).agents},
		{method: "POST", path: "/v1/runs", scope: ScopeRun, does: "Begins a run, or goes on with one. With Accept: text/event-stream the answer is its events.", in: Start{}, out: Run{}, status: 201, stream: true, do: (*call).start},
		{method: "GET", path: "/v1/runs", scope: ScopeRead, does: "Lists runs by id. With Accept: text/event-stream: all of them as events run, then the event listed, then each run that changes as it is then; gone is one that was deleted.", query: append([]param{{"state", "only those in it: open, waiting, failed or over"}}, paging...), out: Runs{}, stream: true, do: (*call).list},
		{method: "GET", path: "/v1/runs/{id}", scope: ScopeRead, does: "Shows how a run stands.", out: Run{}, do: (*call).show},
		{method: "GET", path: "/v1/runs/{id}/events", scope: ScopeRead, does: "Streams the events of a run, from the beginning or after Last-Event-ID, until nothing more will come: one that waits for an answer is waited for.", stream: true, do: (*call).eventsOf},
		{method: "GET", path: "/v1/runs/{id}/export", scope: ScopeRead, does: "Gives what a run was, without times.", out: durable.Export{}, do: (*call).export},
		{method: "GET", path: "/v1/runs/{id}/timeline", scope: ScopeRead, does: "Gives when things happened in a run.", out: durable.Timeline{}, do: (*call).timeline},
		{method: "GET", path: "/v1/runs/{id}/effects", scope: ScopeRead, does: "Gives the ledger of a run: each call that acts, and what is known of it.", out: Effects{}, do: (*call).effects},
		{method: "GET", path: "/v1/runs/{id}/diff/{other}", scope: ScopeRead, does: "Says where two runs differ.", out: Differences{}, do: (*call).diff},
		{method: "POST", path: "/v1/runs/{id}/cancel", scope: ScopeRun, does: "Gives a run up. Twice is once.", out: Run{}, do: (*call).cancel},
		{method: "POST", path: "/v1/runs/{id}/steer", scope: ScopeRun, does: "Sends messages of the user to a run, which takes them with its next request.", in: Say{}, out: Run{}, do: (*call).steer},
		{method: "POST", path: "/v1/runs/{id}/fork", scope: ScopeRun, does: "Begins another run with the first steps of this one.", in: Fork{}, out: Run{}, status: 201, do: (*call).fork},
		{method: "POST", path: "/v1/runs/{id}/approve", scope: ScopeDecide, does: "Lets an open call run.", in: Verdict{}, out: Run{}, do: func(c *call) error { return c.verdict(true) }},
		{method: "POST", path: "/v1/runs/{id}/deny", scope: ScopeDecide, does: "Refuses an open call.", in: Verdict{}, out: Run{}, do: func(c *call) error { return c.verdict(false) }},
		{method: "POST", path: "/v1/runs/{id}/answer", does: "Gives an open call its result. For passive calls with the scope run, for others with decide.", in: Given{}, out: Run{}, scope: ScopeRun, or: ScopeDecide, do: (*call).give},
		{method: "GET", path: "/v1/pending", scope: ScopeRead, does: "Lists the questions that wait for somebody's word.", query: paging, out: Inbox{}, do: (*call).inbox},

		{method: "GET", path: "/v1/tools", scope: ScopeRead, does: "Lists tools.", query: []param{{"agent", "only this one's"}}, out: Tools{}, do: (*call).tools},
		{method: "POST", path: "/v1/tools/{name}/call", scope: ScopeTools, does: "Calls a tool: checked, approved and kept like a model's call. 202: it waits for a decision.", in: ToolStart{}, out: ToolCalled{}, do: (*call).callTool},
		{method: "GET", path: "/v1/schedules", scope: ScopeRead, does: "Lists schedules.", query: paging, out: Schedules{}, do: (*call).schedules},

		{method: "POST", path: "/v1/chat/completions", scope: ScopeRun, does: "OpenAI's Chat Completions: an agent is a model. Tools that come with the request are carried out by the client.", in: json.RawMessage{}, out: json.RawMessage{}, stream: true, loose: true, do: (*call).chat},
		{method: "POST", path: "/v1/responses", scope: ScopeRun, does: "OpenAI's Responses: an agent is a model. Tools that come with the request are carried out by the client.", in: json.RawMessage{}, out: json.RawMessage{}, stream: true, loose: true, do: (*call).responses},
		{method: "GET", path: "/v1/responses/{id}", scope: ScopeRun, does: "Shows a response as OpenAI does, from what was kept of its run.", out: json.RawMessage{}, loose: true, do: (*call).showResponse},
		{method: "DELETE", path: "/v1/responses/{id}", scope: ScopeRun, does: "Deletes the run of a response with all that was kept of it. One that works has to be cancelled before.", out: json.RawMessage{}, loose: true, do: (*call).deleteResponse},
		{method: "GET", path: "/v1/models", scope: ScopeRun, does: "Lists the agents as OpenAI lists models.", out: json.RawMessage{}, loose: true, do: (*call).models},
		{method: "GET", path: "/v1/models/{model}", scope: ScopeRun, does: "Shows an agent as OpenAI shows a model.", out: json.RawMessage{}, loose: true, do: (*call).models},
	}
}

// Health reports that the server is running.
type Health struct {
	Status string `json:"status" doc:"ok, or closing: it is about to end."`
}

func (c *call) health() error {
	select {
	case <-c.s.hub.closing:
		return c.write(http.StatusServiceUnavailable, Health{"closing"})
	default:
		return c.write(http.StatusOK, Health{"ok"})
	}
}

// Schedules lists the schedules.
type Schedules struct {
	Schedules []store.Schedule `json:"schedules"`
	After     string           `json:"after,omitzero" doc:"Ask again with this for what follows; left out at the end."`
}

// schedules handles GET /v1/schedules.
func (c *call) schedules() error {
	q, err := c.params("after", "limit")
	if err != nil {
		return err
	}
	p, err := pageOf(q)
	if err != nil {
		return err
	}
	out := Schedules{Schedules: []store.Schedule{}}
	if c.s.o.Schedules != nil {
		list, err := c.s.o.Schedules.Schedules(c.ctx(), c.client.scope(), p)
		if err != nil {
			return err
		}
		if out.Schedules = append(out.Schedules, list...); len(list) == p.Size() {
			out.After = list[len(list)-1].ID
		}
	}
	return c.write(http.StatusOK, out)
}
