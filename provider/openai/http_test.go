package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

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
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var seen struct {
		sync.Mutex
		path, key, accept string
		body              map[string]any
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Lock()
		defer seen.Unlock()
		seen.path, seen.key = r.URL.String(), r.Header.Get("Authorization")
		seen.body = nil
		json.NewDecoder(r.Body).Decode(&seen.body)
		chat := strings.HasSuffix(r.URL.Path, "/chat/completions")
		switch stream := seen.body["stream"] == true; {
		case chat && stream:
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, deltas("stop", `{"content":"h"}`, `{"content":"i"}`))
		case chat:
			io.WriteString(w, whole("stop", `{"content":"hi"}`))
		case stream:
			io.WriteString(w, events(`{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`, done))
		default:
			io.WriteString(w, response(`{"type":"message","content":[{"type":"output_text","text":"hi"}]}`))
		}
	}))
	defer srv.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for _, base := range []string{srv.URL + "/v1", srv.URL + "/v1/", srv.URL + "/v1?api-version=2"} {
		o := &openai.Options{BaseURL: base, Key: "sk-secret", HTTP: tr}
		for name, m := range map[string]llm.Model{"/v1/responses": openai.New("m", o), "/v1/chat/completions": openai.NewChat("m", o)} {
			for _, streamed := range []bool{true, false} {
				res, _, err := ask(t.Context(), m, user("go"), streamed)
				if err != nil || res.Message.Text() != "hi" || res.Model != "m" || res.ID == "" {
					t.Errorf("%s, streamed %v: %+v, %v", name, streamed, res, err)
				}
				want := name
				if strings.Contains(base, "?") {
					want += "?api-version=2"
				}
				if seen.path != want || seen.key != "Bearer sk-secret" || seen.body["model"] != "m" {
					t.Errorf("%s: the server saw %s with %q and %v", name, seen.path, seen.key, seen.body)
				}
			}
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	conns := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns[r.RemoteAddr] = true
		io.WriteString(w, deltas("stop", `{"content":"hi"}`))
	}))
	defer srv.Close()
	m := openai.NewChat("m", &openai.Options{BaseURL: srv.URL + "/v1"})
	for range 5 {
		if _, _, err := ask(t.Context(), m, user("go"), true); err != nil {
			t.Fatal(err)
		}
	}
	if len(conns) != 1 {
		t.Errorf("5 requests in sequence took %d connections, want 1", len(conns))
	}
}

// The table of failures: each row has an answer and its error. Waiting times are on a fake clock.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		header []string
		want   string
	}{
		{"quirk 38: OpenAI", 401, `{"error":{"message":"Incorrect API key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, nil, `error authentication 401: Incorrect API key`},
		{"quirk 38: a number for a code", 429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"busy upstream","provider_name":"G"}}}`, nil, `error rate_limit 429 retryable: Provider returned error (busy upstream)`},
		{"quirk 38: detail", 401, "{\"detail\":\"Invalid API Key\"}\n", nil, `error authentication 401: Invalid API Key`},
		{"quirk 38: detail with a list", 422, `{"detail":[{"loc":["body"],"msg":"bad"}]}`, nil, `error invalid_request 422: [{"loc":["body"],"msg":"bad"}]`},
		{"quirk 38: message", 403, `{"message":"no access"}`, nil, `error permission 403: no access`},
		{"quirk 38: plain text", 404, `Not Found`, nil, `error not_found 404: Not Found`},
		{"quirk 38: error_type", 400, `{"error_type":"TOO_MANY_TOKENS","message":"size limit exceeded"}`, nil, `error context_length 400: size limit exceeded`},
		{"quirk 38: a string", 400, `{"error":"bad"}`, nil, `error invalid_request 400: bad`},
		{"quirk 38: an array", 500, `[{"error":{"message":"bad"}}]`, nil, `error server 500 retryable: bad`},
		{"quirk 38: nothing", 502, ``, nil, `error server 502 retryable: Bad Gateway`},
		{"quirk 39: no quota, 400", 400, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, nil, `error quota 400: You exceeded your current quota`},
		{"quirk 39: no quota, 429", 429, `{"error":{"message":"no","code":"insufficient_quota"}}`, []string{"Retry-After", "5"}, `error quota 429 after 5s: no`},
		{"quirk 37: failed_generation", 400, `{"error":{"message":"Tool choice is required","code":"tool_use_failed","failed_generation":"maybe"}}`, nil, `text "maybe"; error`},
		{"quirk 41: a parameter", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens'","code":"unsupported_parameter","param":"max_tokens"}}`, nil, `error invalid_request 400: Unsupported parameter: 'max_tokens'`},
		{"quirk 40: Retry-After in seconds", 429, `{}`, []string{"Retry-After", "2"}, `error rate_limit 429 retryable after 2s: {}`},
		{"Retry-After in parts of seconds", 503, `{}`, []string{"Retry-After", "0.25"}, `error overloaded 503 retryable after 250ms: {}`},
		{"Retry-After in milliseconds wins", 429, `{}`, []string{"Retry-After", "2", "Retry-After-Ms", "150"}, `error rate_limit 429 retryable after 150ms: {}`},
		{"Retry-After as a date", 429, `{}`, []string{"Retry-After", "Sat, 01 Jan 2000 00:00:07 GMT"}, `error rate_limit 429 retryable after 7s: {}`},
		{"Retry-After as nonsense", 429, `{}`, []string{"Retry-After", "soon"}, `error rate_limit 429 retryable: {}`},
		{"Retry-After on another status", 400, `{"message":"no"}`, []string{"Retry-After", "2"}, `error invalid_request 400: no`},
		{"payment", 402, `{"error":{"message":"pay"}}`, nil, `error quota 402: pay`},
		{"timeout", 408, `{"error":{"message":"late"}}`, nil, `error timeout 408 retryable: late`},
		{"conflict", 409, `{"error":{"message":"locked"}}`, nil, `error server 409 retryable: locked`},
		{"too large", 413, `{"error":{"message":"large"}}`, nil, `error context_length 413: large`},
		{"too long, at Bedrock", 400, `{"message":"The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length."}`, nil,
			`error context_length 400: The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length.`},
		{"too long, at Bedrock, in other words", 400, `{"message":"Input is too long for requested model."}`, nil, `error context_length 400: Input is too long for requested model.`},
		{"too long", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`, nil, `error context_length 400: This model's maximum context length is 8192 tokens`},
		{"filtered", 400, `{"error":{"message":"filtered","code":"content_filter"}}`, nil, `error content_filter 400: filtered`},
		{"overloaded", 529, `{"error":{"message":"full"}}`, nil, `error overloaded 529 retryable: full`},
		{"gateway timeout", 504, `<html>`, nil, `error timeout 504 retryable: <html>`},
		{"the provider says not to", 500, `{"error":{"message":"no"}}`, []string{"X-Should-Retry", "false"}, `error server 500: no`},
		{"a redirect", 307, ``, []string{"Location", "https://x"}, `error not_found 307: the server answered with a redirect; is the base URL right?`},
	} {
		synctest.Test(t, func(t *testing.T) { // its clock starts at midnight of 1 January 2000
			m := openai.New("m", &openai.Options{BaseURL: "http://local.test/v1", Retries: -1,
				HTTP: transport(func(*http.Request) (*http.Response, error) {
					return reply(c.status, c.body, c.header...), nil
				})})
			if got := outcome(llm.Complete(t.Context(), m, user("go"))); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
			}
		})
	}
}

// A call that the server could not read goes back to the model, whether the server reports it with
// a status or in a stream.
func TestFailedGenerationIsCorrected(t *testing.T) {
	const failure = `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=look>{at"}}`
	for name, first := range map[string]func() *http.Response{
		"status": func() *http.Response { return reply(400, failure) },
		"stream": func() *http.Response {
			return reply(200, events(`{"choices":[{"index":0,"delta":{"content":"I look."}}]}`, failure))
		},
	} {
		asked := 0
		m := localChat(func(*http.Request) (*http.Response, error) {
			if asked++; asked == 1 {
				return first(), nil
			}
			return reply(200, deltas("stop", `{"content":"It is blue."}`)), nil
		})
		res, err := pawl.Collect((&pawl.Agent{Model: m}).Stream(t.Context(), llm.User("go")), nil)
		if err != nil || res.Text() != "It is blue." || res.Spent.Corrections != 1 || res.Spent.Requests != 2 || asked != 2 {
			t.Errorf("%s: %+v, %v, %d requests", name, res, err, asked)
			continue
		}
		if got := res.Messages[1].Text(); !strings.HasSuffix(got, "<function=look>{at") {
			t.Errorf("%s: the model sees %q", name, got)
		}
	}
}

// A call ends as soon as its last byte is known, so that it can start while the model continues.
func TestCallsAreSealedEarly(t *testing.T) {
	for name, m := range map[string]*openai.Model{
		"chat": localChat(func(*http.Request) (*http.Response, error) {
			return reply(200, deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `{"tool_calls":[{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}]}`)), nil
		}),
		"responses": local(func(*http.Request) (*http.Response, error) {
			var evs []string
			for i, id := range []string{"a", "b"} {
				evs = append(evs, fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","call_id":%q,"name":"f","arguments":""}}`, i, id),
					fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"delta":"{}"}`, i), fmt.Sprintf(`{"type":"response.function_call_arguments.done","output_index":%d,"arguments":"{}"}`, i))
			}
			return reply(200, events(append(evs, done)...)), nil
		}),
	} {
		sealed := -1
		for d, err := range m.Stream(t.Context(), user("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if c, ok := d.Part.(llm.ToolCall); ok && c.ID == "b" && sealed != 0 && name == "responses" {
				t.Errorf("%s: call b began before call a was sealed", name)
			}
			if d.Done {
				sealed = d.Index
			}
		}
		if sealed != 1 {
			t.Errorf("%s: the last sealed part is %d, want 1", name, sealed)
		}
	}
}

func TestNamesAreMappedAndMappedBack(t *testing.T) {
	names := []string{"plain", "a.b", "a_b", "a-b", "9lives", "größe", strings.Repeat("x", 70), "a b"}
	var tools []*llm.ToolSpec
	for _, n := range names {
		tools = append(tools, tool(n))
	}
	var wire []string
	m := localChat(func(r *http.Request) (*http.Response, error) {
		var body struct {
			Tools []struct{ Function struct{ Name string } }
		}
		json.NewDecoder(r.Body).Decode(&body)
		var calls []string
		for i, t := range body.Tools {
			wire = append(wire, t.Function.Name)
			calls = append(calls, fmt.Sprintf(`{"id":"c%d","function":{"name":%q,"arguments":"{}"}}`, i, t.Function.Name))
		}
		return reply(200, whole("tool_calls", `{"tool_calls":[`+strings.Join(calls, ",")+`]}`)), nil
	})
	req := user("go")
	req.Tools = tools
	res, err := llm.Complete(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, c := range res.Message.Calls() {
		if c.Name != names[i] {
			t.Errorf("%q came back as %q", names[i], c.Name)
		}
		if w := wire[i]; seen[w] || len(w) > 64 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || strings.ContainsAny(w[:1], "_0123456789") {
			t.Errorf("%q went out as %q", names[i], w)
		}
		seen[wire[i]] = true
	}
	if wire[0] != "plain" || wire[2] != "a_b" || wire[3] != "a-b" {
		t.Errorf("names that fit were changed: %v", wire)
	}
	// In old messages a name is mapped in the same way, with or without an offered tool of that
	// name.
	for _, offered := range [][]*llm.ToolSpec{tools, tools[:1]} {
		body := mustEncode(t, openai.EncodeChat, &llm.Request{Model: "m", Tools: offered,
			Messages: []llm.Message{llm.Assistant(llm.ToolCall{ID: "c", Name: "a.b"})}})
		if !strings.Contains(body, `"tool_calls":[{"id":"c","type":"function","function":{"name":"`+wire[1]+`"`) {
			t.Errorf("a.b is not %s in %s", wire[1], body)
		}
	}
}

// Another server of the same API receives no field that is specific to OpenAI.
func TestCompatibleServers(t *testing.T) {
	var body string
	echo := transport(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		return reply(200, whole("stop", `{"content":"hi","reasoning_content":"hm"}`)), nil
	})
	at := func(host string) *openai.Model {
		return openai.NewChat("m", &openai.Options{BaseURL: "https://" + host + "/v1", Key: "k", HTTP: echo})
	}
	req := &llm.Request{Messages: []llm.Message{
		{Role: llm.RoleDeveloper, Parts: []llm.Part{llm.Text{Text: "d"}}},
		llm.Assistant(llm.ToolCall{ID: "call_1", Name: "f", Args: []byte(`{"x": oops`)}),
		llm.Results(llm.ToolResult{CallID: "call_1"}),
	}, Settings: llm.Settings{MaxTokens: 5}}
	res, err := llm.Complete(t.Context(), at("api.deepseek.com"), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"role":"system","content":"d"`, `"max_tokens":5`, `"arguments":"{\"invalid_arguments\":\"{\\\"x\\\": oops\"}"`, `"id":"call_1"`} {
		if !strings.Contains(body, want) {
			t.Errorf("DeepSeek: no %s in %s", want, body)
		}
	}
	if _, err := llm.Complete(t.Context(), at("api.mistral.ai"), req); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Messages []struct {
			Tool_calls   []struct{ ID string }
			Tool_call_id string
		}
	}
	json.Unmarshal([]byte(body), &sent)
	if id := sent.Messages[1].Tool_calls[0].ID; len(id) != 9 || sent.Messages[2].Tool_call_id != id {
		t.Errorf("Mistral: id %q and result of %q, want nine letters twice", id, sent.Messages[2].Tool_call_id)
	}
	// Reasoning is sent back to the host that wrote it, and to no other.
	next := &llm.Request{Messages: []llm.Message{llm.User("u"), res.Message, llm.User("v")}}
	for host, want := range map[string]bool{"api.deepseek.com": true, "api.groq.com": false, "api.openai.com": false} {
		if _, err := llm.Complete(t.Context(), at(host), next); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(body, `"reasoning_content":"hm"`); got != want {
			t.Errorf("%s got the reasoning: %v, want %v: %s", host, got, want, body)
		}
	}
}

// The next request sends the parts of a reply back unchanged: reasoning, signatures, the server's
// own items.
func TestRoundTrip(t *testing.T) {
	reasoning := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA="}`
	search := `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"é"}}`
	custom := `{"type":"custom_tool_call","id":"ctc_1","call_id":"call_9","name":"sql","input":"SELECT 1"}`
	res, err := openai.DecodeResponses(200, false, []byte(response(reasoning, search, reasoning, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`, custom)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(res.Message) // as a journal stores it
	if err != nil {
		t.Fatal(err)
	}
	var kept llm.Message
	if err := json.Unmarshal(b, &kept); err != nil {
		t.Fatal(err)
	}
	body := mustEncode(t, openai.EncodeResponses, &llm.Request{Model: "m", Messages: []llm.Message{kept}})
	want := strings.Join([]string{reasoning, search, reasoning, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`, custom}, ",")
	if !strings.Contains(body, want) {
		t.Errorf("got %s\nwant %s", body, want)
	}
	details := `[{"type":"reasoning.encrypted","data":"CpQ=","id":"x","format":"g","index":0}]`
	for _, in := range []string{
		whole("tool_calls", `{"reasoning_details":`+details+`,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`),
		deltas("tool_calls", `{"reasoning_details":`+details+`}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`),
	} {
		res, err := openai.DecodeChat(200, false, []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		body := mustEncode(t, openai.EncodeChat, &llm.Request{Model: "m", Messages: []llm.Message{res.Message}})
		if want := `{"role":"assistant","content":null,"reasoning_details":` + details + `,"tool_calls":[{"id":"a",`; !strings.Contains(body, want) {
			t.Errorf("got %s\nwant %s", body, want)
		}
	}
	for _, message := range []string{`{"content":"hi","reasoning_content":"hm"}`, `{"content":"hi","reasoning":"hm"}`} {
		res, _ := openai.DecodeChat(200, false, []byte(whole("stop", message)))
		body := mustEncode(t, openai.EncodeChat, &llm.Request{Model: "m", Messages: []llm.Message{res.Message}})
		if want := strings.Replace(message, `{`, `{"role":"assistant",`, 1); !strings.Contains(body, want) {
			t.Errorf("got %s\nwant %s", body, want)
		}
	}
	res, _ = openai.DecodeChat(200, false, []byte(whole("stop", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}`)))
	body = mustEncode(t, openai.EncodeChat, &llm.Request{Model: "m", Messages: []llm.Message{res.Message}})
	if want := `"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]`; !strings.Contains(body, want) {
		t.Errorf("got %s\nwant %s", body, want)
	}
}

// A longer conversation begins with the bytes of the shorter one, up to the continuation.
func TestRequestsGrowAtTheEnd(t *testing.T) {
	msgs := []llm.Message{llm.System("s"), llm.User("u")}
	short := mustEncode(t, openai.EncodeChat, &llm.Request{Model: "m", Messages: msgs, Tools: []*llm.ToolSpec{tool("f")}})
	long := mustEncode(t, openai.EncodeChat, &llm.Request{Model: "m",
		Messages: append(msgs, llm.Assistant(llm.ToolCall{ID: "a", Name: "f"}),
			llm.Results(llm.ToolResult{CallID: "a"})), Tools: []*llm.ToolSpec{tool("f")}})
	cut := strings.Index(short, `],"tools"`)
	if cut < 0 || !strings.HasPrefix(long, short[:cut]) {
		t.Errorf("%s\ndoes not begin with\n%s", long, short[:max(cut, 0)])
	}
	if !strings.HasSuffix(long, short[cut:]) {
		t.Errorf("%s\ndoes not end with\n%s", long, short[cut:])
	}
}

func TestConcurrentUse(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Content string }
		}
		json.NewDecoder(r.Body).Decode(&body)
		io.WriteString(w, deltas("stop", fmt.Sprintf(`{"content":%q}`, body.Messages[0].Content)))
	}))
	defer srv.Close()
	m := openai.NewChat("m", &openai.Options{BaseURL: srv.URL + "/v1"})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			req := user(strings.Repeat("x", i*100))
			req.Tools = []*llm.ToolSpec{tool(fmt.Sprint("t", i%20))}
			res, _, err := ask(t.Context(), m, req, i%2 == 0)
			if err != nil || res.Message.Text() != strings.Repeat("x", i*100) {
				t.Errorf("request %d: %.80v, %v", i, res, err)
			}
		})
	}
	wg.Wait()
}
