package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
)

// memoryColumns returns the columns that scanMemory reads.
func (db *DB) memoryColumns() string {
	return "t.n, t.body, t.source, t.created, t.model, " + db.vectors.read()
}

func (db *DB) scanFoundMemory(r pgx.Rows) (n int64, m store.Memory, err error) {
	var created int64
	v := vectorField{kind: db.vectors}
	if err = r.Scan(append([]any{&n, &m.Text, &m.Source, &created}, v.fields()...)...); err != nil {
		return n, m, err
	}
	m.ID, m.Created = memoryID(n), moment(created)
	m.Vector, err = v.vector()
	return n, m, err
}

func (db *DB) scanMemory(r pgx.Rows) (store.Memory, error) {
	_, m, err := db.scanFoundMemory(r)
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
	if err := db.vectors.check(m.Vector); err != nil {
		return m, false, err
	}
	if m.Created.IsZero() {
		m.Created = db.now()
	}
	added := false
	m.Text, m.Source = plain(m.Text), plain(m.Source)
	same := digest(strings.Join(strings.Fields(strings.ToLower(m.Text)), " "))
	err := db.change(ctx, lock("memory", s, ""), func(tx pgx.Tx) error {
		old, err := one(ctx, tx, "memory", db.scanMemory, "select "+db.memoryColumns()+" from memories t where t.tenant = $1 and t.userid = $2 and t.thread = $3 and t.folded = $4", s.Tenant, s.User, s.Thread, same)
		if !errors.Is(err, store.ErrNotFound) {
			m = old
			return err
		}
		models, sizes, kept := db.vectors.columns([]store.Vector{m.Vector})
		n, err := one(ctx, tx, "memory", value[int64], `insert into memories (tenant, userid, thread, body, folded, source, created, model, dimensions, vector)
			select $1, $2, $3, $4, $5, $6, $7, model, dimensions, vector::`+db.vectors.column()+` from unnest($8::text[], $9::int[], $10::`+db.vectors.param()+`[]) as x (model, dimensions, vector) returning n`,
			s.Tenant, s.User, s.Thread, m.Text, same, m.Source, stamp(m.Created), models, sizes, kept)
		if err != nil {
			return err
		}
		added, m.ID, m.Created = true, memoryID(n), moment(stamp(m.Created))
		return putWords(ctx, tx, memories, s, []int64{n}, []string{m.Text})
	})
	return m, added, err
}

// Memory returns a memory.
func (db *DB) Memory(ctx context.Context, s store.Scope, id string) (store.Memory, error) {
	if err := valid(s, id); err != nil {
		return store.Memory{}, err
	}
	return one(ctx, db.pool, "memory "+id, db.scanMemory, "select "+db.memoryColumns()+" from memories t where t.n = $1 and t.tenant = $2 and t.userid = $3 and t.thread = $4", memoryNumber(id), s.Tenant, s.User, s.Thread)
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
	return list(ctx, db.pool, db.scanMemory, "select "+db.memoryColumns()+" from memories t where t.tenant = $1 and t.userid = $2 and t.thread = $3 and t.n > $4 order by t.n limit $5", s.Tenant, s.User, s.Thread, after, p.Size())
}

// ForgetMemory deletes a memory.
func (db *DB) ForgetMemory(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return db.remove(ctx, "memory "+id, "delete from memories where n = $1 and tenant = $2 and userid = $3 and thread = $4", memoryNumber(id), s.Tenant, s.User, s.Thread)
}

var memories = searched{table: "memories", id: "to_char(t.n, 'FM0000000000000000000')"}

// SearchMemories finds memories, the best first.
func (db *DB) SearchMemories(ctx context.Context, s store.Scope, q store.Query) ([]store.MemoryHit, error) {
	q.Shared = false
	found, err := db.find(ctx, memories, s, q)
	return load(ctx, db, s, q, found, err, func(r pgx.Rows) (int64, store.MemoryHit, error) {
		n, m, err := db.scanFoundMemory(r)
		return n, store.MemoryHit{Memory: m}, err
	}, func(h store.MemoryHit, score float64) store.MemoryHit {
		h.Score = score
		return h
	}, memories.in("select "+db.memoryColumns()+" from memories t where t.n = any($6) and WHOSE"))
}
