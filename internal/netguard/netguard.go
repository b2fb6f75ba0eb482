// Package netguard sends HTTP requests to public addresses only, and to the addresses that its
// Options allow.
//
//	g, err := netguard.New(netguard.Options{Allow: []string{"localhost:8080"}})
//	client := &http.Client{Transport: g}
//
// A model chooses the addresses that a tool fetches, and a page chooses its redirect targets. A
// name is therefore never trusted: the Guard resolves it, checks all its addresses, and dials the
// checked address, so that an answer that changes between check and connection has no effect. Each
// redirect is checked like the first request.
//
// Refused unless allowed: loopback, private and link-local networks, shared address space (CGNAT),
// the metadata services of clouds, multicast and everything reserved, and the IPv6 forms that
// contain such an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo, ISATAP). A refusal is a
// *Refused, whose text may be shown to the sender of the request.
package netguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"
)

// Options define what a Guard permits. The zero value permits every public host and nothing else.
type Options struct {
	// Allow lists hosts that may be reached although their addresses are not public:
	// "localhost:8080", "wiki.example.com", "*.corp.example.com", an address "10.1.2.3", or a
	// network "10.1.0.0/16". An entry without a port allows all ports.
	Allow []string
	// Only makes Allow the complete list: no other host is reached, public or not.
	Only bool
	// Public requires that the addresses of hosts in Allow are public; another address must be
	// allowed as an address. Names of this machine or its network (localhost, *.internal) are
	// exempt, because their meaning is clear. With Only, a name that is not allowed is not resolved
	// either, because a lookup sends information to the server that answers it.
	Public bool
	// Deny lists, in the same forms, what is never reached. It takes precedence over Allow.
	Deny []string

	// A nil Proxy means http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
	// A nil Lookup means the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to a checked address. Nil means a net.Dialer.
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	Timeout time.Duration // limit for a connection; 0 means 10 s
}

// Guard checks requests and sends them. It is safe for concurrent use.
type Guard struct {
	allow, deny patterns
	only        bool
	public      bool
	lookup      func(ctx context.Context, host string) ([]netip.Addr, error)
	dial        func(ctx context.Context, network, addr string) (net.Conn, error)
	proxy       func(*http.Request) (*url.URL, error)

	direct, proxied *http.Transport
}

// Refused is the error for a request that must not be sent. Its text contains no resolved address.
type Refused struct {
	Host   string // as requested
	Reason string // for the sender of the request
}

// Error returns what was refused, and why.
func (r *Refused) Error() string { return r.Host + " is refused: " + r.Reason }

// Refusal returns the text of Error. It distinguishes this error from connection errors.
func (r *Refused) Refusal() string { return r.Error() }

// New returns a Guard. The error names an invalid pattern.
func New(o Options) (*Guard, error) {
	g := &Guard{only: o.Only, public: o.Public, lookup: o.Lookup, dial: o.Dial, proxy: o.Proxy}
	var err error
	g.allow, err = parsePatterns(o.Allow)
	if err != nil {
		return nil, fmt.Errorf("allow: %w", err)
	}
	g.deny, err = parsePatterns(o.Deny)
	if err != nil {
		return nil, fmt.Errorf("deny: %w", err)
	}

	if g.proxy == nil {
		g.proxy = http.ProxyFromEnvironment
	}
	if g.lookup == nil {
		g.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	if g.dial == nil {
		g.dial = (&net.Dialer{Timeout: timeout}).DialContext
	}

	// The direct transport checks each address that it dials. The other one dials a proxy, which is
	// set by the operator and may be in a private network; choose has checked the host behind it.
	g.direct = &http.Transport{DialContext: g.connect}
	g.proxied = &http.Transport{
		DialContext: g.dial,
		Proxy: func(r *http.Request) (*url.URL, error) {
			u, _ := r.Context().Value(proxyKey{}).(*url.URL)
			return u, nil
		},
	}
	for _, t := range []*http.Transport{g.direct, g.proxied} {
		t.ForceAttemptHTTP2 = true
		t.TLSHandshakeTimeout = timeout
		t.MaxResponseHeaderBytes = 64 << 10
		t.MaxIdleConns = 32
		t.MaxIdleConnsPerHost = 4
		t.IdleConnTimeout = 30 * time.Second
	}
	return g, nil
}

type proxyKey struct{}

// RoundTrip checks the request and sends it, through a proxy if one is set. It follows no redirect.
func (g *Guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.Check(r.URL); err != nil {
		return nil, err
	}
	proxy, err := g.choose(r)
	switch {
	case err != nil:
		return nil, err
	case proxy == nil:
		return g.direct.RoundTrip(r)
	}
	return g.proxied.RoundTrip(r.WithContext(context.WithValue(r.Context(), proxyKey{}, proxy)))
}

// CloseIdleConnections closes idle connections.
func (g *Guard) CloseIdleConnections() {
	g.direct.CloseIdleConnections()
	g.proxied.CloseIdleConnections()
}

// Check returns nil if a request to u may be tried, and a *Refused otherwise. It does not resolve
// names; their addresses are checked when they are dialled.
func (g *Guard) Check(u *url.URL) error {
	host := u.Hostname()
	refuse := func(format string, args ...any) error {
		return &Refused{Host: u.Host, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &Refused{Host: u.Scheme + ":", Reason: "only http and https are fetched"}
	case u.User != nil:
		return refuse("an address must not carry a user name or password")
	case host == "":
		return &Refused{Host: u.String(), Reason: "the address has no host"}
	}

	port := portOf(u)
	if p := u.Port(); p != "" && !validPort(p) {
		return refuse("%q is no port", p)
	}
	name := canonicalHost(host)
	ip, isIP, err := literal(name)
	if err != nil {
		return refuse("%v", err)
	}
	if isIP {
		return g.checkAddr(u.Host, "", ip, port)
	}

	switch {
	case g.deny.host(name, port):
		return refuse("it is on the list of refused addresses")
	case g.allow.host(name, port):
		return nil
	// Otherwise the name may have an address in an allowed network, which is checked when it is
	// dialled.
	case g.only && (g.public || !g.allow.networks()):
		return refuse("it is not on the list of allowed addresses%s", g.allow.said())
	case local(name):
		return refuse("it names this machine or its network")
	}
	return nil
}

// Named reports whether Allow names the host of u, by its name or its address.
func (g *Guard) Named(u *url.URL) bool {
	name := canonicalHost(u.Hostname())
	port := portOf(u)
	ip, isIP, err := literal(name)
	switch {
	case err != nil:
		return false
	case isIP:
		return g.allow.addr(ip, port)
	}
	return g.allow.host(name, port)
}

// misleads reports whether a public name stands for an address of this machine or its network,
// where only public addresses are allowed. why says what the address is; empty means a public
// address.
func (g *Guard) misleads(name, why string) bool {
	return g.public && why != "" && !local(name)
}

// checkAddr checks whether addr may be dialled. asked is the requested host. name is the resolved
// name; empty means that an address was requested.
func (g *Guard) checkAddr(asked, name string, addr netip.Addr, port string) error {
	why := special(addr)
	misnamed := name != "" && why != ""
	reason := ""
	switch {
	case g.deny.addr(addr, port), slices.ContainsFunc(carried(addr.Unmap()),
		func(v4 netip.Addr) bool { return g.deny.addr(v4, port) }):
		reason = "its address is on the list of refused addresses"
	case g.allow.addr(addr, port):
		return nil
	case name != "" && g.allow.host(name, port) && !g.misleads(name, why):
		return nil
	case misnamed && (g.public || !g.only):
		reason = "the name stands for " + why
	case g.only:
		reason = "it is not on the list of allowed addresses" + g.allow.said()
	case why != "":
		reason = "it is " + why
	default:
		return nil
	}
	return &Refused{Host: asked, Reason: reason}
}

// choose returns the proxy for a request. A proxy resolves names itself, so the addresses of the
// name are checked here first if it can be resolved.
func (g *Guard) choose(r *http.Request) (*url.URL, error) {
	proxy, err := g.proxy(r)
	if err != nil || proxy == nil {
		return nil, err
	}
	name := canonicalHost(r.URL.Hostname())
	port := portOf(r.URL)
	if _, isIP, _ := literal(name); isIP || g.allow.host(name, port) {
		return proxy, nil // Check has already checked the address
	}
	addrs, err := g.lookup(r.Context(), name)
	if err != nil {
		// only the proxy can resolve the name, perhaps to a host of its own network
		return nil, &Refused{Host: r.URL.Host, Reason: "its address cannot be looked up here, and the proxy " +
			"may know it as a host of a private network; only allowed names are left to the proxy"}
	}
	for _, a := range addrs {
		if err := g.checkAddr(r.URL.Host, name, a, port); err != nil {
			return nil, err
		}
	}
	return proxy, nil
}

// Dial connects to host and port if both are permitted. It serves connections that are not
// requests, such as CONNECT of a proxy.
func (g *Guard) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if err := g.Check(&url.URL{Scheme: "https", Host: addr}); err != nil {
		return nil, err
	}
	return g.connect(ctx, "tcp", addr)
}

// connect resolves addr, checks all its addresses, and dials a checked one.
func (g *Guard) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	name := canonicalHost(host)
	ip, isIP, err := literal(name)
	if err != nil {
		return nil, &Refused{Host: host, Reason: err.Error()}
	}
	addrs := []netip.Addr{ip}
	if isIP {
		name = ""
	} else {
		addrs, err = g.lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(addrs) == 0 {
			return nil, &net.DNSError{Err: "no address", Name: name, IsNotFound: true}
		}
	}

	for _, a := range addrs { // if one address is refused, none is trusted
		if err := g.checkAddr(host, name, a, port); err != nil {
			return nil, err
		}
	}

	// The addresses that were checked are dialled, and not the name: a second lookup could give
	// others.
	var failed []error
	for _, a := range addrs {
		conn, err := g.dial(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil || len(failed) == 3 {
			break
		}
	}
	return nil, errors.Join(failed...)
}
