package server

import (
	"cmp"
	"context"
	"net/http"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Inbox lists the calls that wait for a decision or a result.
type Inbox struct {
	Waiting []PendingRun `json:"waiting"`
	Changed []api.Run    `json:"changed,omitzero"`
	After   string       `json:"after,omitzero"`
}

// PendingRun is a run with its pending calls.
type PendingRun struct {
	Run     api.Run            `json:"run"`
	Pending []pawl.PendingCall `json:"pending"`
}

// inbox handles GET /v1/pending: the calls of the client, or of another user whose calls it may
// decide. Without a user, the first page contains the first calls of all these users.
func (c *call) inbox() error {
	q, p, err := c.Page("user")
	if err != nil {
		return err
	}
	mine := c.Client
	clients := []*access.Client{mine}
	if user := q.Get("user"); q.Has("user") && user != mine.User {
		clients[0] = mine.Of(user)
		if clients[0] == nil {
			return runs.Fault("not_found", "there is no such user whose calls the token may decide", "")
		}
	} else if !q.Has("user") && p.After == "" {
		for _, user := range mine.Others {
			if other := mine.Of(user); other != nil {
				clients = append(clients, other)
			}
		}
	}
	out := Inbox{Waiting: []PendingRun{}}
	for _, as := range clients {
		c.Client = as
		after, err := c.pendingOf(&out, p)
		if err != nil {
			return err
		}
		if as == clients[0] {
			out.After = after
		}
	}
	c.Client = mine
	if clients[0] == mine && p.After == "" {
		failed, err := c.S.O.Journal.JournalRuns(c.Ctx(), mine.Scope(), store.JournalFailed, store.Page{Limit: 1000})
		if err != nil {
			return err
		}
		for _, head := range failed {
			if run := c.S.ToRun(head); run.Code != "" {
				out.Changed = append(out.Changed, run)
			}
		}
	}
	return c.Write(http.StatusOK, out)
}

// pendingOf adds the pending calls of a page of runs to out. It returns the place of the next page.
func (c *call) pendingOf(out *Inbox, p store.Page) (after string, err error) {
	heads, err := c.S.O.Journal.JournalRuns(c.Ctx(), c.Client.Scope(), store.JournalWaiting, p)
	if err != nil {
		return "", err
	}
	for _, head := range heads {
		open, err := c.S.Engine.Pending(c.Ctx(), head.ID)
		if err != nil {
			return "", err
		}
		if len(open) == 0 {
			continue
		}
		open, err = c.Shown(head.ID, open)
		if err != nil {
			return "", err
		}
		run := c.S.ToRun(head)
		if c.Client.Approver != nil {
			run = c.S.ForApprover(head)
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
	x, err := c.S.Export(c.Ctx(), c.RunID)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, x)
}

type asker struct{} // the key of the client of a request to Options.MCP

// MayRead reports whether ctx is of a request to Options.MCP whose token has the scope ScopeRead.
func MayRead(ctx context.Context) bool {
	return asks(ctx).May(access.ScopeRead)
}

// asks returns the client of a request to Options.MCP, or a client without scopes for code of this
// process.
func asks(ctx context.Context) *access.Client {
	who, _ := ctx.Value(asker{}).(*access.Client)
	return cmp.Or(who, &access.Client{Token: access.Token{Name: "server"}})
}

// timeline handles GET /v1/runs/{id}/timeline.
func (c *call) timeline() error {
	tl, err := c.S.Engine.Timeline(c.Ctx(), c.RunID)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, tl)
}

// Effects is the ledger of a run.
type Effects struct {
	Effects []journal.LedgerEntry `json:"effects"`
}

// effects handles GET /v1/runs/{id}/effects.
func (c *call) effects() error {
	list, err := c.S.Engine.Effects(c.Ctx(), c.RunID)
	if err != nil {
		return err
	}
	hide, err := c.Hides(c.RunID)
	if err != nil {
		return err
	}
	for i := range list {
		list[i] = list[i].Redacted(hide)
	}
	return c.Write(http.StatusOK, Effects{append([]journal.LedgerEntry{}, list...)})
}

// Differences lists where two runs differ.
type Differences struct {
	Differences []journal.Difference `json:"differences"`
}

// diff handles GET /v1/runs/{id}/diff/{other}.
func (c *call) diff() error {
	a, err := c.S.Engine.Export(c.Ctx(), c.RunID)
	if err != nil {
		return err
	}
	other := c.R.PathValue("other")
	b, err := c.S.Engine.Export(c.Ctx(), other)
	if err != nil {
		return err
	}
	hide, err := c.Hides(c.RunID)
	if err == nil && hide != nil {
		hide, err = c.S.Engine.Redactor(c.Ctx(), other, hide)
	}
	if err != nil {
		return err
	}
	list, err := journal.Diff(a, b, hide)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, Differences{append([]journal.Difference{}, list...)})
}

// Schedules lists the schedules.
type Schedules struct {
	Schedules []store.Schedule `json:"schedules"`
	After     string           `json:"after,omitzero"`
}

// schedules handles GET /v1/schedules.
func (c *call) schedules() error {
	_, p, err := c.Page()
	if err != nil {
		return err
	}
	out := Schedules{Schedules: []store.Schedule{}}
	if c.S.o.Schedules != nil {
		list, err := c.S.o.Schedules.Schedules(c.Ctx(), c.Client.Scope(), p)
		if err != nil {
			return err
		}
		out.Schedules = append(out.Schedules, list...)
		if len(list) == p.Size() {
			out.After = list[len(list)-1].ID
		}
	}
	return c.Write(http.StatusOK, out)
}
