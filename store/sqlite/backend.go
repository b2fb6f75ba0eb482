package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/relational"
	"github.com/pawl-go/pawl/store/internal/words"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// dialect translates the words of package relational.
var dialect = strings.NewReplacer("USER", "user", "ENABLED", "enabled = 1", "VECTOR", "t.vector", "WORDROW", "rowid",
	"AMONG", "in (select value from json_each(?))", "KEYSHARE", "",
	"EACHOF", "join journals j on j.n in", "FIRSTROWS", "")

// executor executes statements: a database or a transaction.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// conn is a relational.Conn.
type conn struct {
	executor
	tx       *sql.Tx // nil outside a transaction
	prepared map[string]*sql.Stmt
}

// statement returns a prepared statement for use in the transaction, or nil.
func (c conn) statement(ctx context.Context, text string) *sql.Stmt {
	if s := c.prepared[text]; s != nil && c.tx != nil {
		return c.tx.StmtContext(ctx, s)
	}
	return nil
}

func (c conn) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	res, err := c.ExecContext(ctx, dialect.Replace(text), args...)
	if err != nil {
		return 0, available(err)
	}
	return res.RowsAffected()
}

// rows is a result whose Close returns nothing, as relational.Rows wants it: a failure to read is
// returned by Err.
type rows struct{ *sql.Rows }

func (r rows) Close()     { r.Rows.Close() }
func (r rows) Err() error { return available(r.Rows.Err()) }

// available returns err, with store.ErrUnavailable if the file cannot be used at present.
func available(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_READONLY, lib.SQLITE_IOERR, lib.SQLITE_FULL,
		lib.SQLITE_CANTOPEN, lib.SQLITE_PROTOCOL:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

func (c conn) Query(ctx context.Context, text string, args ...any) (relational.Rows, error) {
	var r *sql.Rows
	var err error
	if s := c.statement(ctx, text); s != nil {
		r, err = s.QueryContext(ctx, args...)
	} else {
		r, err = c.QueryContext(ctx, dialect.Replace(text), args...)
	}
	if err != nil {
		return nil, available(err)
	}
	return rows{r}, nil
}

// Batch executes statements, of which it parses equal ones once.
func (c conn) Batch(ctx context.Context, all []relational.Statement) error {
	parsed := map[string]*sql.Stmt{}
	for _, s := range all {
		stmt := parsed[s.Text]
		if stmt == nil {
			stmt = c.statement(ctx, s.Text)
			if stmt == nil {
				var err error
				stmt, err = c.PrepareContext(ctx, dialect.Replace(s.Text))
				if err != nil {
					return err
				}
				defer stmt.Close()
			}
			parsed[s.Text] = stmt
		}
		if err := execute(ctx, stmt, s); err != nil {
			return err
		}
	}
	return nil
}

// execute executes the statement s, parsed as stmt.
func execute(ctx context.Context, stmt *sql.Stmt, s relational.Statement) error {
	if s.Number != nil {
		return ignore(stmt.QueryRowContext(ctx, s.Args...).Scan(s.Number), sql.ErrNoRows)
	}
	res, err := stmt.ExecContext(ctx, s.Args...)
	if err != nil || s.Changed == nil {
		return err
	}
	*s.Changed, err = res.RowsAffected()
	return err
}

// backend is a relational.Backend.
type backend struct {
	write    *sql.DB // one connection, because SQLite has one writer
	read     *sql.DB
	prepared map[string]*sql.Stmt // statements of write, by their text in package relational
	now      func() time.Time

	together together // changes of journals
}

var _ relational.Backend = (*backend)(nil)

func (b *backend) Read() relational.Conn            { return conn{executor: b.read} }
func (b *backend) Write() relational.Conn           { return conn{executor: b.write} }
func (b *backend) Now() time.Time                   { return b.now() }
func (b *backend) Ahead() time.Duration             { return 0 }
func (b *backend) Plain(text string) string         { return text }
func (b *backend) Fold(text string) any             { return text }
func (b *backend) CheckVector(v store.Vector) error { return v.Check() }

// Clock returns now: all processes that use the file have the clock of this machine.
func (b *backend) Clock(_ context.Context, _ relational.Conn, now time.Time) (time.Time, error) {
	return now, nil
}

// Change runs fn in a transaction. Changes of journals share their syncs.
func (b *backend) Change(ctx context.Context, item relational.Item, fn func(tx relational.Conn) error) error {
	change := b.change
	if item.Kind == "journal" {
		change = b.changeTogether
	}
	return change(ctx, func(tx *sql.Tx) error { return fn(conn{tx, tx, b.prepared}) })
}

// change runs fn in a transaction that writes.
func (b *backend) change(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := b.write.BeginTx(ctx, nil)
	if err != nil {
		return available(err)
	}
	if err := fn(tx); err != nil {
		return available(errors.Join(err, ignore(tx.Rollback(), sql.ErrTxDone)))
	}
	return available(tx.Commit())
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// prepare parses the frequent statements once.
func (b *backend) prepare() error {
	b.prepared = map[string]*sql.Stmt{}
	for _, text := range relational.Frequent {
		s, err := b.write.Prepare(dialect.Replace(text))
		if err != nil {
			return err
		}
		b.prepared[text] = s
	}
	return nil
}

func (b *backend) Numbers(n []int64) any {
	list, _ := json.Marshal(n) // numbers have a JSON form
	return string(list)
}

func (b *backend) VectorColumns() (columns, values string) { return "model, vector", "?, ?" }

func (b *backend) VectorArgs(v store.Vector) []any {
	if v.Model == "" {
		return []any{nil, nil}
	}
	return []any{v.Model, relational.Bytes(v)}
}

func (b *backend) Vector(model string, data []byte) (store.Vector, error) {
	return store.Vector{Model: model, Values: relational.Values(data)}, nil
}

func (b *backend) PutWords(ctx context.Context, tx relational.Conn, k relational.Kind, _ store.Scope, n []int64,
	texts []string) error {
	batch := make([]relational.Statement, len(n))
	for i := range n {
		batch[i] = relational.Statement{Text: k.In("insert or replace into WORDS (rowid, text) values (?, ?)"), Args: []any{n[i], words.Spaced(texts[i])}}
	}
	return tx.Batch(ctx, batch)
}

// Nearest compares the vectors of the scope one by one.
func (b *backend) Nearest(ctx context.Context, k relational.Kind, s store.Scope, q store.Query,
	limit int) ([]relational.Near, error) {
	args := append([]any{relational.Bytes(q.Vector)}, relational.Seen(s, q.Shared)...)
	return relational.List(ctx, b.Read(), relational.ScanNear, k.In(`select t.n, vec_distance_cosine(t.vector, ?) from TABLE t
		where WHOSE and t.model = ? and length(t.vector) = ? ALSO order by 2, 1 limit ?`), append(args, q.Vector.Model, 4*len(q.Vector.Values), limit)...)
}
