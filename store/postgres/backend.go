package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/relational"
)

// executor executes statements: a pool or a transaction.
type executor interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// conn is a relational.Conn.
type conn struct {
	executor
	b *backend
}

func (c conn) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	tag, err := c.executor.Exec(ctx, c.b.translate(text), args...)
	return tag.RowsAffected(), available(err)
}

// rows is a result whose errors pass through available.
type rows struct{ pgx.Rows }

func (r rows) Err() error { return available(r.Rows.Err()) }

// awayStates are the beginnings of the SQLSTATE of a server that cannot work at present:
// connection, resources, shutdown, I/O.
var awayStates = []string{"08", "53", "57P0", "58"}

// available returns err, with store.ErrUnavailable if the server cannot be reached or cannot work
// at present.
func available(err error) error {
	var said *pgconn.PgError
	var connect *pgconn.ConnectError
	var network net.Error
	switch {
	case err == nil || errors.Is(err, store.ErrUnavailable):
		return err
	case errors.As(err, &said):
		isAway := slices.ContainsFunc(awayStates, func(s string) bool { return strings.HasPrefix(said.Code, s) })
		if !isAway {
			return err
		}
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &connect), errors.As(err, &network), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), pgconn.SafeToRetry(err):
	default:
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

func (c conn) Query(ctx context.Context, text string, args ...any) (relational.Rows, error) {
	r, err := c.executor.Query(ctx, c.b.translate(text), args...)
	return rows{r}, available(err)
}

// maxBatch limits the statements that are sent together.
const maxBatch = 500

// Batch sends many statements before it waits for their results.
func (c conn) Batch(ctx context.Context, all []relational.Statement) error {
	for part := range slices.Chunk(all, maxBatch) {
		var batch pgx.Batch
		for _, s := range part {
			q := batch.Queue(c.b.translate(s.Text), s.Args...)
			switch {
			case s.Changed != nil:
				q.Exec(func(tag pgconn.CommandTag) error {
					*s.Changed = tag.RowsAffected()
					return nil
				})
			case s.Number != nil:
				q.QueryRow(func(r pgx.Row) error {
					if err := r.Scan(s.Number); !errors.Is(err, pgx.ErrNoRows) {
						return err
					}
					return nil
				})
			}
		}
		if err := c.SendBatch(ctx, &batch).Close(); err != nil {
			return available(err)
		}
	}
	return nil
}

// backend is a relational.Backend.
type backend struct {
	pool    *pgxpool.Pool
	now     func() time.Time
	vectors vectorKind

	// ownClock means that leases hold by the clock of the server. ahead is how far it is ahead of
	// this process, in nanoseconds, as Clock last found it.
	ownClock bool
	ahead    atomic.Int64

	translated sync.Map // the statements of package relational in the dialect of PostgreSQL
}

var _ relational.Backend = (*backend)(nil)

// translate returns a statement of package relational in the dialect of PostgreSQL.
func (b *backend) translate(text string) string {
	if known, ok := b.translated.Load(text); ok {
		return known.(string)
	}
	out := b.inDialect(text)
	b.translated.Store(text, out)
	return out
}

// inDialect is translate for a text that is made for one call.
func (b *backend) inDialect(text string) string {
	text = strings.NewReplacer("USER", "userid", "ENABLED", "enabled", "VECTOR", b.vectors.read, "WORDROW", "n",
		"AMONG", "= any(?)", "KEYSHARE", "for key share",
		"EACHOF", "cross join lateral", "FIRSTROWS", "first join journals j on j.n = first.n").Replace(text)
	var out strings.Builder
	for i, part := range strings.Split(text, "?") {
		if i > 0 {
			out.WriteString("$" + strconv.Itoa(i))
		}
		out.WriteString(part)
	}
	return out.String()
}

func (b *backend) Read() relational.Conn  { return conn{b.pool, b} }
func (b *backend) Write() relational.Conn { return b.Read() }
func (b *backend) Now() time.Time         { return b.now() }
func (b *backend) Fold(text string) any   { return digest(text) }
func (b *backend) Numbers(n []int64) any  { return n }

func (b *backend) Ahead() time.Duration { return time.Duration(b.ahead.Load()) }

// Clock returns the time of the server's clock, so that leases hold although the clocks of the
// machines differ.
func (b *backend) Clock(ctx context.Context, c relational.Conn, now time.Time) (time.Time, error) {
	if !b.ownClock {
		return now, nil
	}
	const micros = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint"
	times, err := relational.List(ctx, c, func(r relational.Row) (n int64, err error) {
		err = r.Scan(&n)
		return n, err
	}, micros)
	if err != nil {
		return now, err
	}
	server := time.UnixMicro(times[0]).UTC()
	b.ahead.Store(int64(server.Sub(now)))
	return server, nil
}

// Plain returns a text that PostgreSQL accepts: invalid bytes are replaced, as in encoding/json.
func (b *backend) Plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// Change runs fn in a transaction. A lock on the item makes other processes wait, too.
func (b *backend) Change(ctx context.Context, item relational.Item, fn func(tx relational.Conn) error) error {
	return available(pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		s := item.Scope
		lock := fmt.Sprintf("%s %q %q %q %q", item.Kind, s.Tenant, s.User, s.Thread, item.ID)
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended($1, 0))", lock); err != nil {
			return err
		}
		return fn(conn{tx, b})
	}))
}

func (b *backend) CheckVector(v store.Vector) error { return b.vectors.check(v) }

func (b *backend) VectorColumns() (columns, values string) {
	return "model, dimensions, vector", "?, ?, ?::" + b.vectors.param + "::" + b.vectors.column
}

func (b *backend) VectorArgs(v store.Vector) []any {
	if v.Model == "" {
		return []any{nil, nil, nil}
	}
	return []any{v.Model, len(v.Values), b.vectors.keep(v)}
}

func (b *backend) Vector(model string, data []byte) (store.Vector, error) {
	return b.vectors.vector(model, data)
}
