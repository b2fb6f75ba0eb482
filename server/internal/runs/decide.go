package runs

import (
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// Waiting returns the head of a run and its pending calls.
func (c *Caller) Waiting(id string) (head store.JournalRun, open []pawl.PendingCall, err error) {
	head, err = c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), id)
	if err == nil {
		open, err = c.S.Engine.Pending(c.Ctx(), id)
	}
	return head, open, err
}

// ForApprover converts a journal entry to what an approver may see of it.
func (s *Service) ForApprover(head store.JournalRun) api.Run {
	run := s.ToRun(head)
	return api.Run{ID: run.ID, Agent: run.Agent, User: head.Scope.User, State: run.State, Waits: run.Waits,
		Created: run.Created, Updated: run.Updated}
}

// Answered returns the ID of a call that was pending, for a client that repeats its answer.
func (c *Caller) Answered(id string, key llm.Key) string {
	x, err := c.S.Engine.Export(c.Ctx(), id)
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
