package server

// runs.go: the endpoints that start, list, show and follow runs.

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// start handles POST /v1/runs.
func (c *call) start() error {
	var in api.Start
	if err := c.Read(&in); err != nil {
		return err
	}
	msgs, err := messagesOf(in.Input, in.Messages)
	if err != nil {
		return err
	}

	in.ID = cmp.Or(in.ID, c.Request.Header.Get("Idempotency-Key"))
	if in.ID == "" {
		if len(msgs) == 0 {
			return runs.BadRequest("there is nothing to do", "give input, or messages")
		}
		in.ID = newID("run_")
	}
	if err := store.CheckID(in.ID); err != nil {
		return runs.BadRequest(err.Error(), "")
	}

	l, created, err := c.Runs.Start(c.Context(), c.Caller(), runs.Request{
		ID:       in.ID,
		Agent:    in.Agent,
		Messages: msgs,
		Output:   in.Output,
		Previous: in.Previous,
	})
	if err != nil {
		return err
	}
	if c.WantsEvents() {
		c.setLocation(in.ID)
		return c.watch(l, in.ID)
	}
	if in.Wait {
		if err := c.await(l); err != nil {
			c.setLocation(in.ID)
			return err
		}
	}
	status := http.StatusOK
	if created {
		c.setLocation(in.ID)
		status = http.StatusCreated
	}
	return c.writeRun(status, in.ID)
}

// setLocation sets the header Location to the address of a run. It is relative to the address of
// the request, so that it holds behind a proxy or in an application that adds a prefix.
func (c *call) setLocation(run string) {
	_, below, _ := strings.Cut(c.Request.URL.EscapedPath(), "/v1/")
	up := strings.Repeat("../", strings.Count(below, "/"))
	c.Writer.Header().Set("Location", up+"runs/"+url.PathEscape(run))
}

// newID returns a new ID with a prefix.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()[:20]) }

// messagesOf returns the messages of a request that has either an input or messages.
func messagesOf(input string, msgs []llm.Message) ([]llm.Message, error) {
	if input == "" {
		return llm.FromClient(msgs...), nil
	}
	if len(msgs) > 0 {
		return nil, runs.BadRequest("give either input or messages, not both", "give one")
	}
	return []llm.Message{llm.User(input)}, nil
}

// await waits until a run has stopped, or the server stops. The error is that the provider of its
// model has been away for too long, or that the client has disconnected. l may be nil.
func (c *call) await(l *runs.Live) error {
	ctx, cancel := context.WithCancel(c.Request.Context())
	defer cancel()
	go func() {
		select {
		case <-c.Runs.Closing():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := l.Await(ctx, c.Hold())
	if ctx.Err() != nil && c.Request.Context().Err() == nil {
		return nil // the server stops, and the client gets the state of the run
	}
	return err
}

// writeRun answers with the state of a run.
func (c *call) writeRun(status int, id string) error {
	run, err := c.Runs.State(c.Context(), c.Caller(), id)
	if err != nil {
		return err
	}
	return c.Write(status, run)
}

// states are the states by which lists are selected.
var states = []string{runs.StateQueued, store.JournalOpen, store.JournalWaiting, store.JournalFailed, store.JournalOver}

// list handles GET /v1/runs.
func (c *call) list() error {
	q, p, err := c.Page("state")
	if err != nil {
		return err
	}

	state := q.Get("state")
	if state != "" && !slices.Contains(states, state) {
		return runs.BadRequest("there is no state "+state, "queued, open, waiting, failed or over")
	}
	if c.WantsEvents() {
		return c.watchRuns(state, p)
	}

	// To the journal, a queued run is open.
	stored := state
	if state == runs.StateQueued {
		stored = store.JournalOpen
	}
	heads, err := c.Runs.Heads(c.Context(), c.Caller(), stored, p)
	if err != nil {
		return err
	}
	out := api.Runs{Runs: make([]api.Run, 0, len(heads))}
	for _, head := range heads {
		run := c.Runs.Describe(head)
		if state != runs.StateQueued || run.State == runs.StateQueued {
			out.Runs = append(out.Runs, run)
		}
	}
	if len(heads) == p.Size() {
		out.After = heads[len(heads)-1].ID
	}
	return c.Write(http.StatusOK, out)
}

// show handles GET /v1/runs/{id}.
func (c *call) show() error { return c.writeRun(http.StatusOK, c.RunID) }

// events handles GET /v1/runs/{id}/events: from the client's position or from the beginning, until
// no event can follow. For a run that no process executes, the stored events are replayed.
func (c *call) events() error {
	l, err := c.Runs.Attach(c.Context(), c.Caller(), c.RunID)
	if err != nil {
		return err
	}
	after := c.position(l)
	_, ended, _ := l.Read(after, 0)
	if ended && after > 0 && !l.Pending() {
		c.Writer.WriteHeader(http.StatusNoContent) // prevents a browser from reconnecting
		return nil
	}
	return c.Stream(l, after, true)
}

// position returns the position after which the client wants events.
func (c *call) position(l *runs.Live) int64 {
	return l.Position(c.Request.Header.Get("Last-Event-ID"))
}

// watch streams the events of a run until it stops. A nil l is a run that has stopped.
func (c *call) watch(l *runs.Live, id string) error {
	if l == nil {
		var err error
		l, err = c.Runs.Resume(c.Context(), c.Caller(), id)
		if err != nil {
			return err
		}
	}
	return c.Stream(l, c.position(l), false)
}
