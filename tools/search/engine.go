package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/webaddress"
)

const (
	engineTimeout = 10 * time.Second
	engineBytes   = 2 << 20
	mostHits      = 20 // maximum of Brave and Tavily per request
)

// Service is the address of an engine and its credentials. The zero value is the service's own
// address without a key.
type Service struct {
	Key string // for Brave and Tavily; SearXNG uses no key
	// BaseURL is the address of the service. Empty means its own address. It is required for
	// SearXNG, which has none.
	BaseURL string
	HTTP    http.RoundTripper // nil means http.DefaultTransport
}

// Open returns the engine that the environment selects: the first of BRAVE_API_KEY, TAVILY_API_KEY
// and SEARXNG_URL that is not empty. If all are empty, it returns an *Error that names them.
func Open(getenv func(string) string) (Engine, error) {
	if key := strings.TrimSpace(getenv("BRAVE_API_KEY")); key != "" {
		return NewBrave(Service{Key: key}), nil
	}
	if key := strings.TrimSpace(getenv("TAVILY_API_KEY")); key != "" {
		return NewTavily(Service{Key: key}), nil
	}
	if base := strings.TrimSpace(getenv("SEARXNG_URL")); base != "" {
		return NewSearXNG(Service{BaseURL: base}), nil
	}
	_, err := missing{}.Search(context.Background(), "", 0)
	return nil, err
}

// KeyVariables returns the names of the environment variables that hold keys, so that a program can
// hide their values.
func KeyVariables() []string { return []string{"BRAVE_API_KEY", "TAVILY_API_KEY"} }

// missing is the engine used if none is configured.
type missing struct{}

func (missing) Search(context.Context, string, int) ([]Hit, error) {
	return nil, &Error{Text: "web search is not set up: one of BRAVE_API_KEY, TAVILY_API_KEY or SEARXNG_URL " +
		"has to be set where this runs. Asking again will not help; go on without it, or say that it is missing"}
}

// client sends requests to a service.
type client struct {
	name     string // name of the service, for messages
	variable string // environment variable that configures the service
	Service
}

// named is an engine that has a name for results.
type named interface{ engineName() string }

func (c *client) engineName() string { return c.name }

// ask sends a GET request for path, which complete may change, and decodes the JSON response. own
// is the service's own address; a service without one takes no key.
func (c *client) ask(ctx context.Context, own, path string, complete func(*http.Request), into any) error {
	switch {
	case own == "":
	case c.Key == "":
		return c.fault(nil, "there is no key: set %s where this runs", c.variable)
	// net/http refuses such a header with an error that does not say where the key comes from.
	case strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return c.fault(nil, "the key in %s has a character that is not allowed in a key, "+
			"such as a line break", c.variable)
	}
	within, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()

	req, err := http.NewRequestWithContext(within, "GET", strings.TrimRight(cmp.Or(c.BaseURL, own), "/")+path, nil)
	if err != nil || !webaddress.IsComplete(req.URL) {
		return c.fault(nil, "its address is not valid: want https://HOST, as in %s", c.variable)
	}
	req.Header.Set("Accept", "application/json")
	complete(req)

	status, body, err := c.send(req)
	switch {
	// The run has ended, which is no fault of the engine. The order of the cases keeps the two
	// apart.
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && within.Err() != nil:
		return pawl.RetryableError(c.fault(err, "it did not answer within %v", engineTimeout))
	case err != nil:
		return pawl.RetryableError(c.fault(err, "it cannot be reached"))
	case status != http.StatusOK:
		return c.refusal(status, body)
	case len(body) > engineBytes:
		return c.fault(nil, "its answer has more than %d bytes", engineBytes)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return c.fault(err, "its answer is not the expected JSON")
	}
	return nil
}

// send sends a request and reads the beginning of its response. It follows no redirect, because the
// key is for the service only.
func (c *client) send(req *http.Request) (status int, body []byte, err error) {
	hc := &http.Client{Transport: c.HTTP, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := hc.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, engineBytes+1))
	return res.StatusCode, body, err
}

// refusal explains an HTTP status.
func (c *client) refusal(status int, body []byte) error {
	said := c.said(body)
	switch {
	case status == 401, status == 403, status == 422 && bytes.Contains(body, []byte("TOKEN")):
		if c.name == "searxng" {
			return c.fault(nil, "it refuses (status %d): its settings must allow the format json "+
				"(search.formats)", status)
		}
		return c.fault(nil, "it does not accept the key in %s (status %d%s)", c.variable, status, said)
	case status == 429:
		return pawl.RetryableError(c.fault(nil, "too many searches for now (status 429); "+
			"wait before the next one%s", said))
	case status == 402, status == 432, status == 433:
		return c.fault(nil, "the plan's searches are used up (status %d%s)", status, said)
	case status >= 500:
		return pawl.RetryableError(c.fault(nil, "it failed (status %d%s)", status, said))
	// A redirect would send the key to another host.
	case status >= 300 && status < 400:
		return c.fault(nil, "it redirects to another address (status %d), which is not followed; "+
			"set %s to the final address", status, c.variable)
	}
	return c.fault(nil, "it refuses the search (status %d%s)", status, said)
}

// said returns the message of a service that refused a request, without the key.
func (c *client) said(body []byte) string {
	var v any
	text := ""
	if json.Unmarshal(body, &v) == nil {
		text = message(v, 0)
	}
	text = oneLine(text, 200)
	if text == "" {
		return ""
	}
	if c.Key != "" {
		text = strings.ReplaceAll(text, c.Key, "[key]")
	}
	return ": " + text
}

// message finds the text in an error body, in a field of any name.
func message(v any, depth int) string {
	m, ok := v.(map[string]any)
	if s, text := v.(string); text {
		return s
	}
	if !ok || depth > 4 {
		return ""
	}
	for _, name := range []string{"detail", "message", "error"} {
		if text := message(m[name], depth+1); text != "" {
			return text
		}
	}
	return ""
}

func (c *client) fault(err error, format string, args ...any) error {
	return &Error{Text: c.name + ": " + fmt.Sprintf(format, args...), Err: unaddressed(err)}
}

// unaddressed removes the address from a transport error, because it may contain a name and a
// password.
func unaddressed(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

var tag = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

// plainText converts a summary to text. Services mark the matching words with tags.
func plainText(s string) string { return html.UnescapeString(tag.ReplaceAllString(s, "")) }

// results is the response of SearXNG and Tavily.
type results struct {
	Results []struct{ URL, Title, Content string }
}

func (r results) hits() (hits []Hit) {
	for _, h := range r.Results {
		hits = append(hits, Hit{URL: h.URL, Title: plainText(h.Title), Snippet: plainText(h.Content)})
	}
	return hits
}

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
		r.Method = "POST"
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
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
