package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

const threadColumns = "id, title, meta, messages, created, updated"

func scanThread(r pgx.Rows) (t store.Thread, err error) {
	var meta *string
	var created, updated int64
	err = r.Scan(&t.ID, &t.Title, &meta, &t.Messages, &created, &updated)
	t.Meta, t.Created, t.Updated = raw(meta), moment(created), moment(updated)
	return t, err
}

const ofThread = " from threads where tenant = $1 and userid = $2 and id = $3"

// threadScope checks a scope whose Thread is not used: threads are identified by their IDs.
func threadScope(s store.Scope, id string) error {
	if s.Thread != "" {
		return errors.New("scope: a thread is named by its ID; leave Scope.Thread empty")
	}
	return valid(s, id)
}

// PutThread creates a thread, or changes the title and meta of an existing one.
func (db *DB) PutThread(ctx context.Context, s store.Scope, t store.Thread) (store.Thread, error) {
	if err := threadScope(s, t.ID); err != nil {
		return t, err
	}
	meta, err := jsonText("meta", t.Meta)
	if err != nil {
		return t, err
	}
	now := stamp(db.now())
	if t.Created.IsZero() {
		t.Created = moment(now)
	}
	return one(ctx, db.pool, t.ID, scanThread, `insert into threads (tenant, userid, id, title, meta, created, updated) values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant, userid, id) do update set title = excluded.title, meta = excluded.meta, updated = excluded.updated returning `+threadColumns,
		s.Tenant, s.User, t.ID, plain(t.Title), meta, stamp(t.Created), now)
}

// Thread returns a thread without its messages.
func (db *DB) Thread(ctx context.Context, s store.Scope, id string) (store.Thread, error) {
	if err := threadScope(s, id); err != nil {
		return store.Thread{}, err
	}
	return one(ctx, db.pool, "thread "+id, scanThread, "select "+threadColumns+ofThread, s.Tenant, s.User, id)
}

// Threads lists threads by ID.
func (db *DB) Threads(ctx context.Context, s store.Scope, p store.Page) ([]store.Thread, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.pool, scanThread, "select "+threadColumns+" from threads where tenant = $1 and userid = $2 and id > $3 order by id limit $4", s.Tenant, s.User, plain(p.After), p.Size())
}

// DeleteThread deletes a thread with its messages.
func (db *DB) DeleteThread(ctx context.Context, s store.Scope, id string) error {
	if err := threadScope(s, id); err != nil {
		return err
	}
	return db.remove(ctx, "thread "+id, "delete"+ofThread, s.Tenant, s.User, id)
}

// AppendMessages adds messages to a thread that has have messages.
func (db *DB) AppendMessages(ctx context.Context, s store.Scope, id string, have int, msgs ...llm.Message) error {
	if err := threadScope(s, id); err != nil {
		return err
	}
	bodies := make([]string, len(msgs))
	for i := range msgs {
		b, err := json.Marshal(msgs[i])
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		bodies[i] = string(b)
	}
	now := stamp(db.now())
	return db.change(ctx, lock("thread", s, id), func(tx pgx.Tx) error {
		t, err := one(ctx, tx, "thread "+id, scanThread, "select "+threadColumns+ofThread, s.Tenant, s.User, id)
		if err != nil {
			return err
		}
		if t.Messages != have {
			return fmt.Errorf("thread %s has %d messages, not %d: %w", id, t.Messages, have, store.ErrConflict)
		}
		var found []int64
		var said []string
		scan := func(r pgx.Rows) (n int64, err error) {
			var seq int
			err = r.Scan(&n, &seq)
			m := msgs[seq-have]
			if text := m.Text(); text != "" && (m.Role == llm.RoleUser || m.Role == llm.RoleAssistant) {
				found, said = append(found, n), append(said, text)
			}
			return n, err
		}
		if _, err := list(ctx, tx, scan, `insert into messages (tenant, userid, thread, seq, body, time) select $1, $2, $3, $4 + i - 1, body, $5
			from unnest($6::text[]) with ordinality as x (body, i) returning n, seq`, s.Tenant, s.User, id, have, now, bodies); err != nil {
			return err
		}
		in := s
		in.Thread = id
		if err := putWords(ctx, tx, messages, in, found, said); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "update threads set messages = $4, updated = $5 where tenant = $1 and userid = $2 and id = $3", s.Tenant, s.User, id, have+len(msgs), now)
		return err
	})
}

func scanMessage(r pgx.Rows) (m store.Message, err error) {
	_, m, err = scanFoundMessage(r)
	return m, err
}

func scanFoundMessage(r pgx.Rows) (n int64, m store.Message, err error) {
	var body string
	var at int64
	if err = r.Scan(&n, &m.Thread, &m.Seq, &body, &at); err != nil {
		return n, m, err
	}
	m.Time = moment(at)
	if err = json.Unmarshal([]byte(body), &m.Message); err != nil {
		err = fmt.Errorf("thread %s, message %d: %w", m.Thread, m.Seq, err)
	}
	return n, m, err
}

const messageColumns = "n, thread, seq, body, time"

// Messages returns messages of a thread, in order.
func (db *DB) Messages(ctx context.Context, s store.Scope, id string, from, limit int) ([]store.Message, error) {
	if _, err := db.Thread(ctx, s, id); err != nil {
		return nil, err
	}
	return list(ctx, db.pool, scanMessage, "select "+messageColumns+" from messages where tenant = $1 and userid = $2 and thread = $3 and seq >= $4 order by seq limit $5",
		s.Tenant, s.User, id, from, rowsOf(limit))
}

var messages = searched{table: "messages", id: "t.thread || ' ' || to_char(t.seq, 'FM00000000')"}

// SearchMessages finds messages by their words.
func (db *DB) SearchMessages(ctx context.Context, s store.Scope, q store.Query) ([]store.MessageHit, error) {
	q.Vector, q.Shared = store.Vector{}, false
	found, err := db.find(ctx, messages, s, q)
	return load(ctx, db, s, q, found, err, func(r pgx.Rows) (int64, store.MessageHit, error) {
		n, m, err := scanFoundMessage(r)
		return n, store.MessageHit{Message: m}, err
	}, func(h store.MessageHit, score float64) store.MessageHit {
		h.Score = score
		return h
	}, messages.in("select "+messageColumns+" from messages t where n = any($6) and WHOSE"))
}
