// Package openai asks models behind OpenAI's two APIs: Responses (New), and Chat Completions (NewChat), which almost
// every other server speaks as well: Ollama, vLLM, llama.cpp, LM Studio, OpenRouter, Groq, Mistral, DeepSeek, xAI.
//
//	m := openai.New("gpt-5-mini", nil) // OPENAI_API_KEY, OPENAI_BASE_URL
//	m := openai.NewChat("qwen3:4b", &openai.Options{BaseURL: "http://localhost:11434/v1"})
//
// The package only translates. One direction makes a body of a llm.Request, the other makes pawl.Deltas of what comes
// back; retries are the one thing it does beside that.
//
//	llm.Request ─▶ fromRequest, fromMessage, fromTool ─▶ bytes ─▶ net/http
//	llm.Delta   ◀─ toDelta, toUsage, toFinish, toError ◀─ bytes ◀─ a stream of events, or one body
//
// Each API has its request file and its reply file: request.go and response.go for Responses, chat_request.go and
// chat_response.go for Chat Completions. A whole reply and a streamed one go through the same functions.
// EncodeResponses, DecodeResponses, EncodeChat and DecodeChat do the same without a network.
//
// What the APIs have no word for is refused with CodeUnsupported before anything is sent. What a server wrote that
// only it can read (encrypted reasoning, blocks of its own tools) is kept in Opaque, tagged with the API and the
// host, returned to that host byte for byte, and left out elsewhere.
//
// A schema for the reply goes into text.format or response_format: strict where its every field is required, else as a wish that
// the server reads. What is no object, and a server whose Server.JSONObject says that it takes no schemas (DeepSeek), is asked in the
// instructions.
//
// # What goes where
//
// Leading system messages are the instructions of a Responses request; all others, and all of Chat Completions, stay where they are. Tool
// messages of Chat Completions hold text alone, so the pictures of results follow in a message of the user's, which says of which call they are.
// Reasoning goes back under the name that the server gave it. DeepSeek and Kimi, which refuse a conversation with a reply that has none, get a
// space for those of other models (github.com/charmbracelet/crush/issues/2696).
//
// # Provider options
//
// Settings.Options["openai"], for Responses, and Settings.Options["openai-chat"] are merged into the body as they are and win over what stands
// there; the elements of "tools" (web search, code interpreter) are put after the request's tools. A Server has options under its own Name; without
// them it takes those of "openai-chat".
//
// Nothing is decoded by reflection: an adapter is most of what a run costs.
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

// DefaultBaseURL is where OpenAI itself answers.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options tune a Model. Nil, and every zero field, stands for the default.
type Options struct {
	// BaseURL is the address before "/responses" and "/chat/completions"; it usually ends in /v1. A query
	// (Azure's api-version) is kept. Empty: OPENAI_BASE_URL, else DefaultBaseURL.
	BaseURL string

	// Key is sent as a bearer token. Empty: OPENAI_API_KEY, without white space around it; but where BaseURL is given, only to OpenAI's own
	// hosts, to that of OPENAI_BASE_URL, and to this machine: it is not meant for others. Without a key, requests to api.openai.com fail with
	// CodeAuthentication before anything is sent; requests to other hosts go without one.
	Key string

	// Server is the server that is asked, where it is not OpenAI's own: what Key and BaseURL default to. Nothing of the
	// environment that is meant for OpenAI is read then, so that its key cannot reach somebody else. Nil: OpenAI.
	Server *Server

	// Header is sent with each request, for organisations, projects and gateways.
	Header http.Header

	// HTTP carries the requests. Nil: one transport that all Models share, with enough idle connections for a busy
	// host. Redirects are not followed.
	HTTP http.RoundTripper

	// Retries is how often a failed request is repeated as long as no fragment of its reply was seen. 0: 2;
	// negative: never.
	Retries int

	// Strict asks the server to hold the model to the schemas of tools while it writes. It is done for each tool whose schema can be said
	// in OpenAI's strict form (what is optional takes null there, and is turned back); the others are sent as without it. What the form has
	// no word for is still checked here. Servers other than OpenAI's may not know the word, and ignore or refuse it.
	Strict bool

	// What is waited for without a sign of life; 0: the default; negative: without end. A reply may take as long as it
	// wants, as long as something comes. What did not come in time is CodeTimeout, and counts as a failed request.
	ConnectTimeout   time.Duration // for a connection; 10 s. It is not for an HTTP of your own
	FirstByteTimeout time.Duration // for the head of the answer, which many servers send with a whole reply only; 120 s
	SilenceTimeout   time.Duration // for the next piece of the reply; a stream's pings are pieces; 120 s

	// Catalog says what is known of models, where it would otherwise be told from their names. Nil: the one that comes with the program.
	Catalog *catalog.Catalog
}

// Server is how another server than OpenAI's wants to be asked. Package provider has a list of them.
type Server struct {
	Name      string // in errors, in Settings.Options, and for what only this server does
	BaseURL   string // "": there is no default, the person must give one
	BaseEnv   string // the environment variable with the address; "": there is none
	KeyEnv    string // the environment variable with the key; "": there is none
	KeyHeader string // the header that carries the key alone; "": Authorization, as a bearer token
	Keyless   bool   // it may be asked without a key

	// JSONObject: its response_format knows json_object and no json_schema, so that a schema for the reply is asked for in words.
	JSONObject bool
}

// Model is a llm.Model over one of OpenAI's APIs. Create it with New or NewChat; it may be used concurrently.
type Model struct {
	dialect
	name   string
	url    *url.URL
	client wire.Client
	err    error // a mistake in the options, told on the first request
	tools  wire.ToolCache
	output wire.OutputCache
}

var _ llm.Model = (*Model)(nil)

// New returns the named model behind the Responses API. A mistake in the options is reported by the first request.
func New(model string, o *Options) *Model { return newModel(responsesAPI, model, o) }

// NewChat returns the named model behind the Chat Completions API. A mistake in the options is reported by the first request.
func NewChat(model string, o *Options) *Model { return newModel(chatAPI, model, o) }

func newModel(a *api, model string, o *Options) *Model {
	if o == nil {
		o = new(Options)
	}
	m := &Model{name: model}
	server := o.Server
	if server == nil {
		server = &Server{BaseURL: DefaultBaseURL, BaseEnv: "OPENAI_BASE_URL", KeyEnv: "OPENAI_API_KEY"}
	}
	base, key := cmp.Or(o.BaseURL, wire.Env(server.BaseEnv), server.BaseURL), o.Key
	if key == "" && (o.BaseURL == "" || server.BaseURL == "" || wire.MayHaveKey(o.BaseURL, wire.Env(server.BaseEnv), server.BaseURL)) {
		key = wire.Env(server.KeyEnv)
	}
	if base == "" {
		m.dialect = newDialect(a, server.Name, "")
		m.err = &llm.ProviderError{Provider: m.provider, Code: llm.CodeInvalidRequest,
			Message: "no base URL: " + server.Name + " has no address of its own; give one, or set " + server.BaseEnv}
		return m
	}
	u, err := wire.BaseURL(cmp.Or(server.Name, a.id), base, DefaultBaseURL)
	if err != nil {
		m.dialect, m.err = newDialect(a, server.Name, ""), err
		return m
	}
	m.dialect = newDialect(a, server.Name, u.Hostname())
	m.catalog, m.own = o.Catalog, toFacts(o.Catalog, model)
	m.mistral = m.mistral || server.Name == "mistral" // behind a gateway, too
	m.thinks = m.thinks || server.Name == "deepseek"
	keyless := server.Keyless || o.Server == nil && m.compatible
	if u.Path == "" {
		u.Path = "/"
	}
	m.url = u.JoinPath(a.path)
	m.client = wire.Client{Provider: m.provider, Header: wire.Header(o.Header), Key: key, HTTP: o.HTTP, Retries: wire.Retries(o.Retries),
		Timeouts: wire.Timeouts{Connect: o.ConnectTimeout, FirstByte: o.FirstByteTimeout, Silence: o.SilenceTimeout},
		Decoder:  m.decode, ToError: m.toError}
	m.jsonObject = server.JSONObject
	m.tools.Form, m.output.Form = m.form(o.Strict), outputForm
	if m.err = wire.CheckKey(m.provider, key); m.err != nil {
		return m
	}
	switch {
	case key != "" && server.KeyHeader != "":
		m.client.Header.Set(server.KeyHeader, key)
	case key != "":
		m.client.Header.Set("Authorization", "Bearer "+key)
	case !keyless && m.client.Header.Get("Authorization") == "" && (server.KeyHeader == "" || m.client.Header.Get(server.KeyHeader) == ""):
		m.err = wire.NoKey(m.provider, server.KeyEnv)
		if wire.Env(server.KeyEnv) != "" {
			m.err = wire.KeptKey(m.provider, server.KeyEnv, u.Hostname())
		}
	}
	return m
}

// api is what differs between the two APIs beside the form of their bodies.
type api struct {
	id       string // in Settings.Options, in front of Opaque tags, and in errors of OpenAI's own
	path     string
	maxID    int // the longest call id that is accepted
	rules    *wire.Rules
	encode   func(e *encoder, req *llm.Request)
	fromTool func(dst []byte, name string, t *llm.ToolSpec, schema json.RawMessage, strict bool) []byte
	decoder  func(d *dialect, out *wire.Emitter) wire.Decoder
}

// A dialect is how one server speaks an API.
type dialect struct {
	*api
	provider   string // in errors: the server's name, where it has one
	tag        string // of Opaque
	compatible bool   // not OpenAI's own server
	mistral    bool   // call ids of nine letters and digits, nothing else
	jsonObject bool   // no schemas for replies
	thinks     bool   // wants reasoning_content with every reply that it is sent
	catalog    *catalog.Catalog
	own        facts // of the model that it was made for
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

// form is how the dialect has tools.
func (d *dialect) form(strict bool) wire.ToolForm {
	f := wire.ToolForm{Provider: d.provider, Dialect: dialects.OpenAI, FromTool: d.fromTool}
	if strict {
		f.Strict = dialects.OpenAIStrict
	}
	return f
}

// outputForm is what a reply can be held to: exactly, or as a wish that the server knows of.
var outputForm = wire.OutputForm{Dialects: []*dialects.Dialect{dialects.OpenAIStrict, dialects.OpenAI}}

func (d *dialect) emitter(tools *wire.Toolset, yield func(llm.Delta, error) bool) *wire.Emitter {
	return &wire.Emitter{Provider: d.provider, Tag: d.tag, Tools: tools, Yield: yield}
}

// decode returns what makes deltas of one reply.
func (d *dialect) decode(out *wire.Emitter) wire.Decoder { return d.decoder(d, out) }

// unsupported is the refusal of something that the API has no form for.
func (d *dialect) unsupported(field, format string, args ...any) error {
	return wire.Unsupported(d.provider, field, format, args...)
}

func (d *dialect) invalid(field, format string, args ...any) error {
	return wire.Invalid(d.provider, field, format, args...)
}

// broken is the error of a reply that cannot be read.
func (d *dialect) broken(format string, args ...any) error {
	return wire.Broken(d.provider, format, args...)
}
