package provider_test

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/provider/catalog"
)

// Replies of each API that say how the prompt cache was used.
const (
	cacheResponses = `{"object":"response","status":"completed",
		"output":[{"type":"message","content":[{"type":"output_text","text":"ok"}]}],
		"usage":{"input_tokens":1000,"output_tokens":100,"input_tokens_details":{"cached_tokens":400,"cache_write_tokens":500,
			"cache_write_tokens_details":{"ttl_12h_tokens":300,"ttl_30m_tokens":200}}},
		"prompt_cache_diagnostics":DIAGNOSTICS}`
	cacheChat = `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`

	cacheUsage = `{"input_tokens":100,"output_tokens":100,"cache_read_input_tokens":400,"cache_creation_input_tokens":500,
		"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":300}}`
	cacheMessages = `{"type":"message","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":` + cacheUsage + `,
		"diagnostics":DIAGNOSTICS}`
)

// asked sends one request for a whole reply, and returns its body and the notices.
func asked(t *testing.T, name string, o provider.Options, reply string) (
	body string, res *llm.Response, codes []string, err error) {
	t.Helper()
	o.Key = "k"
	answer := replying(reply)
	o.HTTP = roundTripper(func(r *http.Request) (*http.Response, error) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(sent)
		return answer.RoundTrip(r)
	})
	m, err := provider.Open(name, &o)
	if err != nil {
		return "", nil, nil, err
	}

	res = new(llm.Response)
	req := &llm.Request{Messages: []llm.Message{llm.System("s"), llm.User("hi")}, Whole: true}
	for d, err := range m.Stream(t.Context(), req) {
		if err != nil {
			return body, res, codes, err
		}
		if d.Notice != nil {
			codes = append(codes, d.Notice.Code)
		}
		if err := res.Add(d); err != nil {
			t.Fatal(err)
		}
	}
	return body, res, codes, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Settings of the prompt cache go into the body of the APIs that have them. They are an error
// elsewhere, and nothing is sent.
func TestCacheSettings(t *testing.T) {
	const (
		mark = `"cache_control":{"type":"ephemeral"`
	)
	for _, tt := range []struct {
		name    string
		key     string
		ttl     time.Duration
		address string
		want    string // in the body
		refused string // in the error
	}{
		{name: "openai:m", key: "shop", want: `"prompt_cache_key":"shop"`},
		{name: "openai:m", ttl: 30 * time.Minute, want: `"prompt_cache_options":{"ttl":"30m"}`},
		{name: "openai:m", ttl: 12 * time.Hour, want: `"prompt_cache_options":{"ttl":"12h"}`},
		{name: "openai:m", ttl: 24 * time.Hour, want: `"prompt_cache_retention":"24h"`},
		{name: "openai:m", ttl: time.Hour, refused: "OpenAI caches for 30m, 12h or 24h, not for 1h0m0s"},
		{name: "openai-chat:m", key: "shop", want: `"prompt_cache_key":"shop"`},
		{name: "openai-chat:m", ttl: 30 * time.Minute, want: `"prompt_cache_options":{"ttl":"30m"}`},
		{name: "openai-chat:m", ttl: 24 * time.Hour, want: `"prompt_cache_retention":"24h"`},
		{name: "openai-chat:m", ttl: 12 * time.Hour, refused: "Chat Completions caches for 30m or 24h"},
		{name: "openai-chat:m", key: "shop", address: "http://127.0.0.1:1/v1", refused: "only OpenAI's own servers"},
		{name: "groq:m", ttl: 24 * time.Hour, refused: "only OpenAI's own servers"},
		{name: "anthropic:m", ttl: 5 * time.Minute, want: mark + `,"ttl":"5m"}`},
		{name: "anthropic:m", ttl: time.Hour, want: mark + `,"ttl":"1h"}`},
		{name: "anthropic:m", ttl: 2 * time.Hour, refused: "Anthropic caches for 5m or 1h, not for 2h0m0s"},
		{name: "anthropic:m", ttl: -time.Hour, refused: "Anthropic caches for 5m or 1h"},
		{name: "anthropic:m", key: "shop", refused: "Anthropic has no cache keys"},
		{name: "gemini:m", key: "shop", refused: "Gemini has no such settings"},
		{name: "gemini:m", ttl: time.Hour, refused: "Gemini has no such settings"},
	} {
		reply := strings.Replace(cacheResponses, "DIAGNOSTICS", "null", 1)
		switch {
		case strings.HasPrefix(tt.name, "anthropic:"):
			reply = strings.Replace(cacheMessages, "DIAGNOSTICS", "null", 1)
		case !strings.HasPrefix(tt.name, "openai:"):
			reply = cacheChat
		}

		o := provider.Options{CacheKey: tt.key, CacheTTL: tt.ttl, BaseURL: tt.address}
		body, _, _, err := asked(t, tt.name, o, reply)
		if tt.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%s with %q and %s: got the error %v, want %q", tt.name, tt.key, tt.ttl, err, tt.refused)
			}
			if body != "" {
				t.Errorf("%s with %q and %s: a request was sent: %s", tt.name, tt.key, tt.ttl, body)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s with %q and %s: %v", tt.name, tt.key, tt.ttl, err)
		}
		if !strings.Contains(body, tt.want) {
			t.Errorf("%s with %q and %s: the body has no %s: %s", tt.name, tt.key, tt.ttl, tt.want, body)
		}
		if strings.Count(body, mark) != strings.Count(body, tt.want) && strings.HasPrefix(tt.name, "anthropic:") {
			t.Errorf("%s with %s: a mark has another lifetime: %s", tt.name, tt.ttl, body)
		}
	}
}

// Without settings, a request says nothing about keys and lifetimes.
func TestNoCacheSettings(t *testing.T) {
	for name, reply := range map[string]string{
		"openai:m":      strings.Replace(cacheResponses, "DIAGNOSTICS", "null", 1),
		"openai-chat:m": cacheChat,
		"anthropic:m":   strings.Replace(cacheMessages, "DIAGNOSTICS", "null", 1),
	} {
		body, _, codes, err := asked(t, name, provider.Options{}, reply)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(codes) > 0 {
			t.Errorf("%s: notices %v", name, codes)
		}
		if strings.Contains(body, "prompt_cache") || strings.Contains(body, `"ttl"`) {
			t.Errorf("%s: the request has settings of the cache: %s", name, body)
		}
	}
}

// The reason why the provider could not use its cache is a notice. Other diagnostics are not.
func TestCacheDiagnostics(t *testing.T) {
	for _, tt := range []struct {
		name, reply, diagnostics, want string
	}{
		{"openai:m", cacheResponses, `{"type":"cache_miss","reason":"tools_changed","cache_missed_tokens":500}`, "cache_miss"},
		{"openai:m", cacheResponses, `{"type":"cache_miss","reason":"context_compacted","cache_missed_tokens":5}`, "cache_miss"},
		{"openai:m", cacheResponses, `{"type":"cache_hit"}`, ""},
		{"openai:m", cacheResponses, `{"type":"comparison_response_not_found"}`, ""},
		{"anthropic:m", cacheMessages, `{"cache_miss_reason":{"type":"messages_changed","cache_missed_input_tokens":500}}`, "cache_miss"},
		{"anthropic:m", cacheMessages, `{"cache_miss_reason":{"type":"previous_message_not_found"}}`, ""},
		{"anthropic:m", cacheMessages, `{"cache_miss_reason":null}`, ""},
	} {
		_, res, codes, err := asked(t, tt.name, provider.Options{}, strings.Replace(tt.reply, "DIAGNOSTICS", tt.diagnostics, 1))
		if err != nil {
			t.Errorf("%s, %s: %v", tt.name, tt.diagnostics, err)
			continue
		}
		if got := strings.Join(codes, ","); got != tt.want {
			t.Errorf("%s, %s: notices %q, want %q", tt.name, tt.diagnostics, got, tt.want)
		}
		if u := res.Usage; u.CacheRead != 400 || u.CacheWrite != 500 || u.CacheWriteLong != 300 {
			t.Errorf("%s: read %d, written %d, of these %d for longer; want 400, 500, 300", tt.name, u.CacheRead, u.CacheWrite, u.CacheWriteLong)
		}
	}
}

// A write to Anthropic's cache costs twice the input with a lifetime of an hour.
func TestCachePrice(t *testing.T) {
	known, err := catalog.Parse([]byte(prices))
	if err != nil {
		t.Fatal(err)
	}
	reply := strings.Replace(cacheMessages, "DIAGNOSTICS", "null", 1)
	for ttl, want := range map[time.Duration]float64{
		0:               100*1 + 400*0.1 + 500*1.25 + 100*10,
		5 * time.Minute: 100*1 + 400*0.1 + 500*1.25 + 100*10,
		time.Hour:       100*1 + 400*0.1 + 500*2 + 100*10,
	} {
		_, res, _, err := asked(t, "anthropic:m", provider.Options{CacheTTL: ttl, Catalog: known}, reply)
		if err != nil {
			t.Errorf("%s: %v", ttl, err)
			continue
		}
		if got := res.Usage.Cost * 1e6; math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: costs %v millionths of a dollar, want %v", ttl, got, want)
		}
	}
}
