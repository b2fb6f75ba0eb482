package server

// inspect.go: the endpoints that read a run without changing it, the inbox and the schedules.

import (
	"cmp"
	"context"
	"net/http"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// Inbox lists the calls that wait for a decision or a result.
type Inbox struct {
	Waiting []PendingRun `json:"waiting"`
	Changed []Run        `json:"changed,omitzero"`
	After   string       `json:"after,omitzero"`
}

// PendingRun is a run with its pending calls.
type PendingRun struct {
	Run     Run                `json:"run"`
	Pending []pawl.PendingCall `json:"pending"`
}

// inbox handles GET /v1/pending: the calls of the client, or of another user whose calls it may
// decide. Without a user, the first page contains the first calls of all these users.
func (c *call) inbox() error {
	q, p, err := c.page("user")
	if err != nil {
		return err
	}
	mine := c.client
	clients := []*client{mine}
	if user := q.Get("user"); q.Has("user") && user != mine.User {
		clients[0] = mine.of(user)
		if clients[0] == nil {
			return fault("not_found", "there is no such user whose calls the token may decide", "")
		}
	} else if !q.Has("user") && p.After == "" {
		for _, user := range mine.others {
			if other := mine.of(user); other != nil {
				clients = append(clients, other)
			}
		}
	}
	out := Inbox{Waiting: []PendingRun{}}
	for _, as := range clients {
		c.client = as
		after, err := c.pendingOf(&out, p)
		if err != nil {
			return err
		}
		if as == clients[0] {
			out.After = after
		}
	}
	c.client = mine
	if clients[0] == mine && p.After == "" {
		failed, err := c.s.o.Journal.JournalRuns(c.ctx(), mine.scope(), store.JournalFailed, store.Page{Limit: 1000})
		if err != nil {
			return err
		}
		for _, head := range failed {
			if run := c.s.toRun(head); run.Code != "" {
				out.Changed = append(out.Changed, run)
			}
		}
	}
	return c.write(http.StatusOK, out)
}

// pendingOf adds the pending calls of a page of runs to out. It returns the place of the next page.
func (c *call) pendingOf(out *Inbox, p store.Page) (after string, err error) {
	heads, err := c.s.o.Journal.JournalRuns(c.ctx(), c.client.scope(), store.JournalWaiting, p)
	if err != nil {
		return "", err
	}
	for _, head := range heads {
		open, err := c.s.engine.Pending(c.ctx(), head.ID)
		if err != nil {
			return "", err
		}
		if len(open) == 0 {
			continue
		}
		open, err = c.shown(head.ID, open)
		if err != nil {
			return "", err
		}
		run := c.s.toRun(head)
		if c.client.approver != nil {
			run = c.s.forApprover(head)
		}
		out.Waiting = append(out.Waiting, PendingRun{run, open})
	}
	if len(heads) == p.Size() {
		after = heads[len(heads)-1].ID
	}
	return after, nil
}

// export handles GET /v1/runs/{id}/export.
func (c *call) export() error {
	x, err := c.s.Export(c.ctx(), c.run)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, x)
}

// Export returns a run without secrets. The run belongs to the scope in ctx (store.WithScope).
func (s *Server) Export(ctx context.Context, id string) (*durable.Export, error) {
	x, err := s.engine.Export(ctx, id)
	if err != nil {
		return nil, err
	}
	hide, err := s.hides(ctx, id)
	if err != nil {
		return nil, err
	}
	return x.Redacted(hide), nil
}

type asker struct{} // the key of the client of a request to Options.MCP

// MayRead reports whether ctx is of a request to Options.MCP whose token has the scope ScopeRead.
func MayRead(ctx context.Context) bool {
	return asks(ctx).may(ScopeRead)
}

// asks returns the client of a request to Options.MCP, or a client without scopes for code of this
// process.
func asks(ctx context.Context) *client {
	who, _ := ctx.Value(asker{}).(*client)
	return cmp.Or(who, &client{Token: Token{Name: "server"}})
}

// hides returns the Redactor for the secrets of the server and of a run, whose tools may no longer
// be configured. Nil redacts nothing.
func (c *call) hides(id string) (*redact.Redactor, error) { return c.s.hides(c.ctx(), id) }

func (s *Server) hides(ctx context.Context, id string) (*redact.Redactor, error) {
	if s.o.Secrets == nil {
		return nil, nil
	}
	return s.engine.Redactor(ctx, id, s.o.Secrets)
}

// shown returns open calls for a client: complete for a client that executes them, without secrets
// for a client that only decides.
func (c *call) shown(id string, open []pawl.PendingCall) ([]pawl.PendingCall, error) {
	hide, err := c.hides(id)
	if err != nil || len(open) == 0 {
		return open, err
	}
	hidden := hide.Result(&pawl.Result{Pending: open}).Pending
	for i := range open {
		if !open[i].Passive {
			open[i] = hidden[i]
		}
	}
	return open, nil
}

// timeline handles GET /v1/runs/{id}/timeline.
func (c *call) timeline() error {
	tl, err := c.s.engine.Timeline(c.ctx(), c.run)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, tl)
}

// Effects is the ledger of a run.
type Effects struct {
	Effects []durable.LedgerEntry `json:"effects"`
}

// effects handles GET /v1/runs/{id}/effects.
func (c *call) effects() error {
	list, err := c.s.engine.Effects(c.ctx(), c.run)
	if err != nil {
		return err
	}
	hide, err := c.hides(c.run)
	if err != nil {
		return err
	}
	for i := range list {
		list[i] = list[i].Redacted(hide)
	}
	return c.write(http.StatusOK, Effects{append([]durable.LedgerEntry{}, list...)})
}

// Differences lists where two runs differ.
type Differences struct {
	Differences []durable.Difference `json:"differences"`
}

// diff handles GET /v1/runs/{id}/diff/{other}.
func (c *call) diff() error {
	a, err := c.s.engine.Export(c.ctx(), c.run)
	if err != nil {
		return err
	}
	other := c.r.PathValue("other")
	b, err := c.s.engine.Export(c.ctx(), other)
	if err != nil {
		return err
	}
	hide, err := c.hides(c.run)
	if err == nil && hide != nil {
		hide, err = c.s.engine.Redactor(c.ctx(), other, hide)
	}
	if err != nil {
		return err
	}
	list, err := durable.Diff(a, b, hide)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, Differences{append([]durable.Difference{}, list...)})
}

// Schedules lists the schedules.
type Schedules struct {
	Schedules []store.Schedule `json:"schedules"`
	After     string           `json:"after,omitzero"`
}

// schedules handles GET /v1/schedules.
func (c *call) schedules() error {
	_, p, err := c.page()
	if err != nil {
		return err
	}
	out := Schedules{Schedules: []store.Schedule{}}
	if c.s.o.Schedules != nil {
		list, err := c.s.o.Schedules.Schedules(c.ctx(), c.client.scope(), p)
		if err != nil {
			return err
		}
		out.Schedules = append(out.Schedules, list...)
		if len(list) == p.Size() {
			out.After = list[len(list)-1].ID
		}
	}
	return c.write(http.StatusOK, out)
}
