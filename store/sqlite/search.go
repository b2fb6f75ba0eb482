package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/words"
)

// match is the query that finds what has any of the terms; "" when there is none. Each is a phrase, and no word of the query language.
func match(terms []string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = `"` + t + `"`
	}
	return strings.Join(quoted, " OR ")
}

// searched is a kind of thing that can be found.
type searched struct {
	table, words string
	id           string // an expression: what names a row of the table t, and decides between equal ones
	from         string // joined to it, for id; may be ""
	also         string // a condition; may be ""
}

// inScope holds of the rows that a search sees. The second half is for what is shared, and the list of users is there for the index.
const inScope = `t.tenant = ? and t.user in (?, ?) and (t.user = ? and (? = '' or t.thread = ?) or ? and t.user = '' and t.thread = '')`

// seen are the arguments of inScope.
func seen(s store.Scope, shared bool) []any {
	also := s.User
	if shared {
		also = ""
	}
	return []any{s.Tenant, s.User, also, s.User, s.Thread, s.Thread, shared}
}

// in fills the parts of a query in.
func (k searched) in(query string) string {
	return strings.NewReplacer("WHOSE", inScope, "ID", k.id, "WORDS", k.words, "TABLE", k.table, "FROM", k.from, "ALSO", k.also).Replace(query)
}

// best is the query for the IDs, and the numbers, of the rows that inner finds with their scores. Only those few are given names, which costs more than
// a score.
func (k searched) best(inner string) string {
	return k.in("select ID || ' ' || t.n from (" + inner + ") f join TABLE t on t.n = f.n FROM order by f.score, 1")
}

// find returns the IDs of what a query finds in a scope, the best first, with their scores.
func (db *DB) find(ctx context.Context, k searched, s store.Scope, q store.Query) ([]store.Ranked, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := q.Vector.Check(); err != nil {
		return nil, err
	}
	whose := seen(s, q.Shared)
	deep := max(50, 4*q.Size()) // what is a little down in both rankings may be first in the end
	var rankings [][]string
	if match := match(words.Terms(q.Text)); match != "" {
		ids, err := list(ctx, db.read, text, k.best(`select t.n as n, bm25(WORDS) as score from WORDS w join TABLE t on t.n = w.rowid
			where WORDS match ? and WHOSE ALSO order by 2, 1 limit ?`), append(append([]any{match}, whose...), deep)...)
		if err != nil {
			return nil, err
		}
		rankings = append(rankings, ids)
	}
	if v := q.Vector; v.Model != "" {
		ids, err := list(ctx, db.read, text, k.best(`select t.n as n, vec_distance_cosine(t.vector, ?) as score from TABLE t
			where WHOSE and t.model = ? and length(t.vector) = ? ALSO order by 2, 1 limit ?`), append(append([]any{blob(v)}, whose...), v.Model, 4*len(v.Values), deep)...)
		if err != nil {
			return nil, err
		}
		rankings = append(rankings, ids)
	}
	fused := store.Fuse(rankings...)
	return fused[:min(len(fused), q.Size())], nil
}

func text(r *sql.Rows) (s string, err error) {
	err = r.Scan(&s)
	return s, err
}

// blob is a vector as SQLite's functions read it.
func blob(v store.Vector) []byte {
	if v.Model == "" {
		return nil
	}
	b := make([]byte, 0, 4*len(v.Values))
	for _, x := range v.Values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func vector(model sql.NullString, b []byte) store.Vector {
	if !model.Valid {
		return store.Vector{}
	}
	v := store.Vector{Model: model.String, Values: make([]float32, len(b)/4)}
	for i := range v.Values {
		v.Values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// null is a model's name for the table.
func null(model string) any {
	if model == "" {
		return nil
	}
	return model
}

// load reads what was found, in the order of the ranking. read is given a row's number and its score.
func load[T any](found []store.Ranked, err error, read func(n, score any) (T, error)) ([]T, error) {
	out := make([]T, 0, len(found))
	for _, r := range found {
		n, err := strconv.ParseInt(r.ID[strings.LastIndexByte(r.ID, ' ')+1:], 10, 64)
		if err != nil {
			return nil, err
		}
		v, err := read(n, r.Score)
		if errors.Is(err, store.ErrNotFound) {
			continue // gone since it was found
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, err
}
