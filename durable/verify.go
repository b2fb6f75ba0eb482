package durable

import (
	"context"
	"encoding/json"
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
	Requests int          // that were compared, by their digests
	Bytes    int          // those of them that were compared byte for byte, as they were sent: see Transport
	Calls    int          // that had ended
	Result   *pawl.Result // nil: the record ends before the run does
}

// Replay plays a run back, offline: nothing is asked, run or kept. Each request of r is compared with the one that was made; where one differs the error is
// ErrChanged and names it. Those of models that send through Transport are made again as bytes, and the error for the first that differs is a *Mismatch.
func (e *Engine) Replay(ctx context.Context, id string, r pawl.Runner) (Played, error) {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return Played{}, err
	}
	p := Played{Calls: len(h.outcomes)}
	for _, b := range h.replies {
		if b.Messages != "" { // it was not copied from another run
			p.Requests++
		}
	}
	s, ctx := e.start(ctx, store.Lease{Scope: scope(ctx), Run: id}, h)
	defer s.close()
	s.played = &p
	in, err := h.begin.input()
	if err != nil {
		return p, err
	}
	for ev, err := range in.stream(ctx, r) {
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

// Meta returns what was kept with a run when it was begun: Runner.Meta.
func (e *Engine) Meta(ctx context.Context, id string) (json.RawMessage, error) {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return nil, err
	}
	return h.begin.Meta, nil
}
