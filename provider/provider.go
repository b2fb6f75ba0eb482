// Package provider opens models by name: "openai:gpt-5-mini" is the model gpt-5-mini behind OpenAI's Responses API,
// "anthropic:claude-sonnet-4-5" that model behind Anthropic's Messages API.
//
//	m, err := provider.Open("openai-chat:qwen3:4b", &provider.Options{BaseURL: "http://localhost:11434/v1"})
//
// Servers that speak Chat Completions have names of their own, with their addresses and the variables of their keys: "ollama:qwen3:4b" asks
// the Ollama of this machine, "groq:openai/gpt-oss-120b" Groq with GROQ_API_KEY. No server is sent the key of another.
//
// What stands before the first colon names the adapter, the rest is the provider's own name of the model and is not
// looked at. Keys and addresses come from the environment where Options do not have them; each adapter's
// package says which variables. A program that knows its provider can do without this package, and call that of the
// adapter.
package provider

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/internal/wire"
	"github.com/pawl-go/pawl/provider/openai"
)

// Options tune the model that Open returns. Nil, and every zero field, stands for the adapter's default.
type Options struct {
	BaseURL string            // the address of the API; for OpenAI's it ends in /v1
	Key     string            // the API key
	Header  http.Header       // sent with each request
	HTTP    http.RoundTripper // carries the requests
	Retries int               // 0: 2; negative: never

	// What is waited for without a sign of life; 0: the default; negative: without end.
	ConnectTimeout   time.Duration // for a connection; 10 s. It is not for an HTTP of your own
	FirstByteTimeout time.Duration // for the head of the answer; 120 s
	SilenceTimeout   time.Duration // for the next piece of the reply; 120 s

	// Catalog says what is known of the model: its price, and what the adapter would otherwise have to tell from its name. Nil: the one that
	// comes with the program.
	Catalog *catalog.Catalog
}

// Transport returns what carries the requests of all models that are given no HTTP of their own: for a RoundTripper that is to stand in front of it.
func Transport() http.RoundTripper { return wire.Transport() }

// adapter is how a server of the list is opened.
type adapter struct {
	name, example string
	open          func(model string, o *Options) llm.Model
}

func fromOptions(o *Options) *openai.Options {
	return &openai.Options{BaseURL: o.BaseURL, Key: o.Key, Header: o.Header, HTTP: o.HTTP, Retries: o.Retries,
		ConnectTimeout: o.ConnectTimeout, FirstByteTimeout: o.FirstByteTimeout, SilenceTimeout: o.SilenceTimeout, Catalog: o.Catalog}
}

// Open returns the model that name stands for, "PROVIDER:MODEL". Nothing is sent: a missing key or a wrong address shows on the
// first request. The error of a name that cannot be opened says what would be right.
//
// Where the catalogue has a price, the model is a llm.Pricer, and Usage.Cost has what each reply cost, unless the provider said that itself. It is the
// price of the provider in the name, wherever BaseURL leads.
func Open(name string, o *Options) (llm.Model, error) {
	if o == nil {
		o = new(Options)
	}
	prefix, model, found := strings.Cut(name, ":")
	if !found || model == "" || prefix == "" {
		return nil, fmt.Errorf("model %q: want PROVIDER:MODEL, such as %s:%s%s", name, table[0].Name, table[0].Example, guess(name))
	}
	if p, ok := Find(prefix); ok {
		return priced(p.open(model, o), name, o.Catalog), nil
	}
	return nil, fmt.Errorf("model %q: unknown provider %q; known: %s%s", name, prefix, strings.Join(Names(), ", "), didYouMean(name, prefix, model))
}

// Names returns the providers that Open knows.
func Names() []string {
	names := make([]string, len(table))
	for i, p := range table {
		names[i] = p.Name
	}
	return names
}

// guess completes a name without a provider, or without a model.
func guess(name string) string {
	if name = strings.Trim(name, ":"); name == "" {
		return ""
	}
	if _, ok := Find(name); ok {
		return "; a model's name follows " + name + ":"
	}
	if strings.ContainsAny(name, "/ ") {
		return ""
	}
	for _, p := range table {
		if strings.HasPrefix(name, p.Name+"-") {
			return fmt.Sprintf("; did you mean %s:%s?", p.Name, name)
		}
	}
	for _, p := range table {
		if slices.ContainsFunc(p.Families, func(family string) bool { return strings.HasPrefix(name, family) }) {
			return fmt.Sprintf("; did you mean %s:%s?", p.Name, name)
		}
	}
	return fmt.Sprintf("; did you mean ollama:%s?", name) // what runs anywhere has names of many kinds
}

// size is how Ollama marks the variants of a model: 4b, 1.5b-instruct, latest.
var size = regexp.MustCompile(`^(\d+(\.\d+)?[bm]\b|latest$|cloud$)`)

// didYouMean names the provider that is most like the one asked for. Where none is, and what follows looks like a size, the name is Ollama's form of one.
func didYouMean(name, prefix, model string) string {
	best := nearest.Word(prefix, Names())
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %s:%s?", best, model)
	case size.MatchString(model):
		return fmt.Sprintf("; did you mean ollama:%s?", name)
	}
	return ""
}
