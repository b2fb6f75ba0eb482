// Package gemini asks Google's Gemini models, behind the Gemini API or behind Vertex AI.
//
//	m := gemini.New("gemini-3-flash-preview", nil) // GEMINI_API_KEY (or GOOGLE_API_KEY), GEMINI_BASE_URL
//
// The package only translates, between llm.Request and the body of generateContent, and between what comes back, whole or
// as the events of streamGenerateContent, and pawl.Deltas.
//
//	llm.Request ─▶ fromRequest, fromMessage, fromTool ─▶ bytes ─▶ net/http
//	llm.Delta   ◀─ toDelta, toUsage, toFinish, toError ◀─ bytes ◀─ a stream of events, or one body
//
// EncodeGenerate and DecodeGenerate do the same without a network.
//
// The wire is that of protocol buffers in JSON, and some of it shows. Turns alternate between user and model, so messages that
// follow each other from one side are one content. Results name the function, not the call: the name is looked up in the
// history, and results stand in the order of their calls. Arguments and results are objects: a result is sent as {"result": …}
// or {"error": …}. A signature belongs to the part that it came with, and goes back on that part, byte for byte; a call from
// elsewhere gets the placeholder that Google documents where the model demands a signature. Names are told from the
// version in the model's name: what only Gemini 3 has is not sent to older models.
//
// Schemas go as JSON Schema, or with Options.Subset in the older fields. A schema for the reply is native, but for models before Gemini 3
// beside tools: they refuse the two together, and are asked in the instructions.
//
// What the API has no word for is refused with CodeUnsupported before anything is sent.
//
// Settings.Options["gemini"] is merged into the body as it is (safetySettings, cachedContent); its generationConfig, toolConfig and tools (Google
// Search, code execution) are joined with what stands there.
package gemini

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// DefaultBaseURL is where the Gemini API answers.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// provider is the name in errors and in Settings.Options.
const provider = "gemini"

// Options tune a Model. Nil, and every zero field, stands for the default.
type Options struct {
	// BaseURL is the address before "/models/NAME:generateContent"; without a path, /v1beta is added. For Vertex AI it ends in
	// /publishers/google. A query is kept. Empty: GEMINI_BASE_URL, else DefaultBaseURL.
	BaseURL string

	// Key is sent in the header x-goog-api-key, never in the address. Empty: GEMINI_API_KEY, else GOOGLE_API_KEY; but where
	// BaseURL is given, only to Google's own hosts, to that of GEMINI_BASE_URL, and to this machine: it is not meant for others. Without a key, and without a header Authorization, requests to Google fail with CodeAuthentication before anything is sent;
	// requests to other hosts go without one.
	Key string

	// Header is sent with each request. Vertex AI wants an Authorization with a bearer token.
	Header http.Header

	// HTTP carries the requests. Nil: one transport that all Models share, with enough idle connections for a busy
	// host. Redirects are not followed.
	HTTP http.RoundTripper

	// Retries is how often a failed request is repeated as long as no fragment of its reply was seen. 0: 2;
	// negative: never.
	Retries int

	// Subset sends schemas in the API's older fields, parameters and responseSchema, which take a subset of OpenAPI, for a server that
	// does not know parametersJsonSchema and responseJsonSchema. What the subset has no word for is still checked here; a tool
	// that cannot be said in it is left out, with a notice.
	Subset bool

	// How long to wait for the server. 0: the default, negative: without end. A request that is answered may take as long as it
	// wants, as long as something comes. What did not come in time is CodeTimeout, and counts as a failed request.
	ConnectTimeout   time.Duration // for a connection; 10 s. It is not for an HTTP of your own
	FirstByteTimeout time.Duration // for the head of the answer, which comes with a whole reply only at its end; 120 s
	SilenceTimeout   time.Duration // for the next piece of the reply; 120 s

	// Catalog says what is known of models, where it would otherwise be told from their names. Nil: the one that comes with the program.
	Catalog *catalog.Catalog
}

// Model is a llm.Model over generateContent. Create it with New; it may be used concurrently.
type Model struct {
	dialect
	name   string
	base   *url.URL
	to     addresses // of the named model
	client wire.Client
	err    error // a mistake in the options, told on the first request
	tools  wire.ToolCache
	output wire.OutputCache
}

var _ llm.Model = (*Model)(nil)

// New returns the named model. A name with a slash (tunedModels/x, models/x) is taken as the path that it is. A mistake in the
// options is reported by the first request.
func New(model string, o *Options) *Model {
	if o == nil {
		o = new(Options)
	}
	m := &Model{name: model}
	base := cmp.Or(o.BaseURL, wire.Env("GEMINI_BASE_URL"), DefaultBaseURL)
	key := o.Key
	if key == "" && (o.BaseURL == "" || wire.MayHaveKey(o.BaseURL, wire.Env("GEMINI_BASE_URL"), "https://googleapis.com")) {
		key = cmp.Or(wire.Env("GEMINI_API_KEY"), wire.Env("GOOGLE_API_KEY"))
	}
	u, err := wire.BaseURL(provider, base, DefaultBaseURL)
	if err != nil {
		m.err = err
		return m
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1beta"
	}
	m.base, m.to = u, addressesOf(u, model)
	m.dialect = newDialect(u.Hostname())
	m.catalog, m.own = o.Catalog, toFacts(o.Catalog, model)
	m.client = wire.Client{Provider: provider, Header: wire.Header(o.Header), Key: key, HTTP: o.HTTP, Retries: wire.Retries(o.Retries), Decoder: newDecoder, ToError: toError,
		Timeouts: wire.Timeouts{Connect: o.ConnectTimeout, FirstByte: o.FirstByteTimeout, Silence: o.SilenceTimeout}}
	m.tools.Form, m.output.Form = form, outputForm
	if o.Subset {
		m.tools.Form, m.output.Form = subsetForm, subsetOutputForm
	}
	if m.err = wire.CheckKey(provider, key); m.err != nil {
		return m
	}
	switch {
	case key != "":
		m.client.Header.Set("X-Goog-Api-Key", key)
	case m.google && m.client.Header.Get("Authorization") == "":
		m.err = wire.NoKey(provider, "GEMINI_API_KEY (or GOOGLE_API_KEY)")
	}
	return m
}

// A dialect is what the host makes a difference to.
type dialect struct {
	tag    string // of Opaque: signatures are read only where they were written
	google bool   // one of Google's own

	catalog *catalog.Catalog
	own     facts // of the model that it was made for
}

func newDialect(host string) dialect {
	switch {
	case host == "" || host == "generativelanguage.googleapis.com":
		return dialect{tag: provider, google: true}
	case strings.HasSuffix(host, "aiplatform.googleapis.com"): // all regions
		return dialect{tag: provider + "@aiplatform.googleapis.com", google: true}
	}
	return dialect{tag: provider + "@" + host, google: strings.HasSuffix(host, ".googleapis.com")}
}

// Stream sends req and yields the reply. A request that fails before a fragment of its reply was seen is repeated where
// that may help, after a Delta with a Notice that says so. Errors are *llm.ProviderError; a cancelled ctx gives its cause.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if err := m.stream(ctx, req, yield); err != nil && err != wire.ErrStopped {
			yield(llm.Delta{}, err)
		}
	}
}

func (m *Model) stream(ctx context.Context, req *llm.Request, yield func(llm.Delta, error) bool) error {
	if m.err != nil {
		return m.err
	}
	req, more := rules.Heal(ctx, req, req.Settings.Options[provider], yield)
	if !more {
		return wire.ErrStopped
	}
	tools, err := m.tools.Get(req.Tools)
	if err != nil {
		return err
	}
	name := cmp.Or(req.Model, m.name)
	body, err := m.encode(wire.Buffer(req, tools), name, tools, m.output.Get(req.Output), req)
	if err != nil {
		return err
	}
	if !tools.Tell(yield) {
		return wire.ErrStopped
	}
	to := m.to
	if name != m.name {
		to = addressesOf(m.base, name)
	}
	if to.err != nil {
		return to.err
	}
	u := to.streamed
	if req.Whole {
		u = to.whole
	}
	return m.client.Send(ctx, u, body, req.Whole, emitter(m.tag, tools, yield))
}

// addresses are where the requests for a model go.
type addresses struct {
	whole, streamed *url.URL
	err             error // of a name that is none
}

func addressesOf(base *url.URL, name string) (to addresses) {
	if to.whole, to.err = address(base, name, "generateContent"); to.err != nil {
		return to
	}
	to.streamed, to.err = address(base, name, "streamGenerateContent")
	if to.streamed.RawQuery != "" {
		to.streamed.RawQuery += "&"
	}
	to.streamed.RawQuery += "alt=sse"
	return to
}

// address is where a method of the named model is asked for.
func address(base *url.URL, name, method string) (*url.URL, error) {
	path := []string{"models"}
	if strings.Contains(name, "/") {
		path = nil
	}
	for _, s := range strings.Split(name, "/") {
		if s == "" || s == "." || s == ".." {
			return nil, invalid("model", "%q is no name of a model", name)
		}
		path = append(path, url.PathEscape(s))
	}
	path[len(path)-1] += ":" + method
	return base.JoinPath(path...), nil
}

// emitter yields the deltas of one reply.
func emitter(tag string, tools *wire.Toolset, yield func(llm.Delta, error) bool) *wire.Emitter {
	return &wire.Emitter{Provider: provider, Tag: tag, Tools: tools, Yield: yield}
}

// unsupported is the refusal of something that the API has no form for.
func unsupported(field, format string, args ...any) error {
	return wire.Unsupported(provider, field, format, args...)
}

func invalid(field, format string, args ...any) error {
	return wire.Invalid(provider, field, format, args...)
}

// broken is the error of a reply that cannot be read.
func broken(format string, args ...any) error { return wire.Broken(provider, format, args...) }

// version is the generation of a model, told from its name: 3 for gemini-3-pro-preview, 2 for gemini-2.5-flash, 0 where the
// name does not say. The names that move with the newest model have been at 3 or above since there is a 3.
func version(model string) int {
	name, ok := strings.CutPrefix(model[strings.LastIndexByte(model, '/')+1:], "gemini-")
	if !ok {
		return 0
	}
	n, digits := 0, 0
	for digits < len(name) && digits < 3 && name[digits] >= '0' && name[digits] <= '9' {
		n = n*10 + int(name[digits]-'0')
		digits++
	}
	if digits == 0 && strings.HasSuffix(name, "-latest") {
		return 3
	}
	return n
}
