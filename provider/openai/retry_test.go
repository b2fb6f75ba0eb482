package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

func TestRetries(t *testing.T) {
	ok := func() (*http.Response, error) { return reply(200, whole("stop", `{"content":"hi"}`)), nil }
	status := func(status int, header ...string) func() (*http.Response, error) {
		return func() (*http.Response, error) { return reply(status, `{"error":{"message":"no"}}`, header...), nil }
	}
	body := func(s string) func() (*http.Response, error) {
		return func() (*http.Response, error) { return reply(200, s), nil }
	}
	for _, c := range []struct {
		name     string
		retries  int
		answers  []func() (*http.Response, error)
		sent     int
		min, max time.Duration // waiting time in all
		want     string
	}{
		{"twice, doubling", 0, []func() (*http.Response, error){status(500), status(503), ok}, 3,
			1500 * time.Millisecond, 4500 * time.Millisecond, `text "hi"; stop`},
		{"no more than twice", 0, []func() (*http.Response, error){status(500), status(500), status(500), ok}, 3,
			1500 * time.Millisecond, 4500 * time.Millisecond, `error server 500 retryable: no`},
		{"never", -1, []func() (*http.Response, error){status(500), ok}, 1, 0, 0, `error server 500 retryable: no`},
		{"as the provider says", 0, []func() (*http.Response, error){status(429, "Retry-After", "7"), ok}, 2, 7 * time.Second, 7 * time.Second, `text "hi"; stop`},
		{"not for an hour", 0, []func() (*http.Response, error){status(429, "Retry-After", "3600"), ok}, 1, 0, 0, `error rate_limit 429 retryable after 1h0m0s: no`},
		{"not what cannot work", 0, []func() (*http.Response, error){status(400), ok}, 1, 0, 0, `error invalid_request 400: no`},
		{"a lost connection", 0, []func() (*http.Response,
			error){func() (*http.Response, error) { return nil, errors.New("connection reset") }, ok}, 2,
			500 * time.Millisecond, 1500 * time.Millisecond, `text "hi"; stop`},
		{"an error before the first fragment", 0, []func() (*http.Response,
			error){body(events(`{"error":{"code":503,"message":"busy"}}`)), ok}, 2, 500 * time.Millisecond, 1500 * time.Millisecond, `text "hi"; stop`},
		{"a stream that ends before the first fragment", 0, []func() (*http.Response, error){body(": hello\n\n"), ok}, 2, 500 * time.Millisecond, 1500 * time.Millisecond, `text "hi"; stop`},
		{"calls that are announced, before the first fragment", 0, []func() (*http.Response,
			error){body(deltas("tool_calls")), ok}, 2, 500 * time.Millisecond, 1500 * time.Millisecond, `text "hi"; stop`},
		{"a stream with a gap, before the first fragment", 0, []func() (*http.Response,
			error){body(deltas("tool_calls", `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`)), ok}, 2,
			500 * time.Millisecond, 1500 * time.Millisecond, `text "hi"; stop`},
		{"not a stream with a gap, after the first fragment", 0, []func() (*http.Response,
			error){body(deltas("tool_calls", `{"content":"I look."}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`)),
			ok}, 1, 0, 0, lost + `arguments came for a call that had not begun`},
		{"not after the first fragment", 0, []func() (*http.Response, error){body(events(`{"choices":[{"index":0,"delta":{"content":"h"}}]}`)), ok}, 1, 0, 0, `error stream retryable: the stream ended without a finish reason`},
	} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			var bodies []string
			m := openai.NewChat("m", &openai.Options{BaseURL: "http://local.test/v1", Retries: c.retries,
				HTTP: transport(func(r *http.Request) (*http.Response, error) {
					b, _ := io.ReadAll(r.Body)
					bodies = append(bodies, string(b))
					sent++
					return c.answers[sent-1]()
				})})
			start := time.Now()
			res, notices, err := ask(t.Context(), m, user("go"), true)
			waited := time.Since(start)
			if got := outcome(res, err); got != c.want || sent != c.sent || waited < c.min || waited > c.max {
				t.Errorf("%s: got %s after %d requests and %v; want %s, %d, %v to %v", c.name, got, sent, waited, c.want, c.sent, c.min, c.max)
			}
			if len(notices) != c.sent-1 || len(notices) > 0 && notices[0].Code != "retry" {
				t.Errorf("%s: notices %v, want one for each repetition", c.name, notices)
			}
			for _, b := range bodies {
				if b != bodies[0] {
					t.Errorf("%s: a repeated request has other bytes", c.name)
				}
			}
		})
	}
}

func TestCancel(t *testing.T) {
	cause := errors.New("enough")
	t.Run("while waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			m := local(func(*http.Request) (*http.Response, error) { return reply(500, ``), nil })
			time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
			start := time.Now()
			if _, _, err := ask(ctx, m, user("go"), true); !errors.Is(err, cause) ||
				time.Since(start) != 100*time.Millisecond {
				t.Errorf("%v after %v; want the cause at once", err, time.Since(start))
			}
		})
	})
	t.Run("while reading", func(t *testing.T) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		gone := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, events(`{"choices":[{"index":0,"delta":{"content":"h"}}]}`))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(gone)
		}))
		defer srv.Close()
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		ctx, cancel := context.WithCancelCause(t.Context())
		m := openai.NewChat("m", &openai.Options{BaseURL: srv.URL + "/v1", HTTP: tr})
		defer cancel(nil)
		var last error
		for _, err := range m.Stream(ctx, user("go")) {
			cancel(cause)
			last = err
		}
		if !errors.Is(last, cause) {
			t.Errorf("got %v, want the cause", last)
		}
		<-gone
	})
	t.Run("by leaving the loop", func(t *testing.T) {
		gone := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, events(`{"choices":[{"index":0,"delta":{"content":"h"}}]}`))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(gone)
		}))
		defer srv.Close()
		for range openai.NewChat("m", &openai.Options{BaseURL: srv.URL + "/v1"}).Stream(t.Context(), user("go")) {
			break
		}
		<-gone
	})
}

// A server that keeps the connection open after the end of the reply does not block the run.
func TestServerThatDoesNotHangUp(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/responses") {
			io.WriteString(w, events(`{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`, done))
		} else {
			io.WriteString(w, deltas("stop", `{"content":"hi"}`))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	for _, m := range []llm.Model{openai.New("m", &openai.Options{BaseURL: srv.URL}),
		openai.NewChat("m", &openai.Options{BaseURL: srv.URL})} {
		if res, _, err := ask(t.Context(), m, user("go"), true); err != nil || res.Message.Text() != "hi" {
			t.Errorf("got %v, %v", res, err)
		}
	}
}
