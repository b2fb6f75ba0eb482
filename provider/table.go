package provider

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/ollama"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/store"
)

// Info describes a provider. It is the entry of the table that all code about providers reads. A
// new provider is a package and an entry in table. A new server that speaks Chat Completions is an
// entry in servers.
type Info struct {
	Name     string   // before the colon of a model's name
	Title    string   // the name in messages; empty means Name
	Example  string   // the name of a model there
	BaseURL  string   // the default address; empty means none
	BaseEnv  string   // the environment variable that replaces the address; empty means none
	Keys     []string // the environment variables with the key, in the order in which they are read
	Families []string // prefixes of its models' names, to suggest a provider for a bare name

	// KeyPage is the address where a user gets a key. Empty means unknown.
	KeyPage string

	// Catalog is the provider in the catalogue of models. Empty means Name.
	Catalog string

	// Telemetry is gen_ai.provider.name of the OpenTelemetry conventions. Empty means Name.
	Telemetry string

	// Local means that the server runs on the user's own machine and needs no key.
	Local bool

	// OwnPort means that no other program uses the default address of this local server.
	OwnPort bool

	// Alias means that another entry describes the same service with the same key.
	Alias bool

	// CleanCalls means that the provider's own models never write calls into their text.
	CleanCalls bool

	// APIs are the wire formats that the provider defines. Most servers use another provider's.
	APIs []API

	open func(model string, o *Options) llm.Model
	// nil means no embedding models
	embed func(model string, dimensions int, o *Options) store.Embedder
}

// API is a wire format of a provider.
type API struct {
	Name    string                             // as in PROVIDER:MODEL
	Aliases []string                           // other accepted names
	Encode  func(*llm.Request) ([]byte, error) // returns the body of a request
	// Decode reads a response, whole or as the events of a stream.
	Decode func(status int, sse bool, body []byte) (*llm.Response, error)

	// Rules are the requirements on histories that the adapter enforces before it sends a request.
	Rules llm.HistoryRules

	of    Info
	heads []string // options that continue a conversation stored at the provider
}

// table has the providers in the order in which they are listed.
var table = withServerInfo(
	Info{
		Name: "openai", Title: "OpenAI", Example: exampleOpenAI,
		BaseURL: openai.DefaultBaseURL, BaseEnv: "OPENAI_BASE_URL", Keys: []string{"OPENAI_API_KEY"},
		KeyPage:  "https://platform.openai.com/api-keys",
		Families: []string{"gpt-", "chatgpt", "o1", "o3", "o4"}, CleanCalls: true,
		APIs: []API{{Name: "openai-responses", Encode: openai.EncodeResponses, Decode: openai.DecodeResponses,
			Rules: llm.HistoryRules{Settled: true}, heads: []string{"previous_response_id", "conversation"}}},
		open: func(model string, o *Options) llm.Model { return openai.New(model, toServer(o)) },
		embed: func(model string, n int, o *Options) store.Embedder {
			return openai.NewEmbedder(model, n, toServer(o))
		},
	},
	Info{
		Name: "openai-chat", Title: "OpenAI", Example: exampleOpenAI, Catalog: "openai", Telemetry: "openai", Alias: true,
		BaseURL: openai.DefaultBaseURL, BaseEnv: "OPENAI_BASE_URL", Keys: []string{"OPENAI_API_KEY"},
		KeyPage: "https://platform.openai.com/api-keys",
		APIs: []API{{Name: "openai-chat", Encode: openai.EncodeChat, Decode: openai.DecodeChat,
			Rules: llm.HistoryRules{Settled: true}}},
		open: func(model string, o *Options) llm.Model { return openai.NewChat(model, toServer(o)) },
		embed: func(model string, n int, o *Options) store.Embedder {
			return openai.NewEmbedder(model, n, toServer(o))
		},
	},
	Info{
		Name: "anthropic", Title: "Anthropic", Example: exampleAnthropic,
		BaseURL: anthropic.DefaultBaseURL, BaseEnv: "ANTHROPIC_BASE_URL", Keys: []string{"ANTHROPIC_API_KEY"},
		KeyPage:  "https://console.anthropic.com/settings/keys",
		Families: []string{"claude"}, CleanCalls: true,
		APIs: []API{{Name: "anthropic-messages", Aliases: []string{"anthropic"}, Encode: anthropic.EncodeMessages,
			Decode: anthropic.DecodeMessages,
			Rules: llm.HistoryRules{Settled: true, UserFirst: true,
				NotLast: []string{"thinking", "redacted_thinking"}}}},
		open: func(model string, o *Options) llm.Model {
			return anthropic.New(model, &anthropic.Options{BaseURL: o.BaseURL, Key: o.Key, Header: o.Header,
				HTTP: o.HTTP, Retries: o.Retries,
				ConnectTimeout: o.ConnectTimeout, FirstByteTimeout: o.FirstByteTimeout,
				SilenceTimeout: o.SilenceTimeout, CacheTTL: o.CacheTTL, Catalog: o.Catalog})
		},
	},
	Info{
		Name: "gemini", Title: "Gemini", Example: exampleGemini, Telemetry: "gcp.gemini",
		BaseURL: gemini.DefaultBaseURL, BaseEnv: "GEMINI_BASE_URL", Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		KeyPage:    "https://aistudio.google.com/apikey",
		CleanCalls: true,
		APIs: []API{{Name: "gemini", Encode: gemini.EncodeGenerate, Decode: gemini.DecodeGenerate,
			Rules: llm.HistoryRules{Settled: true, UserFirst: true}, heads: []string{"cachedContent", "cached_content"}}},
		open: func(model string, o *Options) llm.Model { return gemini.New(model, toGemini(o)) },
		embed: func(model string, n int, o *Options) store.Embedder {
			return gemini.NewEmbedder(model, n, toGemini(o))
		},
	},
)

// serverInfo has the fields that differ from zero, for servers that speak Chat Completions.
var serverInfo = map[string]Info{
	"ollama": {OwnPort: true, embed: func(model string, n int, o *Options) store.Embedder {
		return ollama.NewEmbedder(model, n, &ollama.Options{BaseURL: o.BaseURL, Key: o.Key, Header: o.Header,
			HTTP: o.HTTP, Retries: o.Retries,
			ConnectTimeout: o.ConnectTimeout, FirstByteTimeout: o.FirstByteTimeout, SilenceTimeout: o.SilenceTimeout})
	}},
	"lmstudio":   {OwnPort: true},
	"openrouter": {KeyPage: "https://openrouter.ai/settings/keys"},
	"groq":       {KeyPage: "https://console.groq.com/keys"},
	"deepseek":   {KeyPage: "https://platform.deepseek.com/api_keys"},
	"mistral": {KeyPage: "https://console.mistral.ai/api-keys", Telemetry: "mistral_ai",
		Families: []string{"magistral", "ministral", "codestral", "devstral", "pixtral"}},
	"xai": {KeyPage: "https://console.x.ai", Telemetry: "x_ai", Families: []string{"grok"}},
}

func toGemini(o *Options) *gemini.Options {
	return &gemini.Options{BaseURL: o.BaseURL, Key: o.Key, Header: o.Header, HTTP: o.HTTP, Retries: o.Retries,
		ConnectTimeout: o.ConnectTimeout, FirstByteTimeout: o.FirstByteTimeout, SilenceTimeout: o.SilenceTimeout,
		Catalog: o.Catalog}
}

// withServerInfo appends the servers.
func withServerInfo(all ...Info) []Info {
	for _, s := range servers {
		i := serverInfo[s.Name]
		i.Name, i.Example, i.BaseURL, i.BaseEnv, i.Local = s.Name, s.example, s.BaseURL, s.BaseEnv, s.Keyless
		i.Keys = []string{s.KeyEnv}
		i.open = func(model string, o *Options) llm.Model { return openai.NewChat(model, s.options(o)) }
		if i.embed == nil {
			i.embed = func(model string, n int, o *Options) store.Embedder {
				return openai.NewEmbedder(model, n, s.options(o))
			}
		}
		all = append(all, i)
	}
	return all
}

// All returns the providers that Open knows, in the order in which they are listed.
func All() []Info { return slices.Clone(table) }

// Find returns the provider with this name.
func Find(name string) (Info, bool) {
	i := slices.IndexFunc(table, func(p Info) bool { return p.Name == name })
	if i < 0 {
		return Info{}, false
	}
	return table[i], true
}

// Embeds reports whether OpenEmbedder opens models of the provider.
func (p Info) Embeds() bool { return p.embed != nil }

// APIs returns the wire formats of all providers.
func APIs() (all []API) {
	for _, p := range table {
		for _, a := range p.APIs {
			a.of = p
			all = append(all, a)
		}
	}
	return all
}

// FindAPI returns the wire format with this name or alias.
func FindAPI(name string) (API, bool) {
	for _, a := range APIs() {
		if a.Name == name || slices.Contains(a.Aliases, name) {
			return a, true
		}
	}
	return API{}, false
}

// Repair returns req with messages that Rules allow, and the repairs, as the adapter sends it. It
// returns req itself if nothing needs repair, or if the request's options continue a conversation
// that is stored at the provider.
func (a API) Repair(req *llm.Request) (*llm.Request, []llm.Repaired) {
	var options map[string]json.RawMessage
	if json.Unmarshal(req.Settings.Options[a.of.Name], &options) == nil &&
		slices.ContainsFunc(a.heads, func(h string) bool { return options[h] != nil }) {
		return req, nil
	}
	return a.Rules.RepairRequest(req)
}

// Open returns a model behind the API. h answers its requests. It reads no environment variables
// and never retries.
func (a API) Open(h http.RoundTripper) llm.Model {
	return a.of.open("m", &Options{BaseURL: a.of.BaseURL, Key: "none", HTTP: h, Retries: -1})
}
