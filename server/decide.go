package server

// decide.go: the endpoints that answer a pending call: approve, deny and answer.

import (
	"net/http"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// approve handles POST /v1/runs/{id}/approve.
func (c *call) approve() error {
	var in api.Verdict
	if err := c.Read(&in); err != nil {
		return err
	}
	if in.Reason != "" {
		return runs.BadRequest("an approval has no reason", "leave reason out")
	}
	return c.decide(llm.Decision{Key: in.Key, Digest: in.Digest, Approve: true, Args: in.Args})
}

// deny handles POST /v1/runs/{id}/deny.
func (c *call) deny() error {
	var in api.Verdict
	if err := c.Read(&in); err != nil {
		return err
	}
	if len(in.Args) > 0 {
		return runs.BadRequest("a rejection has no arguments", "leave args out")
	}
	return c.decide(llm.Decision{Key: in.Key, Digest: in.Digest, Reason: in.Reason})
}

// answer handles POST /v1/runs/{id}/answer.
func (c *call) answer() error {
	var in api.CallResult
	if err := c.Read(&in); err != nil {
		return err
	}
	r := llm.TextResult(in.Text)
	r.IsError = in.IsError
	r.Data = in.Data
	return c.decide(llm.Decision{Key: in.Key, Digest: in.Digest, Result: &r})
}

// decide stores the decision and resumes the run.
func (c *call) decide(d llm.Decision) error {
	q, err := c.Params("user")
	if err != nil {
		return err
	}
	if user := q.Get("user"); q.Has("user") && user != c.Client.Scope.User {
		// A user without the permission looks like a run that does not exist.
		approver := c.Client.For(user)
		if approver == nil {
			what := "there is no run " + c.RunID + " of this user whose calls the token may decide"
			return runs.Fault("not_found", what, "")
		}
		c = c.as(approver)
	}

	if err := c.Runs.Decide(c.Context(), c.Caller(), c.RunID, d); err != nil {
		return err
	}
	if c.Client.IsApprover() {
		return c.writeForApprover(c.RunID)
	}
	return c.writeRun(http.StatusOK, c.RunID)
}

// writeForApprover answers with what an approver may see of a run of another user.
func (c *call) writeForApprover(id string) error {
	head, open, err := c.Runs.Pending(c.Context(), c.Caller(), id)
	if err != nil {
		return err
	}
	run := c.describeForApprover(head)
	run.Pending, err = c.Runs.Show(c.Context(), c.Caller(), id, open)
	if err != nil {
		return err
	}
	run.Waits = len(open)
	return c.Write(http.StatusOK, run)
}

// describeForApprover converts a journal entry to what an approver may see of its run.
func (c *call) describeForApprover(head store.JournalRun) api.Run {
	run := c.Runs.Describe(head)
	return api.Run{
		ID:      run.ID,
		Agent:   run.Agent,
		User:    head.Scope.User,
		State:   run.State,
		Waits:   run.Waits,
		Created: run.Created,
		Updated: run.Updated,
	}
}
