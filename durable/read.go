package durable

// read.go: what the journal has of a run, by methods of the Engine.

import (
	"context"
	"encoding/json"

	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/redact"
)

// Export returns the stored run without times and attempts. The error is store.ErrNotFound if there
// is no such run.
func (e *Engine) Export(ctx context.Context, id string) (*journal.Export, error) {
	run, err := e.read(ctx, id)
	if err != nil {
		return nil, err
	}
	return run.Export()
}

// Timeline returns the times of the steps of a run.
func (e *Engine) Timeline(ctx context.Context, id string) (*journal.Timeline, error) {
	run, err := e.read(ctx, id)
	if err != nil {
		return nil, err
	}
	return run.Timeline(), nil
}

// Effects returns the ledger of a run: each call of a tool that started or is pending, in the order
// of their keys, including nested calls.
func (e *Engine) Effects(ctx context.Context, id string) ([]journal.LedgerEntry, error) {
	head, err := e.Journal.JournalRun(ctx, scope(ctx), id)
	if err != nil {
		return nil, err
	}
	run, err := e.read(ctx, id)
	if err != nil {
		return nil, err
	}
	alive := head.Owner != "" && head.Until.After(e.clock())
	return run.Effects(alive), nil
}

// Redactor returns a copy of r that also hides the arguments that the tools of a run mark as secret
// ("writeOnly" or "x-secret" in their schemas), and the values of these arguments wherever they
// occur. A nil r hides nothing else. Older journals have no marks.
func (e *Engine) Redactor(ctx context.Context, id string, r *redact.Redactor) (*redact.Redactor, error) {
	run, err := e.read(ctx, id)
	if err != nil {
		return nil, err
	}
	return run.Redactor(r), nil
}

// Meta returns the value of Runner.Meta that was stored when the run started.
func (e *Engine) Meta(ctx context.Context, id string) (json.RawMessage, error) {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return nil, err
	}
	return h.Begin.Meta, nil
}

func (e *Engine) read(ctx context.Context, id string) (*journal.Run, error) {
	return journal.Read(ctx, e.Journal, id, e.clock())
}
