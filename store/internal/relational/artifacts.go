package relational

import (
	"cmp"
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

const ofArtifacts = " from artifacts where tenant = ? and USER = ? and thread = ? and run = ?"

// PutArtifact stores a for a run. It deletes the oldest artifacts of the scope if there are too
// many.
func (db *DB) PutArtifact(ctx context.Context, s store.Scope, run string, a pawl.Artifact) error {
	if err := cmp.Or(valid(s), store.CheckArtifact(run, a)); err != nil {
		return err
	}
	return db.backend.Change(ctx, Item{Kind: "artifacts", Scope: s}, func(tx Conn) error {
		_, err := tx.Exec(ctx, "delete"+ofArtifacts+" and key = ?", s.Tenant, s.User, s.Thread, run, string(a.Key))
		if err != nil {
			return err
		}

		_, err = tx.Exec(ctx, `insert into artifacts (tenant, USER, thread, run, key, size, mime, text, data)
			values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			s.Tenant, s.User, s.Thread, run, string(a.Key), len(a.Text)+len(a.Data), db.backend.Plain(a.MIME),
			[]byte(a.Text), append([]byte{}, a.Data...))
		if err != nil {
			return err
		}

		// The newest artifacts stay, as many as fit together.
		_, err = tx.Exec(ctx, `delete from artifacts where n in (
			select n from (select n, sum(size) over (order by n desc) as total
				from artifacts where tenant = ? and USER = ? and thread = ?) x
			where total > ?)`, s.Tenant, s.User, s.Thread, store.MaxArtifacts)
		return err
	})
}

// Artifact returns a stored artifact.
func (db *DB) Artifact(ctx context.Context, s store.Scope, run string, key llm.Key) (pawl.Artifact, error) {
	if err := valid(s, run, string(key)); err != nil {
		return pawl.Artifact{}, err
	}
	return one(ctx, db.backend.Read(), "artifact "+string(key), func(r Row) (a pawl.Artifact, err error) {
		var text []byte
		err = r.Scan(&a.Key, &a.MIME, &text, &a.Data)
		a.Text = string(text)
		if len(a.Data) == 0 {
			a.Data = nil
		}
		return a, err
	}, "select key, mime, text, data"+ofArtifacts+" and key = ?", s.Tenant, s.User, s.Thread, run, string(key))
}

// DeleteArtifacts deletes the artifacts of a run.
func (db *DB) DeleteArtifacts(ctx context.Context, s store.Scope, run string) error {
	if err := valid(s, run); err != nil {
		return err
	}
	_, err := db.backend.Write().Exec(ctx, "delete"+ofArtifacts, s.Tenant, s.User, s.Thread, run)
	return err
}
