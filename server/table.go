package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/ui"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// table returns all endpoints of the API.
func (s *Server) table() []web.Route {
	paging := []web.Param{{Name: "after", Does: "the last ID of the previous page"}, {Name: "limit", Does: "maximum number of entries, up to 1000; default 100"}}
	user := []web.Param{{Name: "user", Does: "the user of the run, if the token approves for that user"}}
	own := []web.Route{
		{Method: "GET", Path: "/v1/health", Does: "Reports that the server is running. Needs no token.", Out: Health{}, Do: s.on((*call).health)},
		{Method: "GET", Path: "/v1/ready", Does: "Reports whether the server takes new runs: ready, or with the status 503 draining, or no_store while the store does not work. Needs no token.", Out: Health{}, Do: s.on((*call).ready)},
		{Method: "GET", Path: "/openapi.json", Does: "Returns this document. Needs no token.", Do: s.on((*call).document)},

		{Method: "GET", Path: "/v1/agents", Scope: access.ScopeRead, Does: "Lists the agents.", Out: Agents{}, Do: s.on((*call).agents)},
		{Method: "POST", Path: "/v1/runs", Scope: access.ScopeRun,
			Does: "Starts or resumes a run. With Accept: text/event-stream the response is its events.", In: api.Start{}, Out: api.Run{}, Status: 201, Stream: true, Do: s.on((*call).start)},
		{Method: "GET", Path: "/v1/runs", Scope: access.ScopeRead,
			Does: "Lists runs by ID. With Accept: text/event-stream: an event run for each of them, then the event listed, then an event run for each change; gone reports a deleted run.", Query: append([]web.Param{{Name: "state", Does: "only runs in this state: queued, open, waiting, failed or over"}}, paging...), Out: api.Runs{}, Stream: true, Do: s.on((*call).list)},
		{Method: "GET", Path: "/v1/runs/{id}", Scope: access.ScopeRead, Does: "Returns the state of a run.", Out: api.Run{}, Do: s.on((*call).show)},
		{Method: "GET", Path: "/v1/runs/{id}/events", Scope: access.ScopeRead, Does: "Streams the events of a run, from the beginning or after Last-Event-ID, until the run has ended. The stream stays open while the run is pending.", Stream: true, Do: s.on((*call).eventsOf)},
		{Method: "GET", Path: "/v1/runs/{id}/export", Scope: access.ScopeRead, Does: "Returns the content of a run, without times.", Out: journal.Export{}, Do: s.on((*call).export)},
		{Method: "GET", Path: "/v1/runs/{id}/timeline", Scope: access.ScopeRead, Does: "Returns the times of a run.", Out: journal.Timeline{}, Do: s.on((*call).timeline)},
		{Method: "GET", Path: "/v1/runs/{id}/effects", Scope: access.ScopeRead, Does: "Returns the ledger of a run: each call with effects, and its known outcome.", Out: Effects{}, Do: s.on((*call).effects)},
		{Method: "GET", Path: "/v1/runs/{id}/diff/{other}", Scope: access.ScopeRead, Does: "Returns the differences of two runs.", Out: Differences{}, Do: s.on((*call).diff)},
		{Method: "DELETE", Path: "/v1/runs/{id}", Scope: access.ScopeRun, Does: "Deletes a run with all its data. A run that is executing must be cancelled first.", Out: Deleted{}, Do: s.on((*call).remove)},
		{Method: "POST", Path: "/v1/runs/{id}/cancel", Scope: access.ScopeRun, Does: "Cancels a run. It is idempotent.", Out: api.Run{}, Do: s.on((*call).cancel)},
		{Method: "POST", Path: "/v1/runs/{id}/steer", Scope: access.ScopeRun, Does: "Sends user messages to a run, which adds them to its next request.", In: SteerRequest{}, Out: api.Run{}, Do: s.on((*call).steer)},
		{Method: "POST", Path: "/v1/runs/{id}/fork", Scope: access.ScopeRun, Does: "Starts another run with the first steps of this one.", In: Fork{}, Out: api.Run{}, Status: 201, Do: s.on((*call).fork)},
		{Method: "POST", Path: "/v1/runs/{id}/approve", Scope: access.ScopeDecide, Does: "Approves an open call.", Query: user,
			In: api.Verdict{}, Out: api.Run{}, Do: s.on(func(c *call) error { return c.verdict(true) })},
		{Method: "POST", Path: "/v1/runs/{id}/deny", Scope: access.ScopeDecide, Does: "Rejects an open call.", Query: user, In: api.Verdict{},
			Out: api.Run{}, Do: s.on(func(c *call) error { return c.verdict(false) })},
		{Method: "POST", Path: "/v1/runs/{id}/answer", Does: "Sets the result of an open call. Passive calls need the scope run, others decide.",
			Query: user, In: api.CallResult{}, Out: api.Run{}, Scope: access.ScopeRun, Or: access.ScopeDecide, Do: s.on((*call).give)},
		{Method: "GET", Path: "/v1/pending", Scope: access.ScopeRead, Does: "Lists the pending calls, also of the users that the token approves for.", Query: append(user, paging...), Out: Inbox{}, Do: s.on((*call).inbox)},

		{Method: "GET", Path: "/v1/tools", Scope: access.ScopeRead, Does: "Lists tools.", Query: []web.Param{{Name: "agent", Does: "only the tools of this agent"}}, Out: Tools{}, Do: s.on((*call).tools)},
		{Method: "POST", Path: "/v1/tools/{name}/call", Scope: access.ScopeTools, Does: "Calls a tool. The call is validated, approved and stored like a model's call. 202 means that it is pending.", In: ToolStart{}, Out: ToolCalled{}, Do: s.on((*call).callTool)},
		{Method: "GET", Path: "/v1/schedules", Scope: access.ScopeRead, Does: "Lists schedules.", Query: paging, Out: Schedules{}, Do: s.on((*call).schedules)},

		{Method: "GET", Path: "/v1/memories", Scope: access.ScopeRead, Does: "Lists what agents remember of the user, by ID.", Query: paging, Out: Memories{}, Do: s.on((*call).memories)},
		{Method: "POST", Path: "/v1/memories/{id}/confirm", Scope: access.ScopeDecide, Does: "Confirms a memory, so that models are shown it.", In: Confirm{}, Out: store.Memory{}, Do: s.on((*call).confirm)},
		{Method: "DELETE", Path: "/v1/memories/{id}", Scope: access.ScopeRun, Or: access.ScopeDecide, Does: "Forgets a memory. Stored runs keep what they recalled until they are deleted.", Out: Forgotten{}, Do: s.on((*call).forget)},
		{Method: "DELETE", Path: "/v1/memories", Scope: access.ScopeRun, Or: access.ScopeDecide, Does: "Forgets the memories that came of a run.",
			Query: []web.Param{{Name: "run", Does: "the ID of the run"}}, Out: Forgotten{}, Do: s.on((*call).forgetRun)},
	}
	return slices.Concat(own, s.openai.Routes(), ui.Routes())
}

// Health reports the state of the server.
type Health struct {
	Status string `json:"status"`
}

func (c *call) health() error {
	if runs.Closed(c.S.Hub.Closing) {
		return c.Write(http.StatusServiceUnavailable, Health{"closing"})
	}
	return c.Write(http.StatusOK, Health{"ok"})
}

func (c *call) ready() error {
	status := "ready"
	switch {
	case runs.Closed(c.S.Hub.Drained):
		status = "draining"
	case !c.S.probe.works(c.S.O.Journal):
		status = "no_store"
	default:
		return c.Write(http.StatusOK, Health{status})
	}
	c.W.Header().Set("Retry-After", "1")
	return c.Write(http.StatusServiceUnavailable, Health{status})
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
