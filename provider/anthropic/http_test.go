package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// drain joins the answer of m and returns the notices next to it.
func drain(m llm.Model, req *llm.Request) (*llm.Response, []string, error) {
	res := new(llm.Response)
	var notices []string
	for d, err := range m.Stream(context.Background(), req) {
		if err == nil {
			err = res.Add(d)
		}
		if err != nil {
			return res, notices, err
		}
		if d.Notice != nil {
			notices = append(notices, d.Notice.Code+": "+d.Notice.Text)
		}
	}
	return res, notices, nil
}

func TestOverHTTP(t *testing.T) {
	for _, whole := range []bool{false, true} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			want, _ := anthropic.EncodeMessages(&llm.Request{Model: "claude-sonnet-4-5",
				Messages: []llm.Message{llm.User("hi")}, Whole: whole})
			if got := unmarked(string(body)); got != unmarked(string(want)) {
				t.Errorf("body %s\nwant %s", got, want)
			}
			for name, want := range map[string]string{"X-Api-Key": "secret", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "a,b", "Content-Type": "application/json", "X-Own": "1", "Authorization": ""} {
				if got := strings.Join(r.Header.Values(name), ","); got != want {
					t.Errorf("header %s: got %q, want %q", name, got, want)
				}
			}
			if r.URL.Path != "/proxy/v1/messages" || r.Method != "POST" {
				t.Errorf("%s %s", r.Method, r.URL.Path)
			}
			if whole {
				io.WriteString(w, whole1)
			} else {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, stream1)
			}
		}))
		tr := &http.Transport{}
		m := anthropic.New("claude-sonnet-4-5", &anthropic.Options{BaseURL: srv.URL + "/proxy/v1", Key: "secret",
			Betas: []string{"a", "b"}, Header: http.Header{"X-Own": {"1"}}, HTTP: tr})
		req := user("hi")
		req.Whole = whole
		res, _, err := drain(m, req)
		if got, want := outcome(res, err), `text "Hello"; stop`+used; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		tr.CloseIdleConnections()
		srv.Close()
	}
}

var (
	whole1  = whole("end_turn", `{"type":"text","text":"Hello"}`)
	stream1 = stream("end_turn", opens(0, `{"type":"text","text":""}`), adds(0, `{"type":"text_delta","text":"Hello"}`), closes(0))
)

func TestAddresses(t *testing.T) {
	const vertex = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models"
	for _, c := range []struct {
		base  string
		whole bool
		want  string
	}{
		{"", false, "https://api.anthropic.com/v1/messages X-Api-Key"},
		{"https://api.anthropic.com/", false, "https://api.anthropic.com/v1/messages X-Api-Key"},
		{"https://api.anthropic.com/v1", true, "https://api.anthropic.com/v1/messages X-Api-Key"},
		{"http://gateway.test/anthropic?key=1", true, "http://gateway.test/anthropic/v1/messages?key=1 X-Api-Key"},
		{vertex, true, vertex + "/claude-3-7-sonnet@20250219:rawPredict Authorization"},
		{vertex + "/", false, vertex + "/claude-3-7-sonnet@20250219:streamRawPredict Authorization"},
	} {
		t.Setenv("ANTHROPIC_BASE_URL", "")
		var got, body string
		m := anthropic.New("claude-3-7-sonnet@20250219",
			&anthropic.Options{BaseURL: c.base, Key: "k", HTTP: transport(func(r *http.Request) (*http.Response, error) {
				got = r.URL.String()
				for _, h := range []string{"X-Api-Key", "Authorization"} {
					if r.Header.Get(h) != "" {
						got += " " + h
					}
				}
				b, _ := io.ReadAll(r.Body)
				body = string(b)
				return reply(200, whole1), nil
			})})
		req := &llm.Request{Messages: []llm.Message{llm.User("hi")}, Whole: c.whole}
		if _, _, err := drain(m, req); err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.base, got, c.want)
		}
		onVertex := strings.HasPrefix(c.base, vertex)
		if has := strings.HasPrefix(body, `{"anthropic_version":"vertex-2023-10-16","max_tokens":`) && !strings.Contains(body, `"model"`); has != onVertex {
			t.Errorf("%s: body %s", c.base, body)
		}
		// Servers that do not know the mark outside the messages get one within the messages.
		if outside := strings.Contains(body, `],"cache_control"`); outside == (onVertex || strings.Contains(c.base, "gateway")) {
			t.Errorf("%s: body %s", c.base, body)
		}
	}
}

func TestGatewayMarks(t *testing.T) {
	for _, off := range []bool{false, true} {
		var body string
		m := anthropic.New("m", &anthropic.Options{BaseURL: "http://gateway.test", NoCache: off,
			HTTP: transport(func(r *http.Request) (*http.Response, error) {
				b, _ := io.ReadAll(r.Body)
				body = string(b)
				return reply(200, whole1), nil
			})})
		messages := []llm.Message{llm.System("S"), llm.User("one"), llm.Assistant(llm.Text{Text: "two"}),
			llm.User("three"), llm.Assistant(llm.Text{Text: "four"}), llm.User("five")}
		if _, _, err := drain(m, &llm.Request{Messages: messages, Tools: []*llm.ToolSpec{tool("f")},
			Whole: true}); err != nil {
			t.Fatal(err)
		}
		const mark = `,"cache_control":{"type":"ephemeral"}}`
		want := 4
		if off {
			want = 0
		}
		if n := strings.Count(body, mark); n != want {
			t.Errorf("off %t: %d marks: %s", off, n, body)
		}
		if !off && (!strings.Contains(body, `"three"`+mark) || !strings.Contains(body, `"five"`+mark)) {
			t.Errorf("the last two turns are not marked: %s", body)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_BASE_URL", "")
	none := transport(func(r *http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return nil, io.EOF
	})
	for _, c := range []struct {
		o    anthropic.Options
		want string
	}{
		{anthropic.Options{HTTP: none}, "error authentication: no API key: ANTHROPIC_API_KEY is not set"},
		{anthropic.Options{HTTP: none, Key: "a\nb"}, "error authentication: the API key has a control character"},
		{anthropic.Options{HTTP: none, BaseURL: "ftp://k@x"}, "error invalid_request: the base URL is not an http or https address"},
	} {
		_, _, err := drain(anthropic.New("m", &c.o), user("hi"))
		if got := outcome(nil, err); !strings.HasPrefix(got, c.want) {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	t.Setenv("ANTHROPIC_API_KEY", "from-env")
	t.Setenv("ANTHROPIC_BASE_URL", "http://env.test")
	_, _, err := drain(anthropic.New("m", &anthropic.Options{Retries: -1,
		HTTP: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "env.test" || r.Header.Get("X-Api-Key") != "from-env" {
				t.Errorf("sent to %s with %v", r.URL, r.Header)
			}
			return reply(401, `{"type":"error","error":{"type":"authentication_error","message":"bad key from-env"}}`), nil
		})}), user("hi"))
	if got, want := outcome(nil, err), "error authentication 401: bad key [key]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// A placeholder for a server without authentication is an ordinary word.
	_, _, err = drain(anthropic.New("m", &anthropic.Options{Retries: -1, Key: "none", BaseURL: "http://own.test",
		HTTP: transport(func(*http.Request) (*http.Response, error) {
			return reply(404, `{"type":"error","error":{"type":"not_found_error","message":"none of the models"}}`), nil
		})}), user("hi"))
	if got, want := outcome(nil, err), "error not_found 404: none of the models"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRetries(t *testing.T) {
	busy := func() *http.Response {
		return reply(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Retry-After", "3")
	}
	inStream := func() *http.Response {
		return reply(200, events(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	}
	late := func() *http.Response {
		return reply(200, events(begin, opens(0, `{"type":"text","text":"a"}`), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	}
	good := func() *http.Response { return reply(200, stream1) }
	for _, c := range []struct {
		name    string
		answers []func() *http.Response
		want    string
		wait    time.Duration // at least
	}{
		{"twice overloaded", []func() *http.Response{busy, busy, good}, `text "Hello"; stop` + used, 6 * time.Second},
		{"three times", []func() *http.Response{busy, busy, busy}, "error overloaded 529 retryable after 3s: Overloaded", 6 * time.Second},
		{"an error before the first fragment", []func() *http.Response{inStream, good}, `text "Hello"; stop` + used, 0},
		{"an error after it", []func() *http.Response{late}, "error overloaded retryable: Overloaded", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			m := anthropic.New("m", &anthropic.Options{BaseURL: "http://local.test",
				HTTP: transport(func(*http.Request) (*http.Response, error) {
					n++
					return c.answers[n-1](), nil
				})})
			start := time.Now()
			res, notices, err := drain(m, user("hi"))
			if got := outcome(res, err); got != c.want || n != len(c.answers) || len(notices) != n-1 {
				t.Errorf("%s: got %s after %d requests, %v; want %s", c.name, got, n, notices, c.want)
			}
			if time.Since(start) < c.wait {
				t.Errorf("%s: waited %v, want %v", c.name, time.Since(start), c.wait)
			}
		})
	}
}

func TestBetasOfARequest(t *testing.T) {
	var got []string
	m := anthropic.New("m", &anthropic.Options{BaseURL: "http://local.test", Betas: []string{"a"},
		HTTP: transport(func(r *http.Request) (*http.Response, error) {
			got = append(got, r.Header.Get("Anthropic-Beta"))
			b, _ := io.ReadAll(r.Body)
			if strings.Contains(string(b), "betas") {
				t.Errorf("the betas stand in the body: %s", b)
			}
			return reply(200, stream1), nil
		})})
	for _, o := range []string{`{"betas":["b","c"]}`, `{"top_k":1}`} {
		req := user("hi")
		req.Settings.Options = options(o)
		drain(m, req)
	}
	if want := "a,b,c|a"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A paused turn is continued with its content so far. It is one reply with the usage of all its
// requests.
func TestPausedTurns(t *testing.T) {
	search := func(i int) string {
		return fmt.Sprintf(`{"type":"server_tool_use","id":"s%d","name":"web_search","input":{}}`, i)
	}
	for _, whole1 := range []bool{true, false} {
		answer := func(reason string, block string) *http.Response {
			if whole1 {
				return reply(200, whole(reason, block))
			}
			return reply(200, stream(reason, opens(0, block), closes(0)))
		}
		var bodies []string
		m := anthropic.New("m", &anthropic.Options{BaseURL: "https://api.anthropic.com", Key: "k",
			HTTP: transport(func(r *http.Request) (*http.Response, error) {
				b, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(b))
				if n := len(bodies); n < 3 {
					return answer("pause_turn", search(n)), nil
				}
				return answer("end_turn", `{"type":"text","text":"Found."}`), nil
			})})
		req := user("hi")
		req.Whole = whole1
		req.Settings.Options = options(`{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`)
		res, _, err := drain(m, req)
		want := `reasoning "" [anthropic ` + search(1) + `]; reasoning "" [anthropic ` + search(2) + `]; text "Found."; stop; in 45 out 21 read 9 write 6`
		if got := outcome(res, err); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if len(bodies) != 3 || !strings.Contains(bodies[2], `{"role":"assistant","content":[`+search(1)+`,`+search(2)+`]}]`) {
			t.Errorf("sent %q", bodies)
		}
	}
	// Without a tool of the server, nothing can be continued.
	var e *llm.ProviderError
	lone := anthropic.New("m", &anthropic.Options{BaseURL: "http://local.test", HTTP: transport(func(*http.Request) (*http.Response, error) {
		return reply(200, whole("pause_turn", `{"type":"text","text":"searching"}`)), nil
	})})
	if res, _, err := drain(lone, user("hi")); !errors.As(err, &e) || e.Code != llm.CodeMalformedReply {
		t.Errorf("got %s", outcome(res, err))
	}
	// A turn that pauses again and again is no answer. Each of its requests is counted once.
	n, counted, last := 0, 0, error(nil)
	m := anthropic.New("m", &anthropic.Options{BaseURL: "http://local.test", HTTP: transport(func(*http.Request) (*http.Response, error) {
		n++
		return reply(200, whole("pause_turn", search(n))), nil
	})})
	req := user("hi")
	req.Settings.Options = options(`{"tools":[]}`)
	for d, err := range m.Stream(t.Context(), req) {
		counted += d.Requests
		last = err
	}
	if !errors.As(last, &e) || e.Code != llm.CodeMalformedReply || n != anthropic.MaxContinuations+1 || counted != n {
		t.Errorf("%d requests, %d counted, %v", n, counted, last)
	}
}

// A stream that starts anew cannot be retracted from a consumer that has seen its beginning.
func TestSplicedStreams(t *testing.T) {
	first := []string{begin, opens(0, `{"type":"text","text":"A"}`), closes(0)}
	second := []string{begin, opens(0, `{"type":"text","text":"B"}`), closes(0), ends("end_turn"), stop}
	body := events(append(first, second...)...)
	if got, want := outcome(anthropic.DecodeMessages(200, true, []byte(body))), `text "B"; stop`+used; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m := anthropic.New("m", &anthropic.Options{BaseURL: "http://local.test",
		HTTP: transport(func(*http.Request) (*http.Response, error) { return reply(200, body), nil })})
	_, _, err := drain(m, user("hi"))
	if got, want := outcome(nil, err), "error stream retryable: the reply began anew after some of it was seen"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	body = events(append([]string{begin, `{"type":"ping"}`}, second...)...)
	if res, _, err := drain(m, user("hi")); outcome(res, err) != `text "B"; stop`+used {
		t.Errorf("before anything was seen: %s", outcome(res, err))
	}
}

func TestRefusalIsExplained(t *testing.T) {
	body := strings.Replace(whole("refusal"), `"stop_sequence"`, `"stop_details":{"type":"refusal","explanation":"Blocked."},"stop_sequence"`, 1)
	m := anthropic.New("m", &anthropic.Options{BaseURL: "http://local.test",
		HTTP: transport(func(*http.Request) (*http.Response, error) { return reply(200, body), nil })})
	res, notices, err := drain(m, user("hi"))
	if got := outcome(res, err); got != "content_filter"+used || strings.Join(notices, "") != "refusal: Blocked." {
		t.Errorf("got %s, notices %q", got, notices)
	}
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := anthropic.New("m", &anthropic.Options{BaseURL: "http://local.test", Retries: -1,
			FirstByteTimeout: time.Minute, HTTP: transport(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})})
		start := time.Now()
		_, _, err := drain(m, user("hi"))
		var e *llm.ProviderError
		if !errors.As(err, &e) || e.Code != llm.CodeTimeout || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// Reasoning of another server is not Claude's, and is sent back to that server only.
func TestReasoningStaysWithItsServer(t *testing.T) {
	m := anthropic.New("kimi", &anthropic.Options{BaseURL: "http://gateway.test", HTTP: transport(func(*http.Request) (*http.Response, error) {
		return reply(200, whole("end_turn", `{"type":"thinking","thinking":"Hm."}`)), nil
	})})
	res, _, err := drain(m, user("hi"))
	if got, want := outcome(res, err), `reasoning "Hm." [anthropic@gateway.test {"type":"thinking","thinking":"Hm."}]; stop`+used; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	b, err := json.Marshal(res.Message)
	if err != nil || !strings.Contains(string(b), "anthropic@gateway.test") {
		t.Errorf("%s, %v", b, err)
	}
	if body := encode(t, &llm.Request{Model: "claude",
		Messages: []llm.Message{llm.User("a"), res.Message, llm.User("b")}}); strings.Contains(body, "Hm.") {
		t.Errorf("sent to another server: %s", body)
	}
}

// Arguments are returned in the form of the tool's own schema. A notice lists the tools that cannot
// be offered.
func TestSchemasOfAnotherForm(t *testing.T) {
	odd := &llm.ToolSpec{Name: "f", Input: raw(`{"type":"object","properties":{"b c":{"type":"string"}},"required":["b c"]}`)}
	for _, whole1 := range []bool{true, false} {
		m := anthropic.New("m", &anthropic.Options{BaseURL: "http://local.test",
			HTTP: transport(func(r *http.Request) (*http.Response, error) {
				var body struct {
					Tools []struct {
						Schema struct{ Properties map[string]any } `json:"input_schema"`
					}
				}
				b, _ := io.ReadAll(r.Body)
				if err := json.Unmarshal(b, &body); err != nil || len(body.Tools) != 1 {
					t.Errorf("%v: %s", err, b)
				}
				for sent := range body.Tools[0].Schema.Properties {
					if whole1 {
						return reply(200, whole("tool_use", `{"type":"tool_use","id":"a","name":"f","input":{"`+sent+`":"v"}}`)), nil
					}
					return reply(200, stream("tool_use", opens(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`), adds(0, `{"partial_json":"{\"`+sent+`\":"}`), adds(0, `{"partial_json":"\"v\"}"}`), closes(0))), nil
				}
				return nil, io.EOF
			})})
		req := user("hi")
		req.Whole = whole1
		req.Tools = []*llm.ToolSpec{odd, {Name: "g", Input: raw(`{"type":"string"}`)}}
		res, notices, err := drain(m, req)
		if got, want := outcome(res, err), `call a f {"b c":"v"}; tool_calls`+used; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if len(notices) != 1 || !strings.HasPrefix(notices[0], "tool_left_out: anthropic: the tool g is not offered: ") {
			t.Errorf("notices %q", notices)
		}
	}
}
