// Package http gives a model http_fetch: one request to one address, and what it gives as text.
//
//	web, err := http.New(nil)
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{web}}
//
// A page comes as Markdown of its main content, JSON and other text as it is, an image as an image, anything else by its size and kind.
//
// Which addresses are reached is the caller's to say, never the model's: public ones, unless Options names others. The address that a name stands
// for is checked when it is dialled, at every redirect too, so that a name that changes its mind changes nothing. Loopback, private
// and link-local networks, the metadata services of clouds, and the IPv6 forms that carry such addresses are refused.
//
// The tool's effect is Read while it may only GET and HEAD, which is the default. With other methods it is Write, or Idempotent where the
// caller knows that the servers honour the Idempotency-Key that each such call sends.
package http

import (
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
	"github.com/pawl-go/pawl/tools/internal/webpage"
)

// Options are what New can be told. Nil and the zero value fetch public addresses by GET and HEAD.
type Options struct {
	// Allow names what may be reached although it is not public: "localhost:8080", "wiki.example.com", "*.corp.example.com", an address, or a
	// network such as "10.1.0.0/16". With Only, nothing else is reached. Deny wins over both.
	Allow, Deny []string
	Only        bool

	Methods    []string       // nil: GET and HEAD
	Idempotent bool           // the servers honour Idempotency-Key: calls that write may be repeated
	Header     nethttp.Header // sent with requests to the hosts that Allow names, and to no other; credentials belong here
	UserAgent  string         // "": pawl's

	Timeout time.Duration // of a whole fetch; 0: 15 s
	MaxBody int64         // bytes of a body, after decompression; 0: 1 MiB

	Proxy  func(*nethttp.Request) (*url.URL, error)                     // nil: HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error) // nil: the system's resolver
}

// methods are those that a model can be given. The others are not for fetching.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// New returns the tool http_fetch. The error says which option is wrong.
func New(opts *Options) (*pawl.Tool, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Methods == nil {
		o.Methods = []string{"GET", "HEAD"}
	}
	for _, m := range o.Methods {
		if !slices.Contains(methods, m) {
			return nil, fmt.Errorf("http tools: method %q: want some of %s", m, strings.Join(methods, ", "))
		}
	}
	g, err := netguard.New(netguard.Options{Allow: o.Allow, Deny: o.Deny, Only: o.Only, Proxy: o.Proxy, Lookup: o.Lookup})
	if err != nil {
		return nil, fmt.Errorf("http tools: %w", err)
	}
	f := &fetcher{opts: o, guard: g, page: webpage.Fetcher{Transport: g, Timeout: o.Timeout, MaxBody: o.MaxBody, UserAgent: o.UserAgent}}
	if len(o.Header) > 0 {
		f.page.Transport = withHeader{g, o.Header}
	}
	return f.tool(), nil
}

// withHeader adds the caller's headers to requests whose host the caller named.
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
