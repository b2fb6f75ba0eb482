package durable

// restore.go: runs of a database that was restored from a backup.

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/store"
)

// MarkRestored records in each run that is not over that the database was restored from a backup,
// which does not have what happened after it. Each EffectWrite call that such a run then makes has
// an unknown outcome: Tool.Reconcile finds out what happened, or a person is asked. Call it after
// the restore and before any run is resumed. It returns the number of runs.
func (e *Engine) MarkRestored(ctx context.Context) (n int, err error) {
	key := record.KindRestored + "/" + rand.Text()
	for r, err := range e.Journal.UnendedRuns(ctx) {
		if err != nil {
			return n, err
		}
		mark := store.Record{Key: key, Kind: record.KindRestored, At: e.clock(), Body: json.RawMessage(`{}`)}
		if err := e.Journal.AppendOutside(ctx, r.Scope, r.ID, store.JournalOpen, mark); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// afterBackup is why a person is asked about a call of a restored run.
const afterBackup = "The database was restored from a backup. This call may have happened after the backup."
