package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/words"
)

const memoryColumns = "n, body, source, model, vector, created"

func scanMemory(r *sql.Rows) (m store.Memory, err error) {
	var n, created int64
	var model sql.NullString
	var v []byte
	err = r.Scan(&n, &m.Text, &m.Source, &model, &v, &created)
	m.ID, m.Vector, m.Created = memoryID(n), vector(model, v), moment(created)
	return m, err
}

// memoryID returns the ID of a memory. IDs sort in the order of creation.
func memoryID(n int64) string { return fmt.Sprintf("m%010d", n) }

func memoryNumber(id string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "m"), 10, 64)
	if err != nil || memoryID(n) != id {
		return -1
	}
	return n
}

// AddMemory stores a memory unless the scope contains its text already.
func (db *DB) AddMemory(ctx context.Context, s store.Scope, m store.Memory) (store.Memory, bool, error) {
	if err := valid(s); err != nil {
		return m, false, err
	}
	if strings.TrimSpace(m.Text) == "" {
		return m, false, errors.New("the memory is empty")
	}
	if err := m.Vector.Check(); err != nil {
		return m, false, err
	}
	if m.Created.IsZero() {
		m.Created = db.now()
	}
	added := false
	folded := strings.Join(strings.Fields(strings.ToLower(m.Text)), " ")
	err := db.change(ctx, func(tx *sql.Tx) error {
		old, err := one(ctx, tx, "memory", scanMemory, "select "+memoryColumns+" from memories where tenant = ? and user = ? and thread = ? and folded = ?", s.Tenant, s.User, s.Thread, folded)
		if !errors.Is(err, store.ErrNotFound) {
			m = old
			return err
		}
		var n int64
		if err := tx.QueryRowContext(ctx, "insert into memories (tenant, user, thread, body, folded, source, model, vector, created) values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning n",
			s.Tenant, s.User, s.Thread, m.Text, folded, m.Source, null(m.Vector.Model), blob(m.Vector), stamp(m.Created)).Scan(&n); err != nil {
			return err
		}
		added, m.ID, m.Created = true, memoryID(n), moment(stamp(m.Created))
		_, err = tx.ExecContext(ctx, "insert into memories_words (rowid, text) values (?, ?)", n, words.Spaced(m.Text))
		return err
	})
	return m, added, err
}

// Memory returns a memory.
func (db *DB) Memory(ctx context.Context, s store.Scope, id string) (store.Memory, error) {
	if err := valid(s, id); err != nil {
		return store.Memory{}, err
	}
	return one(ctx, db.read, "memory "+id, scanMemory, "select "+memoryColumns+" from memories where n = ? and tenant = ? and user = ? and thread = ?", memoryNumber(id), s.Tenant, s.User, s.Thread)
}

// Memories lists memories in the order of creation.
func (db *DB) Memories(ctx context.Context, s store.Scope, p store.Page) ([]store.Memory, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	after := int64(0)
	if p.After != "" {
		if after = memoryNumber(p.After); after < 0 {
			return nil, fmt.Errorf("page: %q is not the ID of a memory", p.After)
		}
	}
	return list(ctx, db.read, scanMemory, "select "+memoryColumns+" from memories where tenant = ? and user = ? and thread = ? and n > ? order by n limit ?", s.Tenant, s.User, s.Thread, after, p.Size())
}

// ForgetMemory deletes a memory.
func (db *DB) ForgetMemory(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	res, err := db.write.ExecContext(ctx, "delete from memories where n = ? and tenant = ? and user = ? and thread = ?", memoryNumber(id), s.Tenant, s.User, s.Thread)
	return changed(res, err, "memory "+id)
}

// SearchMemories finds memories, the best first.
func (db *DB) SearchMemories(ctx context.Context, s store.Scope, q store.Query) ([]store.MemoryHit, error) {
	q.Shared = false
	found, err := db.find(ctx, searched{table: "memories", words: "memories_words", id: "printf('%010d', t.n)"}, s, q)
	return load(found, err, func(n, score any) (store.MemoryHit, error) {
		m, err := one(ctx, db.read, "memory", scanMemory, "select "+memoryColumns+" from memories where n = ? and tenant = ? and user = ?", n, s.Tenant, s.User)
		return store.MemoryHit{Memory: m, Score: score.(float64)}, err
	})
}
