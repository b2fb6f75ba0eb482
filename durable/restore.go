package durable

// restore.go: runs of a database that was restored from a backup.

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"github.com/pawl-go/pawl"
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
		if err == nil {
			err = e.Journal.AppendOutside(ctx, r.Scope, r.ID, store.JournalOpen,
				store.Record{Key: key, Kind: record.KindRestored, At: e.clock(), Body: json.RawMessage(`{}`)})
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

const afterBackup = "The database was restored from a backup. This call may have happened after the backup."

// doubtful reports whether a call may have happened after the backup from which the run was
// restored: since then it was neither asked about nor started.
func (s *session) doubtful(t pawl.Task) bool {
	since := s.history.RestoredAt
	tool := t.Tool()
	if since == 0 || tool == nil {
		return false
	}
	if tool.Effect != pawl.EffectWrite || tool.Passive {
		return false
	}

	asked, started := s.history.Questions[t.Key], s.history.Attempts[t.Key]
	switch {
	case len(asked) > 0 && asked[len(asked)-1].Seq >= since:
		return false
	case len(started) > 0 && started[len(started)-1].Seq >= since:
		return false
	}
	return true
}
