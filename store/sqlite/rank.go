package sqlite

import (
	"context"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/internal/relational"
)

// WithWords returns texts that contain any of the words, the best first, at most limit.
func (b *backend) WithWords(ctx context.Context, k relational.Kind, s store.Scope, q store.Query, words []string,
	limit int) ([]relational.Near, error) {
	phrases := make([]string, len(words))
	for i, w := range words {
		phrases[i] = `"` + w + `"` // so that the word is not parsed as query syntax
	}
	slices.Sort(phrases)
	args := append([]any{strings.Join(slices.Compact(phrases), " OR ")}, relational.Seen(s, q.Shared)...)
	return relational.List(ctx, b.Read(), relational.ScanNear, k.In(`select t.n, bm25(WORDS) from WORDS w
		join TABLE t on t.n = w.rowid where WORDS match ? and WHOSE ALSO order by 2, 1 limit ?`), append(args, limit)...)
}
