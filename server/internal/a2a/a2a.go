// Package a2a serves agents by the A2A protocol, version 1.0: a task is a run, and a context is a
// conversation. The types and both transports come from the protocol's SDK.
//
//	GET  /.well-known/agent-card.json, /a2a/{agent}/.well-known/agent-card.json    the card
//	POST /a2a/{agent}                                                              JSON-RPC
//	any  /a2a/{agent}/rest/…                                                       HTTP and JSON
package a2a

// a2a.go: the addresses of the protocol, and its errors.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentname"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

const (
	idPrefix = "a2a_"                   // begins the IDs of runs that are tasks
	answerID = a2a.ArtifactID("answer") // of the artifact with the answer of a task
	mostPage = 100                      // tasks of a list

	// mostIDSize limits the IDs of messages and contexts, which clients choose.
	mostIDSize = 256
)

// Options are what the protocol needs of the server.
type Options struct {
	URL     string        // the server's address for clients; empty means the Host of the request
	Secured bool          // requests need a token
	Beat    time.Duration // interval of heartbeats in silent streams
	Log     *slog.Logger
}

// call is a request for an agent.
type call struct {
	conversation.Call
	agent string // the name of the agent in the path, with its version
}

type callKey struct{}

// callOf returns the call of a request to the SDK's handlers.
func callOf(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call)
	return c
}

// Routes returns the addresses of the protocol.
func Routes(o Options) []web.Route {
	beat := a2asrv.WithTransportKeepAlive(o.Beat)
	tasks := tasks{a2asrv.NewHandler(nil, a2asrv.WithLogger(o.Log))}
	rpc := a2asrv.NewJSONRPCHandler(tasks, beat)
	rest := a2asrv.NewRESTHandler(tasks, beat)

	on := func(do func(c call, a *pawl.Agent) error) func(*web.Call) error {
		return func(w *web.Call) error {
			a, err := w.Runs.Agent(w.Request.PathValue("agent"))
			if err != nil {
				return err
			}
			return do(call{conversation.Call{Call: w}, a.Name}, a)
		}
	}
	card := on(func(c call, a *pawl.Agent) error { return c.Write(http.StatusOK, c.card(a, o)) })
	sdk := func(path string, h http.Handler) func(*web.Call) error {
		return on(func(c call, _ *pawl.Agent) error {
			ctx := context.WithValue(c.Context(), callKey{}, c)
			prefix := "/a2a/" + c.Request.PathValue("agent") + path
			http.StripPrefix(prefix, h).ServeHTTP(c.Writer, c.Request.WithContext(ctx))
			return nil
		})
	}

	// A card needs no token, since it says that the other addresses need one. Which of the two
	// scopes a method needs is for the method to check.
	all := []web.Route{
		{Method: "GET", Path: a2asrv.WellKnownAgentCardPath, Do: card},
		{Method: "GET", Path: "/a2a/{agent}" + a2asrv.WellKnownAgentCardPath, Do: card},
		{Method: "POST", Path: "/a2a/{agent}", Scope: api.ScopeRead, Do: sdk("", rpc)},
		{Path: "/a2a/{agent}/rest/", Scope: api.ScopeRead, Do: sdk("/rest", rest)},
	}
	for i := range all {
		all[i].Or = api.ScopeRun
		all[i].Hidden = true
	}
	return all
}

// errorKinds are the protocol's errors by the codes of this API. All others are internal errors.
var errorKinds = map[string]error{
	"not_found":   a2a.ErrTaskNotFound,
	"wrong_scope": a2a.ErrUnauthorized,
	"bad_request": a2a.ErrInvalidParams,
	"misfit":      a2a.ErrInvalidParams,
	"conflict":    a2a.ErrUnsupportedOperation,
}

// toError converts an error for the client.
func (c call) toError(err error) error {
	_, ours := errors.AsType[*a2a.Error](err)
	switch {
	case err == nil, ours, errors.Is(err, a2a.ErrPushNotificationNotSupported):
		return err
	case err == runs.ErrElsewhere:
		return a2a.NewError(a2a.ErrServerError, "another process continues the task; subscribe to it")
	}
	e := runs.ToError(err)
	c.LogError(c.Request, e)
	kind := cmp.Or(errorKinds[e.Code], a2a.ErrServerError)
	return a2a.NewError(kind, strings.TrimSuffix(c.Secrets.String(e.Message)+"; "+e.Hint, "; "))
}

// check refuses versions of the protocol that the server does not speak, and missing scopes.
func (c call) check(scope api.Scope, or ...api.Scope) error {
	v := cmp.Or(c.Request.Header.Get("A2A-Version"), c.Request.URL.Query().Get("A2A-Version"))
	if v != "1.0" && !strings.HasPrefix(v, "1.0.") {
		v = cmp.Or(v, "missing, which means 0.3")
		return a2a.NewError(a2a.ErrVersionNotSupported, "the header A2A-Version is "+v+"; 1.0 is supported")
	}
	if !c.Client.May(scope) && !slices.ContainsFunc(or, c.Client.May) {
		return a2a.NewError(a2a.ErrUnauthorized, "the token of "+c.Client.Name+" needs the scope "+string(scope))
	}
	return nil
}

// head returns the run of a task of the agent.
func (c call) head(id a2a.TaskID) (store.JournalRun, error) {
	none := runs.Fault("not_found", "there is no task "+string(id), "")
	if !strings.HasPrefix(string(id), idPrefix) || store.CheckID(string(id)) != nil {
		return store.JournalRun{}, none
	}
	h, err := c.Runs.Head(c.Context(), c.Caller(), string(id))
	if err == nil && !c.isOurs(h) {
		return h, none
	}
	return h, err
}

// unended returns the run of a task of the agent. For a task that has ended the error is ended.
func (c call) unended(id a2a.TaskID, ended error) (store.JournalRun, error) {
	h, err := c.head(id)
	if err == nil && (h.State == store.JournalOver || h.State == store.JournalFailed) {
		return h, ended
	}
	return h, err
}

// isOurs reports whether a run is of the agent in the path, in any version.
func (c call) isOurs(h store.JournalRun) bool {
	return agentname.Same(h.Agent, c.agent)
}
