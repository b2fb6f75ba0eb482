package server

// options.go: Options, the optional parts of a Server, and their defaults.

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// Options are the optional parts of a Server. The zero value is a server for programs on this
// machine.
type Options struct {
	// Access says who may use the server. The zero value admits programs on this machine.
	Access Access
	// Limits bound what clients and runs may use. The zero value has defaults for all of them.
	Limits Limits
	// Times bound how long things take. The zero value has defaults for all of them.
	Times Times
	// Front says what front ends and chat programs are shown. The zero value shows names alone.
	Front Front

	// Secrets are redacted in everything that is sent. Nil means none.
	Secrets *redact.Redactor
	// Schedules are listed. Nil means none.
	Schedules store.Schedules
	// Memories are listed, confirmed and forgotten. Nil means none.
	Memories store.Memories

	// MCP handles /mcp, behind authentication with the scope tools. Nil means not found.
	MCP http.Handler
	// A2A offers the agents by the A2A protocol. Nil means not found.
	A2A *A2A
	// Metrics handles GET /metrics, with the scope read. Nil means not found.
	Metrics http.Handler
	// Pages handles GET requests outside the API without a token. It serves pages for people, which
	// ask for a token themselves. Nil means not found.
	Pages http.Handler

	// Preview returns the effect that a pending call of an agent would have now, for GET
	// /v1/pending. It changes nothing. Nil, or a nil result, means that the effect is unknown.
	Preview func(ctx context.Context, agent string, call llm.ToolCall) *api.Preview

	// Hooks handles requests below /hooks/ without a token. It verifies their signatures itself, as
	// of a button in a chat or of an approval link. Nil means not found.
	Hooks http.Handler

	// Around wraps the Runner of each run, innermost, so that it sees unredacted events; it serves
	// telemetry. agent is the name under which the agent is served. Nil means no wrapper.
	Around func(id, agent string, r pawl.Runner) pawl.Runner
	// Log receives errors that belong to no request. Nil means that they are dropped.
	Log *slog.Logger
	// Now returns the present time. Nil means time.Now.
	Now func() time.Time
}

// Access says who may use a server.
type Access struct {
	// Tokens are the permissions of clients. Empty means that every client has all permissions.
	Tokens []api.Token
	// Authenticate returns the client of a request, in place of Tokens, for a server within an
	// application that has sessions: the name, scopes, tenant, user, groups and limits. Token and
	// SHA256 are ignored. Approves names users, groups of users who have sent a request to this
	// process, or * for every user of the tenant. An *api.Error is sent unchanged; any other error
	// is the answer 401. Nil means Tokens.
	Authenticate func(*http.Request) (api.Token, error)
	// Hosts are valid names in the Host header, in addition to this machine's own.
	Hosts []string
	// Origins are the origins of web pages that may be clients, in addition to this machine's own,
	// such as https://app.example.com.
	Origins []string
	// Proxies are the networks of proxies in front of the server. The headers X-Forwarded-For,
	// -Proto, -Host and -Prefix of their requests count: for the address of the client in logs and
	// in Limits.AddressConns, for the Host that is checked, and for links. Empty means that no such
	// header is read.
	Proxies []netip.Prefix
}

// Limits bound what clients and runs of a server may use.
type Limits struct {
	// Body limits a request in bytes. 0 means 4 MiB.
	Body int64
	// Conns limits the concurrent connections. Beyond it, a connection without a request under way
	// is closed for a new one, or the new one waits. 0 means 4096.
	Conns int
	// AddressConns limits the connections from one address, or one /64 of IPv6; addresses of this
	// machine have no limit of their own. Of Access.Proxies the limit is for the requests at once
	// of each of their clients. 0 means half of Conns, and less than 0 means no limit, for a server
	// behind a proxy on another machine that Access.Proxies does not name.
	AddressConns int
	// Streams limits the concurrent streams of all clients. Further ones are refused. 0 means 2000.
	Streams int

	// Runs limits the runs that execute concurrently. Further ones wait in the queue. 0 means 1000.
	Runs int
	// TenantRuns limits the runs of a tenant that execute concurrently. 0 means no limit.
	TenantRuns int
	// Queue limits the runs that wait for room. They are in the journal, so that none is lost, and
	// tenants take turns. With Tokens of several tenants, one tenant may have half of the queue.
	// Further requests are refused, and runs of other processes are not resumed. 0 means no queue.
	Queue int
	// Fragments limits the bytes of fragments stored of each run for slow readers. 0 means 256 KiB.
	Fragments int
	// Idle is the number of bytes of stopped runs held in memory, so that watching them needs no
	// journal. 0 means 64 MiB.
	Idle int
}

// Times bound how long things take on a server.
type Times struct {
	// Wait is the time for a client to send its body, or to receive data. 0 means 30 s.
	Wait time.Duration
	// Beat is the interval of heartbeats in silent streams. 0 means 10 s.
	Beat time.Duration
	// Reconnect is the time for a client that has disconnected to repeat its request, before its
	// run is cancelled: see Front.OnDisconnect. 0 means 5 s.
	Reconnect time.Duration
	// Outage is the time for which a request is held while the provider of its run's model is away.
	// After it, the client gets the error outage (503) with Retry-After and the ID of the run, or
	// the form of its protocol, and the run goes on by itself. The header "Prefer: wait=SECONDS" of
	// a request replaces it. 0 means 3 minutes, and less than 0 means that no request is held.
	Outage time.Duration
	// Probe is the interval at which one run asks a model whose provider is away, on behalf of all
	// runs that wait for it. It grows to a tenth of the outage, and to five minutes. The runs begin
	// when the model has answered, two with each answer. 0 means 15 s, and less than 0 means that
	// each run asks by itself.
	Probe time.Duration
	// Recover is the interval of scans for runs without a process. 0 means 5 s.
	Recover time.Duration
	// Lease is durable.Engine.Lease. 0 means its default.
	Lease time.Duration
	// Drain is the time that Serve gives calls in progress to end when its context ends. 0 means
	// 30 s, and less than 0 means none.
	Drain time.Duration
	// Grace is the time for runs and streams to stop after that. 0 means 10 s.
	Grace time.Duration
}

// Front says what front ends and chat programs are shown.
type Front struct {
	// About is what clients are shown of an agent, by its name.
	About map[string]About
	// OnDisconnect says for an agent what happens to a run whose client has disconnected:
	// "continue" completes it. "cancel" and "" let no call begin, and cancel it after
	// Times.Reconnect, unless the client returns. The header X-Pawl-Disconnect of a request
	// overrides it.
	OnDisconnect map[string]string
	// HideReasoning leaves the reasoning of models out of Chat Completions, where it is the field
	// reasoning_content.
	HideReasoning bool
	// ShowCalls adds a line for each call of the agent's own tools to reasoning_content.
	ShowCalls bool
	// HoldApprovals keeps a streamed reply of Chat Completions, Responses and Messages open while a
	// call waits for a person. The reply says what waits, as reasoning or as text, and continues
	// after the answer. Otherwise it ends with the error needs_decision, as a whole reply does.
	HoldApprovals bool
	// ApprovalLink returns a page where a person answers a pending call of a run of that owner, as
	// an address or as a path on this server. HoldApprovals shows it to clients with the scope
	// decide. "" and nil mean none.
	ApprovalLink func(owner store.Scope, agent, run string, call pawl.PendingCall) string
}

// About describes an agent to clients. The zero value says nothing.
type About struct {
	// Title is for people. Empty means the agent's name.
	Title string
	// Description says what the agent is for. Empty means that nothing is said.
	Description string
	// Window is the context window of its model in tokens. 0 means unknown.
	Window int
	// Side says how requests of chat programs for titles, tags and follow-up questions are
	// answered.
	Side Side
}

// Side says how side requests are answered: what chat programs ask besides the conversation, such
// as a title. They run without the agent's tools, instructions, output and rules, as runs of the
// agent NAME/side, in one request of at most a minute and 4,000 tokens.
type Side struct {
	// Model answers them. Nil means the agent's model.
	Model llm.Model
	// Allow says which requests Model answers:
	//   - "known": the prompts of Open WebUI, LibreChat, LobeChat and opencode, alone in a request;
	//   - "any": these, and each request for the model NAME:side or with the header X-Pawl-Side: 1.
	//
	// "" and "none" mean none: the known ones get an empty answer, and the others an error.
	Allow string
}

// A2A offers the agents to other agents by the A2A protocol, version 1.0.
type A2A struct {
	// URL is the address of the server for clients. Empty means the Host of each request.
	URL string
}

// withDefaults returns the options with the defaults of fields that are zero. o may be nil.
func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	setDefault(&d.Limits.Body, 4<<20)
	setDefault(&d.Limits.Conns, 4096)
	setDefault(&d.Limits.AddressConns, (d.Limits.Conns+1)/2)
	setDefault(&d.Limits.Streams, 2000)
	setDefault(&d.Limits.Runs, 1000)
	setDefault(&d.Limits.Fragments, 256<<10)
	setDefault(&d.Limits.Idle, 64<<20)

	setDefault(&d.Times.Wait, 30*time.Second)
	setDefault(&d.Times.Beat, 10*time.Second)
	setDefault(&d.Times.Reconnect, 5*time.Second)
	setDefault(&d.Times.Outage, 3*time.Minute)
	setDefault(&d.Times.Probe, 15*time.Second)
	setDefault(&d.Times.Recover, 5*time.Second)
	setDefault(&d.Times.Drain, 30*time.Second)
	setDefault(&d.Times.Grace, 10*time.Second)

	setDefault(&d.Log, slog.New(slog.DiscardHandler))
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}

// negative returns an error for a number that is less than 0 and must not be. A limit of less than
// 0 would refuse everything, and a timer of less than 0 ends the process.
func (o *Options) negative() error {
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"Limits.Body", o.Limits.Body},
		{"Limits.Conns", int64(o.Limits.Conns)},
		{"Limits.Streams", int64(o.Limits.Streams)},
		{"Limits.Runs", int64(o.Limits.Runs)},
		{"Limits.TenantRuns", int64(o.Limits.TenantRuns)},
		{"Limits.Queue", int64(o.Limits.Queue)},
		{"Limits.Fragments", int64(o.Limits.Fragments)},
		{"Limits.Idle", int64(o.Limits.Idle)},
		{"Times.Wait", int64(o.Times.Wait)},
		{"Times.Beat", int64(o.Times.Beat)},
		{"Times.Reconnect", int64(o.Times.Reconnect)},
		{"Times.Recover", int64(o.Times.Recover)},
		{"Times.Lease", int64(o.Times.Lease)},
		{"Times.Grace", int64(o.Times.Grace)},
	} {
		if field.value < 0 {
			return fmt.Errorf("server: Options.%s is negative; 0 means the default", field.name)
		}
	}
	return nil
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
