package relational

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

const (
	threadColumns = "id, title, meta, messages, created, updated"
	ofThread      = " from threads where tenant = ? and USER = ? and id = ?"
)

func scanThread(r Row) (t store.Thread, err error) {
	err = r.Scan(&t.ID, &t.Title, (*jsonField)(&t.Meta), &t.Messages, (*timeField)(&t.Created),
		(*timeField)(&t.Updated))
	t.Version = versionOf(&t)
	return t, err
}

// versionOf returns store.Thread.Version.
func versionOf(t *store.Thread) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s%d:%s%d", len(t.Title), t.Title, len(t.Meta), t.Meta, t.Messages)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// PutThread creates a thread, or changes the title and meta of an existing one.
func (db *DB) PutThread(ctx context.Context, s store.Scope, t store.Thread) (store.Thread, error) {
	if err := threadScope(s, t.ID); err != nil {
		return t, err
	}
	meta, err := db.jsonText("meta", t.Meta)
	if err != nil {
		return t, err
	}
	now := stamp(db.backend.Now())
	if t.Version != "" {
		return db.replaceThread(ctx, s, t, meta, now)
	}
	if t.Created.IsZero() {
		t.Created = moment(now)
	}
	return one(ctx, db.backend.Write(), t.ID, scanThread,
		`insert into threads (tenant, USER, id, title, meta, created, updated) values (?, ?, ?, ?, ?, ?, ?)
		on conflict (tenant, USER, id) do update
		set title = excluded.title, meta = excluded.meta, updated = excluded.updated returning `+threadColumns,
		s.Tenant, s.User, t.ID, db.backend.Plain(t.Title), meta, stamp(t.Created), now)
}

// replaceThread changes the title and meta of a thread that has the version of t.
func (db *DB) replaceThread(ctx context.Context, s store.Scope, t store.Thread, meta any, now int64) (
	changed store.Thread, err error) {
	err = db.backend.Change(ctx, Item{"thread", s, t.ID}, func(tx Conn) error {
		was, err := one(ctx, tx, "thread "+t.ID, scanThread, "select "+threadColumns+ofThread, s.Tenant, s.User, t.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("thread %s does not exist any more: %w", t.ID, store.ErrConflict)
		case err != nil:
			return err
		case was.Version != t.Version:
			return fmt.Errorf("thread %s has changed since it was read: %w", t.ID, store.ErrConflict)
		}

		changed, err = one(ctx, tx, "thread "+t.ID, scanThread,
			"update threads set title = ?, meta = ?, updated = ? where tenant = ? and USER = ? and id = ? returning "+threadColumns,
			db.backend.Plain(t.Title), meta, now, s.Tenant, s.User, t.ID)
		return err
	})
	return changed, err
}

// Thread returns a thread without its messages.
func (db *DB) Thread(ctx context.Context, s store.Scope, id string) (store.Thread, error) {
	if err := threadScope(s, id); err != nil {
		return store.Thread{}, err
	}
	return one(ctx, db.backend.Read(), "thread "+id, scanThread, "select "+threadColumns+ofThread, s.Tenant, s.User, id)
}

// Threads lists threads by ID.
func (db *DB) Threads(ctx context.Context, s store.Scope, p store.Page) ([]store.Thread, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return List(ctx, db.backend.Read(), scanThread, "select "+threadColumns+` from threads
		where tenant = ? and USER = ? and id > ? order by id limit ?`,
		s.Tenant, s.User, db.backend.Plain(p.After), p.Size())
}

// DeleteThread deletes a thread with its messages and its summary.
func (db *DB) DeleteThread(ctx context.Context, s store.Scope, id string) error {
	if err := threadScope(s, id); err != nil {
		return err
	}
	return db.backend.Change(ctx, Item{"thread", s, id}, func(tx Conn) error {
		_, err := tx.Exec(ctx, "delete from memories where tenant = ? and USER = ? and folded = ?",
			s.Tenant, s.User, db.backend.Fold(summaryOf(id)))
		if err != nil {
			return err
		}
		return remove(ctx, tx, "thread "+id, "delete"+ofThread, s.Tenant, s.User, id)
	})
}

// AppendMessages adds messages to a thread that has have messages.
func (db *DB) AppendMessages(ctx context.Context, s store.Scope, id string, have int, msgs ...llm.Message) error {
	if err := threadScope(s, id); err != nil {
		return err
	}
	bodies, err := encoded("message", msgs)
	if err != nil {
		return err
	}
	now := stamp(db.backend.Now())
	return db.backend.Change(ctx, Item{"thread", s, id}, func(tx Conn) error {
		t, err := one(ctx, tx, "thread "+id, scanThread, "select "+threadColumns+ofThread, s.Tenant, s.User, id)
		if err != nil {
			return err
		}
		if t.Messages != have {
			return fmt.Errorf("thread %s has %d messages, not %d: %w", id, t.Messages, have, store.ErrConflict)
		}

		numbers := make([]int64, len(msgs))
		batch := make([]Statement, len(msgs))
		for i := range msgs {
			batch[i] = Statement{
				Text: `insert into messages (tenant, USER, thread, seq, body, time)
					values (?, ?, ?, ?, ?, ?) returning n`,
				Args:   []any{s.Tenant, s.User, id, have + i, bodies[i], now},
				Number: &numbers[i],
			}
		}
		if err := tx.Batch(ctx, batch); err != nil {
			return err
		}
		if err := db.putMessageWords(ctx, tx, s, id, numbers, msgs); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "update threads set messages = ?, updated = ? where tenant = ? and USER = ? and id = ?",
			have+len(msgs), now, s.Tenant, s.User, id)
		return err
	})
}

// putMessageWords stores the words by which messages are found. Only what the user and the model
// said is found; numbers are the rows of the messages.
func (db *DB) putMessageWords(ctx context.Context, tx Conn, s store.Scope, thread string, numbers []int64,
	msgs []llm.Message) error {
	var rows []int64
	var texts []string
	for i, m := range msgs {
		said := m.Role == llm.RoleUser || m.Role == llm.RoleAssistant
		if text := m.Text(); said && text != "" {
			rows = append(rows, numbers[i])
			texts = append(texts, text)
		}
	}
	s.Thread = thread
	return db.backend.PutWords(ctx, tx, messages, s, rows, texts)
}

const messageColumns = "n, thread, seq, body, time"

func scanMessage(r Row) (m store.Message, err error) {
	_, m, err = scanFoundMessage(r)
	return m, err
}

func scanFoundMessage(r Row) (n int64, m store.Message, err error) {
	var body string
	if err = r.Scan(&n, &m.Thread, &m.Seq, &body, (*timeField)(&m.Time)); err != nil {
		return n, m, err
	}
	if err = json.Unmarshal([]byte(body), &m.Message); err != nil {
		err = fmt.Errorf("thread %s, message %d: %w", m.Thread, m.Seq, err)
	}
	return n, m, err
}

// Messages returns messages of a thread, in order.
func (db *DB) Messages(ctx context.Context, s store.Scope, id string, from, limit int) ([]store.Message, error) {
	if _, err := db.Thread(ctx, s, id); err != nil {
		return nil, err
	}
	return List(ctx, db.backend.Read(), scanMessage, "select "+messageColumns+` from messages
		where tenant = ? and USER = ? and thread = ? and seq >= ? order by seq limit ?`,
		s.Tenant, s.User, id, from, rowsOf(limit))
}

var messages = Kind{Table: "messages", name: "t.thread", place: "t.seq"}

// SearchMessages finds messages by their words.
func (db *DB) SearchMessages(ctx context.Context, s store.Scope, q store.Query) ([]store.MessageHit, error) {
	q.Vector, q.Shared = store.Vector{}, false
	return search(ctx, db, messages, s, q, func(r Row) (int64, store.MessageHit, error) {
		n, m, err := scanFoundMessage(r)
		return n, store.MessageHit{Message: m}, err
	}, func(h *store.MessageHit) *float64 { return &h.Score }, "select "+messageColumns+" from messages t")
}
