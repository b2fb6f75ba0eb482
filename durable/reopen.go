package durable

// reopen.go: runs that failed, and that a process is to resume.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/store"
)

// Reopen makes a failed run due, without executing it: a process that serves its agent resumes it,
// as Recover does. by is recorded. It serves many runs at once, after the reason of their failure
// is gone; a single run is resumed by its Runner. The error is store.ErrConflict for a run in
// another state, or for a run that a process works on.
func (e *Engine) Reopen(ctx context.Context, id, by string) error {
	who := scope(ctx)
	head, err := e.Journal.JournalRun(ctx, who, id)
	if err != nil {
		return err
	}
	if head.State != store.JournalFailed {
		return fmt.Errorf("run %s is %s, and only a failed run is opened again: %w", id, head.State, store.ErrConflict)
	}
	l, err := e.Journal.ClaimJournal(ctx, who, id, newOwner(), e.clock(), e.clock().Add(e.lease()))
	if err != nil {
		return err
	}

	body, err := json.Marshal(record.Reopened{By: by})
	if err != nil {
		return errors.Join(err, e.release(ctx, l))
	}
	r := store.Record{
		Key:  fmt.Sprintf("%s/%d", record.KindReopened, l.Fence),
		Kind: record.KindReopened,
		At:   e.clock(),
		Body: body,
	}
	change := &store.JournalChange{State: store.JournalOpen, Release: true}
	_, err = e.Journal.AppendJournal(ctx, l, change, r)
	if err != nil {
		return errors.Join(err, e.release(ctx, l))
	}
	return nil
}
