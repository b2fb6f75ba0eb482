package server

import (
	"cmp"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// cancel handles POST /v1/runs/{id}/cancel.
func (c *call) cancel() error {
	l, err := c.GiveUp(c.RunID)
	if err != nil {
		return err
	}
	c.Settle(l)
	return c.tell(http.StatusOK, c.RunID)
}

// Deleted is a run that was deleted.
type Deleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// remove handles DELETE /v1/runs/{id}.
func (c *call) remove() error {
	head, err := c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), c.RunID)
	if err == nil {
		err = c.Erase(head)
	}
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, Deleted{c.RunID, true})
}

// SteerRequest is a message for a run in progress.
type SteerRequest struct {
	Input    string        `json:"input,omitzero"`
	Messages []llm.Message `json:"messages,omitzero"`
}

// steer handles POST /v1/runs/{id}/steer.
func (c *call) steer() error {
	var in SteerRequest
	if err := c.Read(&in); err != nil {
		return err
	}
	msgs, err := messagesOf(&api.Start{Input: in.Input, Messages: in.Messages})
	if err != nil {
		return err
	}
	if len(msgs) == 0 || runs.Answers(msgs) {
		return runs.BadRequest("there is no message for the run", "give input, or messages of the user")
	}
	if _, err := c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), c.RunID); err != nil {
		return err
	}
	if err := c.S.Engine.Steer(c.Ctx(), c.RunID, msgs...); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return err
		}
		return runs.BadRequest(err.Error(), "")
	}
	return c.tell(http.StatusOK, c.RunID)
}

// Fork describes a fork of a run.
type Fork struct {
	ID    string `json:"id,omitzero"`
	Steps int    `json:"steps"`
}

// fork handles POST /v1/runs/{id}/fork.
func (c *call) fork() error {
	var in Fork
	if err := c.Read(&in); err != nil {
		return err
	}
	to := cmp.Or(in.ID, "run_"+strings.ToLower(rand.Text()[:20]))
	if err := store.CheckID(to); err != nil {
		return runs.BadRequest(err.Error(), "")
	}
	if in.Steps < 0 {
		return runs.BadRequest("steps is less than 0", "")
	}
	if err := c.S.Engine.Fork(c.Ctx(), c.RunID, to, in.Steps, nil); err != nil {
		return err
	}
	c.S.Hub.Tell(runs.Place{Who: c.Client.Scope(), Id: to})
	c.W.Header().Set("Location", "/v1/runs/"+to)
	return c.tell(http.StatusCreated, to)
}
