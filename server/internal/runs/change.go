package runs

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
)

// GiveUp cancels a run. It returns a nil live if the run has ended, or if another process executes
// it.
func (c *Caller) GiveUp(id string) (*Live, error) {
	p := Place{c.Client.Scope(), id}
	head, err := c.S.O.Journal.JournalRun(c.Ctx(), p.Who, id)
	if err != nil || head.State == store.JournalOver {
		return nil, err
	}
	if err := c.S.Engine.Cancel(c.Ctx(), id); err != nil {
		return nil, err
	}
	l := c.S.Hub.Find(p)
	if l.Works() {
		if !c.S.Hub.hurry(l) {
			l.cancel(pawl.ErrCancelled)
		}
		return l, nil
	}
	// the process that executes it, or will, sees the cancellation
	var busy *api.Error
	l, err = c.TakeUp(p, head.Agent)
	if errors.Is(err, durable.ErrLost) || errors.As(err, &busy) && busy.Code == "busy" {
		return nil, nil
	}
	return l, err
}

// Settle waits until a run has stopped, up to a time limit.
func (c *Caller) Settle(l *Live) {
	ctx, cancel := context.WithTimeout(c.Context, 2*time.Second)
	defer cancel()
	_ = l.Await(ctx)
}

// Await waits until a run has stopped, and the journal has its end. l may be nil.
func (l *Live) Await(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.Done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Erase deletes a run that no process executes.
func (c *Caller) Erase(head store.JournalRun) error {
	p := Place{c.Client.Scope(), head.ID}
	if c.S.Hub.Find(p).Works() || head.State == store.JournalOpen {
		return Fault("conflict", "the run "+head.ID+" is at work", "POST /v1/runs/"+head.ID+"/cancel ends it")
	}
	if err := c.S.O.Journal.DeleteJournal(c.Ctx(), p.Who, p.Id); err != nil {
		return err
	}
	c.S.Hub.Drop(p)
	c.S.Hub.Compact()
	return nil
}

const (
	compactEvery = time.Minute
	compactTime  = 5 * time.Second // writes wait meanwhile: less than a third of a lease
)

// Compact removes the remains of deleted runs and memories from the files of their stores, if these
// can do so: now, and at most once in compactEvery.
func (h *Hub) Compact() {
	type compacter interface{ Compact(context.Context) error }
	db, ok := h.s.O.Journal.(compacter)
	other, has := h.s.O.Memories.(compacter)
	if !ok {
		db, ok, has = other, has, false
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.remains++
	if !ok || h.remains > 1 || Closed(h.Drained) {
		return // the goroutine of the first one sees the others
	}
	h.wg.Go(func() {
		for last, done := false, false; !done; {
			h.Mu.Lock()
			n := h.remains
			h.Mu.Unlock()
			ctx, cancel := context.WithTimeout(context.Background(), compactTime)
			err := db.Compact(ctx)
			if has && other != db {
				err = errors.Join(err, other.Compact(ctx))
			}
			cancel()
			if err != nil {
				h.s.O.Log.Warn("remains of deleted data are in the files of the store: pawl runs prune removes them", "error", err)
			}
			if last {
				return
			}
			select {
			case <-h.Drained:
				last = true
			case <-time.After(compactEvery):
			}
			h.Mu.Lock()
			done = err == nil && h.remains == n
			if done {
				h.remains = 0
			}
			h.Mu.Unlock()
		}
	})
}
