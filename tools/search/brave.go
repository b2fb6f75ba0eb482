package search

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

type brave struct{ client }

// NewBrave returns an engine that uses Brave's Web Search API
// (https://api-dashboard.search.brave.com/app/documentation/web-search/query). It needs a key.
func NewBrave(s Service) Engine { return &brave{client{"brave", "BRAVE_API_KEY", s}} }

// Search sends one request; n is at most 20.
func (b *brave) Search(ctx context.Context, query string, n int) ([]Hit, error) {
	if err := b.keyed(); err != nil {
		return nil, err
	}
	u, err := b.address("https://api.search.brave.com", "/res/v1/web/search")
	if err != nil {
		return nil, err
	}
	u.RawQuery = url.Values{"q": {query}, "count": {strconv.Itoa(min(n, mostHits))}, "text_decorations": {"false"}}.Encode()
	req, err := http.NewRequest("GET", u.String(), nil)
	if err != nil {
		return nil, b.fault(err, "the request cannot be made")
	}
	req.Header.Set("X-Subscription-Token", b.Key)
	var answer struct {
		Web struct {
			Results []struct {
				URL         string   `json:"url"`
				Title       string   `json:"title"`
				Description string   `json:"description"`
				Extra       []string `json:"extra_snippets"`
			} `json:"results"`
		} `json:"web"`
	}
	if err := b.ask(ctx, req, &answer); err != nil {
		return nil, err
	}
	var hits []Hit
	for _, r := range answer.Web.Results {
		text := plainText(strings.Join(append([]string{r.Description}, r.Extra...), "\n"))
		hits = append(hits, Hit{URL: r.URL, Title: plainText(r.Title), Snippet: text})
	}
	return hits, nil
}
