package server

// table.go: the table of endpoints; a new endpoint is a row here and a method of call.

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/store"
)

// table returns all endpoints of the API.
func (s *Server) table() []route {
	paging := []param{{"after", "the last ID of the previous page"}, {"limit", "maximum number of entries, up to 1000; default 100"}}
	user := []param{{"user", "the user of the run, if the token approves for that user"}}
	sdk := []param{{"sdk", "major version of the npm package ai: 6, the default, or 7"}, {"agent", "the agent of /api/chat, if there are several"}}
	return []route{
		{method: "GET", path: "/v1/health", does: "Reports that the server is running. Needs no token.", out: Health{}, do: (*call).health},
		{method: "GET", path: "/v1/ready", does: "Reports whether the server takes new runs: ready, or with the status 503 draining, or no_store while the store does not work. Needs no token.", out: Health{}, do: (*call).ready},
		{method: "GET", path: "/openapi.json", does: "Returns this document. Needs no token.", do: (*call).document},

		{method: "GET", path: "/v1/agents", scope: ScopeRead, does: "Lists the agents.", out: Agents{}, do: (*call).agents},
		{method: "POST", path: "/v1/runs", scope: ScopeRun,
			does: "Starts or resumes a run. With Accept: text/event-stream the response is its events.", in: Start{}, out: Run{}, status: 201, stream: true, do: (*call).start},
		{method: "GET", path: "/v1/runs", scope: ScopeRead,
			does: "Lists runs by ID. With Accept: text/event-stream: an event run for each of them, then the event listed, then an event run for each change; gone reports a deleted run.", query: append([]param{{"state", "only runs in this state: queued, open, waiting, failed or over"}}, paging...), out: Runs{}, stream: true, do: (*call).list},
		{method: "GET", path: "/v1/runs/{id}", scope: ScopeRead, does: "Returns the state of a run.", out: Run{}, do: (*call).show},
		{method: "GET", path: "/v1/runs/{id}/events", scope: ScopeRead, does: "Streams the events of a run, from the beginning or after Last-Event-ID, until the run has ended. The stream stays open while the run is pending.", stream: true, do: (*call).eventsOf},
		{method: "GET", path: "/v1/runs/{id}/export", scope: ScopeRead, does: "Returns the content of a run, without times.", out: durable.Export{}, do: (*call).export},
		{method: "GET", path: "/v1/runs/{id}/timeline", scope: ScopeRead, does: "Returns the times of a run.", out: durable.Timeline{}, do: (*call).timeline},
		{method: "GET", path: "/v1/runs/{id}/effects", scope: ScopeRead, does: "Returns the ledger of a run: each call with effects, and its known outcome.", out: Effects{}, do: (*call).effects},
		{method: "GET", path: "/v1/runs/{id}/diff/{other}", scope: ScopeRead, does: "Returns the differences of two runs.", out: Differences{}, do: (*call).diff},
		{method: "DELETE", path: "/v1/runs/{id}", scope: ScopeRun, does: "Deletes a run with all its data. A run that is executing must be cancelled first.", out: Deleted{}, do: (*call).remove},
		{method: "POST", path: "/v1/runs/{id}/cancel", scope: ScopeRun, does: "Cancels a run. It is idempotent.", out: Run{}, do: (*call).cancel},
		{method: "POST", path: "/v1/runs/{id}/steer", scope: ScopeRun, does: "Sends user messages to a run, which adds them to its next request.", in: SteerRequest{}, out: Run{}, do: (*call).steer},
		{method: "POST", path: "/v1/runs/{id}/fork", scope: ScopeRun, does: "Starts another run with the first steps of this one.", in: Fork{}, out: Run{}, status: 201, do: (*call).fork},
		{method: "POST", path: "/v1/runs/{id}/approve", scope: ScopeDecide, does: "Approves an open call.", query: user,
			in: Verdict{}, out: Run{}, do: func(c *call) error { return c.verdict(true) }},
		{method: "POST", path: "/v1/runs/{id}/deny", scope: ScopeDecide, does: "Rejects an open call.", query: user, in: Verdict{},
			out: Run{}, do: func(c *call) error { return c.verdict(false) }},
		{method: "POST", path: "/v1/runs/{id}/answer", does: "Sets the result of an open call. Passive calls need the scope run, others decide.",
			query: user, in: CallResult{}, out: Run{}, scope: ScopeRun, or: ScopeDecide, do: (*call).give},
		{method: "GET", path: "/v1/pending", scope: ScopeRead, does: "Lists the pending calls, also of the users that the token approves for.", query: append(user, paging...), out: Inbox{}, do: (*call).inbox},

		{method: "GET", path: "/v1/tools", scope: ScopeRead, does: "Lists tools.", query: []param{{"agent", "only the tools of this agent"}}, out: Tools{}, do: (*call).tools},
		{method: "POST", path: "/v1/tools/{name}/call", scope: ScopeTools, does: "Calls a tool. The call is validated, approved and stored like a model's call. 202 means that it is pending.", in: ToolStart{}, out: ToolCalled{}, do: (*call).callTool},
		{method: "GET", path: "/v1/schedules", scope: ScopeRead, does: "Lists schedules.", query: paging, out: Schedules{}, do: (*call).schedules},

		{method: "GET", path: "/v1/memories", scope: ScopeRead, does: "Lists what agents remember of the user, by ID.", query: paging, out: Memories{}, do: (*call).memories},
		{method: "POST", path: "/v1/memories/{id}/confirm", scope: ScopeDecide, does: "Confirms a memory, so that models are shown it.", in: Confirm{}, out: store.Memory{}, do: (*call).confirm},
		{method: "DELETE", path: "/v1/memories/{id}", scope: ScopeRun, or: ScopeDecide, does: "Forgets a memory. Stored runs keep what they recalled until they are deleted.", out: Forgotten{}, do: (*call).forget},
		{method: "DELETE", path: "/v1/memories", scope: ScopeRun, or: ScopeDecide, does: "Forgets the memories that came of a run.",
			query: []param{{"run", "the ID of the run"}}, out: Forgotten{}, do: (*call).forgetRun},

		{method: "POST", path: "/v1/chat/completions", scope: ScopeRun,
			does: "OpenAI's Chat Completions: an agent is a model. The client executes the tools in its request.", in: json.RawMessage{}, out: json.RawMessage{}, stream: true, loose: true, do: (*call).chat},
		{method: "POST", path: "/v1/responses", scope: ScopeRun,
			does: "OpenAI's Responses: an agent is a model. The client executes the tools in its request.", in: json.RawMessage{}, out: json.RawMessage{}, stream: true, loose: true, do: (*call).responses},
		{method: "GET", path: "/v1/responses/{id}", scope: ScopeRun, does: "Returns a stored response in OpenAI's form.", out: json.RawMessage{}, loose: true, do: (*call).showResponse},
		{method: "DELETE", path: "/v1/responses/{id}", scope: ScopeRun, does: "Deletes the run of a response with all its data. A run that is executing must be cancelled first.", out: json.RawMessage{}, loose: true, do: (*call).deleteResponse},

		{method: "POST", path: "/v1/ui/{agent}", scope: ScopeRun, or: ScopeDecide, does: "Vercel's AI SDK: starts or continues the run of a message of useChat. The response is a UI message stream.", query: sdk,
			in: json.RawMessage{}, stream: true, open: true, do: (*call).ui},
		{method: "GET", path: "/v1/ui/{agent}/{chat}", scope: ScopeRead, does: "Returns a conversation as UIMessages.", query: sdk, out: json.RawMessage{}, do: (*call).uiMessages},
		{method: "GET", path: "/v1/ui/{agent}/{chat}/stream", scope: ScopeRead, does: "Streams the message in progress from its beginning. 204 means that there is none.", query: sdk, stream: true, do: (*call).uiStream},
		{method: "POST", path: "/v1/ui/{agent}/{chat}/stop", scope: ScopeRun, does: "Cancels the newest run of a conversation. It is idempotent.", query: sdk, status: 204, do: (*call).uiStop},
		{method: "POST", path: "/api/chat", scope: ScopeRun, or: ScopeDecide, does: "POST /v1/ui/{agent} for the agent that the body names, or for the only one.", query: sdk,
			in: json.RawMessage{}, stream: true, open: true, do: (*call).ui},
		{method: "GET", path: "/api/chat/{chat}/stream", scope: ScopeRead, does: "GET /v1/ui/{agent}/{chat}/stream for the only agent.", query: sdk, stream: true, do: (*call).uiStream},

		{method: "POST", path: "/v1/agui/{agent}", scope: ScopeRun, or: ScopeDecide, does: "AG-UI: starts or continues a run, or attaches to the one with the same threadId and runId. The response is its events.", query: []param{{"inner", "1 for the runs inside calls, with AG-UI 1.0"}},
			in: json.RawMessage{}, stream: true, open: true, do: (*call).agui},
		{method: "GET", path: "/v1/agui/{agent}", scope: ScopeRead, does: "Returns the AgentCapabilities of AG-UI.", out: json.RawMessage{}, do: (*call).aguiAbout},

		{method: "GET", path: "/v1/models", scope: ScopeRun, does: "Lists the agents in the form of OpenAI's list of models.", out: json.RawMessage{}, loose: true, do: (*call).models},
		{method: "GET", path: "/v1/models/{model}", scope: ScopeRun, does: "Returns an agent in the form of OpenAI's model.", out: json.RawMessage{}, loose: true, do: (*call).models},
	}
}

// Health reports the state of the server.
type Health struct {
	Status string `json:"status"`
}

func (c *call) health() error {
	if closed(c.s.hub.closing) {
		return c.write(http.StatusServiceUnavailable, Health{"closing"})
	}
	return c.write(http.StatusOK, Health{"ok"})
}

func (c *call) ready() error {
	status := "ready"
	switch {
	case closed(c.s.hub.drained):
		status = "draining"
	case !c.s.probe.works(c.s.o.Journal):
		status = "no_store"
	default:
		return c.write(http.StatusOK, Health{status})
	}
	c.w.Header().Set("Retry-After", "1")
	return c.write(http.StatusServiceUnavailable, Health{status})
}

// probe is the last answer of the store, so that clients without a token cause one query a second.
type probe struct {
	mu sync.Mutex
	at time.Time
	ok bool
}

// works reports whether the store answers.
func (p *probe) works(j store.Journal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) > time.Second {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err := j.JournalRun(ctx, store.Scope{}, "ready")
		p.ok, p.at = err == nil || errors.Is(err, store.ErrNotFound), time.Now()
	}
	return p.ok
}
