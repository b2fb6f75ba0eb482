package relational

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/words"
)

// Kind describes the rows of a table that can be searched.
type Kind struct {
	Table string // its words are in a table with this name as prefix
	Also  string // an additional condition for a row of the table t; may be empty
	// name and place are expressions that order rows of equal scores. from is the clause that joins
	// the tables they need; it may be empty.
	name, place, from string
}

// inScope is the condition for the rows of t that a search sees. The second half is for shared
// documents. The list of users exists for the index.
const inScope = `t.tenant = ? and t.USER in (?, ?) and
	(t.USER = ? and (? = '' or t.thread = ?) or ? and t.USER = '' and t.thread = '')`

// Seen returns the arguments of the word WHOSE in the texts of Kind.In.
func Seen(s store.Scope, shared bool) []any {
	also := s.User
	if shared {
		also = ""
	}
	return []any{s.Tenant, s.User, also, s.User, s.Thread, s.Thread, shared}
}

// In replaces WORDS and TABLE by the tables of k, ALSO by its condition, and WHOSE by the condition
// for the rows of t that a search sees.
func (k Kind) In(text string) string {
	return strings.NewReplacer(
		"WHOSE", inScope,
		"WORDS", k.Table+"_words",
		"TABLE", k.Table,
		"ALSO", k.Also,
	).Replace(text)
}

// Near is a row with its distance; a smaller distance is better.
type Near struct {
	N        int64 // the number of the row
	Distance float64
}

// Nearer orders rows by distance.
func Nearer(a, b Near) int { return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.N, b.N)) }

// ScanNear reads a number and a distance.
func ScanNear(r Row) (x Near, err error) {
	err = r.Scan(&x.N, &x.Distance)
	return x, err
}

// search returns the rows that a query finds in a scope, the best first. The statement text, with
// args, selects the columns that scan reads from the table t, without a condition. score returns
// the field for the score.
func search[T any](ctx context.Context, db *DB, k Kind, s store.Scope, q store.Query,
	scan func(Row) (int64, T, error), score func(*T) *float64, text string, args ...any) ([]T, error) {
	found, err := db.find(ctx, k, s, q)
	if err != nil || len(found) == 0 {
		return []T{}, err
	}

	numbers := make([]int64, len(found))
	for i, f := range found {
		numbers[i] = f.N
	}
	rows := map[int64]T{}
	keep := func(r Row) (int64, error) {
		n, v, err := scan(r)
		rows[n] = v
		return n, err
	}
	args = append(append(args, db.backend.Numbers(numbers)), Seen(s, q.Shared)...)
	if _, err := List(ctx, db.backend.Read(), keep, k.In(text+" where t.n AMONG and WHOSE"), args...); err != nil {
		return nil, err
	}

	out := make([]T, 0, len(found))
	for _, f := range found {
		if v, ok := rows[f.N]; ok { // otherwise it was deleted since it was found
			*score(&v) = f.score
			out = append(out, v)
		}
	}
	return out, nil
}

// hit is a row found by a search.
type hit struct {
	N     int64
	score float64
}

// find returns the rows that a query finds in a scope, the best first.
func (db *DB) find(ctx context.Context, k Kind, s store.Scope, q store.Query) ([]hit, error) {
	if err := cmp.Or(s.Check(), q.Vector.Check()); err != nil {
		return nil, err
	}
	// an item with a middle rank in both rankings may be first after fusion
	deep := max(50, 4*q.Size())
	var lists [][]Near
	if terms := words.Terms(q.Text); len(terms) > 0 {
		found, err := db.backend.WithWords(ctx, k, s, q, terms, deep)
		if err != nil {
			return nil, err
		}
		lists = append(lists, found)
	}
	if q.Vector.Model != "" {
		found, err := db.backend.Nearest(ctx, k, s, q, deep)
		if err != nil {
			return nil, err
		}
		lists = append(lists, found)
	}
	if len(lists) == 0 {
		return nil, nil
	}
	return db.fused(ctx, k, lists, q.Size())
}

// fused combines rankings. IDs, which order equal scores, are read only for the few rows in the
// rankings, because reading them costs more than scoring.
func (db *DB) fused(ctx context.Context, k Kind, lists [][]Near, size int) ([]hit, error) {
	var all []int64
	for _, l := range lists {
		for _, x := range l {
			all = append(all, x.N)
		}
	}
	ids := map[int64]string{}
	numbers := map[string]int64{}
	scan := func(r Row) (n int64, err error) {
		var name string
		var place int64
		err = r.Scan(&n, &name, &place)
		id := fmt.Sprintf("%s %019d %d", name, place, n)
		ids[n] = id
		numbers[id] = n
		return n, err
	}
	text := "select t.n, " + k.name + ", " + k.place + " from " + k.Table + " t" + k.from + " where t.n AMONG"
	if _, err := List(ctx, db.backend.Read(), scan, text, db.backend.Numbers(all)); err != nil {
		return nil, err
	}

	rankings := make([][]string, len(lists))
	for i, l := range lists {
		// deleted since it was found
		l = slices.DeleteFunc(l, func(x Near) bool { return ids[x.N] == "" })
		slices.SortFunc(l, func(a, b Near) int {
			return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(ids[a.N], ids[b.N]))
		})
		for _, x := range l {
			rankings[i] = append(rankings[i], ids[x.N])
		}
	}

	fused := store.Fuse(rankings...)
	out := make([]hit, min(len(fused), size))
	for i := range out {
		out[i] = hit{numbers[fused[i].ID], fused[i].Score}
	}
	return out, nil
}

// Bytes returns the values of a vector as little-endian numbers of 4 bytes, or nil if it has none.
func Bytes(v store.Vector) []byte {
	if v.Model == "" {
		return nil
	}
	b, _ := binary.Append(nil, binary.LittleEndian, v.Values) // numbers have a fixed size
	return b
}

// Values returns the values that Bytes has encoded.
func Values(b []byte) []float32 {
	values := make([]float32, len(b)/4)
	_, _ = binary.Decode(b, binary.LittleEndian, values)
	return values
}
