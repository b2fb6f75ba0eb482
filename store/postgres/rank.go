package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/relational"
)

// The constants of BM25, as in SQLite's FTS5.
const (
	saturation = 1.2  // k1
	byLength   = 0.75 // b
)

// term is one word, or a phrase of several, that a query searches for.
type term struct {
	query  string   // in PostgreSQL's notation, with the stems
	words  []string // the queries for its single words
	weight float64  // larger for rarer terms
	count  int      // number of texts of the scope that contain it
}

// counted returns the terms that occur in texts of the scope, and the mean size of the texts.
func (b *backend) counted(ctx context.Context, k relational.Kind, s store.Scope, q store.Query,
	terms []string) ([]term, float64, error) {
	var total int
	var mean float64
	if _, err := relational.List(ctx, b.Read(),
		func(r relational.Row) (none any, err error) { return nil, r.Scan(&total, &mean) },
		k.In("select count(*), coalesce(avg(size), 1)::float8 from WORDS t where WHOSE"), relational.Seen(s, q.Shared)...); err != nil {
		return nil, 0, err
	}
	for i := range terms {
		terms[i] = folded(terms[i])
	}
	scan := func(r relational.Row) (t term, err error) {
		err = r.Scan(&t.query, &t.words, &t.count)
		return t, err
	}
	all, err := relational.List(ctx, b.Read(), scan, k.In(`select q::text,
		array(select phraseto_tsquery('words', w)::text from unnest(string_to_array(text, ' ')) as w),
		(select count(*) from WORDS t where t.words @@ (?::tsquery && q) and WHOSE)
		from (select min(text) as text, phraseto_tsquery('words', text) as q from unnest(?::text[]) as text group by 2) x where numnode(q) > 0`),
		append(append([]any{marks(s, q.Shared)}, relational.Seen(s, q.Shared)...), terms)...)
	if err != nil {
		return nil, 0, err
	}
	all = slices.DeleteFunc(all, func(t term) bool { return t.count == 0 })
	for i := range all {
		n := float64(all[i].count)
		// a term in more than half of the texts has no significance
		all[i].weight = max(1e-6, math.Log((float64(total)-n+0.5)/(n+0.5)))
	}
	return all, mean, nil
}

// marks returns a query that matches the words of all texts in a scope, and of few other texts.
func marks(s store.Scope, shared bool) string {
	if shared {
		return fmt.Sprintf("('%s' | '%s')", mark(s), mark(s.Shared()))
	}
	return "'" + mark(s) + "'"
}

// WithWords returns texts that contain any of the terms, the best first, at most limit. The
// distance is the negative score: the nearest is the best.
func (b *backend) WithWords(ctx context.Context, k relational.Kind, s store.Scope, q store.Query, words []string,
	limit int) ([]relational.Near, error) {
	terms, mean, err := b.counted(ctx, k, s, q, words)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	var matches, ranks []string
	for _, t := range terms {
		matches, ranks = append(matches, "("+t.query+")"), append(ranks, t.rank())
	}
	// It is not prepared (QueryExecModeExec), because the next statement will differ.
	match := marks(s, q.Shared) + " & (" + strings.Join(matches, " | ") + ")"
	rows, err := b.pool.Query(ctx, b.inDialect(k.In(`select w.n, w.size, array[`+strings.Join(ranks, ", ")+`]::real[] from
		(select n, size, words || ''::tsvector as words from WORDS t where words @@ ?::tsquery and WHOSE offset 0) w`)),
		append([]any{pgx.QueryExecModeExec, match}, relational.Seen(s, q.Shared)...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []relational.Near
	var found []float32
	for rows.Next() {
		var x relational.Near
		var size float64
		if err := rows.Scan(&x.N, &size, &found); err != nil {
			return nil, err
		}
		for i, rank := range found {
			f := times(rank)
			x.Distance -= terms[i].weight * f * (saturation + 1) / (f + saturation*(1-byLength+byLength*size/mean))
		}
		out = append(out, x)
	}
	slices.SortFunc(out, relational.Nearer)
	return out[:min(len(out), limit)], rows.Err()
}

// rank returns the expression for the number of occurrences of the term in a text, as ts_rank
// returns it.
func (t term) rank() string {
	all := make([]string, len(t.words))
	for i, w := range t.words {
		all[i] = fmt.Sprintf("ts_rank('{1,1,1,1}', w.words, %s)", literal(w))
	}
	if len(all) == 1 {
		return all[0]
	}
	return fmt.Sprintf("case when w.words @@ %s then least(%s) else 0 end", literal(t.query), strings.Join(all, ", "))
}

// literal quotes a query that PostgreSQL returned, for use in a statement.
func literal(query string) string { return "'" + strings.ReplaceAll(query, "'", "''") + "'::tsquery" }

// times converts the rank of a word to the number of its occurrences in a text. PostgreSQL returns
// no count, but with all weights 1 the rank of one word is (1 + 1/4 + … + 1/n²) ÷ (π²/6); see
// calc_rank_or in its source, src/backend/utils/adt/tsrank.c. Above 30, more occurrences add almost
// nothing.
func times(rank float32) float64 {
	sum := 0.0
	for n := 1; n <= 30; n++ {
		sum += 1 / float64(n*n)
		if sum-0.5/float64(n*n) > float64(rank)*1.64493406685 {
			return float64(n - 1)
		}
	}
	return 30
}
