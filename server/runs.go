package server

import (
	"cmp"
	"crypto/rand"
	"net/http"
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
	msgs, err := messagesOf(&in)
	if err != nil {
		return err
	}
	in.ID = cmp.Or(in.ID, c.R.Header.Get("Idempotency-Key"))
	if in.ID == "" {
		if len(msgs) == 0 {
			return runs.BadRequest("there is nothing to do", "give input, or messages")
		}
		in.ID = "run_" + strings.ToLower(rand.Text()[:20])
	}
	if err := store.CheckID(in.ID); err != nil {
		return runs.BadRequest(err.Error(), "")
	}
	l, created, err := c.Begin(in, false, msgs)
	if err != nil {
		return err
	}
	if c.WantsEvents() {
		c.W.Header().Set("Location", "/v1/runs/"+in.ID)
		return c.watch(l, in.ID)
	}
	if in.Wait && l != nil {
		select {
		case <-l.Done:
		case <-c.R.Context().Done():
			return nil
		case <-c.S.Hub.Closing:
		}
	}
	status := http.StatusOK
	if created {
		c.W.Header().Set("Location", "/v1/runs/"+in.ID)
		status = http.StatusCreated
	}
	return c.tell(status, in.ID)
}

// tell answers with the state of a run.
func (c *call) tell(status int, id string) error {
	run, err := c.Get(id)
	if err != nil {
		return err
	}
	return c.Write(status, run)
}

// list handles GET /v1/runs.
func (c *call) list() error {
	q, p, err := c.Page("state")
	if err != nil {
		return err
	}
	state := q.Get("state")
	if state != "" && !slices.Contains([]string{runs.Queued, store.JournalOpen, store.JournalWaiting, store.JournalFailed,
		store.JournalOver}, state) {
		return runs.BadRequest("there is no state "+state, "queued, open, waiting, failed or over")
	}
	if c.WantsEvents() {
		return c.watchRuns(state, p)
	}
	in := state
	if state == runs.Queued {
		in = store.JournalOpen
	}
	heads, err := c.S.O.Journal.JournalRuns(c.Ctx(), c.Client.Scope(), in, p)
	if err != nil {
		return err
	}
	out := api.Runs{Runs: make([]api.Run, 0, len(heads))}
	for _, head := range heads {
		if run := c.S.ToRun(head); state != runs.Queued || run.State == runs.Queued {
			out.Runs = append(out.Runs, run)
		}
	}
	if len(heads) == p.Size() {
		out.After = heads[len(heads)-1].ID
	}
	return c.Write(http.StatusOK, out)
}

// show handles GET /v1/runs/{id}.
func (c *call) show() error {
	return c.tell(http.StatusOK, c.RunID)
}

// eventsOf handles GET /v1/runs/{id}/events: from the client's position or from the beginning,
// until no event can follow. For a run that no process executes, the stored events are replayed.
func (c *call) eventsOf() error {
	l, err := c.Look(runs.Place{Who: c.Client.Scope(), Id: c.RunID})
	if err != nil {
		return err
	}
	after := l.Feed.Place(c.R.Header.Get("Last-Event-ID"))
	if _, ended, _ := l.Feed.Read(after, 0); ended && after > 0 && !l.Waits.Load() {
		c.W.WriteHeader(http.StatusNoContent) // prevents a browser from reconnecting
		return nil
	}
	return c.Stream(l, after, true)
}

// watch streams the events of a run until it stops.
func (c *call) watch(l *runs.Live, id string) error {
	if l == nil {
		head, err := c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), id)
		if err != nil {
			return err
		}
		l, err = c.TakeUp(runs.Place{Who: c.Client.Scope(), Id: id}, head.Agent)
		if err != nil {
			return err
		}
	}
	return c.Stream(l, l.Feed.Place(c.R.Header.Get("Last-Event-ID")), false)
}

func messagesOf(in *api.Start) ([]llm.Message, error) {
	if in.Input == "" {
		return in.Messages, nil
	}
	if len(in.Messages) > 0 {
		return nil, runs.BadRequest("give either input or messages, not both", "give one")
	}
	return []llm.Message{llm.User(in.Input)}, nil
}
