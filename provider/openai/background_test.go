package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/background"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

type (
	simOptions = pawltest.SimulatorOptions
	fault      = pawltest.Fault
)

var faults = pawltest.Faults

// fragmented is a reply with a call in fragments.
func fragmented() *script.Model {
	return &script.Model{Turns: []script.Turn{{Parts: []llm.Part{llm.Text{Text: "I look it up now."},
		llm.ToolCall{ID: "a", Name: "f", Args: []byte(`{"x":1}`)}}, Usage: &llm.Usage{Input: 7, Output: 5}}}}
}

const answerText = `text "I look it up now."; call a f {"x":1}; tool_calls; in 7 out 5`

// sim starts a simulator, and returns a model that asks it for replies in the background.
func sim(t *testing.T, m llm.Model, o *simOptions) (*pawltest.Simulator, *openai.Model) {
	t.Helper()
	s, err := pawltest.NewSimulator(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, openai.New("gpt-5", &openai.Options{BaseURL: s.URL, Key: "k", Background: true, Poll: time.Millisecond})
}

// kept returns a context whose replies stay at the provider.
func kept() context.Context {
	return background.With(context.Background(), func() bool { return true })
}

// paths returns the requests that s received, each id of a response as ID.
func paths(s *pawltest.Simulator) string {
	var all []string
	for _, r := range s.Received() {
		p := r.Method + " " + strings.TrimPrefix(r.Path, "/v1/responses")
		id, _, found := strings.Cut(strings.TrimPrefix(r.Path, "/v1/responses/"), "/")
		if found || r.Method == http.MethodGet {
			p = strings.Replace(p, "/"+id, "/ID", 1)
		}
		if r.Query != "" {
			p += "?" + r.Query
		}
		all = append(all, strings.TrimSpace(p))
	}
	return strings.Join(all, ", ")
}

// answered sends req, and returns the reply, the notices and Delta.Background.
func answered(m llm.Model, req *llm.Request) (got string, notices []string, later *llm.Opaque, requests int) {
	resp := new(llm.Response)
	for d, err := range m.Stream(context.Background(), req) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil {
			return outcome(resp, err), notices, later, resp.Requests
		}
		if d.Notice != nil {
			notices = append(notices, d.Notice.Code)
		}
		if d.Background != nil {
			later = d.Background
		}
	}
	return outcome(resp, nil), notices, later, resp.Requests
}

// pollsFail answers the questions for a reply with status, after the first skip requests.
func pollsFail(status, skip int) func(int, *pawltest.Received) *fault {
	return func(n int, r *pawltest.Received) *fault {
		if r.Method == http.MethodGet && n > skip {
			return &fault{Status: status}
		}
		return nil
	}
}

func TestBackground(t *testing.T) {
	many := func(string, int) bool { return true }
	lost := &llm.Opaque{Provider: "openai@127.0.0.1", Data: []byte(`{"id":"resp_gone","stream":true}`)}
	for _, c := range []struct {
		name       string
		whole      bool
		opts       pawltest.SimulatorOptions
		background *llm.Opaque
		want       string
		paths      string
		notices    string
		requests   int
	}{
		{name: "polled", whole: true, want: answerText, notices: "background", paths: "POST, GET /ID, GET /ID"},
		{name: "polled for long", whole: true, want: answerText, notices: "background",
			opts:  simOptions{Background: func(_ string, n int) bool { return n < 5 }},
			paths: "POST, GET /ID, GET /ID, GET /ID, GET /ID, GET /ID"},
		{name: "a poll fails twice", whole: true, want: answerText, notices: "background",
			opts:  simOptions{Fault: faults(nil, &fault{Status: 503}, &fault{Break: true})},
			paths: "POST, GET /ID, GET /ID, GET /ID"},
		{name: "all polls fail", whole: true, want: "error overloaded 503 retryable: made to fail", notices: "background", requests: 1,
			opts: simOptions{Fault: func(n int, _ *pawltest.Received) *pawltest.Fault {
				if n > 1 {
					return &fault{Status: 503}
				}
				return nil
			}}, paths: "POST, GET /ID, GET /ID, GET /ID"},
		{name: "the first request fails", whole: true, want: answerText, notices: "retry, background", requests: 1,
			opts:  simOptions{Fault: faults(&fault{Status: 429, RetryAfter: "0.001"})},
			paths: "POST, POST, GET /ID, GET /ID"},
		{name: "streamed", want: answerText, notices: "background", paths: "POST"},
		{name: "a stream breaks at once", want: answerText, notices: "background", paths: "POST, GET /ID?starting_after=0&stream=true",
			opts: simOptions{Fault: faults(&fault{Break: true, After: 1})}},
		{name: "the server does not continue a stream", want: answerText, notices: "background",
			paths: "POST, GET /ID?starting_after=0&stream=true, GET /ID, GET /ID",
			opts:  simOptions{Fault: faults(&fault{Break: true, After: 1}, &fault{Status: 400})}},
		{name: "a stream that never continues", notices: "background", requests: 1,
			want:  "error stream retryable: the stream ended before the response was completed",
			paths: "POST, GET /ID?starting_after=7&stream=true, GET /ID?starting_after=7&stream=true",
			opts: simOptions{Fault: func(n int, _ *pawltest.Received) *pawltest.Fault {
				if n > 1 {
					return &fault{Raw: "\n"}
				}
				return &fault{Break: true, After: 8}
			}}},
		{name: "a stream breaks in a text", want: answerText, notices: "background", paths: "POST, GET /ID?starting_after=7&stream=true",
			opts: simOptions{Fault: faults(&fault{Break: true, After: 8})}},
		{name: "a stream breaks twice", want: answerText, notices: "background",
			paths: "POST, GET /ID?starting_after=7&stream=true, GET /ID?starting_after=8&stream=true",
			opts:  simOptions{Fault: faults(&fault{Break: true, After: 8}, &fault{Break: true, After: 1})}},
		{name: "an earlier reply is not known any more", background: lost, want: answerText, notices: "background_lost, background",
			paths: "GET /ID?stream=true, GET /ID, POST"},
		{name: "an earlier reply is lost, and the next one too", whole: true, background: lost, requests: 1,
			notices: "background_lost, background", paths: "GET /ID, POST, GET /ID",
			want: "error not_found 404: made to fail", opts: simOptions{Fault: pollsFail(404, 1)}},
		{name: "the server has no stream of a reply", want: answerText, notices: "background",
			paths: "POST, GET /ID?starting_after=0&stream=true, GET /ID, GET /ID",
			opts:  simOptions{Fault: faults(&fault{Break: true, After: 1}, &fault{Status: 404})}},
		{name: "a reply is lost", whole: true, want: answerText, notices: "background, background_lost, background", requests: 1,
			opts:  simOptions{Fault: faults(nil, &fault{Status: 404})},
			paths: "POST, GET /ID, POST, GET /ID, GET /ID"},
		{name: "a reply is lost after its stream broke", want: answerText, requests: 1,
			notices: "background, background_lost, background",
			opts:    simOptions{Fault: faults(&fault{Break: true, After: 1}, &fault{Status: 404}, &fault{Status: 404})},
			paths:   "POST, GET /ID?starting_after=0&stream=true, GET /ID, POST"},
		{name: "each reply is lost", whole: true, want: "error not_found 404: made to fail", requests: 2,
			notices: "background, background_lost, background", paths: "POST, GET /ID, POST, GET /ID",
			opts: simOptions{Fault: pollsFail(404, 0)}},
		{name: "a reply is lost in a text", want: "error not_found 404: made to fail", notices: "background", requests: 1,
			opts:  simOptions{Fault: faults(&fault{Break: true, After: 8}, &fault{Status: 404})},
			paths: "POST, GET /ID?starting_after=7&stream=true"},
		{name: "the model of a reply is not known", whole: true, want: "error not_found: no such model", notices: "background", requests: 1,
			opts: simOptions{Fault: faults(nil, &fault{Body: []byte(`{"id":"x","status":"failed","output":[],` +
				`"error":{"code":"model_not_found","message":"no such model"}}`)})},
			paths: "POST, GET /ID"},
		{name: "of another provider", background: &llm.Opaque{Provider: "anthropic", Data: lost.Data}, want: answerText,
			notices: "background", paths: "POST"},
		{name: "the response fails", whole: true, want: `error server: the response has the status "cancelled"`, notices: "background", requests: 1,
			opts:  simOptions{Background: many, Fault: faults(nil, &fault{Body: []byte(`{"id":"x","status":"cancelled","output":[]}`)})},
			paths: "POST, GET /ID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, m := sim(t, fragmented(), &c.opts)
			req := user("go")
			req.Whole, req.Tools, req.Background = c.whole, []*llm.ToolSpec{tool("f")}, c.background
			got, notices, _, requests := answered(m, req)
			got = fmt.Sprintf("%s, notices %s, requests %d", got, strings.Join(notices, ", "), requests)
			if want := fmt.Sprintf("%s, notices %s, requests %d", c.want, c.notices, c.requests); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if got := paths(s); got != c.paths {
				t.Errorf("received %s, want %s", got, c.paths)
			}
			first := s.Received()[0]
			if first.Method == http.MethodPost && !strings.Contains(string(first.Body), `"background":true,"store":true`) {
				t.Errorf("the body asks for no reply in the background: %s", first.Body)
			}
		})
	}
}

// A reply is fetched after a restart, with one request for it in all. Its stream is shown from its
// beginning.
func TestBackgroundLater(t *testing.T) {
	for _, whole := range []bool{true, false} {
		t.Run(fmt.Sprint("whole ", whole), func(t *testing.T) {
			var busy atomic.Bool
			busy.Store(true)
			s, m := sim(t, fragmented(), &simOptions{Background: func(string, int) bool { return busy.Load() },
				Fault: faults(&fault{Stall: make(chan struct{}), After: 5})})
			req := user("go")
			req.Whole, req.Tools = whole, []*llm.ToolSpec{tool("f")}
			var later *llm.Opaque
			for d := range m.Stream(kept(), req) {
				if later = d.Background; later != nil {
					break // the process is gone
				}
			}
			if later == nil {
				t.Fatal("the model names no reply in the background")
			}
			busy.Store(false)
			req.Background = later
			got, _, _, requests := answered(m, req)
			if got != answerText || requests != 0 {
				t.Errorf("got %s, requests %d, want %s", got, requests, answerText)
			}
			want := "POST, GET /ID"
			if !whole {
				want += "?stream=true"
			}
			if got := paths(s); got != want {
				t.Errorf("received %s, want %s", got, want)
			}
		})
	}
}

// A request that ends early cancels the reply, unless an engine keeps it.
func TestBackgroundCancelled(t *testing.T) {
	for _, whole := range []bool{true, false} {
		for _, keep := range []bool{true, false} {
			t.Run(fmt.Sprint("whole ", whole, " kept ", keep), func(t *testing.T) {
				s, m := sim(t, fragmented(), &simOptions{Background: func(string, int) bool { return true },
					Fault: faults(&fault{Stall: make(chan struct{}), After: 5})})
				ctx := context.Background()
				if keep {
					ctx = kept()
				}
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				req := user("go")
				req.Whole = whole
				stop := errors.New("stop")
				var err error
				for d, e := range m.Stream(ctx, req) {
					if err = e; d.Background != nil {
						cancel(stop)
					}
				}
				if !errors.Is(err, stop) {
					t.Errorf("the error is %v, want %v", err, stop)
				}
				all := strings.Split(paths(s), ", ")
				if cancelled := slices.Contains(all, "POST /ID/cancel"); cancelled == keep {
					t.Errorf("received %s, kept %v", paths(s), keep)
				}
			})
		}
	}
}

// Options of a request override the Model's, and only Responses has replies in the background.
func TestBackgroundOptions(t *testing.T) {
	s, m := sim(t, fragmented(), nil)
	req := user("go")
	req.Whole = true
	req.Settings.Options = map[string]json.RawMessage{"openai": json.RawMessage(`{"background":false}`)}
	answered(m, req)
	req.Settings.Options["openai"] = json.RawMessage(`{"background":true,"store":false}`)
	s2, err := pawltest.NewSimulator(fragmented(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	plain := openai.New("gpt-5", &openai.Options{BaseURL: s2.URL, Key: "k", Poll: time.Millisecond})
	if got, _, _, _ := answered(plain, req); got != answerText {
		t.Errorf("got %s, want %s", got, answerText)
	}
	if got, want := paths(s)+"; "+paths(s2), "POST; POST, GET /ID, GET /ID"; got != want {
		t.Errorf("received %s, want %s", got, want)
	}
	chat := openai.NewChat("gpt-5", &openai.Options{BaseURL: s.URL, Key: "k", Background: true})
	want := "error unsupported: background: Chat Completions has no replies in the background; openai: has them"
	if got, _, _, _ := answered(chat, user("go")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A Model reads the recorded replies that OpenAI computed in the background: polled, and as a
// stream that broke off.
func TestRecordedBackground(t *testing.T) {
	played := 0
	for _, c := range wiretest.Cassettes(t, pawltest.Responses) {
		if !strings.Contains(c.Name, "test_background_mode") {
			continue
		}
		played++
		streamed := c.Exchanges[0].Streaming
		next := 0
		m := openai.New("gpt-4o", &openai.Options{Key: "k", BaseURL: openai.DefaultBaseURL, Background: true,
			Poll: time.Millisecond, HTTP: transport(func(r *http.Request) (*http.Response, error) {
				e := c.Exchanges[next]
				next++
				if r.Method != e.Method || r.URL.Path != e.Path {
					t.Errorf("%s: %s %s, recorded %s %s", e.Name(), r.Method, r.URL.Path, e.Method, e.Path)
				}
				body, err := e.Body()
				if err != nil {
					return nil, err
				}
				if streamed && r.Method == http.MethodPost {
					// the client left after the first event
					first, _, _ := strings.Cut(string(body), "event: response.queued")
					body = []byte(first)
				} else if streamed && r.URL.RawQuery != "starting_after=0&stream=true" {
					t.Errorf("%s: the query is %s", e.Name(), r.URL.RawQuery)
				}
				header := http.Header{"Content-Type": {e.Response.Headers["content-type"]}}
				return &http.Response{StatusCode: e.Response.Status, Header: header,
					Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
			})})
		req := user("What is 2 + 2?")
		req.Whole = !streamed
		got, _, _, _ := answered(m, req)
		if !strings.HasPrefix(got, `text "2 + 2 equals 4."; stop`) || next != len(c.Exchanges) {
			t.Errorf("%s: got %s with %d of %d exchanges", c.Name, got, next, len(c.Exchanges))
		}
	}
	if played != 2 {
		t.Errorf("%d recordings, want 2", played)
	}
}
