package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/words"
)

// searched describes a kind of item that can be searched.
type searched struct {
	table, words string
	id           string // an expression for the ID of a row of the table t; it orders equal scores
	from         string // tables joined for id; may be empty
	also         string // an additional condition; may be empty
}

// inScope is the condition for the rows that a search sees. The second half is for shared
// documents. The list of users exists for the index.
const inScope = `t.tenant = ? and t.user in (?, ?) and (t.user = ? and (? = '' or t.thread = ?) or ? and t.user = '' and t.thread = '')`

// seen returns the arguments of inScope.
func seen(s store.Scope, shared bool) []any {
	also := s.User
	if shared {
		also = ""
	}
	return []any{s.Tenant, s.User, also, s.User, s.Thread, s.Thread, shared}
}

// in replaces the placeholders of a query.
func (k searched) in(query string) string {
	return strings.NewReplacer("WHOSE", inScope, "ID", k.id, "WORDS", k.words, "TABLE", k.table, "FROM", k.from, "ALSO", k.also).Replace(query)
}

// find returns the IDs of the rows that a query finds in a scope, with their scores, the best
// first.
func (db *DB) find(ctx context.Context, k searched, s store.Scope, q store.Query) ([]store.Ranked, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := q.Vector.Check(); err != nil {
		return nil, err
	}
	// an item with a middle rank in both rankings may be first after fusion
	deep := max(50, 4*q.Size())
	var rankings [][]string
	rank := func(found []near, err error) error {
		if err != nil {
			return err
		}
		ids, err := db.named(ctx, k, found)
		rankings = append(rankings, ids)
		return err
	}
	if terms := words.Terms(q.Text); len(terms) > 0 {
		if err := rank(db.withWords(ctx, k, s, q, terms, deep)); err != nil {
			return nil, err
		}
	}
	if v := q.Vector; v.Model != "" {
		if err := rank(list(ctx, db.read, scanNear, k.in(`select t.n, vec_distance_cosine(t.vector, ?) from TABLE t
			where WHOSE and t.model = ? and length(t.vector) = ? ALSO order by 2, 1 limit ?`), append(append([]any{blob(v)}, seen(s, q.Shared)...), v.Model, 4*len(v.Values), deep)...)); err != nil {
			return nil, err
		}
	}
	fused := store.Fuse(rankings...)
	return fused[:min(len(fused), q.Size())], nil
}

// named returns the IDs and numbers of rows in the order of their distances; equal distances are in
// the order of their IDs. IDs are read only for the few rows found, because reading them costs more
// than scoring.
func (db *DB) named(ctx context.Context, k searched, found []near) ([]string, error) {
	numbers := make([]int64, len(found))
	distance := map[int64]float64{}
	for i, x := range found {
		numbers[i], distance[x.n] = x.n, x.distance
	}
	b, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	type name struct {
		id       string
		distance float64
	}
	all, err := list(ctx, db.read, func(r *sql.Rows) (v name, err error) {
		var n int64
		err = r.Scan(&n, &v.id)
		v.distance = distance[n]
		return v, err
	}, k.in("select t.n, ID || ' ' || t.n from TABLE t FROM where t.n in (select value from json_each(?))"), string(b))
	slices.SortFunc(all, func(a, b name) int { return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.id, b.id)) })
	ids := make([]string, len(all))
	for i, v := range all {
		ids[i] = v.id
	}
	return ids, err
}

// blob returns a vector in the form that SQLite's functions read.
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

// null returns a model's name for the table, or nil if it is empty.
func null(model string) any {
	if model == "" {
		return nil
	}
	return model
}

// load reads the found rows in the order of the ranking. read gets a row's number and its score.
func load[T any](found []store.Ranked, err error, read func(n, score any) (T, error)) ([]T, error) {
	out := make([]T, 0, len(found))
	for _, r := range found {
		n, err := strconv.ParseInt(r.ID[strings.LastIndexByte(r.ID, ' ')+1:], 10, 64)
		if err != nil {
			return nil, err
		}
		v, err := read(n, r.Score)
		if errors.Is(err, store.ErrNotFound) {
			continue // deleted since it was found
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, err
}
