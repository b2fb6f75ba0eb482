package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/store"
)

const (
	passageBytes = 600
	shortest     = 50  // bytes; shorter texts are headings, menus or dates
	mostOfPage   = 100 // passages of a page that are ranked
	mostByModel  = 240 // passages that are embedded, the best by their words
	goodShare    = 0.5 // share of the query's words from which a passage counts as relevant
)

// passage is a piece of a page.
type passage struct {
	page, place int // the page and the position in it; -1 means the engine's summary
	text        string
}

// id names the passage. IDs sort in the order of the engine's ranking.
func (p passage) id() string { return fmt.Sprintf("%03d.%05d", p.page, p.place+1) }

// passages splits pages into pieces: the engine's summary, and the paragraphs of the page, joined
// up to a maximum size. A repeated passage counts once.
func passages(pages []page) []passage {
	var out []passage
	seen := map[string]bool{}
	add := func(p passage) {
		if key := strings.Join(words(p.text), " "); key != "" && !seen[key] {
			seen[key] = true
			out = append(out, p)
		}
	}
	for i, p := range pages {
		for place, text := range pieces(p.Text) {
			add(passage{i, place, text})
		}
		add(passage{i, -1, clip(p.Snippet, passageBytes)})
	}
	return out
}

// pieces splits a page at its empty lines and long paragraphs at spaces, and joins short ones.
func pieces(page string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		// Menus and captions are short, and fit any query.
		if s := strings.TrimSpace(b.String()); len(s) >= shortest && len(out) < mostOfPage {
			out = append(out, s)
		}
		b.Reset()
	}

	for paragraph := range strings.SplitSeq(page, "\n\n") {
		if len(out) == mostOfPage {
			break
		}
		paragraph = strings.TrimSpace(paragraph)
		if b.Len() > 0 && b.Len()+len(paragraph) > passageBytes {
			flush()
		}

		for len(paragraph) > passageBytes && len(out) < mostOfPage {
			cut := cutAt(paragraph)
			b.WriteString(paragraph[:cut])
			flush()
			paragraph = strings.TrimSpace(paragraph[cut:])
		}

		if paragraph != "" {
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString(paragraph)
		}
	}
	flush()
	return out
}

// cutAt returns where to cut a paragraph that is longer than a passage: at the last space. In a
// script without spaces, that would leave a short passage, or an empty one and no end.
func cutAt(paragraph string) int {
	cut := strings.LastIndexAny(paragraph[:passageBytes], " \n")
	if cut < passageBytes/2 {
		return text.RuneBefore(paragraph, passageBytes)
	}
	return cut
}

// ranked holds passages, the best first.
type ranked struct {
	passages []passage
	fits     bool   // at least one passage is relevant to the query
	how      string // words, or words+meaning
	degraded string
}

// best returns the first n.
func (r *ranked) best(n int) []passage { return r.passages[:min(n, len(r.passages))] }

// rank orders the passages of pages by their words, and also by their meaning if there is an
// Embedder. It returns an error only if ctx has ended.
func (s *searcher) rank(ctx context.Context, query string, pages []page) (*ranked, error) {
	all := passages(pages)
	r := &ranked{how: "words"}
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = pages[p.page].Title + "\n" + p.text
		r.fits = r.fits || share(query, texts[i]) >= goodShare
	}

	order := sorted(byWords(query, texts))
	switch {
	case s.embedder == nil:
		r.degraded = "ranked by words alone: no embedding model is set up"

	case len(all) > 0:
		// Passages of a page are cheap to read and dear to embed: the best by their words are
		// enough.
		order = order[:min(mostByModel, len(order))]
		scores, err := byMeaning(ctx, s.embedder, query, picked(texts, order))
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			r.degraded = "ranked by words alone: the embedding model failed"
		default:
			r.how = "words+meaning"
			r.fits = slices.Max(scores) >= fits
			order = fuse(all, order, sorted(scores))
		}
	}
	r.passages = picked(all, order)
	return r, nil
}

// picked returns the elements of list with the indexes of order.
func picked[T any](list []T, order []int) []T {
	out := make([]T, len(order))
	for i, j := range order {
		out[i] = list[j]
	}
	return out
}

// sorted returns the indexes of scores in descending order of score; equal scores keep their order.
func sorted(scores []float64) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order
}

// fuse combines the ranking by words with a ranking by meaning, whose numbers are positions in the
// first.
func fuse(all []passage, words, meaning []int) []int {
	index := map[string]int{} // of a passage in all, by ID
	var wordIDs, meaningIDs []string
	for _, i := range words {
		index[all[i].id()] = i
		wordIDs = append(wordIDs, all[i].id())
	}
	for _, k := range meaning {
		meaningIDs = append(meaningIDs, all[words[k]].id())
	}

	var order []int
	for _, f := range store.Fuse(wordIDs, meaningIDs) {
		order = append(order, index[f.ID])
	}
	return order
}

// inPage orders passages by page and place.
func inPage(ps []passage) []passage {
	out := slices.Clone(ps)
	slices.SortStableFunc(out, func(a, b passage) int {
		return cmp.Or(cmp.Compare(a.page, b.page), cmp.Compare(a.place, b.place))
	})
	return out
}
