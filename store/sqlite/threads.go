package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/words"
)

const threadColumns = "id, title, meta, messages, created, updated"

func scanThread(r *sql.Rows) (t store.Thread, err error) {
	var meta sql.NullString
	var created, updated int64
	err = r.Scan(&t.ID, &t.Title, &meta, &t.Messages, &created, &updated)
	t.Meta, t.Created, t.Updated = raw(meta), moment(created), moment(updated)
	return t, err
}

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
	err = db.change(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `insert into threads (tenant, user, id, title, meta, created, updated) values (?, ?, ?, ?, ?, ?, ?)
			on conflict do update set title = excluded.title, meta = excluded.meta, updated = excluded.updated`, s.Tenant, s.User, t.ID, t.Title, meta, stamp(t.Created), now); err != nil {
			return err
		}
		t, err = one(ctx, tx, t.ID, scanThread, "select "+threadColumns+" from threads where tenant = ? and user = ? and id = ?", s.Tenant, s.User, t.ID)
		return err
	})
	return t, err
}

// Thread returns a thread without its messages.
func (db *DB) Thread(ctx context.Context, s store.Scope, id string) (store.Thread, error) {
	if err := threadScope(s, id); err != nil {
		return store.Thread{}, err
	}
	return one(ctx, db.read, "thread "+id, scanThread, "select "+threadColumns+" from threads where tenant = ? and user = ? and id = ?", s.Tenant, s.User, id)
}

// Threads lists threads by ID.
func (db *DB) Threads(ctx context.Context, s store.Scope, p store.Page) ([]store.Thread, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return list(ctx, db.read, scanThread, "select "+threadColumns+" from threads where tenant = ? and user = ? and id > ? order by id limit ?", s.Tenant, s.User, p.After, p.Size())
}

// DeleteThread deletes a thread with its messages.
func (db *DB) DeleteThread(ctx context.Context, s store.Scope, id string) error {
	if err := threadScope(s, id); err != nil {
		return err
	}
	res, err := db.write.ExecContext(ctx, "delete from threads where tenant = ? and user = ? and id = ?", s.Tenant, s.User, id)
	return changed(res, err, "thread "+id)
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
	return db.change(ctx, func(tx *sql.Tx) error {
		t, err := one(ctx, tx, "thread "+id, scanThread, "select "+threadColumns+" from threads where tenant = ? and user = ? and id = ?", s.Tenant, s.User, id)
		if err != nil {
			return err
		}
		if t.Messages != have {
			return fmt.Errorf("thread %s has %d messages, not %d: %w", id, t.Messages, have, store.ErrConflict)
		}
		for i, m := range msgs {
			res, err := tx.ExecContext(ctx, "insert into messages (tenant, user, thread, seq, body, time) values (?, ?, ?, ?, ?, ?)", s.Tenant, s.User, id, have+i, bodies[i], now)
			if err != nil {
				return err
			}
			said := m.Text()
			if said == "" || m.Role != llm.RoleUser && m.Role != llm.RoleAssistant {
				continue
			}
			n, err := res.LastInsertId()
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "insert into messages_words (rowid, text) values (?, ?)", n, words.Spaced(said)); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "update threads set messages = ?, updated = ? where tenant = ? and user = ? and id = ?", have+len(msgs), now, s.Tenant, s.User, id)
		return err
	})
}

func scanMessage(r *sql.Rows) (m store.Message, err error) {
	var body string
	var at int64
	if err = r.Scan(&m.Thread, &m.Seq, &body, &at); err != nil {
		return m, err
	}
	m.Time = moment(at)
	if err = json.Unmarshal([]byte(body), &m.Message); err != nil {
		err = fmt.Errorf("thread %s, message %d: %w", m.Thread, m.Seq, err)
	}
	return m, err
}

// Messages returns messages of a thread, in order.
func (db *DB) Messages(ctx context.Context, s store.Scope, id string, from, limit int) ([]store.Message, error) {
	if _, err := db.Thread(ctx, s, id); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = -1
	}
	return list(ctx, db.read, scanMessage, "select thread, seq, body, time from messages where tenant = ? and user = ? and thread = ? and seq >= ? order by seq limit ?",
		s.Tenant, s.User, id, from, limit)
}

// SearchMessages finds messages by their words.
func (db *DB) SearchMessages(ctx context.Context, s store.Scope, q store.Query) ([]store.MessageHit, error) {
	q.Vector, q.Shared = store.Vector{}, false
	found, err := db.find(ctx, searched{table: "messages", words: "messages_words", id: "t.thread || ' ' || printf('%08d', t.seq)"}, s, q)
	return load(found, err, func(n, score any) (store.MessageHit, error) {
		m, err := one(ctx, db.read, "message", scanMessage, "select thread, seq, body, time from messages where n = ? and tenant = ? and user = ?", n, s.Tenant, s.User)
		return store.MessageHit{Message: m, Score: score.(float64)}, err
	})
}
