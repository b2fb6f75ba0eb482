package gemini_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/gemini"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends a request, streamed or whole, and joins the reply.
func ask(ctx context.Context, m llm.Model, req *llm.Request, streamed bool) (*llm.Response, []llm.Notice, error) {
	r := *req
	r.Whole = !streamed
	res := new(llm.Response)
	var notices []llm.Notice
	for d, err := range m.Stream(ctx, &r) {
		if err != nil {
			return res, notices, err
		}
		if d.Notice != nil {
			notices = append(notices, *d.Notice)
		}
		if err := res.Add(d); err != nil {
			return res, notices, err
		}
	}
	return res, notices, nil
}

func TestOverHTTP(t *testing.T) {
	var path, key string
	var body map[string]any
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, key, body = r.URL.String(), r.Header.Get("X-Goog-Api-Key"), nil
		json.NewDecoder(r.Body).Decode(&body)
		if strings.Contains(path, "stream") {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, events(chunk("", `{"text":"h"}`), chunk("STOP", `{"text":"i"}`)))
		} else {
			io.WriteString(w, chunk("STOP", hi))
		}
	}))
	defer srv.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for _, c := range []struct{ base, model, whole, streamed string }{
		{"", "m", "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse"},
		{"/", "models/m", "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse"},
		{"/v1beta1/projects/p/locations/global/publishers/google", "m", "/v1beta1/projects/p/locations/global/publishers/google/models/m:generateContent", "/v1beta1/projects/p/locations/global/publishers/google/models/m:streamGenerateContent?alt=sse"},
		{"/v1?x=1", "tunedModels/a b", "/v1/tunedModels/a%20b:generateContent?x=1", "/v1/tunedModels/a%20b:streamGenerateContent?x=1&alt=sse"},
	} {
		m := gemini.New(c.model, &gemini.Options{BaseURL: srv.URL + c.base, Key: "secret", HTTP: tr})
		for _, streamed := range []bool{true, false} {
			res, _, err := ask(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("go")}}, streamed)
			if err != nil || res.Message.Text() != "hi" || res.Model != "m" || res.ID != "r1" {
				t.Errorf("%s %s, streamed %v: %+v, %v", c.base, c.model, streamed, res, err)
			}
			want := c.whole
			if streamed {
				want = c.streamed
			}
			if path != want || key != "secret" || body["contents"] == nil || body["model"] != nil {
				t.Errorf("the server saw %s with %q and %v, want %s", path, key, body, want)
			}
		}
	}
	if _, _, err := ask(t.Context(), gemini.New("../x", &gemini.Options{BaseURL: srv.URL, HTTP: tr}),
		&llm.Request{Messages: []llm.Message{llm.User("go")}}, true); err == nil || !strings.Contains(err.Error(), "no name of a model") {
		t.Errorf("a name that climbs: %v", err)
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, gemini, google string
		o                    gemini.Options
		key                  string // "" means that no request is sent
		refused              bool
	}{
		{name: "none", refused: true},
		{name: "GEMINI_API_KEY", gemini: "a", google: "b", key: "a"},
		{name: "GOOGLE_API_KEY", google: "b", key: "b"},
		{name: "with a line break", gemini: " a\n", key: "a"},
		{name: "the option", gemini: "a", o: gemini.Options{Key: "c"}, key: "c"},
		{name: "a token", o: gemini.Options{Header: http.Header{"Authorization": {"Bearer t"}}}},
		{name: "Vertex without a token", o: gemini.Options{BaseURL: "https://us-central1-aiplatform.googleapis.com/v1/publishers/google"}, refused: true},
		{name: "another host", o: gemini.Options{BaseURL: "http://local.test/v1"}},
	} {
		t.Setenv("GEMINI_API_KEY", c.gemini)
		t.Setenv("GOOGLE_API_KEY", c.google)
		t.Setenv("GEMINI_BASE_URL", "")
		sent := false
		c.o.HTTP = transport(func(r *http.Request) (*http.Response, error) {
			sent = true
			if got := r.Header.Get("X-Goog-Api-Key"); got != c.key || strings.Contains(r.URL.String(), "key=") {
				t.Errorf("%s: the key %q went to %s, want %q in a header", c.name, got, r.URL, c.key)
			}
			return reply(200, chunk("STOP", hi)), nil
		})
		_, err := llm.Complete(t.Context(), gemini.New("m", &c.o), user("go"))
		var e *llm.ProviderError
		if c.refused != (errors.As(err, &e) && e.Code == llm.CodeAuthentication &&
			strings.Contains(e.Message, "GEMINI_API_KEY")) || sent == c.refused {
			t.Errorf("%s: %v, sent %t", c.name, err, sent)
		}
	}
	t.Setenv("GEMINI_BASE_URL", "http://local.test/v9")
	m := gemini.New("m", &gemini.Options{HTTP: transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.String() != "http://local.test/v9/models/gemini-3-flash-preview:generateContent" {
			t.Errorf("sent to %s", r.URL)
		}
		return reply(200, chunk("STOP", hi)), nil
	})})
	if _, err := llm.Complete(t.Context(), m, user("go")); err != nil {
		t.Error(err)
	}
}

func TestBadAddress(t *testing.T) {
	for _, base := range []string{"localhost:8080", "ftp://x/v1", "http://secret@ /v1", "::"} {
		_, err := llm.Complete(t.Context(), gemini.New("m", &gemini.Options{BaseURL: base, Key: "secret"}), user("go"))
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "base URL") {
			t.Errorf("base URL %q: %v", base, err)
		}
	}
}

func failed(code int, status, message string, details ...string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q,"details":[%s]}}`, code, message, status, strings.Join(details, ","))
}

// The table of failures: each row has an answer and its error. Waiting times are on a fake clock.
func TestErrors(t *testing.T) {
	const delay = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
	quota := func(id string) string {
		return `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":"` + id + `"}]}`
	}
	for _, c := range []struct {
		name   string
		status int
		body   string
		header []string
		want   string
	}{
		{"a wrong key", 400, failed(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`), nil, `error authentication 400: API key not valid. Please pass a valid API key.`},
		{"no credentials", 401, failed(401, "UNAUTHENTICATED", "no"), nil, `error authentication 401: no`},
		{"not allowed", 403, failed(403, "PERMISSION_DENIED", "no"), nil, `error permission 403: no`},
		{"no such model", 404, failed(404, "NOT_FOUND", "models/x is not found"), nil, `error not_found 404: models/x is not found`},
		{"a bad request", 400, failed(400, "INVALID_ARGUMENT", "bad"), nil, `error invalid_request 400: bad`},
		{"a place without the API", 400, failed(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), nil, `error permission 400: User location is not supported for the API use.`},
		{"no billing", 400, failed(400, "FAILED_PRECONDITION", "Please enable billing on your project."), nil, `error quota 400: Please enable billing on your project.`},
		{"too long", 400, failed(400, "INVALID_ARGUMENT", "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."), nil, `error context_length 400: The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).`},
		{"too large", 413, `{}`, nil, `error context_length 413: {}`},
		{"too many requests", 429, failed(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."), nil, `error rate_limit 429 retryable: Resource has been exhausted (e.g. check quota).`},
		{"too many a minute", 429, failed(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details.", quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"), delay), nil, `error rate_limit 429 retryable after 34.5s: You exceeded your current quota, please check your plan and billing details.`},
		{"too many a day", 429, failed(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), delay), nil, `error quota 429 after 34.5s: You exceeded your current quota`},
		{"no quota at all", 429, failed(429, "RESOURCE_EXHAUSTED", "Quota exceeded for metric: x, limit: 0, model: m"), nil, `error quota 429: Quota exceeded for metric: x, limit: 0, model: m`},
		{"a delay in the header", 429, failed(429, "RESOURCE_EXHAUSTED", "no", delay), []string{"Retry-After", "7"}, `error rate_limit 429 retryable after 7s: no`},
		{"a delay as an object", 503, failed(503, "UNAVAILABLE", "no", `{"retryDelay":{"seconds":"2","nanos":500000000}}`), nil, `error overloaded 503 retryable after 2.5s: no`},
		{"in an array", 429, `[` + failed(429, "RESOURCE_EXHAUSTED", "Resource exhausted.") + `]`, nil, `error rate_limit 429 retryable: Resource exhausted.`},
		{"inside another's message", 429, fmt.Sprintf(`{"error":{"message":%q,"code":429,"status":"Too Many Requests"}}`, "{\n"+failed(429, "RESOURCE_EXHAUSTED", "inner", delay)[1:]), nil, `error rate_limit 429 retryable after 34.5s: inner`},
		{"overloaded", 503, failed(503, "UNAVAILABLE", "The model is overloaded."), nil, `error overloaded 503 retryable: The model is overloaded.`},
		{"internal", 500, failed(500, "INTERNAL", "An internal error has occurred."), nil, `error server 500 retryable: An internal error has occurred.`},
		{"unknown", 500, failed(500, "UNKNOWN", "?"), nil, `error server 500 retryable: ?`},
		{"too late", 504, failed(504, "DEADLINE_EXCEEDED", "late"), nil, `error timeout 504 retryable: late`},
		{"given up", 499, failed(499, "CANCELLED", "gone"), nil, `error server 499 retryable: gone`},
		{"a name with another status", 418, failed(418, "UNAVAILABLE", "no"), nil, `error overloaded 418 retryable: no`},
		{"filtered", 400, failed(400, "INVALID_ARGUMENT", "blocked by safety settings"), nil, `error content_filter 400: blocked by safety settings`},
		{"a page", 404, "<!DOCTYPE html>\n<html lang=en><head><title>Error 404 (Not Found)!!1</title></head></html>", nil, `error not_found 404: an HTML page: Error 404 (Not Found)!!1`},
		{"a page without a title", 502, "<html><body>bad gateway</body></html>", nil, `error server 502 retryable: <html><body>bad gateway</body></html>`},
		{"words", 404, "Not Found", nil, `error not_found 404: Not Found`},
		{"nothing", 502, "", nil, `error server 502 retryable: Bad Gateway`},
		{"a redirect", 307, "", []string{"Location", "https://x"}, `error not_found 307: the server answered with a redirect; is the base URL right?`},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := gemini.New("m", &gemini.Options{BaseURL: "http://local.test", Retries: -1,
				HTTP: transport(func(*http.Request) (*http.Response, error) {
					return reply(c.status, c.body, c.header...), nil
				})})
			if got := outcome(llm.Complete(t.Context(), m, user("go"))); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
			}
		})
	}
}

func TestKeysStayOutOfErrors(t *testing.T) {
	for name, f := range map[string]transport{
		"said by the server": func(*http.Request) (*http.Response, error) {
			return reply(400, failed(400, "INVALID_ARGUMENT", "API key not valid: a-secret")), nil
		},
		"said by a proxy":     func(*http.Request) (*http.Response, error) { return nil, errors.New("proxy: bad header a-secret") },
		"said in a reply":     func(*http.Request) (*http.Response, error) { return reply(200, failed(400, "", "a-secret")), nil },
		"said in other words": func(*http.Request) (*http.Response, error) { return reply(500, `a-secret`), nil },
	} {
		m := gemini.New("m", &gemini.Options{Key: "a-secret", HTTP: f, Retries: -1})
		if _, err := llm.Complete(t.Context(), m, user("go")); err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRetries(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string // a body; a number and a body
		sent    int
		wait    time.Duration // from the API; 0 means our default
		want    string
	}{
		{"until it works", []string{"503" + failed(503, "UNAVAILABLE", "no"), "500" + failed(500, "INTERNAL", "no"), events(chunk("STOP", hi))}, 3, 0, `text "hi"; stop`},
		{"as the API says", []string{"429" + failed(429, "RESOURCE_EXHAUSTED", "no", `{"retryDelay":"7s"}`), events(chunk("STOP", hi))}, 2, 7 * time.Second, `text "hi"; stop`},
		{"not what cannot work", []string{"400" + failed(400, "INVALID_ARGUMENT", "no")}, 1, 0, `error invalid_request 400: no`},
		{"an error before the first fragment", []string{events(failed(503, "UNAVAILABLE", "no")), events(chunk("STOP", hi))}, 2, 0, `text "hi"; stop`},
		{"not after the first fragment", []string{events(chunk("", hi))}, 1, 0, `error stream retryable: the stream ended without a finish reason`},
	} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			m := local(func(*http.Request) (*http.Response, error) {
				a := c.answers[sent]
				sent++
				status := 200
				if a[0] >= '0' && a[0] <= '9' {
					fmt.Sscan(a[:3], &status)
					a = a[3:]
				}
				return reply(status, a), nil
			})
			start := time.Now()
			res, notices, err := ask(t.Context(), m, user("go"), true)
			if got := outcome(res, err); got != c.want || sent != c.sent || c.wait > 0 && time.Since(start) != c.wait {
				t.Errorf("%s: got %s after %d requests and %v; want %s, %d, %v", c.name, got, sent, time.Since(start), c.want, c.sent, c.wait)
			}
			if len(notices) != c.sent-1 {
				t.Errorf("%s: notices %v, want one for each repetition", c.name, notices)
			}
		})
	}
}

func TestLeavingTheLoop(t *testing.T) {
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, events(chunk("", hi)))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer srv.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for range gemini.New("m", &gemini.Options{BaseURL: srv.URL, HTTP: tr}).Stream(t.Context(), user("go")) {
		break
	}
	<-gone
}

func TestNamesAreMappedAndMappedBack(t *testing.T) {
	names := []string{"plain", "a.b", "a_b", "a-b", "9lives", "größe", strings.Repeat("x", 70)}
	req := user("go")
	for _, n := range names {
		req.Tools = append(req.Tools, tool(n))
	}
	m := local(func(r *http.Request) (*http.Response, error) {
		var body struct {
			Tools []struct {
				FunctionDeclarations []struct{ Name string }
			}
		}
		json.NewDecoder(r.Body).Decode(&body)
		var calls []string
		for _, f := range body.Tools[0].FunctionDeclarations {
			calls = append(calls, fmt.Sprintf(`{"functionCall":{"name":%q,"args":{}}}`, f.Name))
		}
		return reply(200, chunk("STOP", calls...)), nil
	})
	res, err := llm.Complete(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range res.Message.Calls() {
		if c.Name != names[i] {
			t.Errorf("%q came back as %q", names[i], c.Name)
		}
	}
}

// Signed parts are sent back to the host that signed them, also after a journal stored them, and to
// no other host.
func TestSignaturesStayWithTheirHost(t *testing.T) {
	var body string
	echo := transport(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		return reply(200, chunk("STOP", `{"text":"hm","thought":true}`, `{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln+/=="}`)), nil
	})
	at := func(base string) *gemini.Model {
		return gemini.New("gemini-3-flash-preview", &gemini.Options{BaseURL: base, Key: "k", HTTP: echo})
	}
	const here, east, west, other = "https://generativelanguage.googleapis.com", "https://us-east1-aiplatform.googleapis.com/v1", "https://europe-west4-aiplatform.googleapis.com/v1", "https://gateway.test"
	for from, to := range map[string]map[string]bool{here: {here: true, east: false, other: false},
		east: {west: true, here: false}, other: {other: true, here: false}} {
		res, err := llm.Complete(t.Context(), at(from), user("go"))
		if err != nil {
			t.Fatal(err)
		}
		var kept llm.Message
		b, err := json.Marshal(res.Message)
		if err == nil {
			err = json.Unmarshal(b, &kept)
		}
		if err != nil {
			t.Fatal(err)
		}
		for base, want := range to {
			if _, err := llm.Complete(t.Context(), at(base),
				&llm.Request{Messages: []llm.Message{llm.User("u"), kept,
					llm.Results(llm.ToolResult{CallID: "call_1"})}}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(body, `"args":{}},"thoughtSignature":"c2ln+/=="}`) && strings.Contains(body, `{"text":"hm","thought":true}`); got != want {
				t.Errorf("what %s signed went to %s: %t, want %t: %s", from, base, got, want, body)
			}
			if strings.Contains(body, "skip_thought_signature_validator") == want {
				t.Errorf("the placeholder at %s: %s", base, body)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	m := local(func(r *http.Request) (*http.Response, error) {
		var body struct {
			Contents []struct{ Parts []struct{ Text string } }
		}
		json.NewDecoder(r.Body).Decode(&body)
		return reply(200, events(chunk("STOP", fmt.Sprintf(`{"text":%q}`, body.Contents[0].Parts[0].Text)))), nil
	})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			req := user(strings.Repeat("x", 1+i*100))
			req.Tools = []*llm.ToolSpec{tool(fmt.Sprint("t", i%20))}
			res, _, err := ask(t.Context(), m, req, i%2 == 0)
			if err != nil || res.Message.Text() != strings.Repeat("x", 1+i*100) {
				t.Errorf("request %d: %.80v, %v", i, res, err)
			}
		})
	}
	wg.Wait()
}
