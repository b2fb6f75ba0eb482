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

// Verified is the valid part of a journal.
type Verified struct {
	Records int64 // in the run's journal
	// Head is the hash of the last record. A copy of it elsewhere can prove later that the journal
	// was truncated.
	Head string
}

// Verify reads the whole journal of a run. It checks that each record is unchanged and in its
// place, and that none is missing at the end. Otherwise the error is ErrCorrupt and names the
// record.
//
// known holds earlier heads that the caller has stored elsewhere. They must be in the chain, so
// that Verify also finds a journal that was truncated together with every record of its length.
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

// Played is the result of Replay.
type Played struct {
	Requests int          // requests compared by their digests
	Bytes    int          // requests compared byte for byte: see Transport
	Calls    int          // ended calls
	Result   *pawl.Result // nil if the records end before the run does
}

// Replay replays a run offline: it sends no request, executes no call and stores nothing. It
// compares each request of r with the stored one. The error is ErrChanged for the first difference,
// and names it. Requests of models that send through Transport are built again as bytes, and the
// error for the first difference is a *Mismatch.
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
		if errorOf(err) != "" && (h.end == nil || h.end.Stop != pawl.StopFailed || errors.Is(err, ErrChanged)) {
			return p, err
		}
		if ev.Kind == pawl.EventRunEnded && ev.Run == "run" && s.failed() == nil {
			p.Result = ev.Result
		}
	}
	return p, nil
}

// Meta returns the value of Runner.Meta that was stored when the run started.
func (e *Engine) Meta(ctx context.Context, id string) (json.RawMessage, error) {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return nil, err
	}
	return h.begin.Meta, nil
}
