package search

import (
	"context"
	"net/http"
	"net/url"
)

const searxngVariable = "SEARXNG_URL"

type searxng struct{ client }

// NewSearXNG returns the engine of a SearXNG server (https://docs.searxng.org/dev/search_api.html), whose settings must allow the format json. It needs a
// BaseURL; one with a name and a password is asked with them.
func NewSearXNG(s Service) Engine { return &searxng{client{"searxng", searxngVariable, s}} }

// Search asks once. The server says how many hits it gives; what is over n is dropped.
func (s *searxng) Search(ctx context.Context, query string, n int) ([]Hit, error) {
	u, err := s.address("", "/search")
	if err != nil {
		return nil, err
	}
	u.RawQuery = url.Values{"q": {query}, "format": {"json"}}.Encode()
	req, err := http.NewRequest("GET", u.String(), nil)
	if err != nil {
		return nil, s.fault(err, "the request cannot be made")
	}
	var answer struct {
		Results []struct {
			URL     string `json:"url"`
			Title   string `json:"title"`
			Content string `json:"content"`
		} `json:"results"`
	}
	if err := s.ask(ctx, req, &answer); err != nil {
		return nil, err
	}
	var hits []Hit
	for _, r := range answer.Results {
		if len(hits) < n {
			hits = append(hits, Hit{URL: r.URL, Title: plainText(r.Title), Snippet: plainText(r.Content)})
		}
	}
	return hits, nil
}
