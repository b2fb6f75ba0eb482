// Package web has what all endpoints share: the client of a request, its body, its query, its
// answer and its stream.
//
//	Server.Serve(w, r, route)
//	    who      access.Client of the request, or 401, 403, 429
//	    route.Do(call)
//	        call.Read(&in)                  the body
//	        call.Runs.Start(call.Context(), call.Caller(), …)
//	        call.Write(200, out)            the answer, without secrets
//	    an error becomes api.Error, in the form of the route
//
// A protocol is a package with Routes() []Route.
package web

// web.go: Server, Route and Call.

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Server is what requests need. Everything is set before the first one.
type Server struct {
	Runs     *runs.Service
	Clients  *access.Clients
	Everyone *access.Client   // counts the streams of all clients
	Secrets  *redact.Redactor // nil means none
	Log      *slog.Logger
	Now      func() time.Time

	// Authenticate returns the client of a request, in place of Clients' tokens. Nil means the
	// tokens.
	Authenticate func(*http.Request) (api.Token, error)

	// Proxies are the networks of proxies whose X-Forwarded headers count. Empty means none.
	Proxies []netip.Prefix

	MaxStreams   int               // limits the concurrent streams of all clients
	Beat         time.Duration     // interval of heartbeats in silent streams
	Wait         time.Duration     // time for a client to receive data
	Reconnect    time.Duration     // time for a client to repeat its request
	Outage       time.Duration     // time for which a request is held: see Call.Hold
	OnDisconnect map[string]string // by agent: see DisconnectCancels
	About        map[string]About  // what clients are shown of an agent, by its name
}

// About describes an agent to clients. The zero value says nothing.
type About struct {
	Title       string // for people; empty means the agent's name
	Description string // what the agent is for
	Window      int    // context window of its model in tokens; 0 means unknown
}

// Route is an endpoint. The OpenAPI document is generated from the table of routes.
type Route struct {
	Method string // empty means any
	Path   string
	Scope  api.Scope // empty means that no token is required
	Or     api.Scope // an alternative scope; the handler checks further
	Does   string    // description for the document
	Query  []Param
	In     any  // a value of the request's type; nil means no body
	Out    any  // a value of the response's type; nil means no body
	Status int  // status of success; 0 means 200
	Stream bool // may answer with events
	Lax    bool // another protocol: unknown fields of the body are ignored
	Hidden bool // another protocol, which the document does not describe

	Do func(c *Call) error
	// Fail writes an error in the form of a protocol. Nil means in the form of this API.
	Fail func(c *Call, e *api.Error)
}

// Param is a parameter of the query.
type Param struct {
	Name string
	Does string // description for the document
}

// Call is a request in progress. The packages of the protocols embed it in calls of their own. Its
// Server has what all requests share, such as Runs, Beat and Secrets.
type Call struct {
	*Server
	Writer  http.ResponseWriter
	Request *http.Request
	Client  *access.Client
	RunID   string   // the ID in the path of a run; "" in other paths
	Body    [32]byte // the fingerprint of the body that Read has read

	// Fingerprint returns Body for a body. Nil means its SHA-256.
	Fingerprint func(body []byte) [32]byte

	lax bool
}

// Context returns the request's context with the scope of the client.
func (c *Call) Context() context.Context {
	return store.WithScope(c.Request.Context(), c.Client.Scope)
}

// Hold returns the time for which the request is held while the provider of its run's model is
// away: runs.Reading.Hold. The client may state it (RFC 7240).
func (c *Call) Hold() time.Duration {
	d := c.Outage
	for _, preference := range listOf(c.Request.Header, "Prefer") {
		value, stated := strings.CutPrefix(preference, "wait=")
		seconds, err := strconv.Atoi(value)
		if stated && err == nil && seconds >= 0 {
			d = time.Duration(min(seconds, mostHold)) * time.Second
		}
	}
	return max(d, 1) // 0 would mean no limit
}

// mostHold is the longest time, in seconds, that a client may state: a day.
const mostHold = 24 * 60 * 60

// Caller returns the client as the one who acts on runs.
func (c *Call) Caller() runs.Caller { return CallerOf(c.Client) }

// Serve authenticates the client of a request and calls the handler of its route.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, rt *Route) {
	who, fail := s.Who(r, rt.Scope, rt.Or)
	if rt.Scope == "" && fail != nil {
		who = access.Everybody() // no token is required
		fail = nil
	}

	c := &Call{Server: s, Writer: w, Request: r, Client: who, lax: rt.Lax}
	if fail == nil {
		fail = c.do(rt)
	}
	if fail == nil {
		return
	}

	if rt.Fail != nil {
		rt.Fail(c, fail)
	} else {
		fail.Message = s.Secrets.String(fail.Message)
		WriteError(w, fail)
	}
	s.LogError(r, fail)
}

// do calls the handler of a route. Nil means that it has answered.
func (c *Call) do(rt *Route) *api.Error {
	if strings.HasPrefix(rt.Path, "/v1/runs/{id}") {
		c.RunID = c.Request.PathValue("id")
		if err := store.CheckID(c.RunID); err != nil {
			return runs.BadRequest(err.Error(), "")
		}
	}
	if err := rt.Do(c); err != nil {
		return toError(err)
	}
	return nil
}

// LogError logs an error that is not the client's.
func (s *Server) LogError(r *http.Request, e *api.Error) {
	if e.Cause != nil || e.Status == http.StatusInternalServerError {
		s.Log.Error("a request failed", "path", r.URL.Path, "client", r.RemoteAddr, "error", cmp.Or(e.Cause, error(e)))
	}
}

// Write sends v without secrets.
func (c *Call) Write(status int, v any) error {
	b, err := c.Marshal(v)
	if err != nil {
		return err
	}
	WriteBytes(c.Writer, status, b)
	return nil
}

// Marshal returns v as JSON without secrets.
func (s *Server) Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return s.Secrets.JSON(b), err
}
