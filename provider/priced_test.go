package provider_test

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/provider/catalog"
)

// replying answers every request with one body.
type replying string

func (b replying) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := "application/json"
	if strings.HasPrefix(string(b), "event:") {
		kind = "text/event-stream"
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}},
		Body: io.NopCloser(strings.NewReader(string(b))), Request: r}, nil
}

const prices = `[
	{"provider":"openai","id":"m","price":{"input":1,"output":10,"cached":0.1}},
	{"provider":"openai","id":"tiered","price":{"input":1,"output":10,"long":{"above":999,"input":2,"output":20,"cached":0.5}}},
	{"provider":"openai","id":"flat","price":{"input":1,"output":10,"long":{"above":1000,"input":2,"output":20}}},
	{"provider":"anthropic","id":"m","price":{"input":1,"output":10,"cached":0.1,"write":1.25}},
	{"provider":"gemini","id":"m","price":{"input":1,"output":10,"cached":0.1}},
	{"provider":"openrouter","id":"m","price":{"input":1,"output":10}},
	{"provider":"groq","id":"m"}
]`

// 400 of 1,000 input tokens come from a cache, and 60 of 100 output tokens are reasoning. Each API
// counts in another way; the cost is the same.
func TestCost(t *testing.T) {
	const (
		chat = `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],
			"usage":{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":400},"completion_tokens":100,"completion_tokens_details":{"reasoning_tokens":60}COST}}`
		responses = `{"id":"r","object":"response","status":"completed","output":[{"type":"message","id":"x","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi"}]}],
			"usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":400},"output_tokens":100,"output_tokens_details":{"reasoning_tokens":60}}}`
		messages = `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",
			"usage":{"input_tokens":100,"cache_read_input_tokens":400,"cache_creation_input_tokens":500,"output_tokens":100}}`
		generate = `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],
			"usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":400,"candidatesTokenCount":40,"thoughtsTokenCount":60}}`
		events = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":100,"cache_read_input_tokens":400,"cache_creation_input_tokens":500,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":100}}

event: message_stop
data: {"type":"message_stop"}

`
	)
	known, err := catalog.Parse([]byte(prices))
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.Replace(chat, "COST", "", 1)
	for _, test := range []struct {
		name, body string
		millionths float64
	}{
		{"openai-chat:m", plain, 600*1 + 400*0.1 + 100*10},
		{"openai-chat:m-2026-01-02", plain, 600*1 + 400*0.1 + 100*10},
		{"openai:m", responses, 600*1 + 400*0.1 + 100*10},
		{"anthropic:m", messages, 100*1 + 400*0.1 + 500*1.25 + 100*10},
		{"anthropic:m", events, 100*1 + 400*0.1 + 500*1.25 + 100*10},
		{"gemini:m", generate, 600*1 + 400*0.1 + 100*10},
		{"openai-chat:tiered", plain, 600*2 + 400*0.5 + 100*20},
		{"openai-chat:flat", plain, 1000*1 + 100*10},
		// the provider's own figure has priority
		{"openrouter:m", strings.Replace(chat, "COST", `,"cost":0.25`, 1), 0.25e6},
		{"openrouter:m", plain, 1000*1 + 100*10},
		{"groq:m", plain, 0},
		{"vllm:m", plain, 0},
	} {
		m, err := provider.Open(test.name, &provider.Options{Catalog: known, Key: "k", HTTP: replying(test.body)})
		if err != nil {
			t.Fatal(err)
		}
		res, err := llm.Complete(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("hi")},
			Whole: !strings.HasPrefix(test.body, "event:")})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := res.Usage.Cost * 1e6; math.Abs(got-test.millionths) > 1e-6 {
			t.Errorf("%s: costs %v millionths of a dollar, want %v (%+v)", test.name, got, test.millionths, res.Usage)
		}
		if _, is := llm.As[llm.Pricer](m); is != (test.millionths > 0) {
			t.Errorf("%s: knows its price: %t", test.name, is)
		}
		if _, is := llm.As[llm.OutputHolder](m); !is {
			t.Errorf("%s: does not say whether it holds an output to its schema", test.name)
		}
	}
}

// The cost bound of a request uses the higher price if the request may be long enough for it.
func TestCostIsBounded(t *testing.T) {
	known, err := catalog.Parse([]byte(prices))
	if err != nil {
		t.Fatal(err)
	}
	m, err := provider.Open("openai:tiered", &provider.Options{Catalog: known})
	if err != nil {
		t.Fatal(err)
	}
	req := &llm.Request{Messages: []llm.Message{llm.User("hi")}, Settings: llm.Settings{MaxTokens: 100}}
	in, out := req.Bounds()
	if in < 1000 {
		t.Fatalf("the request is bounded by %d tokens, too few for this test", in)
	}
	if got, ok := m.(llm.Pricer).MaxCost(req); !ok || math.Abs(got*1e6-float64(2*in+20*out)) > 1e-6 {
		t.Errorf("got at most $%v, %t; want $%v", got, ok, float64(2*in+20*out)/1e6)
	}
}

// The catalogue that comes with the program has prices.
func TestCostByDefault(t *testing.T) {
	for name, want := range map[string]bool{"openai:gpt-5-mini": true, "anthropic:claude-opus-5-5": true, "gemini:gemini-2.5-pro": true, "openai:my-own": false, "ollama:qwen3:4b": false} {
		m, err := provider.Open(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, is := llm.As[llm.Pricer](m); is != want {
			t.Errorf("%s knows its price: %t, want %t", name, is, want)
		}
	}
}
