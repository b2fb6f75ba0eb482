package search

import (
	"context"
	"net/http"
	"net/url"
)

const searxngVariable = "SEARXNG_URL"

type searxng struct{ client }

// NewSearXNG returns an engine that uses a SearXNG server
// (https://docs.searxng.org/dev/search_api.html), whose settings must allow the format json. It
// needs a BaseURL. A name and a password in the BaseURL are sent as credentials.
func NewSearXNG(s Service) Engine { return &searxng{client{"searxng", searxngVariable, s}} }

// Search sends one request. The server decides how many hits it returns; hits beyond n are dropped.
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
	var answer results
	if err := s.ask(ctx, req, &answer); err != nil {
		return nil, err
	}
	hits := answer.hits()
	return hits[:max(0, min(n, len(hits)))], nil
}
