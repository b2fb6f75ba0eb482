package server

// change.go: the endpoints that change a run: cancel, steer and fork.

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// cancel handles POST /v1/runs/{id}/cancel.
func (c *call) cancel() error {
	l, err := c.giveUp(c.run)
	if err != nil {
		return err
	}
	c.settle(l)
	return c.tell(http.StatusOK, c.run)
}

// giveUp cancels a run. It returns a nil live if the run has ended, or if another process executes
// it.
func (c *call) giveUp(id string) (*live, error) {
	p := place{c.client.scope(), id}
	head, err := c.s.o.Journal.JournalRun(c.ctx(), p.who, id)
	if err != nil || head.State == store.JournalOver {
		return nil, err
	}
	if err := c.s.engine.Cancel(c.ctx(), id); err != nil {
		return nil, err
	}
	l := c.s.hub.find(p)
	if l.works() {
		if !c.s.hub.hurry(l) {
			l.cancel(pawl.ErrCancelled)
		}
		return l, nil
	}
	// the process that executes it, or will, sees the cancellation
	var busy *Error
	l, err = c.takeUp(p, head.Agent)
	if errors.Is(err, durable.ErrLost) || errors.As(err, &busy) && busy.Code == "busy" {
		return nil, nil
	}
	return l, err
}

// settle waits until a run has stopped, up to a time limit.
func (c *call) settle(l *live) {
	ctx, cancel := context.WithTimeout(c.r.Context(), 2*time.Second)
	defer cancel()
	_ = l.await(ctx)
}

// await waits until a run has stopped, and the journal has its end. l may be nil.
func (l *live) await(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Deleted is a run that was deleted.
type Deleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// remove handles DELETE /v1/runs/{id}.
func (c *call) remove() error {
	head, err := c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), c.run)
	if err == nil {
		err = c.erase(head)
	}
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, Deleted{c.run, true})
}

// erase deletes a run that no process executes.
func (c *call) erase(head store.JournalRun) error {
	p := place{c.client.scope(), head.ID}
	if c.s.hub.find(p).works() || head.State == store.JournalOpen {
		return fault("conflict", "the run "+head.ID+" is at work", "POST /v1/runs/"+head.ID+"/cancel ends it")
	}
	if err := c.s.o.Journal.DeleteJournal(c.ctx(), p.who, p.id); err != nil {
		return err
	}
	c.s.hub.drop(p)
	c.s.hub.compact()
	return nil
}

const (
	compactEvery = time.Minute
	compactTime  = 5 * time.Second // writes wait meanwhile: less than a third of a lease
)

// compact removes the remains of deleted runs and memories from the files of their stores, if these
// can do so: now, and at most once in compactEvery.
func (h *hub) compact() {
	type compacter interface{ Compact(context.Context) error }
	db, ok := h.s.o.Journal.(compacter)
	other, has := h.s.o.Memories.(compacter)
	if !ok {
		db, ok, has = other, has, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remains++
	if !ok || h.remains > 1 || closed(h.drained) {
		return // the goroutine of the first one sees the others
	}
	h.wg.Go(func() {
		for last, done := false, false; !done; {
			h.mu.Lock()
			n := h.remains
			h.mu.Unlock()
			ctx, cancel := context.WithTimeout(context.Background(), compactTime)
			err := db.Compact(ctx)
			if has && other != db {
				err = errors.Join(err, other.Compact(ctx))
			}
			cancel()
			if err != nil {
				h.s.o.Log.Warn("remains of deleted data are in the files of the store: pawl runs prune removes them", "error", err)
			}
			if last {
				return
			}
			select {
			case <-h.drained:
				last = true
			case <-time.After(compactEvery):
			}
			h.mu.Lock()
			done = err == nil && h.remains == n
			if done {
				h.remains = 0
			}
			h.mu.Unlock()
		}
	})
}

// SteerRequest is a message for a run in progress.
type SteerRequest struct {
	Input    string        `json:"input,omitzero"`
	Messages []llm.Message `json:"messages,omitzero"`
}

// steer handles POST /v1/runs/{id}/steer.
func (c *call) steer() error {
	var in SteerRequest
	if err := c.read(&in); err != nil {
		return err
	}
	msgs, err := (&Start{Input: in.Input, Messages: in.Messages}).messages()
	if err != nil {
		return err
	}
	if len(msgs) == 0 || answers(msgs) {
		return badRequest("there is no message for the run", "give input, or messages of the user")
	}
	if _, err := c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), c.run); err != nil {
		return err
	}
	if err := c.s.engine.Steer(c.ctx(), c.run, msgs...); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return err
		}
		return badRequest(err.Error(), "")
	}
	return c.tell(http.StatusOK, c.run)
}

// Fork describes a fork of a run.
type Fork struct {
	ID    string `json:"id,omitzero"`
	Steps int    `json:"steps"`
}

// fork handles POST /v1/runs/{id}/fork.
func (c *call) fork() error {
	var in Fork
	if err := c.read(&in); err != nil {
		return err
	}
	to := cmp.Or(in.ID, "run_"+strings.ToLower(rand.Text()[:20]))
	if err := store.CheckID(to); err != nil {
		return badRequest(err.Error(), "")
	}
	if in.Steps < 0 {
		return badRequest("steps is less than 0", "")
	}
	if err := c.s.engine.Fork(c.ctx(), c.run, to, in.Steps, nil); err != nil {
		return err
	}
	c.s.hub.tell(place{c.client.scope(), to})
	c.w.Header().Set("Location", "/v1/runs/"+to)
	return c.tell(http.StatusCreated, to)
}
