package server

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
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
	id, err := c.id()
	if err != nil {
		return err
	}
	head, err := c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), id)
	if err != nil {
		return err
	}
	open, err := c.s.engine.Pending(c.ctx(), id)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return w.Key == d.Key }); i >= 0 && d.Result != nil {
		d.Result.CallID = open[i].Call.ID
	} else if d.Result != nil {
		d.Result.CallID = c.answered(id, d.Key)
	}
	ds := []llm.Decision{d}
	if err := c.may(open, ds); err != nil {
		return err
	}
	if err := c.s.engine.Decide(c.ctx(), id, ds...); err != nil {
		return err
	}
	p := place{c.client.scope(), id}
	if !c.s.hub.find(p).works() && head.State != store.JournalOver {
		if _, err := c.takeUp(p, head.Agent); err != nil {
			c.s.hub.wake() // the decision is stored, and some process will resume the run
		}
	}
	return c.tell(http.StatusOK, id)
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

// Inbox lists the calls that wait for a decision or a result.
type Inbox struct {
	Waiting []PendingRun `json:"waiting"`
	After   string       `json:"after,omitzero"`
}

// PendingRun is a run with its pending calls.
type PendingRun struct {
	Run     Run                `json:"run"`
	Pending []pawl.PendingCall `json:"pending"`
}

// inbox handles GET /v1/pending.
func (c *call) inbox() error {
	q, err := c.params("after", "limit")
	if err != nil {
		return err
	}
	p, err := pageOf(q)
	if err != nil {
		return err
	}
	heads, err := c.s.o.Journal.JournalRuns(c.ctx(), c.client.scope(), store.JournalWaiting, p)
	if err != nil {
		return err
	}
	out := Inbox{Waiting: []PendingRun{}}
	for _, head := range heads {
		open, err := c.s.engine.Pending(c.ctx(), head.ID)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			if open, err = c.shown(head.ID, open); err != nil {
				return err
			}
			out.Waiting = append(out.Waiting, PendingRun{c.s.toRun(head), open})
		}
	}
	if len(heads) == p.Size() {
		out.After = heads[len(heads)-1].ID
	}
	return c.write(http.StatusOK, out)
}

// export handles GET /v1/runs/{id}/export.
func (c *call) export() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	x, err := c.s.engine.Export(c.ctx(), id)
	if err != nil {
		return err
	}
	hide, err := c.hides(id)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, x.Redacted(hide))
}

// hides returns the Redactor for the secrets of the server and of a run, whose tools may no longer
// be configured. Nil redacts nothing.
func (c *call) hides(id string) (*redact.Redactor, error) {
	if c.s.o.Secrets == nil {
		return nil, nil
	}
	return c.s.engine.Redactor(c.ctx(), id, c.s.o.Secrets)
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
	id, err := c.id()
	if err != nil {
		return err
	}
	tl, err := c.s.engine.Timeline(c.ctx(), id)
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
	id, err := c.id()
	if err != nil {
		return err
	}
	list, err := c.s.engine.Effects(c.ctx(), id)
	if err != nil {
		return err
	}
	hide, err := c.hides(id)
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
	id, err := c.id()
	if err != nil {
		return err
	}
	a, err := c.s.engine.Export(c.ctx(), id)
	if err != nil {
		return err
	}
	other := c.r.PathValue("other")
	b, err := c.s.engine.Export(c.ctx(), other)
	if err != nil {
		return err
	}
	hide, err := c.hides(id)
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
