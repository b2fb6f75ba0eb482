package server

import (
	"net/http"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// verdict handles POST …/approve and …/deny.
func (c *call) verdict(approve bool) error {
	var in api.Verdict
	if err := c.Read(&in); err != nil {
		return err
	}
	switch {
	case approve && in.Reason != "":
		return runs.BadRequest("an approval has no reason", "leave reason out")
	case !approve && len(in.Args) > 0:
		return runs.BadRequest("a rejection has no arguments", "leave args out")
	}
	return c.decide(llm.Decision{Key: in.Key, Digest: in.Digest, Approve: approve, Args: in.Args, Reason: in.Reason})
}

// give handles POST …/answer.
func (c *call) give() error {
	var in api.CallResult
	if err := c.Read(&in); err != nil {
		return err
	}
	r := llm.TextResult(in.Text)
	r.IsError, r.Data = in.IsError, in.Data
	return c.decide(llm.Decision{Key: in.Key, Digest: in.Digest, Result: &r})
}

// decide stores the decision and resumes the run.
func (c *call) decide(d llm.Decision) error {
	q, err := c.Params("user")
	if err != nil {
		return err
	}
	if user := q.Get("user"); q.Has("user") && user != c.Client.User {
		// A user without the permission looks like a run that does not exist.
		c.Client = c.Client.Of(user)
		if c.Client == nil {
			return runs.Fault("not_found", "there is no run "+c.RunID+" of this user whose calls the token may decide", "")
		}
	}
	head, open, err := c.Waiting(c.RunID)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Key == d.Key }); i >= 0 && d.Result != nil {
		d.Result.CallID = open[i].Call.ID
	} else if d.Result != nil {
		d.Result.CallID = c.Answered(c.RunID, d.Key)
	}
	ds := []llm.Decision{d}
	if err := c.May(open, ds); err != nil {
		return err
	}
	if err := c.S.Engine.Decide(c.Ctx(), c.RunID, ds...); err != nil {
		return err
	}
	p := runs.Place{Who: c.Client.Scope(), Id: c.RunID}
	if !c.S.Hub.Find(p).Works() && head.State != store.JournalOver {
		if _, err := c.TakeUp(p, head.Agent); err != nil {
			c.S.Hub.Wake() // the decision is stored, and some process will resume the run
		}
	}
	if c.Client.Approver != nil {
		return c.tellApprover(c.RunID)
	}
	return c.tell(http.StatusOK, c.RunID)
}

// tellApprover answers with what an approver may see of a run of another user.
func (c *call) tellApprover(id string) error {
	head, open, err := c.Waiting(id)
	if err != nil {
		return err
	}
	run := c.S.ForApprover(head)
	run.Pending, err = c.Shown(id, open)
	if err != nil {
		return err
	}
	run.Waits = len(open)
	return c.Write(http.StatusOK, run)
}
