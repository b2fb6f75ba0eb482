package search

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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
func (b *brave) Search(ctx context.Context, query string, n int) (hits []Hit, err error) {
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
	q := url.Values{"q": {query}, "count": {strconv.Itoa(min(n, mostHits))}, "text_decorations": {"false"}}
	err = b.ask(ctx, "https://api.search.brave.com", "/res/v1/web/search?"+q.Encode(), func(r *http.Request) {
		r.Header.Set("X-Subscription-Token", b.Key)
	}, &answer)
	for _, r := range answer.Web.Results {
		text := plainText(strings.Join(append([]string{r.Description}, r.Extra...), "\n"))
		hits = append(hits, Hit{URL: r.URL, Title: plainText(r.Title), Snippet: text})
	}
	return hits, err
}

type tavily struct{ client }

// NewTavily returns an engine that uses Tavily's search API
// (https://docs.tavily.com/documentation/api-reference/endpoint/search). It needs a key.
func NewTavily(s Service) Engine { return &tavily{client{"tavily", "TAVILY_API_KEY", s}} }

// Search sends one request; n is at most 20.
func (t *tavily) Search(ctx context.Context, query string, n int) ([]Hit, error) {
	// a string and a number always marshal
	body, _ := json.Marshal(map[string]any{"query": query, "max_results": min(n, mostHits)})
	var answer results
	err := t.ask(ctx, "https://api.tavily.com", "/search", func(r *http.Request) {
		r.Method, r.Body, r.ContentLength = "POST", io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+t.Key)
	}, &answer)
	return answer.hits(), err
}

type searxng struct{ client }

// NewSearXNG returns an engine that uses a SearXNG server
// (https://docs.searxng.org/dev/search_api.html), whose settings must allow the format json. It
// needs a BaseURL. A name and a password in the BaseURL are sent as credentials.
func NewSearXNG(s Service) Engine { return &searxng{client{"searxng", "SEARXNG_URL", s}} }

// Search sends one request. The server decides how many hits it returns; hits beyond n are dropped.
func (s *searxng) Search(ctx context.Context, query string, n int) ([]Hit, error) {
	var answer results
	q := url.Values{"q": {query}, "format": {"json"}}
	err := s.ask(ctx, "", "/search?"+q.Encode(), func(*http.Request) {}, &answer)
	hits := answer.hits()
	return hits[:max(0, min(n, len(hits)))], err
}
