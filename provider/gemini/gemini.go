// Package gemini is an llm.Model over Google's Gemini API, also on Vertex AI.
//
//	m := gemini.New("gemini-3.8-flash", nil) // GEMINI_API_KEY, GEMINI_BASE_URL
//
// The package only translates: an llm.Request to the body of generateContent, and the response,
// whole or as the events of streamGenerateContent, to llm.Deltas.
//
//	llm.Request ─▶ fromRequest, fromMessage, fromTool ─▶ bytes ─▶ net/http
//	llm.Delta   ◀─ toDelta, toUsage, toFinish, toError ◀─ bytes ◀─ a stream of events, or one body
//
// EncodeGenerate and DecodeGenerate do the same without a network.
//
// The API is protocol buffers in JSON. User and model alternate, so adjacent messages of one side
// become one content. A result has the name of its function and not the id of its call: the name
// comes from the history, and results are in the order of their calls. Arguments and results are
// objects: a result is sent as {"result": …} or {"error": …}. A signature belongs to the part that
// it arrived with, and is sent back with that part byte for byte. A call of another model gets
// Google's documented placeholder if the model requires a signature. The version in a model's name
// decides which features of Gemini 3 are sent.
//
// Schemas are sent as JSON Schema, or with Options.Subset in the older fields. The API enforces a
// schema for the reply. Models before Gemini 3 reject it for requests with tools; the instructions
// ask them for it instead.
//
// Requests that the API cannot express fail with CodeUnsupported before anything is sent.
//
// The members of Settings.Options["gemini"] are copied into the body (safetySettings,
// cachedContent). Its generationConfig, toolConfig and tools (Google Search, code execution) are
// merged with the adapter's.
package gemini

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// DefaultBaseURL is the address of the Gemini API.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// provider is the name in errors and in Settings.Options.
const provider = "gemini"

// Options configure a Model. nil and zero fields mean the defaults.
type Options struct {
	// BaseURL is the address before "/models/NAME:generateContent". If it has no path, /v1beta is
	// added. For Vertex AI it ends in /publishers/google. It may have a query. Empty means
	// GEMINI_BASE_URL, or DefaultBaseURL if that is not set.
	BaseURL string

	// Key is sent in the header x-goog-api-key, never in the address. Empty means GEMINI_API_KEY
	// or GOOGLE_API_KEY. If BaseURL is set, these variables are sent only to Google's hosts, to
	// the host of GEMINI_BASE_URL and to this machine. Without a key and an Authorization header,
	// requests to Google fail with CodeAuthentication before anything is sent; requests to other
	// hosts have no key.
	Key string

	// Header is sent with each request. Vertex AI requires an Authorization header with a bearer
	// token.
	Header http.Header

	// HTTP carries the requests. nil means a transport that all Models share, with idle
	// connections for a busy host. Redirects are not followed.
	HTTP http.RoundTripper

	// Retries is how often a failed request is repeated, unless a fragment of its reply was
	// emitted. 0 means 2; negative means never.
	Retries int

	// Subset sends schemas in the API's older fields, parameters and responseSchema, which accept
	// a subset of OpenAPI. It is for servers without parametersJsonSchema and responseJsonSchema.
	// Keywords outside the subset are still validated in this process. A tool that the subset
	// cannot express is left out, with a notice.
	Subset bool

	// The timeouts limit how long a request waits without a sign of life, not how long a reply
	// takes. 0 means the default; negative means none. A timeout is a failed request with
	// CodeTimeout.
	ConnectTimeout time.Duration // to connect, 10 s; HTTP ignores it
	// for the head of the response, 120 s; a whole reply sends it at its end
	FirstByteTimeout time.Duration
	SilenceTimeout   time.Duration // between two reads of the reply, 120 s

	// Catalog has the abilities of models. Without an entry, they are derived from the name. nil
	// means the catalogue of this module.
	Catalog *catalog.Catalog
}

// Model is an llm.Model over generateContent. Create it with New. It is safe for concurrent use.
type Model struct {
	dialect
	name   string
	base   *url.URL
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

// New returns the named model. A name with a slash (tunedModels/x, models/x) is a path. The first
// request reports invalid options.
func New(model string, o *Options) *Model {
	o = cmp.Or(o, new(Options))
	m := &Model{name: model}
	base := cmp.Or(o.BaseURL, wire.Env("GEMINI_BASE_URL"), DefaultBaseURL)
	key := o.Key
	if key == "" && (o.BaseURL == "" || wire.MayHaveKey(o.BaseURL, wire.Env("GEMINI_BASE_URL"), "https://googleapis.com")) {
		key = cmp.Or(wire.Env("GEMINI_API_KEY"), wire.Env("GOOGLE_API_KEY"))
	}
	u, err := wire.BaseURL(provider, base, DefaultBaseURL)
	if err == nil {
		err = wire.CheckAddress(provider, o.BaseURL, o.Key, o.HTTP, "GEMINI_API_KEY", "GOOGLE_API_KEY")
	}
	if err != nil {
		m.err = err
		return m
	}

	// A base URL without a path is a host: the version of the API is ours.
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1beta"
	}
	m.base = u
	m.dialect = newDialect(u.Hostname())
	m.catalog = o.Catalog

	m.client = wire.Client{Provider: provider, Header: wire.Header(o.Header), Key: key, HTTP: o.HTTP,
		Retries: wire.Retries(o.Retries), Decoder: newDecoder, ToError: toError,
		Timeouts: wire.Timeouts{Connect: o.ConnectTimeout, FirstByte: o.FirstByteTimeout, Silence: o.SilenceTimeout}}
	m.tools.Form = form
	m.output.Form = outputForm
	if o.Subset {
		m.tools.Form = subsetForm
		m.output.Form = subsetOutputForm
	}
	m.err = wire.CheckKey(provider, key)
	if m.err != nil {
		return m
	}
	switch {
	case key != "":
		m.client.Header.Set("X-Goog-Api-Key", key)
	// A program may set an access token of Google as a header, as Vertex AI requires.
	case m.google && m.client.Header.Get("Authorization") == "":
		m.err = wire.NoKey(provider, "GEMINI_API_KEY (or GOOGLE_API_KEY)")
	}
	return m
}

// dialect has the properties that depend on the host.
type dialect struct {
	tag    string // of Opaque values: a signature is valid only where it was made
	google bool   // one of Google's own

	catalog *catalog.Catalog
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

// address returns the URL of a method of the named model.
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

// emitter returns the emitter of one reply.
func emitter(tag string, tools *wire.Toolset, yield func(llm.Delta, error) bool) *wire.Emitter {
	return &wire.Emitter{Provider: provider, Tag: tag, Tools: tools, Yield: yield}
}

// unsupported returns the error of a request that the API cannot express.
func unsupported(field, format string, args ...any) error {
	return wire.Unsupported(provider, field, format, args...)
}

func invalid(field, format string, args ...any) error {
	return wire.Invalid(provider, field, format, args...)
}

// broken returns the error of a reply that cannot be read.
func broken(format string, args ...any) error { return wire.Broken(provider, format, args...) }

// version returns the generation in a model's name: 3 for gemini-3-pro-preview, 2 for
// gemini-2.5-flash. 0 means unknown. Names that end in -latest mean generation 3 or later.
func version(model string) int {
	name, ok := strings.CutPrefix(model[strings.LastIndexByte(model, '/')+1:], "gemini-")
	if !ok {
		return 0
	}
	digits := name[:len(name)-len(strings.TrimLeft(name, "0123456789"))]
	if digits == "" && strings.HasSuffix(name, "-latest") {
		return 3
	}
	n, _ := strconv.Atoi(digits)
	return n
}
