package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/words"
)

// searched describes a kind of item that can be searched.
type searched struct {
	table string // its words are in a table with this name as prefix
	id    string // an expression for the ID of a row of the table t; it orders equal scores
	from  string // tables joined for id; may be empty
	also  string // an additional condition; may be empty
}

// inScope is the condition for the rows of t that a search sees. The second half is for shared
// documents. The list of users exists for the index.
const inScope = `t.tenant = $1 and t.userid = any($2) and (t.userid = $3 and ($4 = '' or t.thread = $4) or $5 and t.userid = '' and t.thread = '')`

// seen returns the arguments of inScope and the arguments after them, from $6 on.
func seen(s store.Scope, shared bool, more ...any) []any {
	users := []string{s.User}
	if shared {
		users = append(users, "")
	}
	return append([]any{s.Tenant, users, s.User, s.Thread, shared}, more...)
}

// in replaces the placeholders of a query.
func (k searched) in(query string) string {
	return strings.NewReplacer("WHOSE", inScope, "WORDS", k.table+"_words", "TABLE", k.table, "FROM", k.from, "ALSO", k.also, "ID", k.id).Replace(query)
}

// hit is a row found by a search.
type hit struct {
	n     int64
	score float64
}

// find returns the rows that a query finds in a scope, the best first.
func (db *DB) find(ctx context.Context, k searched, s store.Scope, q store.Query) ([]hit, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := q.Vector.Check(); err != nil {
		return nil, err
	}
	// an item with a middle rank in both rankings may be first after fusion
	deep := max(50, 4*q.Size())
	var lists [][]near
	if terms := words.Terms(q.Text); len(terms) > 0 {
		found, err := db.withWords(ctx, k, s, q, terms, deep)
		if err != nil {
			return nil, err
		}
		lists = append(lists, found)
	}
	if q.Vector.Model != "" {
		found, err := db.nearest(ctx, k, s, q, deep)
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
// rankings.
func (db *DB) fused(ctx context.Context, k searched, lists [][]near, size int) ([]hit, error) {
	var all []int64
	for _, l := range lists {
		for _, x := range l {
			all = append(all, x.n)
		}
	}
	names, numbers := map[int64]string{}, map[string]int64{}
	scan := func(r pgx.Rows) (n int64, err error) {
		var name string
		err = r.Scan(&n, &name)
		name = fmt.Sprintf("%s %d", name, n)
		names[n], numbers[name] = name, n
		return n, err
	}
	if _, err := list(ctx, db.pool, scan, k.in("select t.n, ID from TABLE t FROM where t.n = any($1)"), all); err != nil {
		return nil, err
	}
	rankings := make([][]string, len(lists))
	for i, l := range lists {
		// deleted since it was found
		l = slices.DeleteFunc(l, func(x near) bool { return names[x.n] == "" })
		slices.SortFunc(l, func(a, b near) int {
			return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(names[a.n], names[b.n]))
		})
		for _, x := range l {
			rankings[i] = append(rankings[i], names[x.n])
		}
	}
	fused := store.Fuse(rankings...)
	out := make([]hit, min(len(fused), size))
	for i := range out {
		out[i] = hit{numbers[fused[i].ID], fused[i].Score}
	}
	return out, nil
}

// load reads the found rows in the order of the ranking. query gets the arguments of inScope, and
// the numbers of the rows as $6. scan returns the number of each.
func load[T any](ctx context.Context, db *DB, s store.Scope, q store.Query, found []hit, err error, scan func(pgx.Rows) (int64, T, error), hitOf func(T, float64) T, query string) ([]T, error) {
	if err != nil || len(found) == 0 {
		return []T{}, err
	}
	numbers := make([]int64, len(found))
	for i, f := range found {
		numbers[i] = f.n
	}
	rows := map[int64]T{}
	if _, err := list(ctx, db.pool, func(r pgx.Rows) (n int64, err error) {
		n, v, err := scan(r)
		rows[n] = v
		return n, err
	}, query, seen(s, q.Shared, numbers)...); err != nil {
		return nil, err
	}
	out := make([]T, 0, len(found))
	for _, f := range found {
		if v, ok := rows[f.n]; ok { // otherwise it was deleted since it was found
			out = append(out, hitOf(v, f.score))
		}
	}
	return out, nil
}
