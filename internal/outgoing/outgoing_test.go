package outgoing_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl/internal/outgoing"
)

// A request whose function refuses it does not reach the server, over new and used connections of
// HTTP/1 and HTTP/2, also if net/http could send it again. Control: without a refusal it arrives.
func TestBefore(t *testing.T) {
	refused := errors.New("not stored")
	for _, h2 := range []bool{false, true} {
		var arrived atomic.Int32
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			arrived.Add(1)
		}))
		web.EnableHTTP2 = h2
		web.StartTLS()
		defer web.Close()

		send := func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL, strings.NewReader("pay"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Idempotency-Key", "1")
			res, err := web.Client().Do(r)
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, res.Body)
			return res.Body.Close()
		}
		refuse := outgoing.Before(t.Context(), func() error { return refused })
		if err := send(refuse); err == nil || arrived.Load() != 0 {
			t.Errorf("HTTP/2 %v, new: %v, arrived %d times", h2, err, arrived.Load())
		}

		asked := 0
		allow := outgoing.Before(t.Context(), func() error { asked++; return nil })
		for range 2 {
			if err := send(allow); err != nil {
				t.Fatal(err)
			}
		}
		if asked != 2 || arrived.Load() != 2 {
			t.Errorf("HTTP/2 %v: asked %d times, arrived %d times", h2, asked, arrived.Load())
		}

		refuse = outgoing.Before(t.Context(), func() error { return refused })
		if err := send(refuse); err == nil || arrived.Load() != 2 {
			t.Errorf("HTTP/2 %v, used: %v, arrived %d times", h2, err, arrived.Load())
		}
	}
}
