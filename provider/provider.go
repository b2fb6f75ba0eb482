// Package provider opens models by name: "openai:gpt-6.1-terra" is gpt-6.1-terra over OpenAI's
// Responses API, "anthropic:claude-sonnet-5-5" is that model over Anthropic's Messages API.
//
//	o := &provider.Options{BaseURL: "http://localhost:11434/v1"}
//	m, err := provider.Open("openai-chat:qwen3:4b", o)
//
// Servers that speak Chat Completions have names too, with their addresses and key variables:
// "ollama:qwen3:4b" asks the Ollama server of this machine, "groq:openai/gpt-oss-120b" asks Groq
// with GROQ_API_KEY. A server never receives the key of another.
//
// The part before the first colon names the adapter. The rest is the provider's name of the model
// and is sent unchanged. The environment provides the keys and addresses that Options do not have;
// the packages of the adapters list the variables. A program that uses one provider can import its
// adapter directly.
//
// A provider is one package and one entry in table; everything else in the module reads the table.
package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/advice"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/internal/wire"
	"github.com/pawl-go/pawl/provider/openai"
)

// Options configure the model that Open returns. nil and zero fields mean the adapter's defaults.
type Options struct {
	// BaseURL is the address of the API; for OpenAI it ends in /v1. Empty means the provider's own,
	// and is an error of the model together with a Key that is not the provider's variable, unless
	// HTTP is given: an empty address often comes from a variable that is not set.
	BaseURL string
	Key     string            // the API key
	Header  http.Header       // sent with each request
	HTTP    http.RoundTripper // carries the requests
	Retries int               // 0 means 2; negative means never

	// The timeouts limit how long a request waits without a sign of life. 0 means the default;
	// negative means none.
	ConnectTimeout   time.Duration // to connect, 10 s; HTTP ignores it
	FirstByteTimeout time.Duration // for the head of the response, 120 s
	SilenceTimeout   time.Duration // between two reads of the reply, 120 s

	// Background asks the server to compute replies in the background: see
	// openai.Options.Background. For other providers than openai, Open returns an error.
	Background bool

	// CacheKey and CacheTTL are settings of the provider's prompt cache: see openai.Options and
	// anthropic.Options. For a setting that the provider does not have, Open returns an error.
	// Zero values mean the provider's defaults.
	CacheKey string
	CacheTTL time.Duration // see CacheKey

	// Catalog has the price and the abilities of the model. Without it, adapters derive the
	// abilities from the name. nil means the catalogue of this module.
	Catalog *catalog.Catalog
}

// Transport returns the transport of all models whose Options have no HTTP, for a RoundTripper
// that wraps it.
func Transport() http.RoundTripper { return wire.Transport() }

func fromOptions(o *Options) *openai.Options {
	return &openai.Options{BaseURL: o.BaseURL, Key: o.Key, Header: o.Header, HTTP: o.HTTP, Retries: o.Retries,
		ConnectTimeout: o.ConnectTimeout, FirstByteTimeout: o.FirstByteTimeout, SilenceTimeout: o.SilenceTimeout,
		Background: o.Background, CacheKey: o.CacheKey, CacheTTL: o.CacheTTL, Catalog: o.Catalog}
}

// Open returns a model by name, "PROVIDER:MODEL". It sends nothing: the first request reports a
// missing key or a wrong address. Its error states what a valid name is.
//
// If the catalogue has a price, the model is an llm.Pricer, and Usage.Cost has the cost of each
// reply unless the provider reports it. The price belongs to the provider in the name, even if
// BaseURL is another's.
func Open(name string, o *Options) (llm.Model, error) {
	o = cmp.Or(o, new(Options))
	prefix, model, found := strings.Cut(name, ":")
	if !found || model == "" || prefix == "" {
		return nil, &advice.Error{
			Message: fmt.Sprintf("model %q: want PROVIDER:MODEL", name),
			Joint:   ", ",
			Hint:    fmt.Sprintf("such as %s:%s%s", table[0].Name, table[0].Example, guess(name)),
		}
	}
	if p, ok := Find(prefix); ok {
		if o.Background && p.Name != "openai" {
			return nil, fmt.Errorf("model %q: background: only openai: computes replies in the background", name)
		}
		m := p.open(model, o)
		if err := checkCache(p, m, o); err != nil {
			return nil, fmt.Errorf("model %q: %w", name, err)
		}
		return priced(m, name, o), nil
	}
	return nil, advice.New(fmt.Sprintf("model %q: unknown provider %q", name, prefix),
		"known: "+strings.Join(Names(), ", ")+didYouMean(name))
}

// Names returns the names that Open accepts before the colon.
func Names() []string {
	var names []string
	for _, p := range table {
		names = append(names, p.Name)
	}
	return names
}

// guess is the end of an error about a name without a provider or without a model.
func guess(name string) string {
	trimmed := strings.Trim(name, ":")
	if _, ok := Find(trimmed); ok {
		return "; a model's name follows " + trimmed + ":"
	}
	return didYouMean(name)
}

// didYouMean is the end of an error: what Suggest returns, as a question.
func didYouMean(name string) string {
	if s := Suggest(name); s != "" {
		return "; did you mean " + s + "?"
	}
	return ""
}

// checkCache returns the error of settings of the prompt cache that the provider does not have.
func checkCache(p Info, m llm.Model, o *Options) error {
	if o.CacheKey == "" && o.CacheTTL == 0 {
		return nil
	}
	switch {
	case p.Name == "gemini":
		return errors.New("cache: Gemini has no such settings; it caches by itself")
	case p.Name == "anthropic" && o.CacheKey != "":
		return errors.New("cache.key: Anthropic has no cache keys; leave it out")
	}

	// Only settings that the provider does not have are reported here. Open sends nothing and
	// promises that other mistakes come with the first request.
	c, ok := m.(llm.Checker)
	if !ok {
		return nil
	}
	var refused *llm.ProviderError
	if err := c.Check(); errors.As(err, &refused) && refused.Code == llm.CodeUnsupported {
		return err
	}
	return nil // the first request reports other mistakes
}

// priced returns m with the price from the catalogue, or m itself if the catalogue has none.
func priced(m llm.Model, name string, o *Options) llm.Model {
	known, _ := o.Catalog.Lookup(name)
	if known.Price == nil {
		return m
	}
	price := *known.Price
	if strings.HasPrefix(name, "anthropic:") && o.CacheTTL == time.Hour {
		price = hourly(price)
	}
	return price.Of(m)
}

// hourly returns p with the price of writes to a cache with a lifetime of an hour at Anthropic:
// twice the price of other input.
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching
func hourly(p catalog.Price) catalog.Price {
	write := 2 * p.Input
	p.Write = &write
	if p.Long != nil {
		long := *p.Long
		long.Price = hourly(long.Price)
		p.Long = &long
	}
	return p
}
