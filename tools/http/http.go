// Package http provides http_fetch, a tool that sends one request to one address and returns the
// response as text.
//
//	web, err := http.New(nil)
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{web}}
//
// A page is returned as Markdown of its main content, JSON and other text unchanged, an image as an
// image, and anything else as its size and type.
//
// The caller decides which addresses may be reached, never the model. Public addresses are allowed;
// Options names others. The IP address of a host name is checked when it is dialled, for every
// redirect as well, so a host name that changes its address cannot evade the check. Loopback,
// private and link-local networks, the metadata services of clouds, and the IPv6 forms that contain
// such addresses are refused.
//
// The tool's effect is EffectRead while only GET and HEAD are allowed, which is the default. With
// other methods it is EffectWrite, or EffectIdempotent if the caller states that the servers honour
// the Idempotency-Key header, which each such call sends.
package http

import (
	"cmp"
	"context"
	"fmt"
	nethttp "net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
	"github.com/pawl-go/pawl/tools/internal/webpage"
)

// Options are the options of New. Nil and the zero value fetch public addresses by GET and HEAD.
type Options struct {
	// Allow names hosts that may be reached although they are not public: "localhost:8080",
	// "wiki.example.com", "*.corp.example.com", an address, or a network such as "10.1.0.0/16".
	// With Only, no other host may be reached. Deny takes precedence over both.
	Allow, Deny []string
	Only        bool // see Allow

	Methods    []string // nil means GET and HEAD
	Idempotent bool     // the servers honour Idempotency-Key, so calls that write may be repeated
	// Header is sent only with requests to the hosts that Allow names. Credentials belong here.
	Header    nethttp.Header
	UserAgent string // empty means pawl's user agent

	Timeout time.Duration // limit for a whole fetch; 0 means 15 s
	MaxBody int64         // limit for a body in bytes, after decompression; 0 means 1 MiB

	// A nil Proxy means HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment.
	Proxy func(*nethttp.Request) (*url.URL, error)
	// A nil Lookup means the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// methods lists the methods that Options.Methods may contain. Other methods do not fit a fetch.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// New returns the tool http_fetch. Its error says which option is wrong.
func New(opts *Options) (*pawl.Tool, error) {
	o := *cmp.Or(opts, new(Options))
	if o.Methods == nil {
		o.Methods = []string{"GET", "HEAD"}
	}
	for _, m := range o.Methods {
		if !slices.Contains(methods, m) {
			return nil, fmt.Errorf("http tools: method %q: want some of %s", m, strings.Join(methods, ", "))
		}
	}
	g, err := netguard.New(netguard.Options{Allow: o.Allow, Deny: o.Deny, Only: o.Only, Proxy: o.Proxy,
		Lookup: o.Lookup})
	if err != nil {
		return nil, fmt.Errorf("http tools: %w", err)
	}
	f := &fetcher{opts: o, guard: g, page: webpage.Fetcher{Transport: g, Timeout: o.Timeout, MaxBody: o.MaxBody,
		UserAgent: o.UserAgent}}
	if len(o.Header) > 0 {
		f.page.Transport = withHeader{g, o.Header}
	}
	// MaxResult is -1 because max_chars bounds the result.
	return toolrun.Define(definitions, "fetch", &pawl.Tool{Name: "http_fetch", Input: f.input(), Effect: f.effect(),
		MaxResult: -1, StatesSending: true, Run: toolrun.Func(f.run)}), nil
}

// withHeader adds the caller's headers to requests to the hosts that the caller named.
type withHeader struct {
	guard  *netguard.Guard
	header nethttp.Header
}

func (w withHeader) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	if w.guard.Named(r.URL) {
		r = r.Clone(r.Context())
		for name, values := range w.header {
			r.Header[nethttp.CanonicalHeaderKey(name)] = values
		}
	}
	return w.guard.RoundTrip(r)
}
