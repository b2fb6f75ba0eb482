package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/pawl-go/pawl/internal/test/load"
	"github.com/pawl-go/pawl/internal/test/speed"
)

// recorded is a request of the loop by hand.
type recorded struct {
	url    string
	header http.Header
	body   []byte
}

// recorder is an http.RoundTripper that records requests.
type recorder struct {
	mu   sync.Mutex
	sent []recorded
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.sent = append(r.sent, recorded{req.URL.String(), req.Header, body})
	r.mu.Unlock()
	req.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(req)
}

// newLimit returns a run of net/http alone: it sends the requests that the loop by hand sends, and
// reads the replies without decoding them. No loop on net/http can cost less.
func newLimit(t *task) (speed.Run, error) {
	var r recorder
	// The loop by hand runs once, to record the requests that it sends.
	if _, err := newHand(t, &r).run(context.Background()); err != nil {
		return nil, err
	}
	var buffers sync.Pool
	return func(ctx context.Context) (string, error) {
		b, _ := buffers.Get().(*bytes.Buffer)
		if b == nil {
			b = new(bytes.Buffer)
		}
		defer buffers.Put(b)
		for _, one := range r.sent {
			if err := one.exchange(ctx, b); err != nil {
				return "", err
			}
		}
		return load.Answer, nil // the last reply has it, in pieces if it is streamed
	}, nil
}

// exchange sends the request, and reads the reply into b.
func (r *recorded) exchange(ctx context.Context, b *bytes.Buffer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	req.Header = r.header
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b.Reset()
	if _, err := b.ReadFrom(res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", res.Status, b.Bytes())
	}
	return nil
}
