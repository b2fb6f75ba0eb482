// Package search provides web_search, a tool that answers a question with numbered passages from
// the web and their sources.
//
//	engine, err := search.Open(os.Getenv) // Brave, Tavily or SearXNG, depending on the variables
//	tool, err := search.New(engine, nil)
//
// An Engine finds addresses. The tool reads their pages, several at once, splits them into
// passages, ranks the passages and returns the best:
//
//	query ──▶ Engine ──▶ hits ──▶ pages (guarded, bounded) ──▶ passages ──▶ ranked
//	      ──▶ [1] title, address, passages
//
// Passages are ranked by their words, and also by their meaning if Options has an Embedder. The two
// rankings are then fused. Passages with equal scores keep the order of the engine, so that the
// same responses give the same text. If no passage fits well, the engine is asked once more for
// additional hits.
//
// A partial failure is reported in the result and does not fail the call. A page that cannot be
// read is listed with the reason and represented by the engine's summary. Without embeddings the
// ranking uses words only.
//
// Pages are treated as hostile. They are fetched under the rules of http_fetch: only public
// addresses, checked when they are dialled and at each redirect, with limits for time and size.
// Each line of a page is quoted, so that no page can end its quotation, and the text states that
// quotations are not instructions.
package search

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
	"github.com/pawl-go/pawl/tools/internal/webpage"
)

// Engine finds pages. NewBrave, NewTavily and NewSearXNG return engines for web services; Index is
// an engine in memory. An Engine must be safe for concurrent use.
type Engine interface {
	// Search returns up to n hits, the best first. No hit is not an error. An error for the model
	// is an *Error; other errors are reported as failures of the service.
	Search(ctx context.Context, query string, n int) ([]Hit, error)
}

// Hit is a page found by an engine.
type Hit struct {
	URL     string // of the page; results that are not HTTP or HTTPS are left out
	Title   string // as plain text; may be empty
	Snippet string // the engine's summary as plain text
	// Text is the whole page as text, if the engine provides it. The page is then not fetched.
	Text string
}

// Options are the options of New. Nil and the zero value read public pages and rank by words.
type Options struct {
	Embedder store.Embedder // nil means that passages are ranked by their words only

	// Allow lists hosts whose pages may be read although they are not public. Deny lists hosts that
	// are never read. Both have the forms of tools/http.
	Allow, Deny []string

	Timeout time.Duration // limit for one page; 0 means 8 s

	// A nil Proxy means HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment.
	Proxy func(*http.Request) (*url.URL, error)
	// A nil Lookup means the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// New returns the tool web_search, which uses engine e. If e is nil, each call is answered with the
// settings that are missing. The error says which option is wrong.
func New(e Engine, opts *Options) (*pawl.Tool, error) {
	o := *cmp.Or(opts, new(Options))
	g, err := netguard.New(netguard.Options{Allow: o.Allow, Deny: o.Deny, Proxy: o.Proxy, Lookup: o.Lookup})
	if err != nil {
		return nil, &Error{Text: "search tools: " + err.Error(), Err: err}
	}
	if e == nil {
		e = missing{}
	}
	if o.Timeout <= 0 {
		o.Timeout = pageTimeout
	}
	s := &searcher{engine: e, embedder: o.Embedder,
		page: webpage.Fetcher{Transport: g, Timeout: o.Timeout, MaxBody: pageBytes}}
	return toolrun.Define(definitions, "web", &pawl.Tool{Name: "web_search", Effect: pawl.EffectRead,
		Label: &llm.Label{Readers: []string{llm.Everybody}}, // a stranger's, for everybody
		Run:   toolrun.Func(s.run)}), nil
}

// Error is a failed search, described for the reader of the result. Its text contains no key.
type Error struct {
	Text string // what failed, and what would be right
	Err  error  // the cause; may be nil
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
