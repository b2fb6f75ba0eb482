package data_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // the driver

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/tools/data"
)

// queries is the number of comparisons of each kind.
const queries = 200

// A twin holds the same records for the data tools and for SQLite. Where the two differ by rule,
// the package comment explains the difference. These rules are applied when the records are loaded
// (a text that is written like a number is a number) and in the SQL of the tests.
type twin struct {
	t       *testing.T
	set     *data.Set
	db      *sql.DB
	rnd     *rand.Rand
	records []object
}

// columns have values of one kind each, except mixed.
var columns = []string{"n", "d", "s", "mixed", "rare"}

var (
	someTexts = []string{"a", "A", "b", "ab", "é", "É", "z", "ü", "東京", "東", "😀", "a b", "", "", "007", "n/a", "1,000", "O'Hara", "\n", "2024-05-31", "+1", "ÿ", "\U0010FFFF"}
	someInts  = []string{"0", "-0", "1", "-1", "7", "42", "9007199254740992", "9007199254740993", "-9007199254740993", "900719925474099301", "900719925474099302"}
)

func newTwin(t *testing.T, seed uint64) *twin {
	db, err := sql.Open("sqlite", ":memory:")
	tooltest.Must(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return &twin{t: t, set: data.New(nil), db: db, rnd: rand.New(rand.NewPCG(seed, 6))}
}

func (w *twin) pick(of []string) string { return of[w.rnd.IntN(len(of))] }

// value returns a random value for a column.
func (w *twin) value(column string) any {
	if column == "rare" && w.rnd.IntN(3) > 0 || w.rnd.IntN(8) == 0 {
		return nil
	}
	number := func() json.Number {
		switch w.rnd.IntN(3) {
		case 0:
			return json.Number(w.pick(someInts))
		case 1:
			return json.Number(fmt.Sprint(w.rnd.IntN(20) - 10))
		}
		return json.Number(fmt.Sprint(w.rnd.Int64N(1e16)))
	}
	// at most 15 digits, so that different decimals are different floats
	decimal := func() json.Number {
		return json.Number(fmt.Sprintf("%d.%0*d", w.rnd.IntN(2000)-1000, 1+w.rnd.IntN(4), w.rnd.IntN(10)))
	}
	switch column {
	case "n", "rare":
		return number()
	case "d":
		return decimal()
	case "s":
		return w.pick(someTexts)
	}
	switch w.rnd.IntN(5) {
	case 0:
		return number()
	case 1:
		return decimal()
	case 2:
		return string(number())
	}
	return w.pick(someTexts)
}

// fill creates new records in both.
func (w *twin) fill() {
	w.records = nil
	exec := func(query string, args ...any) {
		_, err := w.db.Exec(query, args...)
		tooltest.Must(w.t, err)
	}
	exec(`drop table if exists r`)
	// The columns have no types, so that each value has its own. mixed_t holds the texts of mixed,
	// as written.
	exec(`create table r (i integer primary key, ` + strings.Join(columns, ", ") + `, mixed_t)`)
	for i := range 1 + w.rnd.IntN(40) {
		r, args := object{"i": json.Number(fmt.Sprint(i))}, []any{i}
		for _, c := range columns {
			r[c] = w.value(c)
			args = append(args, bound(r[c]))
		}
		written, _ := r["mixed"].(string)
		if _, text := r["mixed"].(string); text {
			args = append(args, written)
		} else {
			args = append(args, nil)
		}
		w.records = append(w.records, r)
		exec(`insert into r values (?, ?, ?, ?, ?, ?, ?)`, args...)
	}
}

// bound returns v as a SQLite parameter: a number, or a text that is a valid JSON number, as an
// integer or a float; anything else unchanged.
func bound(v any) any {
	r := ratOf(v)
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		if r == nil {
			return v
		}
	}
	if r.IsInt() && r.Num().IsInt64() {
		return r.Num().Int64()
	}
	f, _ := r.Float64()
	return f
}

// rows queries SQLite and returns the values of each row as text that distinguishes kinds.
func (w *twin) rows(query string, args ...any) [][]any {
	rows, err := w.db.Query(query, args...)
	if err != nil {
		w.t.Fatalf("%s %v: %v", query, args, err)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	var all [][]any
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		tooltest.Must(w.t, rows.Scan(into...))
		all = append(all, row)
	}
	tooltest.Must(w.t, rows.Err())
	return all
}

// ids returns the values of i of an answer's records or of SQLite's rows.
func ids(records []object) (list []string) {
	for _, r := range records {
		list = append(list, fmt.Sprint(r["i"]))
	}
	return list
}

func firsts(rows [][]any) (list []string) {
	for _, r := range rows {
		list = append(list, fmt.Sprint(r[0]))
	}
	return list
}

// condition returns a random condition, for the tool and as SQL.
func (w *twin) condition() (cond object, query string, args []any) {
	c := w.pick(columns)
	v := w.value(c)
	if len(w.records) > 0 && w.rnd.IntN(2) == 0 {
		v = w.records[w.rnd.IntN(len(w.records))][c]
	}
	op := w.pick([]string{"==", "!=", "<", "<=", ">", ">=", "in", "contains"})
	if v == nil && op != "==" && op != "!=" && op != "in" {
		op = "=="
	}
	cond = object{"column": c, "op": op, "value": v}
	switch op {
	case "==":
		return cond, c + ` is ?`, []any{bound(v)}
	case "!=":
		return cond, c + ` is not ?`, []any{bound(v)}
	case "in":
		values, parts := []any{v}, []string{c + ` is ?`}
		args = append(args, bound(v))
		for range w.rnd.IntN(3) {
			x := w.value(c)
			values, parts, args = append(values, x), append(parts, c+` is ?`), append(args, bound(x))
		}
		cond["value"] = values
		return cond, `(` + strings.Join(parts, ` or `) + `)`, args
	case "contains": // texts whose letters lower() handles, compared with what was written
		part := w.pick([]string{"a", "A", "b", " ", "東", "😀", "/", "0", "'"})
		cond["column"], cond["value"] = "s", part
		return cond, `instr(lower(s), lower(?)) > 0`, []any{part}
	}
	// Two numbers, or else two texts; a text that is written like a number is either.
	written, text := v.(string)
	asText := c
	if c == "mixed" {
		asText = "mixed_t"
	}
	numbers := `(typeof(` + c + `) in ('integer', 'real') and ` + c + ` ` + op + ` ?)`
	texts := `(typeof(` + asText + `) = 'text' and ` + asText + ` ` + op + ` ?)`
	switch number := ratOf(v) != nil; {
	case number && text:
		return cond, `case when typeof(` + c + `) in ('integer', 'real') then ` + numbers + ` else ` + texts + ` end`, []any{bound(v), written}
	case number:
		return cond, numbers, []any{bound(v)}
	}
	return cond, texts, []any{written}
}

func TestFilterAsSQLite(t *testing.T) {
	soak.Sequential(t)
	w := newTwin(t, 1)
	met := 0
	for n := range queries {
		w.fill()
		var where []object
		var parts []string
		var args []any
		for range 1 + w.rnd.IntN(2) {
			cond, query, with := w.condition()
			where, parts, args = append(where, cond), append(parts, query), append(args, with...)
		}
		query := `select i from r where ` + strings.Join(parts, ` and `) + ` order by i`
		want := firsts(w.rows(query, args...))
		got := ids(read(t, call(t, w.set.Filter, object{"records": w.records, "where": where})).Records)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("query %d: %v\n%s %v (-SQLite +pawl):\n%s\n%v", n, where, query, args, diff, w.records)
		}
		if len(want) > 0 && len(want) < len(w.records) {
			met++
		}
	}
	t.Logf("%d queries; %d of them found some records and not all", queries, met)
	if met < queries/3 {
		t.Error("too few of the queries have a result")
	}
}

func TestSortAsSQLite(t *testing.T) {
	soak.Sequential(t)
	w := newTwin(t, 2)
	ties := 0
	for n := range queries {
		w.fill()
		c, desc, limit := w.pick(columns), w.rnd.IntN(2) == 0, w.rnd.IntN(len(w.records)+1)
		way := ""
		if desc {
			way = " desc"
		}
		key := `nullif(` + c + `, '')`
		query := `select i, ` + c + ` from r order by ` + key + ` is null, typeof(` + key + `) = 'text', ` + key + way + `, i`
		if limit > 0 {
			query += fmt.Sprint(` limit `, limit)
		}
		rows := w.rows(query)
		got := ids(read(t, call(t, w.set.Transform, object{"records": w.records, "sort_by": c, "sort_desc": desc, "limit": limit})).Records)
		if diff := cmp.Diff(firsts(rows), got); diff != "" {
			t.Fatalf("query %d: by %s, desc %t\n%s (-SQLite +pawl):\n%s\n%v", n, c, desc, query, diff, w.records)
		}
		for i := range rows {
			if i > 0 && rows[i][1] == rows[i-1][1] {
				ties++
				break
			}
		}
	}
	t.Logf("%d queries; %d of them had ties", queries, ties)
	if ties < queries/3 {
		t.Error("too few of the queries have ties")
	}
}

func TestAggregateAsSQLite(t *testing.T) {
	soak.Sequential(t)
	w := newTwin(t, 3)
	several := 0
	for n := range queries {
		w.fill()
		by := append([]string{}, columns[:w.rnd.IntN(3)]...)
		w.rnd.Shuffle(len(by), func(i, j int) { by[i], by[j] = by[j], by[i] })
		if len(by) > 0 {
			by = by[:1+w.rnd.IntN(len(by))]
		}
		if w.rnd.IntN(4) == 0 {
			by = []string{"s"}
		}
		c := w.pick([]string{"n", "d", "mixed", "rare"})
		// decimals have at most four places, so that their sums as integers are exact in SQLite as
		// well
		const scale = 10_000
		number := `typeof(` + c + `) in ('integer', 'real')`
		isLarge := `typeof(` + c + `) = 'integer' and abs(` + c + `) > 1000000000000`
		exact := `case when ` + isLarge + ` then null when typeof(` + c + `) = 'integer' then ` + c + ` * 10000 when ` + number + ` then cast(round(` + c + ` * 10000) as integer) end`
		large := `case when ` + isLarge + ` then ` + c + ` end`
		query := `select count(*), sum(` + exact + `), sum(` + large + `), avg(` + c + `) filter (where ` + number + `), min(` + c + `) filter (where ` + number + `), max(` + c + `) filter (where ` + number + `)`
		for _, b := range by {
			query += `, ` + b
		}
		query += ` from r`
		if len(by) > 0 {
			query += ` group by ` + strings.Join(by, `, `)
		}
		want := map[string][]any{}
		for _, r := range w.rows(query) {
			want[fmt.Sprint(r[6:]...)] = r[:6]
		}
		args := object{"records": w.records, "metrics": []object{{"column": c, "op": "count"}, {"column": c, "op": "sum"}, {"column": c, "op": "avg"}, {"column": c, "op": "min"}, {"column": c, "op": "max"}}}
		if len(by) > 0 {
			args["group_by"] = by
		}
		got := read(t, call(t, w.set.Aggregate, args))
		if len(got.Groups) != len(want) {
			t.Fatalf("query %d: %d groups, want %d of %s\n%v", n, len(got.Groups), len(want), query, w.records)
		}
		for _, g := range got.Groups {
			var key []any
			for _, b := range by {
				key = append(key, bound(g[b]))
			}
			r := want[fmt.Sprint(key...)]
			if r == nil {
				t.Fatalf("query %d: SQLite has no group %v; %s", n, key, query)
			}
			sum := new(big.Rat)
			if r[1] != nil {
				sum.Add(sum, big.NewRat(r[1].(int64), scale))
			}
			if r[2] != nil {
				sum.Add(sum, new(big.Rat).SetInt64(r[2].(int64)))
			}
			if ratOf(g["sum_"+c]).Cmp(sum) != 0 || fmt.Sprint(g["count_"+c]) != fmt.Sprint(r[0]) {
				t.Fatalf("query %d, group %v: %v; want count %v and sum %s of %s\n%v", n, key, g, r[0], sum.FloatString(6), query, w.records)
			}
			if r[3] == nil {
				if g["avg_"+c] != nil || g["min_"+c] != nil || g["max_"+c] != nil {
					t.Fatalf("query %d, group %v: %v; want figures of nothing", n, key, g)
				}
				continue
			}
			average, _ := ratOf(g["avg_"+c]).Float64()
			// SQLite computes with floats
			if off := math.Abs(average - r[3].(float64)); off > 1e-9+1e-12*largest(w.records, c) {
				t.Fatalf("query %d, group %v: average %v, want %v", n, key, average, r[3])
			}
			if bound(g["min_"+c]) != r[4] || bound(g["max_"+c]) != r[5] {
				t.Fatalf("query %d, group %v: %v; want min %v and max %v", n, key, g, r[4], r[5])
			}
		}
		if len(want) > 1 && len(want) < len(w.records) {
			several++
		}
	}
	t.Logf("%d queries; %d of them had several groups of several records", queries, several)
	if several < queries/3 {
		t.Error("too few of the queries have a result")
	}
}

// largest returns the largest absolute value in a column.
func largest(records []object, column string) (most float64) {
	for _, r := range records {
		if n := ratOf(r[column]); n != nil {
			f, _ := n.Float64()
			most = max(most, math.Abs(f))
		}
	}
	return most
}

// Integers beyond 64 bits and decimals of many digits are exact here and floats in SQLite. As text
// of equal length with leading zeros, SQLite orders them correctly as well, so filter and sort are
// compared.
func TestLargeNumbersAsSQLite(t *testing.T) {
	soak.Sequential(t)
	w := newTwin(t, 4)
	for n := range queries {
		_, err := w.db.Exec(`drop table if exists big; create table big (i integer primary key, v text)`)
		tooltest.Must(t, err)
		var records []object
		var padded []string
		for i := range 30 {
			digits := w.pick([]string{"123456789012345678901234567890", "900719925474099312345678", "1", "18446744073709551616"})
			whole := digits[:len(digits)-min(2, len(digits)-1)] + fmt.Sprintf("%02d", w.rnd.IntN(4))
			fraction := fmt.Sprintf("%020d", w.rnd.IntN(4))
			padded = append(padded, fmt.Sprintf("%040s.%s", whole, fraction))
			records = append(records, object{"i": json.Number(fmt.Sprint(i)), "v": json.Number(whole + "." + fraction)})
			_, err := w.db.Exec(`insert into big values (?, ?)`, i, padded[i])
			tooltest.Must(t, err)
		}
		at := w.rnd.IntN(30)
		op := w.pick([]string{"<", "<=", ">", ">=", "==", "!="})
		sqlOp := map[string]string{"==": "is", "!=": "is not"}[op]
		if sqlOp == "" {
			sqlOp = op
		}
		want := firsts(w.rows(`select i from big where v `+sqlOp+` ? order by i`, padded[at]))
		got := ids(read(t, call(t, w.set.Filter, object{"records": records, "where": []object{{"column": "v", "op": op, "value": records[at]["v"]}}})).Records)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("query %d: %s %s (-SQLite +pawl):\n%s", n, op, padded[at], diff)
		}
		want = firsts(w.rows(`select i from big order by v, i`))
		got = ids(read(t, call(t, w.set.Transform, object{"records": records, "sort_by": "v"})).Records)
		if !slices.Equal(want, got) {
			t.Fatalf("query %d: sorted %v, want %v", n, got, want)
		}
	}
}
