// Package anthropic is an llm.Model over Anthropic's Messages API, at Anthropic, on Vertex AI, and
// at compatible servers.
//
//	m := anthropic.New("claude-sonnet-5-5", nil) // ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
//
// The package only translates: an llm.Request to a body, and the response to llm.Deltas.
//
//	llm.Request ─▶ fromRequest, fromMessage, fromTool ─▶ bytes ─▶ net/http
//	llm.Delta   ◀─ toDelta, toUsage, toFinish, toError ◀─ bytes ◀─ a stream of events, or one body
//
// request.go writes a body; system.go and cache.go write its parts outside the messages. do.go
// sends the requests of one reply. response.go reads a whole reply, stream.go the events of a
// streamed one. EncodeMessages and DecodeMessages do the same without a network.
//
// # Messages
//
// Leading system and developer messages become the top-level system prompt. Later ones keep their
// place, because moving them would change the beginning of the conversation and lose the prompt
// cache. Models that accept them (Claude from Opus 4.8 on, after a user's turn) receive them as
// turns of their own. Other models receive them as user text within <system> tags.
//
// Adjacent messages of one side are merged, with tool results first. Empty text is left out,
// because the API rejects it. Arguments that are not a JSON object are sent as {"raw_arguments":
// "…"}.
//
// Thinking, redacted thinking and the blocks of tools that the server runs itself (web search,
// code execution, MCP) are stored in Opaque and sent back byte for byte; they are never executed.
// The same applies to the container in which the server runs code. If the server pauses a turn
// (pause_turn), Stream continues it, up to MaxContinuations times, within the same reply.
//
// Conversations are summarized on demand (Request.Summarize, or compaction among the options of a
// request): a request for a summary is sent before the request for the reply, and the summary is
// the first part of the reply. Later requests begin with it; see summary.go.
//
// Prompt caching is on: tools, the system prompt, the first message and the end of the
// conversation are marked. See Options.NoCache.
//
// Requests that the API cannot express fail with CodeUnsupported before anything is sent. A tool
// whose schema cannot be expressed is left out, with a notice (tool_left_out). If its schema is
// sent in another form, the arguments are restored to the tool's own. A schema for the answer goes
// into output_config for Claude from 4.5 on, and the server enforces it. For other models, and for
// schemas that output_config cannot express, the system prompt asks for it. pawl validates calls
// and answers against the original schemas in both cases.
//
// # Provider options
//
// The members of Settings.Options["anthropic"] are copied into the body, with two exceptions. The
// strings of "betas" become the anthropic-beta header. The elements of "tools" (web search,
// computer use) follow the request's tools; an element replaces the request's tool of the same
// name.
package anthropic

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// DefaultBaseURL is the address of Anthropic's own API.
const DefaultBaseURL = "https://api.anthropic.com"

// Version is the version of the API.
const Version = "2023-06-01"

// MaxContinuations is how often Stream continues a paused turn within one reply.
const MaxContinuations = 8

const provider = "anthropic" // in errors, in Settings.Options, and the prefix of Opaque tags

// Options configure a Model. nil and zero fields mean the defaults.
type Options struct {
	// BaseURL is the address before "/v1/messages"; it may end in /v1. An address that ends in
	// "/publishers/anthropic/models" belongs to Vertex AI, whose bodies and addresses differ.
	// Empty means ANTHROPIC_BASE_URL, or DefaultBaseURL if that is not set.
	BaseURL string

	// Key is sent as x-api-key, or as a bearer token to Vertex AI. Empty means ANTHROPIC_API_KEY.
	// If BaseURL is set, that variable is sent only to Anthropic's hosts, to the host of
	// ANTHROPIC_BASE_URL and to this machine. Without a key, requests to api.anthropic.com fail
	// with CodeAuthentication before anything is sent; requests to other hosts have no key.
	Key string

	// Betas are the beta features to request, in the anthropic-beta header.
	Betas []string

	// NoCache sends no cache_control marks. A request whose provider options have a cache_control
	// never gets any.
	NoCache bool

	// CacheTTL is the lifetime of cache entries: 5 minutes, or an hour, whose entries cost more to
	// write. 0 means the API's default, which is 5 minutes.
	CacheTTL time.Duration

	// Header is sent with each request.
	Header http.Header

	// HTTP carries the requests. nil means a transport that all Models share. Redirects are not
	// followed.
	HTTP http.RoundTripper

	// Retries is how often a failed request is repeated, unless a fragment of its reply was
	// emitted. 0 means 2; negative means never.
	Retries int

	// The timeouts limit how long a request waits without a sign of life, not how long a reply
	// takes. 0 means the default; negative means none. A timeout is a failed request with
	// CodeTimeout.
	ConnectTimeout time.Duration // to connect, 10 s; HTTP ignores it
	// for the head of the response, 120 s; a whole reply sends it at its end
	FirstByteTimeout time.Duration
	SilenceTimeout   time.Duration // between two reads of the reply, 120 s; a stream's pings count

	// Catalog has the abilities of models. Without an entry, they are derived from the name. nil
	// means the catalogue of this module.
	Catalog *catalog.Catalog
}

// Model is an llm.Model over the Messages API. Create it with New. It is safe for concurrent use.
type Model struct {
	dialect
	name   string
	url    *url.URL // of the API; at Vertex AI, of its models
	betas  []string
	client wire.Client
	err    error // an invalid option, returned by the first request
	tools  wire.ToolCache
	output wire.OutputCache
}

var _ llm.Model = (*Model)(nil)

// Name returns "PROVIDER:MODEL".
func (m *Model) Name() string { return provider + ":" + m.name }

// Window returns the context window and the longest reply, in tokens; see history.Window.
func (m *Model) Window(req *llm.Request) (window, output int) {
	return m.catalog.Window(provider, m.name, req)
}

// Check returns the error of an invalid option, such as a missing key or an empty name of the
// model, that the first request would return. nil means that there is none.
func (m *Model) Check() error { return cmp.Or(m.err, wire.CheckName(provider, m.name)) }

// New returns the named model. The first request reports invalid options.
func New(model string, o *Options) *Model {
	o = cmp.Or(o, new(Options))
	m := &Model{name: model, betas: o.Betas}
	base := cmp.Or(o.BaseURL, wire.Env("ANTHROPIC_BASE_URL"), DefaultBaseURL)
	key := o.Key
	if key == "" && (o.BaseURL == "" || wire.MayHaveKey(o.BaseURL, wire.Env("ANTHROPIC_BASE_URL"), DefaultBaseURL)) {
		key = wire.Env("ANTHROPIC_API_KEY")
	}
	// A Model with a fault is returned, and its requests return the fault: New has no error.
	u, err := wire.BaseURL(provider, base, DefaultBaseURL)
	if err == nil {
		err = wire.CheckAddress(provider, o.BaseURL, o.Key, o.HTTP, "ANTHROPIC_API_KEY")
	}
	if err != nil {
		m.err = err
		return m
	}
	m.dialect = newDialect(u, o.NoCache)
	m.ttl = o.CacheTTL
	m.catalog, m.own = o.Catalog, toFacts(o.Catalog, model)
	u.Path = cmp.Or(u.Path, "/")

	switch {
	case m.vertex:
		m.url = u
	// Gateways give their address with the version and without it.
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		m.url = u.JoinPath("messages")
	default:
		m.url = u.JoinPath("v1/messages")
	}

	m.client = wire.Client{Provider: provider, Header: wire.Header(o.Header), Key: key, HTTP: o.HTTP,
		Retries:  wire.Retries(o.Retries),
		Timeouts: wire.Timeouts{Connect: o.ConnectTimeout, FirstByte: o.FirstByteTimeout, Silence: o.SilenceTimeout},
		Decoder:  m.decode, ToError: toError}
	m.tools.Form = toolForm
	m.output.Form = outputForm
	h := m.client.Header
	if h.Get("Anthropic-Version") == "" && !m.vertex {
		h.Set("Anthropic-Version", Version)
	}
	if b := m.betaHeader(nil); b != "" {
		h.Set("Anthropic-Beta", b)
	}
	m.err = cmp.Or(checkCache(o), wire.CheckKey(provider, key))
	if m.err != nil {
		return m
	}

	authorized := h.Get("X-Api-Key") != "" || h.Get("Authorization") != "" // by the program
	switch {
	// Vertex AI takes an access token of Google, and not a key of Anthropic.
	case key != "" && m.vertex:
		h.Set("Authorization", "Bearer "+key)
	case key != "":
		h.Set("X-Api-Key", key)
	case !m.compatible && !m.vertex && !authorized:
		m.err = wire.NoKey(provider, "ANTHROPIC_API_KEY")
	}
	return m
}

// betaHeader joins the betas of the Model's options and header with the request's.
func (m *Model) betaHeader(more []string) string {
	all := append([]string(nil), m.client.Header.Values("Anthropic-Beta")...)
	if len(all) == 0 {
		all = append(all, m.betas...)
	}
	return strings.Join(append(all, more...), ",")
}

// dialect is a server's variant of the API.
type dialect struct {
	// tag marks Opaque values. A signature is valid at all of Anthropic's servers, and nowhere
	// else.
	tag        string
	compatible bool // not Anthropic's own server
	vertex     bool // Vertex AI: the model is in the address, the version in the body
	noCache    bool
	ttl        time.Duration // Options.CacheTTL
	catalog    *catalog.Catalog
	own        facts // of the Model's own model
}

func newDialect(u *url.URL, noCache bool) dialect {
	d := dialect{tag: provider, noCache: noCache}
	if u == nil {
		return d
	}
	d.vertex = strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/publishers/anthropic/models")
	if host := u.Hostname(); host != "api.anthropic.com" && !d.vertex {
		d.compatible = true
		d.tag += "@" + host
	}
	return d
}

// newest reports whether the server follows Anthropic's latest documentation. Others receive only
// established features.
func (d *dialect) newest() bool { return !d.compatible && !d.vertex }

func (d *dialect) emitter(tools *wire.Toolset, yield func(llm.Delta, error) bool) *wire.Emitter {
	return &wire.Emitter{Provider: provider, Tag: d.tag, Tools: tools, Yield: yield}
}

// decode returns the decoder of one reply.
func (d *dialect) decode(out *wire.Emitter) wire.Decoder { return &decoder{Emitter: out, dialect: d} }

func unsupported(field, format string, args ...any) error {
	return wire.Unsupported(provider, field, format, args...)
}

func invalid(field, format string, args ...any) error {
	return wire.Invalid(provider, field, format, args...)
}

func broken(format string, args ...any) error { return wire.Broken(provider, format, args...) }
