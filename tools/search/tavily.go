package search

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

type tavily struct{ client }

// NewTavily returns an engine that uses Tavily's search API
// (https://docs.tavily.com/documentation/api-reference/endpoint/search). It needs a key.
func NewTavily(s Service) Engine { return &tavily{client{"tavily", "TAVILY_API_KEY", s}} }

// Search sends one request; n is at most 20.
func (t *tavily) Search(ctx context.Context, query string, n int) ([]Hit, error) {
	if err := t.keyed(); err != nil {
		return nil, err
	}
	u, err := t.address("https://api.tavily.com", "/search")
	if err != nil {
		return nil, err
	}
	// a string and a number always marshal
	body, _ := json.Marshal(map[string]any{"query": query, "max_results": min(n, mostHits)})
	req, err := http.NewRequest("POST", u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, t.fault(err, "the request cannot be made")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+t.Key)
	var answer results
	if err := t.ask(ctx, req, &answer); err != nil {
		return nil, err
	}
	return answer.hits(), nil
}

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
