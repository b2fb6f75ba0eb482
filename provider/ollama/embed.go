// Package ollama asks an Ollama for vectors, over its own API. Models of an Ollama that talk are asked over Chat Completions, as those of other servers:
// provider.Open("ollama:NAME", nil).
//
//	e := ollama.NewEmbedder("nomic-embed-text", 0, nil) // OLLAMA_HOST is not read; the address is localhost:11434
//
// Its own API (POST /api/embed) is used, and not the one after OpenAI's, since only there a text that is too long can be refused (truncate false) where it
// would else be cut in silence.
package ollama

import (
	"cmp"
	"context"
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

// DefaultBaseURL is where an Ollama of this machine answers.
const DefaultBaseURL = "http://localhost:11434"

// Options tune an Embedder. Nil, and every zero field, stands for the default.
type Options struct {
	// BaseURL is the address before "/api/embed"; one that ends in /v1 is taken without it. Empty: DefaultBaseURL.
	BaseURL string

	// Key is sent as a bearer token, for an Ollama behind a gateway. Empty: OLLAMA_API_KEY; but where BaseURL is elsewhere than on this machine, none.
	Key string

	Header  http.Header       // sent with each request
	HTTP    http.RoundTripper // nil: one transport that all share
	Retries int               // 0: 2; negative: never

	ConnectTimeout   time.Duration // 0: 10 s; negative: without end. It is not for an HTTP of your own
	FirstByteTimeout time.Duration // 0: 120 s; a model may have to be loaded first
	SilenceTimeout   time.Duration // 0: 120 s
}

// Embedder is a store.Embedder over an Ollama. Create it with NewEmbedder; it may be used concurrently.
type Embedder struct {
	model      string
	dimensions int
	url        *url.URL
	client     wire.Client
	err        error // a mistake in the options, told on the first request
}

var _ store.Embedder = (*Embedder)(nil)

// NewEmbedder returns the named embedding model. dimensions asks for shorter vectors than the model's own, where it knows how; 0: its own. A mistake in
// the options is reported by the first request.
func NewEmbedder(model string, dimensions int, o *Options) *Embedder {
	if o == nil {
		o = new(Options)
	}
	e := &Embedder{model: model, dimensions: dimensions}
	u, err := wire.BaseURL(provider, cmp.Or(o.BaseURL, DefaultBaseURL), DefaultBaseURL)
	if err != nil {
		e.err = err
		return e
	}
	key := o.Key
	if key == "" && wire.MayHaveKey(u.String()) {
		key = wire.Env("OLLAMA_API_KEY")
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/"
	e.url = u.JoinPath("api", "embed")
	e.client = wire.Client{Provider: provider, Header: wire.Header(o.Header), Key: key, HTTP: o.HTTP, Retries: wire.Retries(o.Retries), ToError: toError,
		Timeouts: wire.Timeouts{Connect: o.ConnectTimeout, FirstByte: o.FirstByteTimeout, Silence: o.SilenceTimeout}}
	if key != "" {
		e.client.Header.Set("Authorization", "Bearer "+key)
	}
	return e
}

// Name returns "ollama:MODEL", and "#DIMENSIONS" after it where they were asked for.
func (e *Embedder) Name() string {
	if e.dimensions > 0 {
		return fmt.Sprintf("%s:%s#%d", provider, e.model, e.dimensions)
	}
	return provider + ":" + e.model
}

// Embed returns the vectors of texts. The API knows no use. A text that is longer than the model reads is an error with CodeContextLength; nothing is cut.
// Errors are *llm.ProviderError, or the cause of a ctx that has ended.
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
func read(answer []byte, want int) (out [][]float32, err error) {
	c := jsonscan.New(answer)
	found := false
	for c.Object(); ; {
		k, ok := c.Key()
		if !ok {
			break
		}
		if string(k) == "embeddings" {
			found = true
			if out, err = wire.Vectors(provider, &c, want, func(c *jsonscan.Cursor) ([]float32, error) { return wire.Vector(provider, c) }); err != nil {
				return nil, err
			}
		}
	}
	if c.Err() != nil || !found {
		return nil, wire.Broken(provider, "the answer is no list of vectors: %s", wire.Excerpt(answer))
	}
	return out, nil
}

// toError makes the error of an answer that is none of success: {"error":"…"}.
func toError(status int, h http.Header, body []byte, now time.Time) *llm.ProviderError {
	f := wire.ReadFailure(body, nil)
	e := &llm.ProviderError{Provider: provider, Status: status, Message: cmp.Or(f.Message, http.StatusText(status)), RetryAfter: wire.RetryAfter(h, now)}
	text := strings.ToLower(f.Message)
	switch {
	case strings.Contains(text, "context length"), strings.Contains(text, "input length"):
		e.Code = llm.CodeContextLength // with status 400, of older versions 500
	case status == 401:
		e.Code = llm.CodeAuthentication
	case status == 403:
		e.Code = llm.CodePermission
	case status == 404:
		e.Code = llm.CodeNotFound
	case status == 408 || status == 504:
		e.Code, e.Retryable = llm.CodeTimeout, true
	case status == 429:
		e.Code, e.Retryable = llm.CodeRateLimit, true
	case status == 503:
		e.Code, e.Retryable = llm.CodeOverloaded, true
	case status >= 500:
		e.Code, e.Retryable = llm.CodeServer, true
	default:
		e.Code = llm.CodeInvalidRequest
	}
	return e
}
