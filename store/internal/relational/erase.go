package relational

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/store"
)

// Erase deletes all data of a user: runs in any state, traces, artifacts, threads, documents,
// memories, skills and schedules. A process that executes one of the runs loses it.
func (db *DB) Erase(ctx context.Context, tenant, user string) error {
	s := store.Scope{Tenant: tenant, User: user}
	if err := valid(s); err != nil {
		return err
	}
	runs, err := List(ctx, db.backend.Read(), scanJournal, "select "+journalColumns+" from journals where tenant = ? and USER = ?",
		tenant, user)
	if err != nil {
		return err
	}

	// One by one, because the deletion of each run is anchored.
	for _, r := range runs {
		if err := db.DeleteJournal(ctx, r.Scope, r.ID); err != nil {
			return err
		}
	}
	return db.backend.Change(ctx, Item{Kind: "erase", Scope: s}, func(tx Conn) error {
		for _, table := range []string{"runs", "artifacts", "threads", "documents", "memories", "skills", "schedules"} {
			if _, err := tx.Exec(ctx, "delete from "+table+" where tenant = ? and USER = ?", tenant, user); err != nil {
				return err
			}
		}
		return nil
	})
}

// PauseSchedules disables the schedules of all scopes that are due, and returns their number: after
// a restore from a backup, their runs may have happened.
func (db *DB) PauseSchedules(ctx context.Context, now time.Time) (int64, error) {
	return db.backend.Write().Exec(ctx, "update schedules set enabled = (1 = 0), version = version + 1 where ENABLED and next > 0 and next <= ?", stamp(now))
}
