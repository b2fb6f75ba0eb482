package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Client sends the requests of one Model. It is safe for concurrent use once it is set up.
type Client struct {
	Provider string
	Header   http.Header // of each request; read-only
	Key      string      // removed from errors
	// nil means the shared transport, or one per Client if its connect timeout differs
	HTTP     http.RoundTripper
	Retries  int      // how often a failed request is repeated; 0 means never
	Timeouts Timeouts // 0 means the default, less means none

	// Decoder returns the decoder of one reply. It is called for each attempt.
	Decoder func(*Emitter) Decoder

	// ToError returns the error of a response whose status is not 2xx.
	ToError func(status int, h http.Header, body []byte, now time.Time) *llm.ProviderError

	once sync.Once
	own  *http.Transport // if the connect timeout is not the default
}

// Send posts body to u, and a decoder emits the reply through out. A failed request is repeated if
// the error is retryable and no fragment of its reply was emitted; a Delta with a Notice announces
// each retry. Send returns a *llm.ProviderError, an error that wraps the cause of a cancelled ctx,
// or ErrStopped. The caller passes on body: see NewBody.
func (c *Client) Send(ctx context.Context, u *url.URL, body []byte, whole bool, out *Emitter) error {
	return c.SendHeader(ctx, u, nil, body, whole, out)
}

// SendHeader is Send with the headers of this request. nil means the Client's headers.
func (c *Client) SendHeader(ctx context.Context, u *url.URL, h http.Header, body []byte, whole bool,
	out *Emitter) error {
	sent := NewBody(body)
	defer sent.Release()
	return c.send(ctx, u, h, sent, whole, out, c.Decoder)
}

// SendBody is Send for a body that the caller releases.
func (c *Client) SendBody(ctx context.Context, u *url.URL, body *Body, whole bool, out *Emitter) error {
	return c.send(ctx, u, nil, body, whole, out, c.Decoder)
}

// Post posts body to u and passes the whole response to read, which must not retain it. It retries
// and fails as Send does, without notices.
func (c *Client) Post(ctx context.Context, u *url.URL, body []byte, read func(answer []byte) error) error {
	out := &Emitter{Provider: c.Provider, Yield: func(llm.Delta, error) bool { return true }}
	return c.send(ctx, u, nil, NewBody(body), true, out, func(*Emitter) Decoder { return answer{c.Provider, read} })
}

// answer is the Decoder of a response that is not a model's reply and never a stream.
type answer struct {
	provider string
	read     func([]byte) error
}

func (a answer) Whole(body []byte) error { return a.read(body) }
func (a answer) Event([]byte) error      { return a.End() }
func (a answer) Over() bool              { return false }
func (a answer) Stated() bool            { return false }
func (a answer) Flush() error            { return nil }
func (a answer) End() error              { return Broken(a.provider, "the answer is no JSON") }

func (c *Client) send(ctx context.Context, u *url.URL, h http.Header, body *Body, whole bool, out *Emitter,
	decoder func(*Emitter) Decoder) error {
	return c.Retry(ctx, out, func() error {
		return c.exchange(ctx, http.MethodPost, u, h, body, whole, out, decoder)
	})
}

// Exchange sends one request with the Client's headers, and does not repeat it. dec may have read
// an earlier part of the same reply.
func (c *Client) Exchange(ctx context.Context, method string, u *url.URL, body []byte, whole bool, out *Emitter,
	dec Decoder) error {
	return c.exchange(ctx, method, u, nil, NewBody(body), whole, out, func(*Emitter) Decoder { return dec })
}

// Retry calls send until it succeeds, by the rules by which Send repeats a request. send emits the
// reply through out.
func (c *Client) Retry(ctx context.Context, out *Emitter, send func() error) error {
	first := *out
	for attempt := 0; ; attempt++ {
		err := send()
		if err == nil || err == ErrStopped {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", c.Provider, context.Cause(ctx))
		}
		e, again := c.retryable(err)
		wait := backoff(attempt)
		if again && e.RetryAfter > 0 {
			wait = e.RetryAfter
		}

		// A reply that has begun cannot begin again: readers have seen a part of it. A longer wait
		// would block the caller.
		mayRepeat := again && !out.Began && attempt < c.Retries
		if !mayRepeat || wait > maxWait {
			if sent(err) && !out.Yield(llm.Delta{Requests: 1}, nil) {
				return ErrStopped
			}
			return err
		}
		notice := &llm.Notice{Code: "retry", Text: fmt.Sprintf("attempt %d of %d in %v: %v", attempt+2, c.Retries+1, wait.Round(time.Millisecond), err)}
		if !out.Yield(llm.Delta{Notice: notice}, nil) {
			return ErrStopped
		}
		if err := Sleep(ctx, wait); err != nil {
			return fmt.Errorf("%s: %w", c.Provider, err)
		}
		if sent(err) && !out.Yield(llm.Delta{Requests: 1}, nil) {
			return ErrStopped
		}
		*out = first
	}
}

// Sleep returns nil after d, or the cause with which ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sent reports whether a request that failed with err may have reached the server. It has not if no
// connection was made.
func sent(err error) bool {
	var op *net.OpError
	return !errors.Is(err, errHeader) && !(errors.As(err, &op) && op.Op == "dial")
}

// minKey is the minimum length in bytes of a key that is hidden in errors. Shorter keys are
// placeholders for servers without authentication, such as "none", and also occur in other text.
const minKey = 8

// retryable reports whether a repeated request may succeed. It removes the key from the text of
// err, because servers and proxies repeat it.
func (c *Client) retryable(err error) (*llm.ProviderError, bool) {
	var e *llm.ProviderError
	if !errors.As(err, &e) {
		return nil, false
	}
	if len(c.Key) >= minKey && strings.Contains(e.Message, c.Key) {
		e.Message = strings.ReplaceAll(e.Message, c.Key, "[key]")
		e.Err = nil // its text may contain the key too
	}
	return e, e.Retryable
}

// maxWait is the longest wait before a retry.
const maxWait = time.Minute

// backoff returns 1 s, 2 s, 4 s …, each times a random factor of 0.5 to 1.5, so that clients do
// not retry together.
func backoff(attempt int) time.Duration {
	base := time.Second << min(attempt, 6)
	return base/2 + rand.N(base)
}

// Header returns the headers of a Client's requests: a copy of the caller's headers, and the
// headers that all APIs require.
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

// Retries translates the number in an adapter's Options for Client: 0 means 2, less means never.
func Retries(n int) int {
	if n == 0 {
		return 2
	}
	return max(n, 0)
}
