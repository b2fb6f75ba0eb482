// Package relational implements store.Store and store.Journal on a database with tables. Packages
// store/sqlite and store/postgres embed its DB and supply a Backend.
//
// Statements use the common part of the two SQL dialects, with ? for arguments and words in
// capitals for the parts that differ: USER is the column of Scope.User, ENABLED the condition for
// an enabled schedule, VECTOR the expression that reads a vector, WORDROW the column of tables of
// words that has the number of the row, AMONG the condition that a number is in the list of
// Backend.Numbers, and KEYSHARE the clause that keeps a selected row until the transaction ends.
// EACHOF and FIRSTROWS stand around a query for each row, and join it with the rows of journals, as
// j, whose numbers the query selects. A Conn replaces them.
package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pawl-go/pawl/store"
)

// DB implements store.Journal, and store.Store except Close. It is safe for concurrent use.
type DB struct {
	backend Backend
	ledger  *store.Ledger
	heads   *heads
}

var _ store.Journal = (*DB)(nil)

// New returns a store on b. A nil ledger neither signs nor anchors durable runs.
func New(b Backend, ledger *store.Ledger) DB {
	return DB{backend: b, ledger: ledger, heads: new(heads)}
}

// now returns the time of a change, as the database stores it.
func (db *DB) now() time.Time { return moment(stamp(db.backend.Now())) }

// Backend is a database of one kind. Packages sqlite and postgres implement it.
type Backend interface {
	// Read and Write return connections for single statements.
	Read() Conn
	Write() Conn
	// Change runs fn in a transaction. Transactions that change the same item run one at a time.
	Change(ctx context.Context, item Item, fn func(tx Conn) error) error
	// Now returns the time of a change.
	Now() time.Time
	// Clock returns the time of the clock by which leases hold, if the caller's clock shows now. A
	// database that several machines use has a clock of its own.
	Clock(ctx context.Context, c Conn, now time.Time) (time.Time, error)
	// Ahead returns how far that clock is ahead of this process, as Clock last found it.
	Ahead() time.Duration
	// Plain returns a text in the form in which the database stores it.
	Plain(text string) string
	// Fold returns the value that is unique for the text of a memory in a scope.
	Fold(text string) any
	// Numbers returns the argument of AMONG.
	Numbers(n []int64) any

	// CheckVector returns an error for a vector that cannot be stored.
	CheckVector(v store.Vector) error
	// VectorColumns returns the columns of a vector and the expressions of their values.
	VectorColumns() (columns, values string)
	// VectorArgs returns the arguments of those expressions.
	VectorArgs(v store.Vector) []any
	// Vector returns the vector that was read as b.
	Vector(model string, b []byte) (store.Vector, error)

	// PutWords stores the words by which the rows n are found, in place of the existing ones.
	PutWords(ctx context.Context, tx Conn, k Kind, s store.Scope, n []int64, texts []string) error
	// WithWords returns at most limit rows that contain any of the terms, the best first.
	WithWords(ctx context.Context, k Kind, s store.Scope, q store.Query, terms []string, limit int) ([]Near, error)
	// Nearest returns at most limit rows whose vectors are nearest to the query's, the nearest
	// first.
	Nearest(ctx context.Context, k Kind, s store.Scope, q store.Query, limit int) ([]Near, error)
}

// Item names the data that a transaction reads and then writes.
type Item struct {
	Kind  string // of the data, such as thread or journal
	Scope store.Scope
	ID    string // empty means all items of the kind in the scope
}

// Conn executes statements, each on its own or in a transaction.
type Conn interface {
	// Exec executes a statement and returns the number of affected rows.
	Exec(ctx context.Context, text string, args ...any) (int64, error)
	Query(ctx context.Context, text string, args ...any) (Rows, error)
	// Batch executes statements in order.
	Batch(ctx context.Context, all []Statement) error
}

// Statement is a part of a batch.
type Statement struct {
	Text string
	Args []any // one for each ? of Text
	// Number receives the value that the statement returns, if any. Nil means that it returns none.
	Number *int64
	// Changed receives the number of rows that the statement changed. Nil means that no caller
	// needs it.
	Changed *int64
}

// Row is a row of a result.
type Row interface{ Scan(dest ...any) error }

// Rows is the result of a query.
type Rows interface {
	Row
	Next() bool
	Err() error
	Close()
}

// List reads all rows.
func List[T any](ctx context.Context, c Conn, scan func(Row) (T, error), text string, args ...any) ([]T, error) {
	rows, err := c.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// one reads the only row. It returns store.ErrNotFound if there is none.
func one[T any](ctx context.Context, c Conn, what string, scan func(Row) (T, error), text string, args ...any) (T,
	error) {
	all, err := List(ctx, c, scan, text, args...)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return all[0], nil
}

// item returns the item of an ID in a scope, by a query for the columns of a scope and an ID.
func item[T any](ctx context.Context, db *DB, s store.Scope, kind, id string, scan func(Row) (T, error),
	text string) (none T, err error) {
	if err := valid(s, id); err != nil {
		return none, err
	}
	return one(ctx, db.backend.Read(), kind+" "+id, scan, text, s.Tenant, s.User, s.Thread, id)
}

// page returns a page of items, by a query for the columns of a scope, the ID before and a limit.
func page[T any](ctx context.Context, db *DB, s store.Scope, p store.Page, scan func(Row) (T, error),
	text string) ([]T, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return List(ctx, db.backend.Read(), scan, text, s.Tenant, s.User, s.Thread, db.backend.Plain(p.After), p.Size())
}

// drop removes the item of an ID in a scope.
func (db *DB) drop(ctx context.Context, s store.Scope, kind, id, from string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return remove(ctx, db.backend.Write(), kind+" "+id, "delete"+from, s.Tenant, s.User, s.Thread, id)
}

// number reads the only row, which has one number.
func number(ctx context.Context, c Conn, what, text string, args ...any) (int64, error) {
	return one(ctx, c, what, func(r Row) (n int64, err error) {
		err = r.Scan(&n)
		return n, err
	}, text, args...)
}

// scanJSON reads a column of JSON.
func scanJSON[T any](r Row) (v T, err error) {
	var body string
	if err = r.Scan(&body); err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(body), &v)
}

// encoded returns values as JSON texts. Errors name a value by what and its index.
func encoded[T any](what string, values []T) ([]string, error) {
	out := make([]string, len(values))
	for i := range values {
		b, err := json.Marshal(values[i])
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", what, i, err)
		}
		out[i] = string(b)
	}
	return out, nil
}

// change executes a statement that changes one row. It returns none if the row does not exist.
func change(ctx context.Context, c Conn, none error, text string, args ...any) error {
	n, err := c.Exec(ctx, text, args...)
	if err == nil && n == 0 {
		return none
	}
	return err
}

// remove deletes an item. It returns store.ErrNotFound if the item does not exist.
func remove(ctx context.Context, c Conn, what, text string, args ...any) error {
	return change(ctx, c, fmt.Errorf("%s: %w", what, store.ErrNotFound), text, args...)
}

type (
	jsonField []byte
	timeField time.Time
)

// Scan reads a JSON value. Null gives nil.
func (f *jsonField) Scan(v any) error {
	if s, ok := v.(string); ok {
		*f = jsonField(s)
	}
	return nil
}

// Scan reads a time.
func (f *timeField) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%v is no time", v)
	}
	*f = timeField(moment(n))
	return nil
}

// stamp and moment convert a time to nanoseconds and back; 0 is the zero time.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// jsonText validates a JSON value for storage. Nil is stored as null.
func (db *DB) jsonText(what string, b json.RawMessage) (*string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if !json.Valid(b) {
		return nil, fmt.Errorf("%s is no JSON", what)
	}
	return new(db.backend.Plain(string(b))), nil
}

// jsonValue is jsonText for a value that is read again before it is stored.
func (db *DB) jsonValue(what string, b json.RawMessage) (json.RawMessage, error) {
	text, err := db.jsonText(what, b)
	if text == nil {
		return nil, err
	}
	return json.RawMessage(*text), nil
}

// plain changes texts to the form in which the database stores them.
func (db *DB) plain(texts ...*string) {
	for _, t := range texts {
		*t = db.backend.Plain(*t)
	}
}

// rowsOf returns the maximum number of rows for a limit. 0 means all.
func rowsOf(limit int) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return int64(limit)
}

// valid checks the scope and the IDs passed to a method.
func valid(s store.Scope, ids ...string) error {
	if err := s.Check(); err != nil {
		return err
	}
	for _, id := range ids {
		if err := store.CheckID(id); err != nil {
			return err
		}
	}
	return nil
}

// threadScope checks a scope whose Thread is not used: threads are identified by their IDs.
func threadScope(s store.Scope, id string) error {
	if s.Thread != "" {
		return errors.New("scope: a thread is named by its ID; leave Scope.Thread empty")
	}
	return valid(s, id)
}
