package provider

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/provider/catalog"
)

// words are the names of providers in other programs: in their strings for models, their packages
// and their environment variables.
var words = map[string]string{
	"claude":           "anthropic",
	"gpt":              "openai",
	"chatgpt":          "openai",
	"openai-responses": "openai",
	"openai-compat":    "openai-chat",
	"google":           "gemini",
	"google-genai":     "gemini",
	"google-gla":       "gemini",
	"google-ai":        "gemini",
	"googleai":         "gemini",
	"genai":            "gemini",
	"vertex":           "gemini",
	"vertexai":         "gemini",
	"vertex-ai":        "gemini",
	"google-vertex":    "gemini",
	"google-vertexai":  "gemini",
	"grok":             "xai",
	"x-ai":             "xai",
	"mistralai":        "mistral",
	"mistral-ai":       "mistral",
	"azure-openai":     "azure",
	"azureopenai":      "azure",
	"open-router":      "openrouter",
	"ollama-chat":      "ollama",
	"hosted-vllm":      "vllm",
	"llama.cpp":        "llamacpp",
	"llama-cpp":        "llamacpp",
	"lm-studio":        "lmstudio",
}

// meant returns the provider that other programs call by this word. Empty means none.
func meant(word string) string {
	word = strings.ReplaceAll(strings.ToLower(word), "_", "-")
	if _, ok := Find(word); ok {
		return word
	}
	return words[word]
}

// size matches Ollama's variants of a model: 4b, 1.5b-instruct, latest.
var size = regexp.MustCompile(`^(\d+(\.\d+)?[bm]\b|latest$|cloud$)`)

// Suggest returns the name of a model that may have been meant by a name that Open rejects, such as
// gemini:gemini-3.8-flash for google:gemini-3.8-flash and for gemini/gemini-3.8-flash. Empty means
// that there is none.
func Suggest(name string) string {
	prefix, model, colon := strings.Cut(name, ":")
	switch {
	case strings.Trim(name, ":") == "", colon && model == "":
		return ""
	case colon && prefix != "":
		return prefixed(name, prefix, model)
	}
	name = strings.Trim(name, ":")
	if prefix, model, slash := strings.Cut(name, "/"); slash {
		p := meant(prefix)
		switch {
		case p != "" && model != "":
			return p + ":" + modelOf(p, model)
		case prefix == "models": // the API's own name of a model of Gemini
			return bare(model)
		}
		return ""
	}
	if strings.Contains(name, " ") {
		return ""
	}
	return bare(name)
}

// prefixed suggests for a name with an unknown provider: the provider that other programs call so,
// or else the one with the most similar name. If there is none and model looks like a size, name is
// Ollama's form of a model.
func prefixed(name, prefix, model string) string {
	if p := meant(prefix); p != "" {
		return p + ":" + modelOf(p, model)
	}
	if p := nearest.Word(prefix, Names()); p != "" {
		return p + ":" + model
	}
	before, after, slash := strings.Cut(prefix, "/")
	// A tag behind the colon, as in qwen3:4b, is Ollama's. Then the prefix is a part of the model's
	// name.
	isOllama := slash && meant(before) == "ollama" // ollama/qwen3:4b
	switch {
	case size.MatchString(model) && !isOllama:
		return "ollama:" + name
	case slash && meant(before) != "":
		return meant(before) + ":" + after + ":" + model
	}
	return ""
}

// bare suggests the provider for a model's name alone. Ollama's models have names of many kinds.
func bare(name string) string {
	if before, after, dot := strings.Cut(name, "."); dot && meant(before) != "" && after != "" {
		return meant(before) + ":" + after // openai.gpt-6.1-terra
	}
	for _, p := range table {
		if strings.HasPrefix(name, p.Name+"-") {
			return p.Name + ":" + name
		}
	}
	for _, p := range table {
		if slices.ContainsFunc(p.Families, func(family string) bool { return strings.HasPrefix(name, family) }) {
			return p.Name + ":" + name
		}
	}
	return "ollama:" + name
}

// modelOf returns the provider's first model of a class, for a word such as sonnet, and any other
// name unchanged.
func modelOf(provider, word string) string {
	c := catalog.Default()
	if strings.ContainsAny(word, "-./:0123456789") {
		return word
	}
	for _, m := range c.Models(provider) {
		if m.Ends == "" && slices.Contains(strings.Split(m.ID, "-"), strings.ToLower(word)) {
			return m.ID
		}
	}
	return word
}
