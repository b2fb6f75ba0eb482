package server

// decide.go: the endpoints that answer a pending call: approve, deny and answer.

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Verdict is a decision on an open call. Key and Digest are copied from the pending call and bind
// the decision to it.
type Verdict struct {
	Key    llm.Key         `json:"key"`
	Digest string          `json:"digest"`
	Args   json.RawMessage `json:"args,omitzero"`
	Reason string          `json:"reason,omitzero"`
}

// CallResult is the result of an open call.
type CallResult struct {
	Key     llm.Key         `json:"key"`
	Digest  string          `json:"digest"`
	Text    string          `json:"text"`
	IsError bool            `json:"is_error,omitzero"`
	Data    json.RawMessage `json:"data,omitzero"`
}

// verdict handles POST …/approve and …/deny.
func (c *call) verdict(approve bool) error {
	var in Verdict
	if err := c.read(&in); err != nil {
		return err
	}
	switch {
	case approve && in.Reason != "":
		return badRequest("an approval has no reason", "leave reason out")
	case !approve && len(in.Args) > 0:
		return badRequest("a rejection has no arguments", "leave args out")
	}
	return c.decide(llm.Decision{Key: in.Key, Digest: in.Digest, Approve: approve, Args: in.Args, Reason: in.Reason})
}

// give handles POST …/answer.
func (c *call) give() error {
	var in CallResult
	if err := c.read(&in); err != nil {
		return err
	}
	r := llm.TextResult(in.Text)
	r.IsError, r.Data = in.IsError, in.Data
	return c.decide(llm.Decision{Key: in.Key, Digest: in.Digest, Result: &r})
}

// decide stores the decision and resumes the run.
func (c *call) decide(d llm.Decision) error {
	q, err := c.params("user")
	if err != nil {
		return err
	}
	if user := q.Get("user"); q.Has("user") && user != c.client.User {
		// A user without the permission looks like a run that does not exist.
		c.client = c.client.of(user)
		if c.client == nil {
			return fault("not_found", "there is no run "+c.run+" of this user whose calls the token may decide", "")
		}
	}
	head, open, err := c.waiting(c.run)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Key == d.Key }); i >= 0 && d.Result != nil {
		d.Result.CallID = open[i].Call.ID
	} else if d.Result != nil {
		d.Result.CallID = c.answered(c.run, d.Key)
	}
	ds := []llm.Decision{d}
	if err := c.may(open, ds); err != nil {
		return err
	}
	if err := c.s.engine.Decide(c.ctx(), c.run, ds...); err != nil {
		return err
	}
	p := place{c.client.scope(), c.run}
	if !c.s.hub.find(p).works() && head.State != store.JournalOver {
		if _, err := c.takeUp(p, head.Agent); err != nil {
			c.s.hub.wake() // the decision is stored, and some process will resume the run
		}
	}
	if c.client.approver != nil {
		return c.tellApprover(c.run)
	}
	return c.tell(http.StatusOK, c.run)
}

// waiting returns the head of a run and its pending calls.
func (c *call) waiting(id string) (head store.JournalRun, open []pawl.PendingCall, err error) {
	head, err = c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), id)
	if err == nil {
		open, err = c.s.engine.Pending(c.ctx(), id)
	}
	return head, open, err
}

// tellApprover answers with what an approver may see of a run of another user.
func (c *call) tellApprover(id string) error {
	head, open, err := c.waiting(id)
	if err != nil {
		return err
	}
	run := c.s.forApprover(head)
	run.Pending, err = c.shown(id, open)
	if err != nil {
		return err
	}
	run.Waits = len(open)
	return c.write(http.StatusOK, run)
}

// forApprover converts a journal entry to what an approver may see of it.
func (s *Server) forApprover(head store.JournalRun) Run {
	run := s.toRun(head)
	return Run{ID: run.ID, Agent: run.Agent, User: head.Scope.User, State: run.State, Waits: run.Waits,
		Created: run.Created, Updated: run.Updated}
}

// answered returns the ID of a call that was pending, for a client that repeats its answer.
func (c *call) answered(id string, key llm.Key) string {
	x, err := c.s.engine.Export(c.ctx(), id)
	if err != nil {
		return ""
	}
	for _, call := range x.Calls {
		if call.Key == key {
			return call.Call.ID
		}
	}
	for _, ask := range x.Pending {
		if ask.Key == key {
			return ask.Call.ID
		}
	}
	return ""
}
