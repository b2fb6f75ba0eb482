package web

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// OnDisconnect returns what happens to a run of an agent whose client has disconnected: cancel or
// continue. "" means that the endpoint decides.
func (c *Call) OnDisconnect(agent string) string {
	return cmp.Or(c.R.Header.Get("X-Pawl-Disconnect"), c.S.O.OnDisconnect[runs.BaseName(agent)])
}

// Abandon cancels the run of a client that has disconnected, if it has no reader after a while. A
// run that has stopped by then stays: a repeated request gets its failure or its question.
func (c *Call) Abandon(id string, deserted func() bool) {
	gone := &runs.Caller{S: c.S, Client: c.Client, Context: context.WithoutCancel(c.Ctx())}
	time.AfterFunc(c.S.O.Reconnect, func() {
		head, err := c.S.O.Journal.JournalRun(gone.Ctx(), c.Client.Scope(), id)
		if err == nil && head.State == store.JournalOpen && deserted() {
			_, err = gone.GiveUp(id)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			c.S.O.Log.Warn("cancelling a run whose client disconnected", "run", id, "error", err)
		}
	})
}
