package provider_test

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

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/store"
)

// vectorServer answers in all three forms. The vector of a text is its length and its first byte,
// so that a wrong order is visible.
type vectorServer struct {
	*httptest.Server
	paths   []string
	batches []int
	bodies  []map[string]any
	header  http.Header
	answer  func(n int, w http.ResponseWriter) bool // nil or false means the good answer
}

func serveVectors(t *testing.T) *vectorServer {
	s := &vectorServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		raw, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Errorf("body %s: %v", raw, err)
		}
		s.paths, s.bodies, s.header = append(s.paths, r.URL.Path), append(s.bodies, body), r.Header
		var texts []string
		if list, ok := body["input"].([]any); ok {
			for _, x := range list {
				texts = append(texts, x.(string))
			}
		}
		if list, ok := body["requests"].([]any); ok {
			for _, x := range list {
				texts = append(texts, x.(map[string]any)["content"].(map[string]any)["parts"].([]any)[0].(map[string]any)["text"].(string))
			}
		}
		s.batches = append(s.batches, len(texts))
		if s.answer != nil && s.answer(len(s.batches), w) {
			return
		}
		var items []string
		for i, text := range texts {
			v := fmt.Sprintf("[%d,%d.5]", len(text), text[0])
			switch {
			case strings.HasSuffix(r.URL.Path, "/embeddings"): // reversed: the index decides
				items = append([]string{fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, v)}, items...)
			case strings.HasSuffix(r.URL.Path, ":batchEmbedContents"):
				items = append(items, `{"values":`+v+`}`)
			default:
				items = append(items, v)
			}
		}
		name := "embeddings"
		if strings.HasSuffix(r.URL.Path, "/embeddings") {
			name = "data"
		}
		fmt.Fprintf(w, `{"%s":[%s],"usage":{"prompt_tokens":1}}`, name, strings.Join(items, ","))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *vectorServer) open(t *testing.T, name string) store.Embedder {
	t.Helper()
	e, err := provider.OpenEmbedder(name, &provider.Options{BaseURL: s.URL + "/v1", Key: "k", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Each row is a form of the API.
var embedForms = []struct{ name, path, good string }{
	{"openai:m", "/v1/embeddings", `{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[3,4]}]}`},
	{"gemini:m", "/v1/models/m:batchEmbedContents", `{"embeddings":[{"values":[1,2]},{"values":[3,4]}]}`},
	{"ollama:m", "/api/embed", `{"embeddings":[[1,2],[3,4]]}`},
	{"mistral:m", "/v1/embeddings", `{"data":[{"embedding":[1,2]},{"embedding":[3,4]}]}`},
}

// 150 texts are sent in three requests, and the vectors are returned in order.
func TestEmbedOrder(t *testing.T) {
	for _, form := range embedForms {
		t.Run(form.name, func(t *testing.T) {
			s := serveVectors(t)
			e := s.open(t, form.name)
			var texts []string
			var want [][]float32
			for i := range 150 {
				texts = append(texts, strings.Repeat(string(rune('a'+i%26)), 1+i))
				want = append(want, []float32{float32(1 + i), float32('a'+i%26) + 0.5})
			}
			got, err := e.Embed(t.Context(), store.ForDocument, texts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff([]int{64, 64, 22}, s.batches); diff != "" || s.paths[0] != form.path ||
				e.Name() != form.name {
				t.Errorf("asked at %s by %s in batches of %v", s.paths[0], e.Name(), s.batches)
			}
			if none, err := e.Embed(t.Context(), store.ForQuery, nil); len(none) != 0 || err != nil ||
				len(s.batches) != 3 {
				t.Errorf("no texts: %v, %v", none, err)
			}
		})
	}
}

// Requests with long texts have fewer texts.
func TestEmbedBatchBytes(t *testing.T) {
	s := serveVectors(t)
	long := strings.Repeat("word ", 20_000)
	if _, err := s.open(t, "openai:m").Embed(t.Context(), store.ForDocument,
		[]string{long, long, long, strings.Repeat(long, 4), "x"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{2, 1, 1, 1}, s.batches); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestEmbedRequests(t *testing.T) {
	for _, row := range []struct {
		name string
		use  store.Use
		want string
	}{
		{"openai:m#256", store.ForQuery, `{"model":"m","input":["hi"],"encoding_format":"float","dimensions":256}`},
		{"ollama:m:latest#256", store.ForQuery, `{"model":"m:latest","input":["hi"],"truncate":false,"dimensions":256}`},
		{"gemini:m#768", store.ForQuery, `{"requests":[{"model":"models/m","content":{"parts":[{"text":"hi"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":768}]}`},
		{"gemini:gemini-embedding-001", store.ForDocument, `{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"hi"}]},"taskType":"RETRIEVAL_DOCUMENT"}]}`},
		{"gemini:gemini-embedding-2", store.ForQuery, `{"requests":[{"model":"models/gemini-embedding-2","content":{"parts":[{"text":"task: search result | query: hi"}]}}]}`},
		{"gemini:gemini-embedding-2", store.ForDocument, `{"requests":[{"model":"models/gemini-embedding-2","content":{"parts":[{"text":"title: none | text: hi"}]}}]}`},
	} {
		s := serveVectors(t)
		e := s.open(t, row.name)
		if _, err := e.Embed(t.Context(), row.use, []string{"hi"}); err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(row.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.bodies[0]); diff != "" || e.Name() != row.name {
			t.Errorf("%s, named %s: -want +got\n%s", row.name, e.Name(), diff)
		}
		if key := s.header.Get("Authorization") + s.header.Get("X-Goog-Api-Key"); !strings.HasSuffix(key, "k") {
			t.Errorf("%s: no key was sent", row.name)
		}
	}
}

// An answer that is not a list of valid vectors is rejected, and the error states its fault.
func TestEmbedBadAnswers(t *testing.T) {
	one := []struct{ list, want string }{
		{`[1,2]`, "1 vectors came for 2 texts"}, {`[1,2]|[3,4]|[5,6]`, "3 vectors came for 2 texts"}, {``, "0 vectors came for 2 texts"},
		{`[1,2]|[3]`, "a vector of 1 values"}, {`[1,2]|[]`, "vector 1: a vector of 0 values has no direction"}, {`[1,2]|[0,0]`, "has no direction"},
		{`[1,2]|[null,4]`, "value 0 of a vector is no number"}, {`[1,2]|["3",4]`, "is no number"}, {`[1,2]|[3,1e99]`, "out of range"}, {`[1,2]|[3,NaN]`, "vector"},
		{`[1,2]|null`, "no list of numbers"}, {`[1,2]|{}`, "no list of numbers"}, {`[1,2]|"AAAA"`, "no list of numbers"}, {`[1,2]|[3,4`, ""},
	}
	for _, form := range embedForms {
		for _, row := range one {
			var items []string
			for _, v := range strings.Split(row.list, "|") {
				switch {
				case v == "":
				case strings.HasPrefix(form.name, "gemini"):
					items = append(items, `{"values":`+v+`}`)
				case strings.HasPrefix(form.name, "ollama"):
					items = append(items, v)
				default:
					items = append(items, `{"embedding":`+v+`}`)
				}
			}
			head := form.good[:strings.Index(form.good, "[")+1]
			refused(t, form.name, 200, head+strings.Join(items, ",")+"]}", row.want)
		}
		refused(t, form.name, 200, `{}`, "no list of vectors")
		refused(t, form.name, 200, `{"object":"list"`, "no list of vectors")
		refused(t, form.name, 200, `data: {}`, "no JSON")
		refused(t, form.name, 200, `<html>hello</html>`, "is the base URL right for the API?")
		refused(t, form.name, 400, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`, "context")
		s := serveVectors(t)
		s.answer = func(_ int, w http.ResponseWriter) bool { io.WriteString(w, form.good); return true }
		if got, err := s.open(t, form.name).Embed(t.Context(), store.ForDocument, []string{"a", "b"}); err != nil ||
			!cmp.Equal(got, [][]float32{{1, 2}, {3, 4}}) {
			t.Errorf("%s: the good answer gives %v, %v", form.name, got, err)
		}
	}
	refused(t, "openai:m", 200, `{"data":[{"index":0,"embedding":[1,2]},{"index":0,"embedding":[3,4]}]}`, "has a vector already")
	refused(t, "openai:m", 200, `{"data":[{"index":0,"embedding":[1,2]},{"index":2,"embedding":[3,4]}]}`, "text 2, of 2 texts")
	refused(t, "openai:m", 200, `{"data":[{"index":0},{"index":1}]}`, "no vector")
	refused(t, "openai:m", 200, `{"error":{"message":"no such model","type":"not_found"}}`, "no such model")
	refused(t, "ollama:m", 500, `{"error":"the input length exceeds the context length"}`, "input length")
	refused(t, "ollama:m", 404, `{"error":"model \"m\" not found, try pulling it first"}`, "try pulling")
}

func refused(t *testing.T, name string, status int, answer, want string) {
	t.Helper()
	s := serveVectors(t)
	s.answer = func(_ int, w http.ResponseWriter) bool { w.WriteHeader(status); io.WriteString(w, answer); return true }
	got, err := s.open(t, name).Embed(t.Context(), store.ForDocument, []string{"a", "b"})
	var p *llm.ProviderError
	if !errors.As(err, &p) || !strings.Contains(err.Error(), want) || got != nil {
		t.Errorf("%s, %s: got %v and %v, want an error with %q", name, answer, got, err, want)
	}
	if strings.Contains(answer, "length") && p != nil && p.Code != llm.CodeContextLength {
		t.Errorf("%s, %s: the code is %s", name, answer, p.Code)
	}
}

func TestEmbedRetriesAndRefusals(t *testing.T) {
	s := serveVectors(t)
	s.answer = func(n int, w http.ResponseWriter) bool {
		if n == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(429)
			io.WriteString(w, `{"error":{"message":"slow down"}}`)
		}
		return n == 1
	}
	e, err := provider.OpenEmbedder("openai:m", &provider.Options{BaseURL: s.URL, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), store.ForDocument, []string{"a"}); err != nil || len(s.batches) != 2 {
		t.Errorf("after a 429: %v, asked %d times", err, len(s.batches))
	}
	var p *llm.ProviderError
	if _, err := e.Embed(t.Context(), store.ForDocument, []string{"a", " "}); !errors.As(err, &p) ||
		p.Code != llm.CodeInvalidRequest {
		t.Errorf("an empty text: %v", err)
	}
	if _, err := s.open(t, "gemini:gemini-embedding-001").Embed(t.Context(), store.ForDocument,
		[]string{strings.Repeat("字", 2049)}); !errors.As(err, &p) || p.Code != llm.CodeContextLength {
		t.Errorf("a text that Gemini would cut: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := e.Embed(ctx, store.ForDocument, []string{"a"}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("a cancelled context: %v", err)
	}
	if n := len(s.batches); n != 2 {
		t.Errorf("what was refused here was sent all the same: %d requests", n)
	}
}

func TestOpenEmbedder(t *testing.T) {
	for name, want := range map[string]string{"": "want PROVIDER:MODEL", "openai": "want PROVIDER:MODEL", "opnai:m": `unknown provider "opnai"; known: openai, gemini, ollama`,
		"anthropic:m": "no embedding models", "openai:m#": "#768", "openai:m#x": "#768", "openai:#5": "want PROVIDER:MODEL"} {
		if _, err := provider.OpenEmbedder(name, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	s := serveVectors(t)
	e, err := provider.OpenEmbedder("groq:m", &provider.Options{BaseURL: s.URL, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	e.Embed(t.Context(), store.ForDocument, []string{"a"})
	if strings.Contains(fmt.Sprint(s.header), "sk-secret") {
		t.Error("OpenAI's key went to another server")
	}
	e, _ = provider.OpenEmbedder("openai:m", &provider.Options{BaseURL: "localhost"})
	if _, err := e.Embed(t.Context(), store.ForDocument, []string{"a"}); err == nil || !strings.Contains(err.Error(), "base URL") {
		t.Errorf("an address that is none: %v", err)
	}
}
