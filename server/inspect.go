package server

// inspect.go: the endpoints that show pending calls, what a run did, and schedules.

import (
	"context"
	"net/http"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/access"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// inbox handles GET /v1/pending: the calls of the client, or of another user whose calls it may
// decide. Without a user, the first page contains the first calls of all these users.
func (c *call) inbox() error {
	q, p, err := c.Page("user")
	if err != nil {
		return err
	}

	first := p.After == ""
	out := api.Inbox{Waiting: []api.PendingRun{}}
	user := q.Get("user")
	if q.Has("user") && user != c.Client.Scope.User {
		approver := c.Client.For(user)
		if approver == nil {
			return runs.Fault("not_found", "there is no such user whose calls the token may decide", "")
		}
		out.After, err = c.as(approver).addPending(&out, p)
		if err != nil {
			return err
		}
		return c.Write(http.StatusOK, out)
	}

	out.After, err = c.addPending(&out, p)
	if err != nil {
		return err
	}
	if first && !q.Has("user") {
		if err := c.addPendingOfOthers(&out, p); err != nil {
			return err
		}
	}
	if first {
		out.Changed, err = c.changed()
		if err != nil {
			return err
		}
	}
	return c.Write(http.StatusOK, out)
}

// addPendingOfOthers adds the first calls of each other user whose calls the client may decide. The
// further ones are listed for each user alone.
func (c *call) addPendingOfOthers(out *api.Inbox, p store.Page) error {
	approvers, err := c.approvedUsers()
	if err != nil {
		return err
	}
	for _, approver := range approvers {
		if _, err := c.as(approver).addPending(out, p); err != nil {
			return err
		}
	}
	return nil
}

// approvedUsers returns the client as an approver of each other user whose calls it may decide.
func (c *call) approvedUsers() (clients []*access.Client, err error) {
	users, all := c.Client.Others()
	if all {
		users, err = c.Runs.WaitingUsers(c.Context(), c.Client.Scope.Tenant)
		if err != nil {
			return nil, err
		}
	}
	for _, user := range users {
		if other := c.Client.For(user); other != nil {
			clients = append(clients, other)
		}
	}
	return clients, nil
}

// changed returns the runs of the client that cannot continue with the present agent.
func (c *call) changed() (list []api.Run, err error) {
	failed, err := c.Runs.Heads(c.Context(), c.Caller(), store.JournalFailed, store.Page{Limit: 1000})
	if err != nil {
		return nil, err
	}
	for _, head := range failed {
		if run := c.Runs.Describe(head); run.Code != "" {
			list = append(list, run)
		}
	}
	return list, nil
}

// addPending adds the pending calls of a page of runs to out. It returns the place of the next
// page.
func (c *call) addPending(out *api.Inbox, p store.Page) (after string, err error) {
	heads, err := c.Runs.Heads(c.Context(), c.Caller(), store.JournalWaiting, p)
	if err != nil {
		return "", err
	}
	for _, head := range heads {
		_, open, err := c.Runs.Pending(c.Context(), c.Caller(), head.ID)
		if err != nil {
			return "", err
		}

		// It was answered since.
		if len(open) == 0 {
			continue
		}

		asked := open
		open, err = c.Runs.Show(c.Context(), c.Caller(), head.ID, slices.Clone(open))
		if err != nil {
			return "", err
		}
		run := c.Runs.Describe(head)
		if c.Client.IsApprover() {
			run = c.describeForApprover(head)
		}
		previews := c.previews(head.Agent, asked, open)
		out.Waiting = append(out.Waiting, api.PendingRun{Run: run, Pending: open, Previews: previews})
	}
	if len(heads) == p.Size() {
		after = heads[len(heads)-1].ID
	}
	return after, nil
}

// maxPreview limits the bytes of a preview.
const maxPreview = 512 << 10

// previews returns what calls of a run would change. shown are the calls without secrets: a call
// that has some gets no preview, because its effect would show them.
func (c *call) previews(agent string, asked, shown []pawl.PendingCall) map[llm.Key]api.Preview {
	preview := c.server.options.Preview
	if preview == nil {
		return nil
	}
	all := map[llm.Key]api.Preview{}
	for i, p := range asked {
		// The calls of subagents have other roots.
		if !runs.IsOwn(p.Key) || string(p.Call.Args) != string(shown[i].Call.Args) {
			continue
		}
		found := preview(c.Context(), agent, p.Call)
		if found == nil || len(found.Before)+len(found.After) > maxPreview {
			continue
		}
		found.Before = c.server.options.Secrets.String(found.Before)
		found.After = c.server.options.Secrets.String(found.After)
		all[p.Key] = *found
	}
	return all
}

// export handles GET /v1/runs/{id}/export.
func (c *call) export() error {
	x, err := c.Runs.Export(c.Context(), c.RunID)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, x)
}

// timeline handles GET /v1/runs/{id}/timeline.
func (c *call) timeline() error {
	tl, err := c.Runs.Timeline(c.Context(), c.Caller(), c.RunID)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, tl)
}

// effects handles GET /v1/runs/{id}/effects.
func (c *call) effects() error {
	list, err := c.Runs.Effects(c.Context(), c.Caller(), c.RunID)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, api.Effects{Effects: append([]journal.LedgerEntry{}, list...)})
}

// diff handles GET /v1/runs/{id}/diff/{other}.
func (c *call) diff() error {
	list, err := c.Runs.Diff(c.Context(), c.Caller(), c.RunID, c.Request.PathValue("other"))
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, api.Differences{Differences: append([]journal.Difference{}, list...)})
}

// schedules handles GET /v1/schedules.
func (c *call) schedules() error {
	_, p, err := c.Page()
	if err != nil {
		return err
	}
	out := api.Schedules{Schedules: []store.Schedule{}}
	if c.server.options.Schedules != nil {
		list, err := c.server.options.Schedules.Schedules(c.Context(), c.Client.Scope, p)
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

// mcpClient is the key of the client of a request to Options.MCP.
type mcpClient struct{}

// MayRead reports whether ctx is of a request to Options.MCP whose token has the scope
// api.ScopeRead.
func MayRead(ctx context.Context) bool { return clientOf(ctx).May(api.ScopeRead) }

// clientOf returns the client of a request to Options.MCP, or a client without scopes for code of
// this process.
func clientOf(ctx context.Context) *access.Client {
	if who, ok := ctx.Value(mcpClient{}).(*access.Client); ok {
		return who
	}
	return access.NewClient(api.Token{Name: "server"})
}
