package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pawl-go/pawl/store"
)

// Backup writes a copy of the database into a new file, with the state of one moment. Other
// processes can write meanwhile.
func (db *DB) Backup(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = db.backend.write.ExecContext(ctx, "vacuum into ?", path)
	return available(errors.Join(err, f.Sync(), f.Close()))
}

// Compact removes the remains of deleted data from the file, from the indexes of words and from the
// write-ahead log. It copies the whole database. The error is store.ErrUnavailable if another
// process reads the log, which is then not empty.
func (db *DB) Compact(ctx context.Context) error {
	for _, table := range []string{"messages_words", "chunks_words", "memories_words", "skills_words"} {
		if _, err := db.backend.write.ExecContext(ctx, "insert into "+table+" ("+table+") values ('optimize')"); err != nil {
			return available(err)
		}
	}
	if _, err := db.backend.write.ExecContext(ctx, "vacuum"); err != nil {
		return available(err)
	}
	var busy, pages, done int
	err := db.backend.write.QueryRowContext(ctx, "pragma wal_checkpoint(truncate)").Scan(&busy, &pages, &done)
	if err == nil && busy != 0 {
		err = fmt.Errorf("%w: another process reads the log of the database, which still has deleted data", store.ErrUnavailable)
	}
	return available(err)
}
