package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/provider/internal/wire"
	"github.com/pawl-go/pawl/store"
)

// Embedder is a store.Embedder over POST /embeddings, at OpenAI and most servers that speak Chat
// Completions. Create it with NewEmbedder. It is safe for concurrent use.
type Embedder struct {
	m          *Model
	name       string
	dimensions int
}

var _ store.Embedder = (*Embedder)(nil)

// embeddingsAPI has only a path and errors.
var embeddingsAPI = &api{id: "openai", path: "embeddings"}

// NewEmbedder returns the named embedding model, such as text-embedding-3-small. dimensions asks
// for shorter vectors; 0 means the model's own size. The options are a Model's. The first request
// reports invalid options.
func NewEmbedder(model string, dimensions int, o *Options) *Embedder {
	e := &Embedder{m: newModel(embeddingsAPI, model, o), name: "openai:" + model, dimensions: dimensions}
	if o != nil && o.Server != nil {
		e.name = o.Server.Name + ":" + model
	}
	if dimensions > 0 {
		e.name += fmt.Sprint("#", dimensions)
	}
	return e
}

// Name returns "openai:MODEL", with Options.Server's name if there is one, followed by
// "#DIMENSIONS" if they were set.
func (e *Embedder) Name() string { return e.name }

// Embed returns the vectors of texts. The API does not distinguish uses. The server rejects a text
// that is too long for the model (8,192 tokens at OpenAI) with CodeContextLength; nothing is
// truncated. Errors are *llm.ProviderError, or wrap the cause of a ctx that has ended.
func (e *Embedder) Embed(ctx context.Context, _ store.Use, texts []string) ([][]float32, error) {
	if e.m.err != nil {
		return nil, e.m.err
	}
	return wire.Embed(ctx, e.m.provider, texts, e.ask)
}

func (e *Embedder) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body := jsonscan.AppendString([]byte(`{"model":`), e.m.name)
	body = append(body, `,"input":[`...)
	for i, t := range texts {
		if i > 0 {
			body = append(body, ',')
		}
		body = jsonscan.AppendString(body, t)
	}
	body = append(body, `],"encoding_format":"float"`...)
	if e.dimensions > 0 {
		body = fmt.Appendf(body, `,"dimensions":%d`, e.dimensions)
	}
	var out [][]float32
	err := e.m.client.Post(ctx, e.m.url, append(body, '}'), func(answer []byte) (err error) {
		out, err = e.read(answer, len(texts))
		return err
	})
	return out, err
}

// read puts each vector at its index. Vectors without an index are in order.
func (e *Embedder) read(answer []byte, want int) ([][]float32, error) {
	var a struct {
		Error json.RawMessage
		Data  []struct {
			Index     *int
			Embedding json.RawMessage
		}
	}
	var raw []json.RawMessage
	// Some servers answer with status 200 and an error in the body. A body that cannot be read is
	// an error in Vectors, which shows an excerpt of it.
	err := json.Unmarshal(answer, &a)
	switch {
	case err == nil && a.Error != nil && string(a.Error) != "null":
		return nil, e.m.toStreamError(a.Error)
	case err == nil && a.Data != nil:
		raw = make([]json.RawMessage, len(a.Data))
	}
	seen := map[int]bool{}
	for i, item := range a.Data[:len(raw)] {
		at := *cmp.Or(item.Index, &i)
		if seen[at] || at < 0 || at >= len(raw) {
			return nil, wire.Broken(e.m.provider, "vector %d: it is for text %d, of %d texts from 0 on, or for a text that has a vector already", i, at, want)
		}
		seen[at] = true
		raw[at] = item.Embedding
	}
	return wire.Vectors(e.m.provider, answer, raw, want)
}
