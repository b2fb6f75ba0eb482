// Package ollama computes vectors with an Ollama server, over its own API. For its chat models use
// provider.Open("ollama:NAME", nil).
//
//	e := ollama.NewEmbedder("nomic-embed-text", 0, nil) // asks localhost:11434, not OLLAMA_HOST
//
// POST /api/embed can reject a text that is too long (truncate false). The OpenAI form of the API
// truncates it without notice.
package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
	"github.com/pawl-go/pawl/store"
)

const provider = "ollama"

// DefaultBaseURL is the address of an Ollama server on this machine.
const DefaultBaseURL = "http://localhost:11434"

// Options configure an Embedder. nil and zero fields mean the defaults.
type Options struct {
	// BaseURL is the address before "/api/embed". A "/v1" at its end is removed. Empty means
	// DefaultBaseURL.
	BaseURL string

	// Key is sent as a bearer token, for a server behind a gateway. Empty means OLLAMA_API_KEY if
	// BaseURL is on this machine, and otherwise none.
	Key string

	Header  http.Header       // sent with each request
	HTTP    http.RoundTripper // nil means a shared transport
	Retries int               // 0 means 2; negative means never

	ConnectTimeout   time.Duration // 0 means 10 s; negative means none; HTTP ignores it
	FirstByteTimeout time.Duration // 0 means 120 s; the server may have to load the model
	SilenceTimeout   time.Duration // 0 means 120 s
}

// Embedder is a store.Embedder that asks an Ollama server. Create it with NewEmbedder. It is safe
// for concurrent use.
type Embedder struct {
	model      string
	dimensions int
	url        *url.URL
	client     wire.Client
	err        error // an invalid option, returned by the first request
}

var _ store.Embedder = (*Embedder)(nil)

// NewEmbedder returns the named embedding model. dimensions asks for shorter vectors, if the model
// supports them; 0 means the model's own size. The first request reports invalid options.
func NewEmbedder(model string, dimensions int, o *Options) *Embedder {
	o = cmp.Or(o, new(Options))
	e := &Embedder{model: model, dimensions: dimensions}
	u, err := wire.BaseURL(provider, cmp.Or(o.BaseURL, DefaultBaseURL), DefaultBaseURL)
	if err == nil {
		err = wire.CheckAddress(provider, o.BaseURL, o.Key, o.HTTP, "OLLAMA_API_KEY")
	}
	if err != nil {
		e.err = err
		return e
	}
	key := o.Key
	if key == "" && wire.MayHaveKey(u.String()) {
		key = wire.Env("OLLAMA_API_KEY")
	}
	// Users often state the address of the OpenAI-compatible API, with /v1. Ollama's own API has
	// the address without it.
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/"
	e.url = u.JoinPath("api", "embed")
	e.client = wire.Client{Provider: provider, Header: wire.Header(o.Header), Key: key, HTTP: o.HTTP,
		Retries: wire.Retries(o.Retries), ToError: toError,
		Timeouts: wire.Timeouts{Connect: o.ConnectTimeout, FirstByte: o.FirstByteTimeout, Silence: o.SilenceTimeout}}
	if key != "" {
		e.client.Header.Set("Authorization", "Bearer "+key)
	}
	return e
}

// Name returns "ollama:MODEL", followed by "#DIMENSIONS" if they were set.
func (e *Embedder) Name() string {
	if e.dimensions > 0 {
		return fmt.Sprintf("%s:%s#%d", provider, e.model, e.dimensions)
	}
	return provider + ":" + e.model
}

// Embed returns the vectors of texts. The API does not distinguish uses. A text that is too long
// for the model is an error with CodeContextLength; nothing is truncated. Errors are
// *llm.ProviderError, or wrap the cause of a ctx that has ended.
func (e *Embedder) Embed(ctx context.Context, _ store.Use, texts []string) ([][]float32, error) {
	if e.err != nil {
		return nil, e.err
	}
	return wire.Embed(ctx, provider, texts, e.ask)
}

func (e *Embedder) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body := jsonscan.AppendString([]byte(`{"model":`), e.model)
	body = append(body, `,"truncate":false,"input":[`...)
	for i, t := range texts {
		if i > 0 {
			body = append(body, ',')
		}
		body = jsonscan.AppendString(body, t)
	}
	body = append(body, ']')
	if e.dimensions > 0 {
		body = fmt.Appendf(body, `,"dimensions":%d`, e.dimensions)
	}
	var out [][]float32
	err := e.client.Post(ctx, e.url, append(body, '}'), func(answer []byte) (err error) {
		out, err = read(answer, len(texts))
		return err
	})
	return out, err
}

// read reads {"embeddings":[[…]]}.
func read(answer []byte, want int) ([][]float32, error) {
	var a struct{ Embeddings []json.RawMessage }
	if json.Unmarshal(answer, &a) != nil {
		a.Embeddings = nil
	}
	return wire.Vectors(provider, answer, a.Embeddings, want)
}

// toError returns the error of a response whose status is not 2xx: {"error":"…"}.
func toError(status int, h http.Header, body []byte, now time.Time) *llm.ProviderError {
	f := wire.ReadFailure(body, nil)
	e := &llm.ProviderError{Provider: provider, Status: status, Message: cmp.Or(f.Message, http.StatusText(status)),
		RetryAfter: wire.RetryAfter(h, now)}
	text := strings.ToLower(f.Message)
	e.Code = cmp.Or(wire.StatusCode[status], wire.StatusRange(status))
	if wire.Contains(text, "context length", "input length") {
		e.Code = llm.CodeContextLength // status 400; 500 in older versions
	}
	e.Retryable = wire.Retryable(e.Code)
	return e
}
