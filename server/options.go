package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/internal/a2a"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/openai"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// Options are the parts of a Server. Agents and Journal are required.
type Options struct {
	// Agents are the agents to serve; each has a unique name. Their middleware decides which calls
	// need approval, and these calls are then pending.
	Agents  []*pawl.Agent
	Journal store.Journal    // stores the runs
	Secrets *redact.Redactor // redacted in everything that is sent; nil means none

	Tokens []access.Token // permissions of clients; empty means that every client has all permissions
	// Authenticate returns the client of a request, in place of Tokens, for a server within an
	// application that has sessions: the name, scopes, tenant, user, groups and limits. Token and
	// SHA256 are ignored, and Approves names users only. Its error is the answer 401.
	Authenticate func(*http.Request) (access.Token, error)
	Hosts        []string // valid names in the Host header, in addition to this machine's own
	// Origins lists the origins of web pages that may be clients, in addition to this machine's
	// own, such as https://app.example.com.
	Origins []string

	Schedules store.Schedules // schedules to list; nil means none
	Memories  store.Memories  // memories to list, confirm and forget; nil means none
	// MCP handles /mcp, behind authentication with the scope tools. Nil means not found.
	MCP     http.Handler
	A2A     *a2a.A2A     // offers the agents by the A2A protocol; nil means not found
	Metrics http.Handler // handles GET /metrics, with the scope read; nil means not found
	// Pages handles GET requests outside the API without a token. It serves pages for people, which
	// ask for a token themselves. Nil means not found.
	Pages http.Handler

	MaxBody int64 // limit for a request in bytes; 0 means 4 MiB
	// MaxConns limits the concurrent connections. Beyond it, a connection without a request under
	// way is closed for a new one, or the new one waits. 0 means 4096.
	MaxConns int
	// AddressConns limits the connections from one address, or one /64 of IPv6; addresses of this
	// machine have no limit of their own. 0 means half of MaxConns, and less than 0 means no limit,
	// for a server behind a proxy on another machine.
	AddressConns int
	// MaxStreams limits the concurrent streams of all clients. Further ones are refused. 0 means
	// 2000.
	MaxStreams int
	// MaxRuns limits the runs that execute concurrently. Further ones wait in the queue. 0 means
	// 1000.
	MaxRuns int
	// Queue limits the runs that wait for room. They are in the journal, so that none is lost, and
	// tenants take turns. With Tokens of several tenants, one tenant may have half of the queue.
	// Further requests are refused, and runs of other processes are not resumed. 0 means no queue.
	Queue      int
	TenantRuns int // limits the runs of a tenant that execute concurrently; 0 means no limit
	Fragments  int // bytes of fragments stored of each run for slow readers; 0 means 256 KiB
	// Idle is the number of bytes of stopped runs held in memory, so that watching them needs no
	// journal. 0 means 64 MiB.
	Idle    int
	Wait    time.Duration // time for a client to send its body, or to receive data; 0 means 30 s
	Beat    time.Duration // interval of heartbeats in silent streams; 0 means 10 s
	Recover time.Duration // interval of scans for runs without a process; 0 means 5 s
	// Drain is the time that Serve gives calls in progress to end when its context ends. 0 means
	// 30 s, and less than 0 means none.
	Drain time.Duration
	Grace time.Duration // time for runs and streams to stop after that; 0 means 10 s

	// OnDisconnect says for an agent what happens to a run whose client has disconnected:
	// "continue" completes it, "cancel" cancels it after Reconnect; "" means cancel for OpenAI's
	// endpoints, and continue for the endpoints of front ends. The header X-Pawl-Disconnect of a
	// request overrides it.
	OnDisconnect map[string]string
	About        map[string]runs.About // what clients are shown of an agent, by its name
	// HideReasoning leaves the reasoning of models out of Chat Completions, where it is the field
	// reasoning_content. ShowCalls adds a line for each call of the agent's own tools to it.
	HideReasoning, ShowCalls bool

	Reconnect time.Duration // time for such a client to repeat its request; 0 means 5 s

	// Around wraps the Runner of each run, innermost, so that it sees unredacted events; it serves
	// telemetry. agent is the name under which the agent is served. Nil means no wrapper.
	Around func(id, agent string, r pawl.Runner) pawl.Runner

	Lease time.Duration // durable.Engine.Lease
	// Log receives errors that belong to no request. Nil means that they are dropped.
	Log *slog.Logger
	Now func() time.Time
}

// Server serves agents. New creates it. It is safe for concurrent use. Close it after use.
type Server struct {
	*web.Server
	o      Options
	mux    *http.ServeMux
	routes []web.Route
	stats  stats
	probe  probe
	openai openai.Handler
}

var _ http.Handler = (*Server)(nil)

// call is a request to an endpoint of this package.
type call struct {
	*web.Call
	S *Server
}

// on converts a handler of this package.
func (s *Server) on(do func(*call) error) func(*web.Call) error {
	return func(c *web.Call) error { return do(&call{c, s}) }
}
