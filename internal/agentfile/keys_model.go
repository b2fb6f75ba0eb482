package agentfile

// keys_model.go: the keys of models, of requests to them and of the answer.

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// Models are models in order: the first is asked, and the others are its fallbacks.
type Models []Model

// Model names a model.
type Model struct {
	// PROVIDER:NAME.
	Name string `yaml:"name" required:"true"`

	// The address of the provider's API. Default: the provider's variable (OPENAI_BASE_URL,
	// ANTHROPIC_BASE_URL, GEMINI_BASE_URL), then its own address.
	BaseURL string `yaml:"base_url" form:"address"`

	// The environment variable that holds the API key; the key itself has no place in a file.
	// Default: the provider's own variable.
	KeyEnv string `yaml:"key_env"`

	// The server computes replies in the background, and the request survives a broken connection
	// and a restart (only for openai:). Default: false.
	Background bool `yaml:"background"`

	// Settings of the provider's prompt cache (openai: and anthropic:); docs/providers.md lists
	// what each API has. Default: the provider's own.
	Cache PromptCache `yaml:"cache"`

	made llm.Model // the model of a planner without a provider; nil means that Name is opened
}

// PromptCache has settings of a provider's prompt cache.
type PromptCache struct {
	// The lifetime of entries: 5m or 1h at Anthropic; 30m, 12h or 24h at OpenAI. Default: the
	// provider's own.
	TTL outside.Duration `yaml:"ttl"`

	// Groups requests with a common beginning (openai: and openai-chat:). Default: none.
	Key string `yaml:"key"`
}

// React tunes driver react.
type React struct {
	// The format of decisions. Default: json.
	Format string `yaml:"format" enum:"json,text,xml,plain"`

	// One decision may have several calls.
	Parallel bool `yaml:"parallel"`

	// Unknown tools and wrong arguments give calls whose result is an error; without it, the model
	// is asked again.
	Lenient bool `yaml:"lenient"`

	// How often the model is asked again after a bad decision. Default: 2.
	Retries *int `yaml:"retries" min:"0"`
}

// Choice is a tool choice as written: a word, or the names of tools.
type Choice []string

// Output is what an answer must fit.
type Output struct {
	File   string
	Schema json.RawMessage
}

// Settings tune a request.
type Settings struct {
	// Maximum number of tokens of a reply. Default: the provider's.
	MaxTokens *int `yaml:"max_tokens" min:"1"`

	// Default: the provider's.
	Temperature *float64 `yaml:"temperature" min:"0"`

	// Default: the provider's.
	TopP *float64 `yaml:"top_p" min:"0" max:"1"`

	// Sequences that end a reply.
	Stop []string `yaml:"stop"`

	// Reasoning effort, in the provider's words. Default: the provider's.
	Effort string `yaml:"effort"`

	// Whether one reply may have several calls. Default: the provider's.
	Parallel *bool `yaml:"parallel_calls"`

	// By provider (openai, openai-chat, anthropic, gemini, or a server's name): an object that is
	// merged into the body of each request.
	Options map[string]outside.JSON `yaml:"options"`
}

// Embed names an embedding model.
type Embed struct {
	// PROVIDER:MODEL, such as openai:text-embedding-3-small or ollama:nomic-embed-text. Use the
	// same model for adding and searching.
	Model string `yaml:"model"`

	// The address of the model's API. Default: the provider's own.
	URL string `yaml:"base_url" form:"address"`
}
