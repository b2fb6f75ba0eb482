package web

// forwarded.go: what trusted proxies say about a request.

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// forwarded is what a trusted proxy says about a request, apart from the client and the host.
type forwarded struct {
	scheme string // "" means not stated
	prefix string // a path that the proxy has removed; "" means none
}

type forwardedKey struct{}

// Forward returns a request as the client of the proxies has sent it, if a trusted proxy has passed
// it on: RemoteAddr is the address of the client, and Host the name that it used. Any other request
// is returned unchanged, since any client can send the headers.
func (s *Server) Forward(r *http.Request) (out *http.Request, byProxy bool) {
	if !s.isProxy(AddressOf(r.RemoteAddr)) {
		return r, false
	}

	f := forwarded{prefix: prefixOf(r.Header)}
	scheme := strings.ToLower(lastOf(r.Header, "X-Forwarded-Proto"))
	if scheme == "http" || scheme == "https" {
		f.scheme = scheme
	}
	out = r.WithContext(context.WithValue(r.Context(), forwardedKey{}, f))
	out.Host = cmp.Or(lastOf(r.Header, "X-Forwarded-Host"), r.Host)
	if client := s.clientOf(r.Header); client.IsValid() {
		out.RemoteAddr = netip.AddrPortFrom(client, 0).String()
	}
	return out, true
}

// isProxy reports whether an address belongs to a trusted proxy.
func (s *Server) isProxy(a netip.Addr) bool {
	return Contain(s.Proxies, a)
}

// Contain reports whether an address is in one of the networks.
func Contain(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// clientOf returns the client of the proxies: each of them has added the address of its peer at the
// end of X-Forwarded-For, so that the last address that is not a proxy's counts. What precedes it
// is the client's own text. The zero Addr means none.
func (s *Server) clientOf(h http.Header) (client netip.Addr) {
	for _, text := range slices.Backward(listOf(h, "X-Forwarded-For")) {
		at := AddressOf(text)
		if !at.IsValid() {
			return client
		}
		client = at
		if !s.isProxy(at) {
			return client
		}
	}
	return client
}

// AddressOf returns the address in a text, which may have a port. The zero Addr means none.
func AddressOf(text string) netip.Addr {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// listOf returns the values of a header, which may be in several lines.
func listOf(h http.Header, name string) (all []string) {
	for _, line := range h.Values(name) {
		for value := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(value))
		}
	}
	return all
}

// lastOf returns the value of a header that the nearest proxy has set. "" means none.
func lastOf(h http.Header, name string) string {
	all := listOf(h, name)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// prefixPattern matches a path that can precede the paths of the server.
var prefixPattern = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

// prefixOf returns the path that the proxy has removed. "" means none.
func prefixOf(h http.Header) string {
	prefix := strings.TrimSuffix(lastOf(h, "X-Forwarded-Prefix"), "/")
	if !prefixPattern.MatchString(prefix) {
		return ""
	}
	return prefix
}

// Base returns the address of the server as the client of a request sees it, without a slash at its
// end.
func Base(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	f, _ := r.Context().Value(forwardedKey{}).(forwarded)
	return cmp.Or(f.scheme, scheme) + "://" + r.Host + f.prefix
}

// NetworkOf returns the network of the client of a request by which limits count: an address of
// IPv4, or a /64 of IPv6. The zero Prefix means that the address is unknown.
func NetworkOf(r *http.Request) netip.Prefix { return Network(AddressOf(r.RemoteAddr)) }

// Network returns the network of an address by which limits count.
func Network(a netip.Addr) netip.Prefix {
	const of6 = 64
	bits := a.BitLen()
	if a.Is6() {
		bits = of6
	}
	p, _ := a.Prefix(bits) // an invalid address has the zero Prefix
	return p
}
