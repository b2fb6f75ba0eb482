package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// Verified is what Verify found in order.
type Verified struct {
	Records int64  // in the run's journal
	Head    string // the hash of the last; whoever keeps it elsewhere can tell later whether the journal was cut short
}

// Verify reads the whole journal of a run and checks that each record is what was written, in its place, and that none is missing behind the last. The error
// is ErrCorrupt when it is not, and names the record. known are heads that were seen before, and kept elsewhere: they must be in the chain, so that a journal which was cut
// short, with all that says how long it was, is found out too.
func (e *Engine) Verify(ctx context.Context, id string, known ...string) (Verified, error) {
	head, err := e.Journal.JournalRun(ctx, scope(ctx), id)
	if err != nil {
		return Verified{}, err
	}
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return Verified{}, err
	}
	if n := int64(len(h.records)); n < head.Records || n == head.Records && h.head != head.Head {
		return Verified{}, fmt.Errorf("run %s: %w: it ends with record %d, and its head says %d (%s)", id, ErrCorrupt, n, head.Records, head.Head)
	}
	for _, head := range known {
		if !slices.ContainsFunc(h.records, func(r store.Record) bool { return r.Hash == head }) {
			return Verified{}, fmt.Errorf("run %s: %w: the record with the hash %s is not there any more", id, ErrCorrupt, head)
		}
	}
	return Verified{int64(len(h.records)), h.head}, nil
}

// Played is what Replay has played back.
type Played struct {
	Requests int          // that were compared
	Calls    int          // that had ended
	Result   *pawl.Result // nil: the record ends before the run does
}

// Replay plays a run back, offline: nothing is asked, run or kept. Each request of r is compared with the one that was made; where one differs the error is
// ErrChanged and names it.
func (e *Engine) Replay(ctx context.Context, id string, r pawl.Runner) (Played, error) {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return Played{}, err
	}
	p := Played{Requests: len(h.replies), Calls: len(h.outcomes)}
	s, ctx := e.start(ctx, store.Lease{Scope: scope(ctx), Run: id}, h)
	defer s.close()
	for ev, err := range r.Stream(ctx, inputOf(h)...) {
		if err = s.cause(err); errors.Is(err, errOver) {
			return p, nil
		}
		if err != nil && (h.end == nil || h.end.Stop != pawl.StopFailed || errors.Is(err, ErrChanged)) {
			return p, err
		}
		if ev.Kind == pawl.EventRunEnded && ev.Run == "run" && s.failed() == nil {
			p.Result = ev.Result
		}
	}
	return p, nil
}

// Fork begins the run fork with what id had come to after its first steps: the replies up to that many, and how their calls ended. It goes on from there when it is
// resumed, with another model, other tools or instructions if need be: what was copied is not compared. A Write that was interrupted in the original is as
// unknown in the fork.
func (e *Engine) Fork(ctx context.Context, id, fork string, steps int) error {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return err
	}
	if n := h.steps(); steps < 0 || steps > n {
		return fmt.Errorf("run %s has %d steps, not %d", id, n, steps)
	}
	s := &session{engine: e}
	first := []store.Record{}
	for _, r := range h.records {
		if r.Kind != kindBegin && !(h.within(r.Key, steps) && (r.Kind == kindReply || r.Kind == kindOutcome || r.Kind == kindIntent || r.Kind == kindSteer)) {
			continue
		}
		c := store.Record{Key: r.Key, Kind: r.Kind, At: e.clock(), Body: r.Body}
		if r.Kind == kindReply {
			body := *h.replies[pawl.Key(r.Key)]
			body.Messages, body.Request = "", "" // nothing to compare with
			if c, err = s.record(kindReply, r.Key, body); err != nil {
				return err
			}
			c.Elapsed = 0
		}
		first = append(first, c)
	}
	l, err := e.Journal.BeginJournal(ctx, scope(ctx), store.JournalRun{ID: fork, Agent: h.begin.Agent, Task: taskOf(inputOf(h)), State: store.JournalOpen}, newOwner(), e.clock(), first...)
	if err != nil {
		return err
	}
	_, err = e.Journal.RenewJournal(ctx, l, zeroTime)
	return err
}
