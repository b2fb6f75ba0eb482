package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/relational"
)

// term is a search term of a query.
type term struct {
	match  string
	count  int     // number of texts that contain it, in all scopes, as FTS5 counts
	weight float64 // larger for rarer terms; see bm25 in the documentation of FTS5
}

// weightless is the weight that FTS5 gives to terms in more than half of the texts.
const weightless = 1e-6

// most returns an upper limit of what a term can add to a text's score, for any number of
// occurrences. The k1 of FTS5 is 1.2.
func (t term) most() float64 { return t.weight * (1 + 1.2) }

// counted returns the terms that occur in any text, the rarest first.
func (b *backend) counted(ctx context.Context, k relational.Kind, words []string) ([]term, error) {
	// an upper limit for the number of texts: a limit that is too high makes the search slower,
	// never wrong
	var total float64
	if err := b.read.QueryRowContext(ctx, k.In("select coalesce(max(n), 0) from TABLE")).Scan(&total); err != nil {
		return nil, err
	}
	var out []term
	slices.Sort(words)
	for _, w := range slices.Compact(words) {
		t := term{match: `"` + w + `"`} // a phrase, so that the word is not parsed as query syntax
		if err := b.read.QueryRowContext(ctx, k.In("select count(*) from WORDS where WORDS match ?"), t.match).Scan(&t.count); err != nil {
			return nil, err
		}
		if n := float64(t.count); n > 0 {
			t.weight = max(weightless, math.Log((total-n+0.5)/(n+0.5)))
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b term) int { return cmp.Compare(a.count, b.count) })
	return out, nil
}

// anyOf returns the query for texts that contain any of the terms.
func anyOf(terms []term) string {
	all := make([]string, len(terms))
	for i, t := range terms {
		all[i] = t.match
	}
	return "(" + strings.Join(all, " OR ") + ")"
}

// WithWords returns texts that contain any of the words, the best first, at most limit. The first
// of them, as many as the query wants, equal the result of an exhaustive search. It examines the
// texts with the rarest terms, and texts with more frequent terms as long as one of them could be
// among the best, because the contribution of the remaining terms is bounded.
func (b *backend) WithWords(ctx context.Context, k relational.Kind, s store.Scope, q store.Query, words []string,
	limit int) ([]relational.Near, error) {
	terms, err := b.counted(ctx, k, words)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	const scored = "select t.n, bm25(WORDS) from WORDS w join TABLE t on t.n = w.rowid where WORDS match ? and WHOSE ALSO order by 2, 1 limit ?"
	want := q.Size()
	// so that all repetitions together cost no more than one full search
	for through, looked, target := 0, 0, want; ; target = 2 * looked {
		for ; through < len(terms) && looked < target; through++ {
			looked += terms[through].count
		}
		first, rest := terms[:through], terms[through:]
		found, err := b.matching(ctx, k, scored, s, q, anyOf(first), limit)
		if err != nil {
			return nil, err
		}
		bound := 0.0
		for _, t := range rest {
			bound += t.most()
		}
		more := rest
		if first[0].weight > weightless { // next to it, a term without weight adds nothing
			more = slices.DeleteFunc(slices.Clone(rest), func(t term) bool { return t.weight <= weightless })
		}
		if len(more) > 0 {
			with, err := b.matching(ctx, k, scored, s, q, anyOf(first)+" AND "+anyOf(more), limit)
			if err != nil {
				return nil, err
			}
			found = merged(found, with)
		}
		if len(rest) == 0 || len(found) >= want && -found[want-1].Distance >= bound {
			return found[:min(len(found), limit)], nil
		}
		// no remaining term has a weight: any text may fill the list
		if first[0].weight > weightless && rest[0].weight <= weightless {
			fill, err := b.matching(ctx, k, "select t.n, 0.0 from WORDS w join TABLE t on t.n = w.rowid where WORDS match ? and WHOSE ALSO order by w.rowid limit ?", s, q, anyOf(rest), limit)
			found = merged(found, fill)
			return found[:min(len(found), limit)], err
		}
	}
}

// matching returns the rows that match a query of FTS5.
func (b *backend) matching(ctx context.Context, k relational.Kind, query string, s store.Scope, q store.Query,
	match string, limit int) ([]relational.Near, error) {
	return relational.List(ctx, b.Read(), relational.ScanNear, k.In(query),
		append(append([]any{match}, relational.Seen(s, q.Shared)...), limit)...)
}

// merged combines two lists; a row in both gets its better distance.
func merged(a, b []relational.Near) []relational.Near {
	all := slices.Concat(a, b)
	slices.SortFunc(all, relational.Nearer)
	there := map[int64]bool{}
	return slices.DeleteFunc(all, func(x relational.Near) bool {
		twice := there[x.N]
		there[x.N] = true
		return twice
	})
}
