package relational

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/store"
)

const (
	memoryColumns = "t.n, t.body, t.source, t.created, t.model, VECTOR"
	ofMemory      = " where n = ? and tenant = ? and USER = ? and thread = ?"
)

func (db *DB) scanFoundMemory(r Row) (n int64, m store.Memory, err error) {
	var model *string
	var vector, source []byte
	if err = r.Scan(&n, &m.Text, (*jsonField)(&source), (*timeField)(&m.Created), &model, &vector); err != nil {
		return n, m, err
	}
	m.ID = memoryID(n)
	if json.Unmarshal(source, &m.Source) != nil {
		m.Source = store.Source{By: string(source)} // of an earlier version
	}
	m.Vector, err = db.vector(model, vector)
	return n, m, err
}

// vector returns the vector of a row. A nil model means that the row has none.
func (db *DB) vector(model *string, b []byte) (store.Vector, error) {
	if model == nil {
		return store.Vector{}, nil
	}
	return db.backend.Vector(*model, b)
}

func (db *DB) scanMemory(r Row) (store.Memory, error) {
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

// summaryOf returns what a scope has once for a conversation. No text of a fact is equal to it.
func summaryOf(thread string) string { return "\n" + thread }

// AddMemory stores a memory unless the scope contains it already.
func (db *DB) AddMemory(ctx context.Context, s store.Scope, m store.Memory) (store.Memory, bool, error) {
	if err := valid(s); err != nil {
		return m, false, err
	}
	if strings.TrimSpace(m.Text) == "" {
		return m, false, errors.New("the memory is empty")
	}
	if err := db.backend.CheckVector(m.Vector); err != nil {
		return m, false, err
	}
	if m.Created.IsZero() {
		m.Created = db.backend.Now()
	}
	db.plain(&m.Text, &m.Source.By, &m.Source.Agent, &m.Source.Thread)

	var stored store.Memory
	added := false
	err := db.backend.Change(ctx, Item{Kind: "memory", Scope: s}, func(tx Conn) error {
		existing, err := db.sameMemory(ctx, tx, s, m)
		switch {
		case err == nil && m.ID == "" && m.Source.Thread != "":
			// A conversation has one summary, which the new one replaces.
			err := remove(ctx, tx, "memory "+existing.ID, "delete from memories"+ofMemory,
				memoryNumber(existing.ID), s.Tenant, s.User, s.Thread)
			if err != nil {
				return err
			}
		case err == nil:
			stored, err = db.confirmMemory(ctx, tx, s, existing, m)
			return err
		case m.ID != "" || !errors.Is(err, store.ErrNotFound):
			return err
		default:
			added = true
		}
		stored, err = db.insertMemory(ctx, tx, s, m)
		return err
	})
	if err != nil {
		return m, false, err
	}
	return stored, added, nil
}

// identity returns the text that a scope contains once: the words of a fact with the agent that it
// belongs to, or the conversation that a memory summarizes.
func identity(m store.Memory) string {
	if m.Source.Thread != "" {
		return summaryOf(m.Source.Thread)
	}

	fields := strings.Fields(strings.ToLower(m.Text))
	for i, w := range fields {
		fields[i] = strings.Trim(w, `.,;:!?"'()`)
	}
	words := strings.Join(fields, " ")
	if m.Source.Agent != "" {
		return m.Source.Agent + "\n" + words
	}
	return words
}

// sameMemory returns the memory with the ID of m or, without an ID, the one with its identity.
func (db *DB) sameMemory(ctx context.Context, tx Conn, s store.Scope, m store.Memory) (store.Memory, error) {
	where := "t.folded = ?"
	key := db.backend.Fold(identity(m))
	if m.ID != "" {
		where = "t.n = ?"
		key = memoryNumber(m.ID)
	}
	return one(ctx, tx, "memory", db.scanMemory, "select "+memoryColumns+
		" from memories t where t.tenant = ? and t.USER = ? and t.thread = ? and "+where,
		s.Tenant, s.User, s.Thread, key)
}

// confirmMemory updates an existing memory by the same one, m. A better source replaces the source,
// and a confirmed one makes the memory as new as m.
func (db *DB) confirmMemory(ctx context.Context, tx Conn, s store.Scope,
	existing, m store.Memory) (store.Memory, error) {
	confirms := existing.Source.Unconfirmed && !m.Source.Unconfirmed
	makesPermanent := !existing.Source.Always && m.Source.Always
	if confirms || makesPermanent {
		label := existing.Source.Label // a person confirms what it says, and not who wrote it
		existing.Source = m.Source
		existing.Source.Label = label
	}
	if m.Created.After(existing.Created) && !m.Source.Unconfirmed {
		existing.Created = moment(stamp(m.Created))
	}

	source, _ := json.Marshal(existing.Source) // it has a JSON form
	_, err := tx.Exec(ctx, "update memories set source = ?, created = ?"+ofMemory,
		string(source), stamp(existing.Created), memoryNumber(existing.ID), s.Tenant, s.User, s.Thread)
	return existing, err
}

// insertMemory stores a new memory with the words by which it is found.
func (db *DB) insertMemory(ctx context.Context, tx Conn, s store.Scope, m store.Memory) (store.Memory, error) {
	source, _ := json.Marshal(m.Source) // it has a JSON form
	columns, values := db.backend.VectorColumns()
	args := []any{s.Tenant, s.User, s.Thread, m.Text, db.backend.Fold(identity(m)), string(source), stamp(m.Created)}
	n, err := number(ctx, tx, "memory",
		"insert into memories (tenant, USER, thread, body, folded, source, created, "+columns+`)
			values (?, ?, ?, ?, ?, ?, ?, `+values+") returning n",
		append(args, db.backend.VectorArgs(m.Vector)...)...)
	if err != nil {
		return m, err
	}

	m.ID = memoryID(n)
	m.Created = moment(stamp(m.Created))
	return m, db.backend.PutWords(ctx, tx, memories, s, []int64{n}, []string{m.Text})
}

// Memory returns a memory.
func (db *DB) Memory(ctx context.Context, s store.Scope, id string) (store.Memory, error) {
	if err := valid(s, id); err != nil {
		return store.Memory{}, err
	}
	return one(ctx, db.backend.Read(), "memory "+id, db.scanMemory, "select "+memoryColumns+" from memories t"+ofMemory,
		memoryNumber(id), s.Tenant, s.User, s.Thread)
}

// Memories lists memories in the order of creation.
func (db *DB) Memories(ctx context.Context, s store.Scope, p store.Page) ([]store.Memory, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	after := int64(0)
	if p.After != "" {
		after = memoryNumber(p.After)
		if after < 0 {
			return nil, fmt.Errorf("page: %q is not the ID of a memory", p.After)
		}
	}
	return List(ctx, db.backend.Read(), db.scanMemory, "select "+memoryColumns+` from memories t
		where tenant = ? and USER = ? and thread = ? and n > ? order by n limit ?`,
		s.Tenant, s.User, s.Thread, after, p.Size())
}

// ForgetMemory deletes a memory.
func (db *DB) ForgetMemory(ctx context.Context, s store.Scope, id string) error {
	if err := valid(s, id); err != nil {
		return err
	}
	return remove(ctx, db.backend.Write(), "memory "+id, "delete from memories"+ofMemory,
		memoryNumber(id), s.Tenant, s.User, s.Thread)
}

var memories = Kind{Table: "memories", name: "''", place: "t.n"}

// SearchMemories finds memories, the best first.
func (db *DB) SearchMemories(ctx context.Context, s store.Scope, q store.Query) ([]store.MemoryHit, error) {
	q.Shared = false
	return search(ctx, db, memories, s, q, func(r Row) (int64, store.MemoryHit, error) {
		n, m, err := db.scanFoundMemory(r)
		return n, store.MemoryHit{Memory: m}, err
	}, func(h *store.MemoryHit) *float64 { return &h.Score }, "select "+memoryColumns+" from memories t")
}
