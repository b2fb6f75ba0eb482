package http1_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/http1"
)

// One request of 8 KiB and an answer of 2 KiB over loopback, beside net/http. The server's work counts in both.
func BenchmarkPost(b *testing.B) {
	s := serve(b, always("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2048\r\n\r\n"+strings.Repeat("x", 2048)))
	body := make([]byte, 8<<10)
	b.Run("http1", func(b *testing.B) {
		tr := newTransport(b)
		b.ReportAllocs()
		for b.Loop() {
			x := &http1.Exchange{Host: s.host, Target: "/v1", Body: body}
			if err := tr.Do(b.Context(), x); err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, x)
			x.Close()
		}
	})
	b.Run("net/http", func(b *testing.B) {
		tr := new(http.Transport)
		b.Cleanup(tr.CloseIdleConnections)
		b.ReportAllocs()
		for b.Loop() {
			r, _ := http.NewRequestWithContext(b.Context(), "POST", "http://"+s.host+"/v1", bytes.NewReader(body))
			res, err := tr.RoundTrip(r)
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
}
