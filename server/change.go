package server

// change.go: the endpoints that change a run: cancel, delete, steer and fork.

import (
	"cmp"
	"net/http"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// cancel handles POST /v1/runs/{id}/cancel.
func (c *call) cancel() error {
	l, err := c.Runs.Cancel(c.Context(), c.Caller(), c.RunID)
	if err != nil {
		return err
	}
	runs.Settle(c.Request.Context(), l)
	return c.writeRun(http.StatusOK, c.RunID)
}

// remove handles DELETE /v1/runs/{id}.
func (c *call) remove() error {
	if err := c.Runs.Delete(c.Context(), c.Caller(), c.RunID); err != nil {
		return err
	}
	return c.Write(http.StatusOK, api.Deleted{ID: c.RunID, Deleted: true})
}

// steer handles POST /v1/runs/{id}/steer.
func (c *call) steer() error {
	var in api.SteerRequest
	if err := c.Read(&in); err != nil {
		return err
	}
	msgs, err := messagesOf(in.Input, in.Messages)
	if err != nil {
		return err
	}
	if len(msgs) == 0 || runs.IsAnswer(msgs) {
		return runs.BadRequest("there is no message for the run", "give input, or messages of the user")
	}
	if err := c.Runs.Steer(c.Context(), c.Caller(), c.RunID, msgs...); err != nil {
		return err
	}
	return c.writeRun(http.StatusOK, c.RunID)
}

// fork handles POST /v1/runs/{id}/fork.
func (c *call) fork() error {
	var in api.Fork
	if err := c.Read(&in); err != nil {
		return err
	}
	to := cmp.Or(in.ID, newID("run_"))
	if err := store.CheckID(to); err != nil {
		return runs.BadRequest(err.Error(), "")
	}
	if in.Steps < 0 {
		return runs.BadRequest("steps is less than 0", "")
	}
	if err := c.Runs.Fork(c.Context(), c.Caller(), c.RunID, to, in.Steps); err != nil {
		return err
	}
	c.setLocation(to)
	return c.writeRun(http.StatusCreated, to)
}
