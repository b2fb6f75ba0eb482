// Package search gives a model web_search: what the web says of a question, as numbered passages with their sources.
//
//	engine, err := search.Open(os.Getenv) // Brave, Tavily or SearXNG, by what is set
//	tool, err := search.New(engine, nil)
//
// An Engine finds addresses. The tool reads the pages behind them, several at once, cuts them into passages, ranks the passages and tells the best:
//
//	query ──▶ Engine ──▶ hits ──▶ pages (guarded, bounded) ──▶ passages ──▶ ranked ──▶ [1] title, address, passages
//
// Passages are ranked by their words, and by their meaning too where Options has an Embedder; the two rankings are fused. Equal passages stand in
// the order of the engine, so the same answers give the same text. When nothing fits well the engine is asked once more, for more.
//
// What could not be done is said in the result and does not fail it: a page that cannot be read is told with its reason and stands for itself
// by the engine's summary; without embeddings the ranking is by words.
//
// Pages are hostile. They are fetched as http_fetch does it: public addresses only, checked when they are dialled and at each redirect, within bounds of
// time and size. Each line of theirs is quoted, so that no page can end its quotation, and the model is told that they are no instructions.
package search

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/webpage"
)

// Engine finds pages. Brave, Tavily and SearXNG are real ones, Index is one in memory. It may be used concurrently.
type Engine interface {
	// Search returns up to n hits, the best first. No hit is no error. What the model should read is a *Error; other errors are told as
	// faults of the service.
	Search(ctx context.Context, query string, n int) ([]Hit, error)
}

// Hit is a page that an engine found.
type Hit struct {
	URL     string
	Title   string
	Snippet string // the engine's summary; plain text
	Text    string // the whole page as text, where the engine has it: then it is not fetched
}

// Options are what New can be told. Nil and the zero value read public pages and rank by words.
type Options struct {
	Embedder store.Embedder // nil: passages are ranked by their words alone

	// Allow names hosts whose pages may be read although they are not public, Deny such as are never read: the forms of tools/http.
	Allow, Deny []string

	Timeout time.Duration // for one page; 0: 8 s

	Proxy  func(*http.Request) (*url.URL, error)                        // nil: HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error) // nil: the system's resolver
}

// New returns the tool web_search over an engine. Nil stands for none: then each call is answered with what has to be set up. The error
// says which option is wrong.
func New(e Engine, opts *Options) (*pawl.Tool, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
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
	s := &searcher{engine: e, embedder: o.Embedder, page: webpage.Fetcher{Transport: g, Timeout: o.Timeout, MaxBody: pageBytes}}
	return s.tool(), nil
}

// Error is a search that failed, in words for whoever asked. It has no key in it.
type Error struct {
	Text string
	Err  error // what lies behind it; may be nil
}

// Error returns the words.
func (e *Error) Error() string { return e.Text }

// Unwrap returns what lies behind it.
func (e *Error) Unwrap() error { return e.Err }
