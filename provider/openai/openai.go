// Package openai is an llm.Model over OpenAI's two APIs: Responses (New), and Chat Completions
// (NewChat). Most other servers speak Chat Completions: Ollama, vLLM, llama.cpp, LM Studio,
// OpenRouter, Groq, Mistral, DeepSeek, xAI.
//
//	m := openai.New("gpt-6.1-terra", nil) // OPENAI_API_KEY, OPENAI_BASE_URL
//	m := openai.NewChat("qwen3:4b", &openai.Options{BaseURL: "http://localhost:11434/v1"})
//
// The package only translates and retries: an llm.Request to a body, and the response to
// llm.Deltas.
//
//	llm.Request ─▶ fromRequest, fromMessage, fromTool ─▶ bytes ─▶ net/http
//	llm.Delta   ◀─ toDelta, toUsage, toFinish, toError ◀─ bytes ◀─ a stream of events, or one body
//
// Each API has a request file and a reply file: request.go and response.go for Responses,
// chat_request.go and chat_response.go for Chat Completions. Whole and streamed replies use the
// same functions. EncodeResponses, DecodeResponses, EncodeChat and DecodeChat do the same without
// a network.
//
// Requests that the APIs cannot express fail with CodeUnsupported before anything is sent. Parts
// that only the server can read (encrypted reasoning, blocks of its own tools) are stored in
// Opaque, tagged with the API and the host. They are sent back to that host byte for byte, and
// left out elsewhere.
//
// A schema for the reply goes into text.format or response_format. It is strict if all its fields
// are required; otherwise the server reads it without enforcing it. The instructions ask for a
// schema that is not an object, and for any schema if Server.JSONObject is set (DeepSeek).
//
// # Messages
//
// Leading system messages are the instructions of a Responses request. Other system messages, and
// all messages of Chat Completions, keep their place. Tool messages of Chat Completions contain
// only text; the images of results follow in a user message, which names their calls. Reasoning is
// sent back under the server's name for it. DeepSeek and Kimi reject a conversation with a reply
// without reasoning, so replies of other models get a space
// (github.com/charmbracelet/crush/issues/2696).
//
// # Provider options
//
// The members of Settings.Options["openai"] (Responses) and Settings.Options["openai-chat"] are
// copied into the body and override the adapter's. The elements of "tools" (web search, code
// interpreter) follow the request's tools. A Server has options under its own Name, and otherwise
// those for "openai-chat".
//
// Requests and replies are written and read without reflection, because an adapter is most of the
// cost of a run.
package openai

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	dialects "github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// DefaultBaseURL is the address of OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options configure a Model. nil and zero fields mean the defaults.
type Options struct {
	// BaseURL is the address before "/responses" and "/chat/completions"; it usually ends in /v1.
	// It may have a query (Azure's api-version). Empty means OPENAI_BASE_URL, or DefaultBaseURL if
	// that is not set; with a Key that is not OPENAI_API_KEY, it is an error unless HTTP is given.
	BaseURL string

	// Key is sent as a bearer token. Empty means OPENAI_API_KEY, without surrounding white space.
	// If BaseURL is set, that variable is sent only to OpenAI's hosts, to the host of
	// OPENAI_BASE_URL and to this machine. Without a key, requests to api.openai.com fail with
	// CodeAuthentication before anything is sent; requests to other hosts have no key.
	Key string

	// Server is a server other than OpenAI's, with the defaults of Key and BaseURL. OpenAI's
	// environment variables are then not read, so that its key cannot reach another server. nil
	// means OpenAI.
	Server *Server

	// Header is sent with each request, for organizations, projects and gateways.
	Header http.Header

	// HTTP carries the requests. nil means a transport that all Models share, with idle
	// connections for a busy host. Redirects are not followed.
	HTTP http.RoundTripper

	// Retries is how often a failed request is repeated, unless a fragment of its reply was
	// emitted. 0 means 2; negative means never.
	Retries int

	// Strict asks the server to enforce the schemas of tools. It applies to tools whose schema has
	// a strict form (optional properties accept null, which is removed from the arguments). Other
	// tools are sent without it. Keywords without a strict form are still validated in this
	// process. Servers other than OpenAI's may ignore or reject it.
	Strict bool

	// Background asks the server to compute replies in the background (Responses only). A request
	// then survives a broken connection: the Model polls for the reply, continues its stream, and
	// cancels it if the request ends before. The server stores such replies, unless the request's
	// options have "store":false. A durable run fetches the reply after a restart. The member
	// "background" of the request's options overrides Background.
	Background bool

	// Poll is the first interval between two questions for a reply in the background. The interval
	// grows to 15 times its length. 0 means 2 s.
	Poll time.Duration

	// CacheKey groups requests with a common beginning, so that OpenAI finds it in its prompt
	// cache (prompt_cache_key). Empty means none.
	CacheKey string

	// CacheTTL is the lifetime of entries of the prompt cache. 0 means the API's default. From
	// gpt-5.6 on it is a least lifetime of 30 minutes or, over Responses, 12 hours; earlier models
	// have 24 hours. Servers other than OpenAI's have neither CacheTTL nor CacheKey.
	CacheTTL time.Duration

	// The timeouts limit how long a request waits without a sign of life, not how long a reply
	// takes. 0 means the default; negative means none. A timeout is a failed request with
	// CodeTimeout.
	ConnectTimeout time.Duration // to connect, 10 s; HTTP ignores it
	// for the head of the response, 120 s; many servers send it at the end of a whole reply
	FirstByteTimeout time.Duration
	SilenceTimeout   time.Duration // between two reads of the reply, 120 s; a stream's pings count

	// Catalog has the abilities of models. Without an entry, they are derived from the name. nil
	// means the catalogue of this module.
	Catalog *catalog.Catalog
}

// Server describes a server other than OpenAI's. Package provider has a list of them.
type Server struct {
	Name    string // in errors and in Settings.Options
	BaseURL string // empty means that the program must give one
	BaseEnv string // the environment variable with the address; empty means none
	KeyEnv  string // the environment variable with the key; empty means none
	// the header with the key alone; empty means Authorization with a bearer token
	KeyHeader string
	Keyless   bool // works without a key

	// JSONObject means that response_format accepts json_object but not json_schema. A prompt then
	// asks for the schema of the reply.
	JSONObject bool
}

// Model is an llm.Model over one of OpenAI's APIs. Create it with New or NewChat. It is safe for
// concurrent use.
type Model struct {
	dialect
	name   string
	url    *url.URL
	client wire.Client
	err    error // an invalid option, returned by the first request
	tools  wire.ToolCache
	output wire.OutputCache
	wait   time.Duration // Options.Poll
}

var _ llm.Model = (*Model)(nil)

// Name returns "PROVIDER:MODEL".
func (m *Model) Name() string { return m.provider + ":" + m.name }

// Window returns the context window and the longest reply, in tokens; see history.Window.
func (m *Model) Window(req *llm.Request) (window, output int) {
	return m.catalog.Window(m.provider, m.name, req)
}

// Check returns the error of an invalid option, such as a missing key or an empty name of the
// model, that the first request would return. nil means that there is none.
func (m *Model) Check() error { return cmp.Or(m.err, wire.CheckName(m.provider, m.name)) }

// New returns the named model behind the Responses API. The first request reports invalid options.
func New(model string, o *Options) *Model { return newModel(responsesAPI, model, o) }

// NewChat returns the named model behind the Chat Completions API. The first request reports
// invalid options.
func NewChat(model string, o *Options) *Model { return newModel(chatAPI, model, o) }

func newModel(a *api, model string, o *Options) *Model {
	o = cmp.Or(o, new(Options))
	m := &Model{name: model}
	server := o.Server
	if server == nil {
		server = &Server{BaseURL: DefaultBaseURL, BaseEnv: "OPENAI_BASE_URL", KeyEnv: "OPENAI_API_KEY"}
	}

	// The key of the environment goes to the server that the environment means. A server without an
	// address of its own has no other host that the key could be for.
	base := cmp.Or(o.BaseURL, wire.Env(server.BaseEnv), server.BaseURL)
	key := o.Key
	atHome := o.BaseURL == "" || server.BaseURL == "" ||
		wire.MayHaveKey(o.BaseURL, wire.Env(server.BaseEnv), server.BaseURL)
	if key == "" && atHome {
		key = wire.Env(server.KeyEnv)
	}

	// A Model with a fault is returned, and its requests return the fault: New has no error.
	m.dialect = newDialect(a, server.Name, "")
	if base == "" {
		m.err = &llm.ProviderError{Provider: m.provider, Code: llm.CodeInvalidRequest,
			Message: "no base URL: " + server.Name + " has no address of its own; give one, or set " + server.BaseEnv}
		return m
	}
	u, err := wire.BaseURL(m.provider, base, DefaultBaseURL)
	if err == nil {
		err = wire.CheckAddress(m.provider, o.BaseURL, o.Key, o.HTTP, server.KeyEnv)
	}
	if err != nil {
		m.err = err
		return m
	}

	m.dialect = newDialect(a, server.Name, u.Hostname())
	m.catalog, m.own = o.Catalog, toFacts(o.Catalog, model)
	m.background, m.wait = o.Background, cmp.Or(max(o.Poll, 0), pollFirst)
	m.mistral = m.mistral || server.Name == "mistral" // also behind a gateway
	m.thinks = m.thinks || server.Name == "deepseek"
	keyless := server.Keyless || o.Server == nil && m.compatible

	u.Path = cmp.Or(u.Path, "/")
	m.url = u.JoinPath(a.path)
	m.client = wire.Client{Provider: m.provider, Header: wire.Header(o.Header), Key: key, HTTP: o.HTTP,
		Retries:  wire.Retries(o.Retries),
		Timeouts: wire.Timeouts{Connect: o.ConnectTimeout, FirstByte: o.FirstByteTimeout, Silence: o.SilenceTimeout},
		Decoder:  m.decode, ToError: m.toError}

	m.jsonObject = server.JSONObject
	m.cache = wire.PromptCache{Key: o.CacheKey, TTL: o.CacheTTL}
	m.tools.Form = m.form(o.Strict)
	m.output.Form = outputForm
	m.err = cmp.Or(m.cache.Check(m.provider, !m.compatible, a == chatAPI), wire.CheckKey(m.provider, key))
	if m.err != nil {
		return m
	}
	if o.Background && a != responsesAPI {
		m.err = m.unsupported("background", "Chat Completions has no replies in the background; openai: has them")
		return m
	}

	// Authentication that the program set as a header counts as a key.
	authorized := m.client.Header.Get("Authorization") != "" ||
		server.KeyHeader != "" && m.client.Header.Get(server.KeyHeader) != ""
	switch {
	case key != "" && server.KeyHeader != "":
		m.client.Header.Set(server.KeyHeader, key)
	case key != "":
		m.client.Header.Set("Authorization", "Bearer "+key)
	case !keyless && !authorized:
		m.err = wire.NoKey(m.provider, server.KeyEnv)
		if wire.Env(server.KeyEnv) != "" {
			m.err = wire.WithheldKey(m.provider, server.KeyEnv, u.Hostname())
		}
	}
	return m
}

// api is the difference between the two APIs, except the form of their bodies.
type api struct {
	id       string // in Settings.Options, in Opaque tags, and in OpenAI's own errors
	path     string
	maxID    int // the longest accepted call id
	rules    *wire.Rules
	results  *wire.MediaRule // the media that are taken in results
	encode   func(e *encoder, req *llm.Request)
	fromTool func(dst []byte, name string, t *llm.ToolSpec, schema json.RawMessage, strict bool) []byte
	decoder  func(d *dialect, out *wire.Emitter) wire.Decoder
}

// dialect is a server's variant of an API.
type dialect struct {
	*api
	provider   string // in errors: the server's name, or the API's id
	tag        string // of Opaque values
	compatible bool   // not OpenAI's own server
	mistral    bool   // accepts only call ids of nine letters and digits
	jsonObject bool   // accepts no schemas for replies
	background bool   // the server computes replies in the background
	cache      wire.PromptCache
	thinks     bool // requires reasoning_content in every reply of the history
	catalog    *catalog.Catalog
	own        facts // of the Model's own model
}

func newDialect(a *api, provider, host string) dialect {
	d := dialect{api: a, provider: cmp.Or(provider, a.id), tag: a.id}
	if host != "" && host != "api.openai.com" {
		d.tag += "@" + host
		d.compatible = !strings.HasSuffix(host, ".openai.com") && !strings.HasSuffix(host, ".openai.azure.com")
		d.mistral = strings.HasSuffix(host, ".mistral.ai")
		for _, of := range [...]string{".deepseek.com", ".moonshot.ai", ".moonshot.cn", ".kimi.com"} {
			d.thinks = d.thinks || strings.HasSuffix(host, of)
		}
	}
	return d
}

// form returns the dialect's form of tools.
func (d *dialect) form(strict bool) wire.ToolForm {
	f := wire.ToolForm{Provider: d.provider, Dialect: dialects.OpenAI, FromTool: d.fromTool,
		Names: wire.NameRule{Max: 64, Also: "-", Start: d.compatible}} // servers differ
	if strict {
		f.Strict = dialects.OpenAIStrict
	}
	return f
}

// outputForm has the forms of a schema for the reply: enforced, or only read by the server.
var outputForm = wire.OutputForm{Dialects: []*dialects.Dialect{dialects.OpenAIStrict, dialects.OpenAI}}

func (d *dialect) emitter(tools *wire.Toolset, yield func(llm.Delta, error) bool) *wire.Emitter {
	return &wire.Emitter{Provider: d.provider, Tag: d.tag, Tools: tools, Yield: yield,
		Lenient: d.api == chatAPI && d.compatible}
}

// decode returns the decoder of one reply.
func (d *dialect) decode(out *wire.Emitter) wire.Decoder { return d.decoder(d, out) }

// unsupported returns the error of a request that the API cannot express.
func (d *dialect) unsupported(field, format string, args ...any) error {
	return wire.Unsupported(d.provider, field, format, args...)
}

func (d *dialect) invalid(field, format string, args ...any) error {
	return wire.Invalid(d.provider, field, format, args...)
}

// broken returns the error of a reply that cannot be read.
func (d *dialect) broken(format string, args ...any) error {
	return wire.Broken(d.provider, format, args...)
}
