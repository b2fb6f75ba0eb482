package provider_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// recordedError is a line of the recorded errors.
type recordedError struct {
	Provider string            `json:"provider"`
	API      string            `json:"api"`
	Status   int               `json:"status"`
	Kind     string            `json:"kind"` // http, in-stream, body-with-http-200
	Headers  map[string]string `json:"headers"`
	Body     json.RawMessage   `json:"body"` // text, or the JSON itself
	Deltas   []json.RawMessage `json:"deltas"`
}

func (e *recordedError) body() string {
	var s string
	if json.Unmarshal(e.Body, &s) == nil {
		return s
	}
	return string(e.Body)
}

// models are the adapters that read an error: the adapter of its API, or for other endpoints of a
// provider the adapters of that provider.
func (e *recordedError) models(h http.RoundTripper) map[string]llm.Model {
	all := map[string]llm.Model{}
	is := func(names ...string) bool {
		for _, n := range names {
			if e.API == n || (e.API == "other" || e.API == "") && e.Provider == n {
				return true
			}
		}
		return false
	}
	if is("anthropic-messages", "anthropic", "bedrock") {
		all["anthropic-messages"] = anthropic.New("m", &anthropic.Options{BaseURL: "http://a.test", HTTP: h, Retries: -1})
	}
	if is("gemini", "vertex") {
		all["gemini"] = gemini.New("m", &gemini.Options{BaseURL: "http://g.test", HTTP: h, Retries: -1})
	}
	if is("openai-responses", "openai", "azure", "bedrock") {
		all["openai-responses"] = openai.New("m", &openai.Options{BaseURL: "http://o.test/v1", HTTP: h, Retries: -1})
	}
	if is("openai-chat", "openai", "azure", "cohere", "huggingface", "bedrock") {
		all["openai-chat"] = openai.NewChat("m", &openai.Options{BaseURL: "http://o.test/v1", HTTP: h, Retries: -1})
	}
	return all
}

// means returns the meaning of an error: by its text if that is specific, and otherwise by its
// status. It reads the whole body as text, and shares no code with the adapters.
func (e *recordedError) means() (code llm.Code, retryable bool) {
	body := strings.ToLower(e.body())
	for _, w := range []struct {
		words string
		code  llm.Code
	}{
		{"insufficient_quota", llm.CodeQuota},
		{"context_length_exceeded", llm.CodeContextLength},
		{"maximum context length", llm.CodeContextLength},
		{"too many tokens", llm.CodeContextLength},
		{"input tokens exceeded", llm.CodeContextLength},
		{"length of all messages is too long", llm.CodeContextLength},
	} {
		if strings.Contains(body, w.words) {
			return w.code, false
		}
	}
	status := e.Status
	if status == 200 { // an error in a stream: the status is in the body
		var in struct {
			Error struct{ Code int } `json:"error"`
		}
		for line := range strings.Lines(e.body()) {
			if doc, ok := strings.CutPrefix(line, "data: "); ok {
				json.Unmarshal([]byte(doc), &in)
			}
		}
		status = in.Error.Code
	}
	switch status {
	case 400, 422:
		return llm.CodeInvalidRequest, false
	case 401:
		return llm.CodeAuthentication, false
	case 403:
		return llm.CodePermission, false
	case 404:
		return llm.CodeNotFound, false
	case 429:
		return llm.CodeRateLimit, true
	case 503, 529:
		return llm.CodeOverloaded, true
	}
	return llm.CodeServer, true
}

// Every recorded or reported error has its code at every adapter that can receive it, streamed and
// whole. None is skipped.
func TestRecordedErrors(t *testing.T) {
	read, asked := 0, 0
	for _, name := range []string{"anthropic", "azure", "bedrock", "cohere", "gemini", "groq", "huggingface", "mistral", "ollama", "openai", "openrouter", "perplexity", "vertex", ""} {
		file := "errors/dev/" + name + ".jsonl"
		if name == "" {
			file = "errors/reported-shapes.jsonl"
		}
		for i, line := range corpora.Lines[json.RawMessage](t, file) {
			var e recordedError
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			read++
			h := wiretest.Transport(func(*http.Request) (*http.Response, error) {
				res := wiretest.Reply(e.Status, e.body())
				for k, v := range e.Headers {
					res.Header.Set(k, v)
				}
				return res, nil
			})
			models := e.models(h)
			if len(models) == 0 {
				t.Errorf("%s %d: no adapter meets %s", name, i, line)
			}
			for api, m := range models {
				for _, whole := range []bool{false, true} {
					asked++
					got := answered(t, m, whole)
					code, retryable := e.means()
					if reply := malformed(&e); reply != "" {
						if got.Finish != reply {
							t.Errorf("%s %d, %s: the reply is %+v, want finish %s: %s", name, i, api, got, reply, line)
						}
						continue
					}
					p := got.err
					t.Logf("%-12s %3d %-18s %-16s retryable %-5t after %-4v %.100s", e.Provider, e.Status, api, p.Code, p.Retryable, p.RetryAfter, p.Message)
					if p.Code != code || p.Retryable != retryable || e.Status != 200 && p.Status != e.Status ||
						p.Message == "" || strings.HasPrefix(p.Message, "{") {
						t.Errorf("%s %d, %s: got %s, retryable %t, status %d, %q; want %s, %t: %s", name, i, api, p.Code, p.Retryable, p.Status, p.Message, code, retryable, line)
					}
				}
			}
		}
	}
	t.Logf("%d errors, %d answers", read, asked)
	if read < 50 {
		t.Errorf("only %d errors were found", read)
	}
}

// malformed is the finish reason of a reply with a malformed call; "" means that e is an error.
func malformed(e *recordedError) llm.FinishReason {
	if e.Status == 200 && strings.Contains(e.body(), "MALFORMED_FUNCTION_CALL") ||
		strings.Contains(e.body(), "tool_use_failed") {
		return llm.FinishReasonError
	}
	return ""
}

type answer struct {
	*llm.Response
	err *llm.ProviderError
}

func answered(t *testing.T, m llm.Model, whole bool) answer {
	t.Helper()
	res := new(llm.Response)
	for d, err := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("go")}, Whole: whole}) {
		if err != nil {
			var p *llm.ProviderError
			if !errors.As(err, &p) {
				t.Fatalf("not a ProviderError: %v", err)
			}
			return answer{res, p}
		}
		if err := res.Add(d); err != nil {
			t.Fatal(err)
		}
	}
	return answer{res, &llm.ProviderError{}}
}

// Undocumented answers of servers, proxies and gateways, for each wire, whole and streamed.
func TestErrorsThatAreNoAnswer(t *testing.T) {
	const page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
	for _, c := range []struct {
		name      string
		status    int
		body      string
		header    []string
		code      llm.Code
		retryable bool
	}{
		{"a page", 502, page, []string{"Content-Type", "text/html"}, llm.CodeServer, true},
		{"a page that says wait", 503, page, []string{"Retry-After", "3"}, llm.CodeOverloaded, true},
		{"nothing", 500, "", nil, llm.CodeServer, true},
		{"nothing, for the key", 401, "", nil, llm.CodeAuthentication, false},
		{"a word", 404, "Not Found", nil, llm.CodeNotFound, false},
		{"a page for a reply", 200, page, []string{"Content-Type", "text/html"}, llm.CodeStream, true},
		{"nothing for a reply", 200, "", nil, llm.CodeStream, true},
		{"a redirect", 302, "", []string{"Location", "http://elsewhere.test/login"}, llm.CodeNotFound, false},
		{"half an object", 200, `{"id":"x"`, nil, llm.CodeStream, true},
		{"JSON of another kind", 200, `7`, nil, llm.CodeStream, true},
		{"a spent minute, in words", 429, `{"error":{"message":"Rate limit reached for m. Please try again in 1.5s. Visit example.com."}}`, nil, llm.CodeRateLimit, true},
		{"a spent minute", 429, `{"error":{"message":"slow down"}}`, []string{"Retry-After-Ms", "1500"}, llm.CodeRateLimit, true},
		{"a time-out of a proxy", 504, page, nil, llm.CodeTimeout, true},
	} {
		h := wiretest.Transport(func(*http.Request) (*http.Response,
			error) {
			return wiretest.Reply(c.status, c.body, c.header...), nil
		})
		for _, provider := range []string{"openai", "anthropic", "gemini"} {
			for api, m := range (&recordedError{Provider: provider}).models(h) {
				for _, whole := range []bool{false, true} {
					p := answered(t, m, whole).err
					if p.Code != c.code || p.Retryable != c.retryable || p.Message == "" || c.status != 200 &&
						p.Status != c.status {
						t.Errorf("%s, %s, whole %t: got %s, retryable %t, status %d, %q; want %s, %t", c.name, api, whole, p.Code, p.Retryable, p.Status, p.Message, c.code, c.retryable)
					}
					want := map[string]time.Duration{"a page that says wait": 3 * time.Second,
						"a spent minute": 1500 * time.Millisecond, "a spent minute, in words": 1500 * time.Millisecond}[c.name]
					if p.RetryAfter != want {
						t.Errorf("%s, %s: retry after %v, want %v", c.name, api, p.RetryAfter, want)
					}
				}
			}
		}
	}
}

// Reported shapes of streamed calls are read as whole, separate calls.
func TestReportedDeltas(t *testing.T) {
	for _, line := range corpora.Lines[json.RawMessage](t, "errors/reported-delta-shapes.jsonl") {
		var e recordedError
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		var data []string
		names := 0
		for _, d := range e.Deltas {
			data = append(data, `{"choices":[{"index":0,"delta":`+string(d)+`}]}`)
			names += strings.Count(string(d), `"name"`)
		}
		data = append(data, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")
		resp, err := openai.DecodeChat(200, true, []byte(wiretest.Events(data...)))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		calls := resp.Message.Calls()
		if len(calls) != names {
			t.Errorf("%s: %d calls, want %d", line, len(calls), names)
		}
		for _, c := range calls {
			if c.Name == "" || !strings.HasPrefix(c.ID, "call_") || !json.Valid(c.Args) {
				t.Errorf("%s: got the call %s %s %s", line, c.ID, c.Name, c.Args)
			}
		}
	}
}
