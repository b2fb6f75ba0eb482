// Package anthropic asks Claude models behind Anthropic's Messages API, at Anthropic, on Vertex AI, and at servers that speak the
// same API.
//
//	m := anthropic.New("claude-sonnet-4-5", nil) // ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
//
// The package only translates. One direction makes a body of a llm.Request, the other makes pawl.Deltas of what comes
// back.
//
//	llm.Request ─▶ fromRequest, fromMessage, fromTool ─▶ bytes ─▶ net/http
//	llm.Delta   ◀─ toDelta, toUsage, toFinish, toError ◀─ bytes ◀─ a stream of events, or one body
//
// request.go writes a body: system.go and cache.go the parts of it that stand outside the messages. response.go reads a whole
// reply, stream.go the events of a streamed one. EncodeMessages and DecodeMessages do the same without a network.
//
// # What goes where
//
// Leading system and developer messages are the top-level system prompt. Later ones stay where they are: as turns of their own where the model
// takes those (Claude from Opus 4.8 on, after a turn of the user's), else as text of the user's within <system> tags. Moving them up
// would change the beginning of the conversation, and lose the prompt cache. Messages
// that follow each other on one side are merged; results come before anything else of their message. Empty text is left
// out, since the API refuses it. Arguments that are no JSON object are sent back as {"raw_arguments": "…"}.
//
// Thinking, redacted thinking, and the blocks of tools that the server runs itself (web search, code execution, MCP) are kept in
// Opaque and sent back byte for byte, never carried out. So is the container that code runs in. A turn that the server paused
// (pause_turn) is continued here, up to MaxContinuations times, and arrives as one reply.
//
// Prompt caching is on: tools, the system prompt, the first message and the end of the conversation are marked.
// See Options.NoCache.
//
// What the API has no form for is refused with CodeUnsupported before anything is sent. A tool whose schema cannot be expressed is
// left out alone, with a notice (tool_left_out); arguments of a schema that had to be sent in another form come back in that
// of the tool's own. A schema for the answer goes into output_config for Claude from 4.5 on, where the server holds the model to it; elsewhere, and where it
// cannot be said there, the system prompt asks for it. pawl checks calls and answers against the originals either way.
//
// # Provider options
//
// Settings.Options["anthropic"] is merged into the body as it is, with two exceptions: the strings of "betas" become the
// anthropic-beta header, and the elements of "tools" (web search, computer use) are put after the request's tools; one that has
// the name of a tool of the request takes its place.
package anthropic

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// DefaultBaseURL is where Anthropic itself answers.
const DefaultBaseURL = "https://api.anthropic.com"

// Version is the version of the API that is asked for.
const Version = "2023-06-01"

// MaxContinuations bounds how often a turn that the server paused is continued within one reply.
const MaxContinuations = 8

const provider = "anthropic" // in errors, in Settings.Options, and in front of Opaque tags

// Options tune a Model. Nil, and every zero field, stands for the default.
type Options struct {
	// BaseURL is the address before "/v1/messages"; it may end in /v1. One that ends in "/publishers/anthropic/models" is
	// that of Vertex AI, whose bodies and addresses differ. Empty: ANTHROPIC_BASE_URL, else DefaultBaseURL.
	BaseURL string

	// Key is sent as x-api-key, or, to Vertex AI, as a bearer token. Empty: ANTHROPIC_API_KEY; but where BaseURL is given, only to Anthropic's
	// own hosts, to that of ANTHROPIC_BASE_URL, and to this machine: it is not meant for others. Without a key, requests to
	// api.anthropic.com fail with CodeAuthentication before anything is sent; requests to other hosts go without one.
	Key string

	// Betas are the beta features to ask for, joined in the anthropic-beta header.
	Betas []string

	// NoCache sends no cache_control marks. They are also left out of a request whose provider options have a
	// cache_control of their own.
	NoCache bool

	// Header is sent with each request.
	Header http.Header

	// HTTP carries the requests. Nil: one transport that all Models share. Redirects are not followed.
	HTTP http.RoundTripper

	// Retries is how often a failed request is repeated as long as no fragment of its reply was seen. 0: 2;
	// negative: never.
	Retries int

	// What is waited for without a sign of life; 0: the default; negative: without end. A reply may take as long as it
	// wants, as long as something comes. What did not come in time is CodeTimeout, and counts as a failed request.
	ConnectTimeout   time.Duration // for a connection; 10 s. It is not for an HTTP of your own
	FirstByteTimeout time.Duration // for the head of the answer, which comes with a whole reply only at its end; 120 s
	SilenceTimeout   time.Duration // for the next piece of the reply; a stream's pings are pieces; 120 s

	// Catalog says what is known of models, where it would otherwise be told from their names. Nil: the one that comes with the program.
	Catalog *catalog.Catalog
}

// Model is a llm.Model over the Messages API. Create it with New; it may be used concurrently.
type Model struct {
	dialect
	name   string
	url    *url.URL // of the API; for Vertex AI, of its models
	betas  []string
	client wire.Client
	err    error // a mistake in the options, told on the first request
	tools  wire.ToolCache
	output wire.OutputCache
}

var _ llm.Model = (*Model)(nil)

// New returns the named model. A mistake in the options is reported by the first request.
func New(model string, o *Options) *Model {
	if o == nil {
		o = new(Options)
	}
	m := &Model{name: model, betas: o.Betas}
	base, key := cmp.Or(o.BaseURL, wire.Env("ANTHROPIC_BASE_URL"), DefaultBaseURL), o.Key
	if key == "" && (o.BaseURL == "" || wire.MayHaveKey(o.BaseURL, wire.Env("ANTHROPIC_BASE_URL"), DefaultBaseURL)) {
		key = wire.Env("ANTHROPIC_API_KEY")
	}
	u, err := wire.BaseURL(provider, base, DefaultBaseURL)
	if err != nil {
		m.err = err
		return m
	}
	m.dialect = newDialect(u, o.NoCache)
	m.catalog, m.own = o.Catalog, toFacts(o.Catalog, model)
	if u.Path == "" {
		u.Path = "/"
	}
	switch {
	case m.vertex:
		m.url = u
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		m.url = u.JoinPath("messages")
	default:
		m.url = u.JoinPath("v1/messages")
	}
	m.client = wire.Client{Provider: provider, Header: wire.Header(o.Header), Key: key, HTTP: o.HTTP, Retries: wire.Retries(o.Retries),
		Timeouts: wire.Timeouts{Connect: o.ConnectTimeout, FirstByte: o.FirstByteTimeout, Silence: o.SilenceTimeout},
		Decoder:  m.decode, ToError: toError}
	m.tools.Form, m.output.Form = toolForm, outputForm
	h := m.client.Header
	if h.Get("Anthropic-Version") == "" && !m.vertex {
		h.Set("Anthropic-Version", Version)
	}
	if b := m.betaHeader(nil); b != "" {
		h.Set("Anthropic-Beta", b)
	}
	if m.err = wire.CheckKey(provider, key); m.err != nil {
		return m
	}
	switch {
	case key != "" && m.vertex:
		h.Set("Authorization", "Bearer "+key)
	case key != "":
		h.Set("X-Api-Key", key)
	case !m.compatible && !m.vertex && h.Get("X-Api-Key") == "" && h.Get("Authorization") == "":
		m.err = wire.NoKey(provider, "ANTHROPIC_API_KEY")
	}
	return m
}

// betaHeader joins the betas of the Model's options and header with those of a request.
func (m *Model) betaHeader(more []string) string {
	all := append([]string(nil), m.client.Header.Values("Anthropic-Beta")...)
	if len(all) == 0 {
		all = append(all, m.betas...)
	}
	return strings.Join(append(all, more...), ",")
}

// A dialect is how one server speaks the API.
type dialect struct {
	tag        string // of Opaque. A signature holds wherever Claude runs, and nowhere else
	compatible bool   // not Claude's own server
	vertex     bool   // Vertex AI: the model stands in the address, the version in the body
	noCache    bool
	catalog    *catalog.Catalog
	own        facts // of the model that it was made for
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

// newest reports whether the server keeps to Anthropic's newest documents; others are sent what has been there for long.
func (d *dialect) newest() bool { return !d.compatible && !d.vertex }

func (d *dialect) emitter(tools *wire.Toolset, yield func(llm.Delta, error) bool) *wire.Emitter {
	return &wire.Emitter{Provider: provider, Tag: d.tag, Tools: tools, Yield: yield}
}

// decode returns what makes deltas of one reply.
func (d *dialect) decode(out *wire.Emitter) wire.Decoder { return &decoder{Emitter: out, dialect: d} }

func unsupported(field, format string, args ...any) error {
	return wire.Unsupported(provider, field, format, args...)
}

func invalid(field, format string, args ...any) error {
	return wire.Invalid(provider, field, format, args...)
}

func broken(format string, args ...any) error { return wire.Broken(provider, format, args...) }

// field names a part of a request in an error.
func field(message, part int) string { return fmt.Sprintf("messages[%d].parts[%d]", message, part) }
