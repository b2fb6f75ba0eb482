package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
	"github.com/pawl-go/pawl/store"
)

// Embedder is a store.Embedder over batchEmbedContents of the Gemini API. Create it with
// NewEmbedder. It is safe for concurrent use.
type Embedder struct {
	m          *Model
	name       string
	dimensions int
}

var _ store.Embedder = (*Embedder)(nil)

// NewEmbedder returns the named embedding model, such as gemini-embedding-001. dimensions asks for
// shorter vectors; 0 means the model's own size (3,072). The options are a Model's. The first
// request reports invalid options.
func NewEmbedder(model string, dimensions int, o *Options) *Embedder {
	e := &Embedder{m: New(model, o), name: provider + ":" + model, dimensions: dimensions}
	if dimensions > 0 {
		e.name += fmt.Sprint("#", dimensions)
	}
	return e
}

// Name returns "gemini:MODEL", followed by "#DIMENSIONS" if they were set.
func (e *Embedder) Name() string { return e.name }

// Embed returns the vectors of texts. It sends their use as the task type, or for
// gemini-embedding-2, which has no task type, as words before the text
// (ai.google.dev/gemini-api/docs/embeddings). The API truncates long texts without notice. Embed
// estimates the length (four ASCII letters per token, or one letter of another script) and rejects
// long texts with CodeContextLength. Errors are *llm.ProviderError, or wrap the cause of a ctx
// that has ended.
func (e *Embedder) Embed(ctx context.Context, use store.Use, texts []string) ([][]float32, error) {
	if e.m.err != nil {
		return nil, e.m.err
	}
	most := 2048
	if e.second() {
		most = 8192
	}
	for i, t := range texts {
		if n := tokens(t); n > most {
			return nil, &llm.ProviderError{Provider: provider, Code: llm.CodeContextLength,
				Message: fmt.Sprintf("text %d has about %d tokens; %s would cut it after %d, and not say so", i, n, e.m.name, most)}
		}
	}
	u, err := address(e.m.base, e.m.name, "batchEmbedContents")
	if err != nil {
		return nil, err
	}
	return wire.Embed(ctx, provider, texts, func(ctx context.Context, texts []string) ([][]float32, error) {
		return e.ask(ctx, u, use, texts)
	})
}

// tokens estimates the number of tokens of a text.
func tokens(text string) int {
	ascii := 0
	others := 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			others++
		}
	}
	return ascii/4 + others
}

// second reports whether the model reads its task in the text.
func (e *Embedder) second() bool { return strings.HasPrefix(e.model(), "gemini-embedding-2") }

// model is the name without a path before it.
func (e *Embedder) model() string { return e.m.name[strings.LastIndexByte(e.m.name, '/')+1:] }

func (e *Embedder) ask(ctx context.Context, u *url.URL, use store.Use, texts []string) ([][]float32, error) {
	body := []byte(`{"requests":[`)
	for i, t := range texts {
		if i > 0 {
			body = append(body, ',')
		}
		body = e.request(body, use, t)
	}
	var out [][]float32
	err := e.m.client.Post(ctx, u, append(body, "]}"...), func(answer []byte) (err error) {
		out, err = readVectors(answer, len(texts))
		return err
	})
	return out, err
}

func (e *Embedder) request(b []byte, use store.Use, text string) []byte {
	task := "RETRIEVAL_DOCUMENT"
	front := "title: none | text: "
	if use == store.ForQuery {
		task = "RETRIEVAL_QUERY"
		front = "task: search result | query: "
	}
	b = append(b, `{"model":`...)
	b = jsonscan.AppendString(b, "models/"+e.model())
	b = append(b, `,"content":{"parts":[{"text":`...)
	if e.second() {
		text = front + text
	}
	b = append(jsonscan.AppendString(b, text), `}]}`...)
	if !e.second() {
		b = append(b, `,"taskType":"`+task+`"`...)
	}
	if e.dimensions > 0 {
		b = fmt.Appendf(b, `,"outputDimensionality":%d`, e.dimensions)
	}
	return append(b, '}')
}

// readVectors reads {"embeddings":[{"values":[…]}]}.
func readVectors(answer []byte, want int) ([][]float32, error) {
	var a struct {
		Embeddings []struct{ Values json.RawMessage }
	}
	var raw []json.RawMessage
	if json.Unmarshal(answer, &a) == nil && a.Embeddings != nil {
		raw = []json.RawMessage{}
	}
	for _, e := range a.Embeddings {
		raw = append(raw, e.Values)
	}
	return wire.Vectors(provider, answer, raw, want)
}
