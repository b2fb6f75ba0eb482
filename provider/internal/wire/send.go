package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Client sends the requests of one Model. It may be used concurrently, once set up.
type Client struct {
	Provider string
	Header   http.Header       // of each request; nobody writes into it
	Key      string            // only to keep it out of errors
	HTTP     http.RoundTripper // nil: a transport that all Clients share, or one of its own where its connect timeout is
	Retries  int               // how often a failed request is repeated; 0: never
	Timeouts Timeouts          // zero fields for the defaults, negative ones for none

	// Decoder makes the decoder of one reply, for each attempt.
	Decoder func(*Emitter) Decoder

	// ToError makes the error of an answer whose status is none of success.
	ToError func(status int, h http.Header, body []byte, now time.Time) *llm.ProviderError

	once sync.Once
	own  *http.Transport // with its own connect timeout
}

// Send posts body to u and lets a decoder yield the reply through out. A request that failed before a
// fragment of its reply was seen is repeated where that may help, after a Delta with a Notice that says so. Errors are
// *llm.ProviderError, or wrap the cause of a cancelled ctx, or are ErrStopped.
func (c *Client) Send(ctx context.Context, u *url.URL, body []byte, whole bool, out *Emitter) error {
	return c.SendHeader(ctx, u, nil, body, whole, out)
}

// SendHeader is Send with headers of this request's own, in place of the Client's; nil: with those.
func (c *Client) SendHeader(ctx context.Context, u *url.URL, h http.Header, body []byte, whole bool, out *Emitter) error {
	return c.send(ctx, u, h, body, whole, out, c.Decoder)
}

// Post posts body to u and gives the whole answer to read, which keeps nothing of it. It repeats and fails as Send does; there is nobody to
// tell of a repetition.
func (c *Client) Post(ctx context.Context, u *url.URL, body []byte, read func(answer []byte) error) error {
	out := &Emitter{Provider: c.Provider, Yield: func(llm.Delta, error) bool { return true }}
	return c.send(ctx, u, nil, body, true, out, func(*Emitter) Decoder { return answer{c.Provider, read} })
}

// answer is a Decoder of what is no reply of a model, and never comes as a stream.
type answer struct {
	provider string
	read     func([]byte) error
}

func (a answer) Whole(body []byte) error { return a.read(body) }
func (a answer) Event([]byte) error      { return a.End() }
func (a answer) Over() bool              { return false }
func (a answer) Flush() error            { return nil }
func (a answer) End() error              { return Broken(a.provider, "the answer is no JSON") }

func (c *Client) send(ctx context.Context, u *url.URL, h http.Header, body []byte, whole bool, out *Emitter, decoder func(*Emitter) Decoder) error {
	first := *out
	for attempt := 0; ; attempt++ {
		err := c.exchange(ctx, u, h, body, whole, out, decoder)
		if err == nil || err == ErrStopped {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", c.Provider, context.Cause(ctx))
		}
		e, again := c.retryable(err)
		if !again || out.Began || attempt >= c.Retries {
			return err
		}
		wait := backoff(attempt)
		if e.RetryAfter > 0 {
			wait = e.RetryAfter
		}
		if wait > maxWait {
			return err // longer than a caller should be kept without a word
		}
		notice := &llm.Notice{Code: "retry", Text: fmt.Sprintf("attempt %d of %d in %v: %v", attempt+2, c.Retries+1, wait.Round(time.Millisecond), err)}
		if !out.Yield(llm.Delta{Notice: notice}, nil) {
			return ErrStopped
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%s: %w", c.Provider, context.Cause(ctx))
		}
		*out = first
	}
}

// retryable reports whether the request that err ended may work when it is repeated. It takes the key out of the text, where
// a server or a proxy has repeated it.
func (c *Client) retryable(err error) (*llm.ProviderError, bool) {
	var e *llm.ProviderError
	if !errors.As(err, &e) {
		return nil, false
	}
	if c.Key != "" && strings.Contains(e.Message, c.Key) {
		e.Message = strings.ReplaceAll(e.Message, c.Key, "[key]")
		e.Err = nil // its text may hold it as well
	}
	return e, e.Retryable
}

// maxWait is the longest wait before a repeated request.
const maxWait = time.Minute

// backoff is 1 s, 2 s, 4 s …, each between half and one and a half of it, so that clients do not come back together.
func backoff(attempt int) time.Duration {
	base := time.Second << min(attempt, 6)
	return base/2 + rand.N(base)
}

// Header returns the headers of a Client's requests: a copy of the caller's, with what all APIs want.
func Header(of http.Header) http.Header {
	h := of.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", "application/json")
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "pawl")
	}
	return h
}

// Retries returns how often a Client repeats a request for the number in an adapter's Options: 0 stands for 2, less for never.
func Retries(n int) int {
	if n == 0 {
		return 2
	}
	return max(n, 0)
}
