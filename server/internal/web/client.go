package web

// client.go: the client of a request, and what happens when it disconnects.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pawl-go/pawl/internal/gate"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Who returns the client of a request if it has the permission, or one of the alternatives.
func (s *Server) Who(r *http.Request, scope api.Scope, or ...api.Scope) (*access.Client, *api.Error) {
	c, fail := s.authenticate(r)
	if fail != nil {
		return nil, fail
	}
	other := slices.ContainsFunc(or, func(o api.Scope) bool { return o != "" && c.May(o) })
	if !c.May(scope) && !other {
		return nil, runs.Fault("wrong_scope", "the token of "+c.Name+" may not do this",
			"it needs the scope "+string(scope))
	}
	if wait := c.CountRequest(s.Now()); wait > 0 {
		what := fmt.Sprintf("the token of %s may send %d requests a minute", c.Name, c.PerMinute())
		e := runs.Fault("too_many", what, "")
		e.RetryAfter = wait
		return nil, e
	}
	return c, nil
}

// authenticate returns the client of a request.
func (s *Server) authenticate(r *http.Request) (*access.Client, *api.Error) {
	switch {
	case s.Authenticate != nil:
		t, err := s.Authenticate(r)
		if err != nil {
			return nil, s.refused(err)
		}
		c, err := s.Clients.SignedIn(t)
		if err != nil {
			return nil, s.refused(err)
		}
		return c, nil
	case !s.Clients.Any():
		return access.Everybody(), nil
	}

	// Clients of Anthropic's API have their key in the second header.
	token := cmp.Or(gate.Token(r.Header.Get("Authorization")), r.Header.Get("X-Api-Key"))
	if token == "" {
		return nil, runs.Fault("no_token", "a token is needed", "send Authorization: Bearer TOKEN")
	}
	c := s.Clients.Find(token)
	if c == nil {
		return nil, runs.Fault("wrong_token", "the token is unknown", "")
	}
	return c, nil
}

// refused returns the answer to a client that Authenticate refuses: its *api.Error unchanged, and
// 401 for any other error.
func (s *Server) refused(err error) *api.Error {
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status >= 400 {
		own := *e
		own.Message = s.Secrets.String(own.Message)
		return &own
	}
	return runs.Fault("wrong_token", s.Secrets.String(err.Error()), "")
}

// CallerOf returns a client as the one who acts on runs.
func CallerOf(c *access.Client) runs.Caller {
	return runs.Caller{
		Scope:    c.Scope,
		Name:     c.Name,
		Identity: c.Identity(),
		Rights:   c.Rights,
		Acts:     c.Acts(),
		Slot: func() (func(), error) {
			release, ok := c.AcquireRun()
			if ok {
				return release, nil
			}
			what := fmt.Sprintf("the token of %s may have %d concurrent runs", c.Name, c.MaxRuns())
			e := runs.Fault("too_many", what, "wait until one has stopped, or cancel it")
			e.RetryAfter = 1
			return nil, e
		},
	}
}

// AcquireStream counts a stream of the client until release is called.
func (c *Call) AcquireStream() (release func(), err error) {
	all, ok := c.Everyone.AcquireStream()
	if !ok {
		what := fmt.Sprintf("at most %d concurrent streams are allowed", c.MaxStreams)
		e := runs.Fault("busy", what, "try again later")
		e.RetryAfter = 1
		return nil, e
	}
	mine, ok := c.Client.AcquireStream()
	if !ok {
		all()
		e := runs.Fault("too_many", "the token has reached its limit of streams", "end one")
		e.RetryAfter = 1
		return nil, e
	}
	return func() { mine(); all() }, nil
}

// DisconnectCancels reports what happens to a run of an agent whose client has disconnected: it is
// cancelled, unless a client repeats its request in time, or it continues if the request or the
// server's options say so.
func (c *Call) DisconnectCancels(agent string) bool {
	return cmp.Or(c.Request.Header.Get("X-Pawl-Disconnect"), c.Server.OnDisconnect[runs.BaseName(agent)]) != "continue"
}

// CancelLater cancels the run of a client that has disconnected, if it has no reader after the
// time for reconnecting. Until then its calls in progress may end, and no other begins: a client
// that presses stop does no more than disconnect. l is the run if this process executes it, or nil.
//
// A run that has stopped by then stays: a repeated request gets its failure or its question.
func (c *Call) CancelLater(id string, l *runs.Live, deserted func() bool) {
	l.Hold()
	ctx := context.WithoutCancel(c.Context()) // the request has ended
	caller := c.Caller()
	time.AfterFunc(c.Reconnect, func() {
		head, err := c.Runs.Head(ctx, caller, id)
		cancels := err == nil && head.State == store.JournalOpen && deserted()
		if cancels {
			_, err = c.Runs.Cancel(ctx, caller, id)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			c.Log.Warn("cancelling a run whose client disconnected", "run", id, "error", err)
		}
		if !cancels || err != nil {
			l.LetGo() // otherwise nothing may begin before the run has ended
		}
	})
}
