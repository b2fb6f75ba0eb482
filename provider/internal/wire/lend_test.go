package wire_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// A RoundTripper reads the body as often as it likes; what it reads once the exchange is over is never what the caller has written into the body since.
func TestABodyIsLent(t *testing.T) {
	for _, size := range []int{1, 100, 16 << 10, 16<<10 + 1, 300 << 10} {
		want := bytes.Repeat([]byte("a"), size)
		body := bytes.Clone(want)
		late := make(chan []byte)
		begun := make(chan struct{})
		c := &wire.Client{Provider: "test", Header: wire.Header(nil), HTTP: carrier(func(r *http.Request) (*http.Response, error) {
			for range 2 {
				again, err := r.GetBody()
				if err != nil {
					return nil, err
				}
				if got, err := io.ReadAll(again); err != nil || !bytes.Equal(got, want) || again.Close() != nil {
					t.Errorf("%d bytes: %d, %v", size, len(got), err)
				}
			}
			if r.ContentLength != int64(size) {
				t.Errorf("%d bytes: a length of %d", size, r.ContentLength)
			}
			go func() { // it reads on, and the caller does not wait for it
				var all []byte
				p := make([]byte, 100)
				n, err := r.Body.Read(p)
				close(begun)
				for ; err == nil; n, err = r.Body.Read(p) {
					all = append(all, p[:n]...)
				}
				late <- append(all, p[:n]...)
			}()
			<-begun
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: r}, nil
		}), ToError: func(int, http.Header, []byte, time.Time) *llm.ProviderError { return nil }}
		u, err := url.Parse("https://localhost/")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Post(context.Background(), u, body, func([]byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range body {
			body[i] = 'b'
		}
		if got := <-late; !bytes.HasPrefix(want, got) {
			t.Errorf("%d bytes: the reader saw what was written later", size)
		}
	}
}
