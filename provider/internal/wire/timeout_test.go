package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// transport answers requests from a function, without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	return f(r)
}

// events counts the events of a stream and stops at the event that ends it.
type events struct {
	out  *Emitter
	seen int
	over bool
}

func (d *events) Event(data []byte) error {
	d.seen++
	d.over = string(data) == `"end"`
	return nil
}
func (d *events) Over() bool              { return d.over }
func (d *events) Stated() bool            { return false }
func (d *events) End() error              { return nil }
func (d *events) Flush() error            { return nil }
func (d *events) Whole(body []byte) error { return nil }

// ask sends a request through carrier and returns its error and its duration.
func ask(t *testing.T, limits Timeouts, carrier http.RoundTripper) (time.Duration, error) {
	t.Helper()
	u, _ := url.Parse("http://local.test/v1")
	c := &Client{Provider: "test", Header: Header(nil), HTTP: carrier, Timeouts: limits,
		Decoder: func(out *Emitter) Decoder { return &events{out: out} },
		ToError: func(status int, _ http.Header, body []byte, _ time.Time) *llm.ProviderError {
			return &llm.ProviderError{Provider: "test", Status: status, Message: string(body)}
		}}
	start := time.Now()
	err := c.Send(t.Context(), u, []byte("{}"), false,
		&Emitter{Provider: "test", Yield: func(llm.Delta, error) bool { return true }})
	return time.Since(start), err
}

// stream returns a response with a body that write fills. Like net/http's, the body ends with the
// context of its request.
func stream(status int, write func(ctx context.Context, w io.Writer)) transport {
	return func(r *http.Request) (*http.Response, error) {
		pr, pw := io.Pipe()
		context.AfterFunc(r.Context(), func() { pw.CloseWithError(r.Context().Err()) })
		go func() {
			write(r.Context(), pw)
			pw.CloseWithError(r.Context().Err()) // nil means the end
		}()
		return &http.Response{StatusCode: status, Body: pr, ContentLength: -1}, nil
	}
}

func never(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// pings writes a comment at each interval.
func pings(w io.Writer, n int, interval time.Duration) {
	for range n {
		time.Sleep(interval) // a fake clock
		io.WriteString(w, ": ping\n\n")
	}
}

func TestTimeouts(t *testing.T) {
	hours := 3 * time.Hour
	for _, c := range []struct {
		name    string
		limits  Timeouts
		carrier transport
		want    string // part of the error; "" means no error
		after   time.Duration
	}{
		{"no answer", Timeouts{}, never, "no answer within 2m0s", 120 * time.Second},
		{"no answer, own limit", Timeouts{FirstByte: time.Second}, never, "no answer within 1s", time.Second},
		{"a late answer", Timeouts{}, func(r *http.Request) (*http.Response, error) {
			time.Sleep(119 * time.Second)
			return stream(200, func(ctx context.Context, w io.Writer) { io.WriteString(w, "data: \"end\"\n\n") })(r)
		}, "", 119 * time.Second},
		{"a very late answer, no limit", Timeouts{FirstByte: -1}, func(r *http.Request) (*http.Response, error) {
			time.Sleep(hours)
			return stream(200, func(ctx context.Context, w io.Writer) { io.WriteString(w, "data: \"end\"\n\n") })(r)
		}, "", hours},
		{"silence at once", Timeouts{}, stream(200, func(ctx context.Context, w io.Writer) { <-ctx.Done() }), "the reply fell silent for 2m0s", 120 * time.Second},
		{"silence after a while", Timeouts{Silence: 10 * time.Second}, stream(200, func(ctx context.Context, w io.Writer) {
			pings(w, 5, 9*time.Second)
			<-ctx.Done()
		}), "the reply fell silent for 10s", 55 * time.Second},
		{"pings count", Timeouts{}, stream(200, func(ctx context.Context, w io.Writer) {
			pings(w, 20, 119*time.Second)
			io.WriteString(w, "data: \"end\"\n\n")
		}), "", 20 * 119 * time.Second},
		{"silence without a limit", Timeouts{Silence: -1}, stream(200, func(ctx context.Context, w io.Writer) {
			pings(w, 1, hours)
			io.WriteString(w, "data: \"end\"\n\n")
		}), "", hours},
		{"silence in an error", Timeouts{}, stream(500, func(ctx context.Context, w io.Writer) {
			io.WriteString(w, "half")
			<-ctx.Done()
		}), "(500): half", 120 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took, err := ask(t, c.limits, c.carrier)
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if took != c.after {
					t.Errorf("took %v, want %v", took, c.after)
				}
				var e *llm.ProviderError
				if c.want != "" && (!errors.As(err, &e) || e.Status == 0 && (e.Code != llm.CodeTimeout || !e.Retryable)) {
					t.Errorf("%v is not a timeout that may be tried again", err)
				}
			})
		})
	}
}

// The time that the consumer takes does not count as silence of the provider.
func TestAConsumerMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var w watch
		w.begin(cancel, time.Minute)
		defer w.stop()
		body := w.read(pr, time.Minute)
		go pw.Write([]byte("abc"))
		if n, err := body.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatalf("read %d, %v", n, err)
		}
		time.Sleep(5 * time.Hour)
		if n, err := body.Read(make([]byte, 1)); n != 1 || err != nil || ctx.Err() != nil {
			t.Errorf("after a long pause: read %d, %v; context: %v", n, err, context.Cause(ctx))
		}
		pr.Close()
	})
}

func TestConnectTimeout(t *testing.T) {
	for _, c := range []struct {
		limit, want time.Duration
	}{{10 * time.Second, 10 * time.Second}, {time.Second, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(c.limit, func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			tr.Proxy = nil
			took, err := ask(t, Timeouts{}, tr)
			var e *llm.ProviderError
			if !errors.As(err, &e) || e.Code != llm.CodeTimeout || !strings.Contains(e.Message, "no connection within") {
				t.Errorf("got %v, want a timeout", err)
			}
			if took != c.want {
				t.Errorf("took %v, want %v", took, c.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	if got, want := (Timeouts{}).limits(), (Timeouts{10 * time.Second, 120 * time.Second,
		120 * time.Second}); got != want {
		t.Errorf("the defaults are %v, want %v", got, want)
	}
	if got, want := (Timeouts{-1, time.Hour, -1}).limits(), (Timeouts{0, time.Hour, 0}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
