package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/pawl-go/pawl/internal/guard"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/internal/webaddress"
	"github.com/pawl-go/pawl/tools/internal/webpage"
)

const (
	mostURL     = 500 // bytes; longer addresses are skipped
	mostTitle   = 200
	mostSnippet = 1200
)

// page is a hit and the content of its page.
type page struct {
	Hit
	problem string // why it could not be read
}

// unseen returns up to n valid hits that are not in seen, each once, with harmless texts.
func unseen(seen []page, hits []Hit, n int) []page {
	known := map[string]bool{}
	for _, p := range seen {
		known[sameAs(p.URL)] = true
	}
	var out []page
	for _, h := range hits {
		u, ok := webaddress.Parse(h.URL)
		if !ok || u.User != nil {
			continue
		}
		if len(h.URL) > mostURL || len(out) == n {
			continue
		}

		// spaces and other special characters are escaped, so the URL is one word
		h.URL = u.String()
		if key := sameAs(h.URL); !known[key] {
			known[key] = true
			h.Title, h.Snippet, h.Text = oneLine(h.Title, mostTitle), clip(harmless(h.Snippet), mostSnippet),
				harmless(h.Text)
			out = append(out, page{Hit: h})
		}
	}
	return out
}

// sameAs returns a key that is equal for two addresses of one page.
func sameAs(address string) string {
	address, _, _ = strings.Cut(address, "#")
	_, address, _ = strings.Cut(address, "://")
	return strings.TrimRight(strings.TrimPrefix(address, "www."), "/")
}

// read fetches the pages for which the engine returned no text, several at once. A page that cannot
// be read gets a problem.
func (s *searcher) read(ctx context.Context, pages []page) []page {
	var wait sync.WaitGroup
	slots := make(chan struct{}, together)
	for i := range pages {
		if pages[i].Text != "" {
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if guard.Call(func() { pages[i].fetch(ctx, &s.page) }) != nil {
				pages[i].problem = "it could not be read"
			}
		})
	}
	wait.Wait()
	return pages
}

func (p *page) fetch(ctx context.Context, f *webpage.Fetcher) {
	res, err := f.Fetch(ctx, webpage.Request{URL: p.URL})
	var failed *webpage.Error
	switch {
	case errors.As(err, &failed):
		p.problem = oneLine(failed.Text, 200)
		return
	// An error that is no *webpage.Error comes from the context.
	case err != nil:
		p.problem = "the search was cancelled"
		return
	case res.Status >= 400:
		p.problem = fmt.Sprintf("HTTP %d", res.Status)
		return
	}
	got := webpage.Read(res)
	p.Text = harmless(got.Text)
	if strings.TrimSpace(p.Text) == "" {
		p.problem = "it has no text (" + oneLine(res.Type, 60) + ")"
	}
	p.Title = cmp.Or(p.Title, oneLine(got.Title, mostTitle))
}

// harmless removes invisible characters from a text: control characters, marks that change the
// writing direction, and tag characters.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t', r == '\u2028', r == '\u2029':
			return ' '
		case unicode.IsControl(r), r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069',
			r == '\u200B', r == '\uFEFF', r >= 0xE0000 && r <= 0xE007F:
			return -1
		}
		return r
	}, strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r", "\n"))
}

// oneLine returns a text as one line of at most n bytes.
func oneLine(s string, n int) string { return clip(strings.Join(strings.Fields(harmless(s)), " "), n) }

// clip shortens a text to n bytes, at a character boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimSpace(s[:text.RuneBefore(s, n)]) + "…"
}
