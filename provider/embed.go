package provider

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/store"
)

// OpenEmbedder returns an embedding model by name: "PROVIDER:MODEL", or
// "PROVIDER:MODEL#DIMENSIONS" for shorter vectors than the model's own. Examples are
// "openai:text-embedding-3-small", "gemini:gemini-embedding-001#768" and
// "ollama:nomic-embed-text". Servers that speak Chat Completions are asked at /embeddings. An
// Ollama server is asked over its own API; with "openai:NAME" and its /v1 address, over OpenAI's.
// OpenEmbedder sends nothing. Its error states what a valid name is.
func OpenEmbedder(name string, o *Options) (store.Embedder, error) {
	o = cmp.Or(o, new(Options))
	fail := func(format string, args ...any) (store.Embedder, error) {
		return nil, fmt.Errorf("embedding model %q: %s", name, fmt.Sprintf(format, args...))
	}
	prefix, model, found := strings.Cut(name, ":")
	dimensions := 0
	if m, d, ok := strings.Cut(model, "#"); ok {
		// Nothing is sent here, so that a mistyped number would be an error of the first request.
		n, err := strconv.Atoi(d)
		if err != nil || n < 1 || n > 65536 {
			return fail("want the number of values of a vector after #, such as #768")
		}
		model = m
		dimensions = n
	}
	if !found || model == "" {
		return fail("want PROVIDER:MODEL, such as openai:text-embedding-3-small")
	}
	p, known := Find(prefix)
	switch {
	case known && p.embed == nil:
		return fail("%s has no embedding models", cmp.Or(p.Title, p.Name))
	case known:
		return p.embed(model, dimensions, o), nil
	}
	return fail("unknown provider %q; known: %s", prefix, strings.Join(embedders(), ", "))
}

// embedders returns the names for the error of OpenEmbedder.
func embedders() (names []string) {
	for _, p := range table {
		if p.Embeds() && !p.Alias {
			names = append(names, p.Name)
		}
	}
	return names
}
