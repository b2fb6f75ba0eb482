// Package gate decides whether an HTTP request to one of our servers is permitted: by the name that
// the client used for this machine, by the origin of the page, and by token.
//
// A web page can make a browser send requests to any address, including this machine's, and can let
// its own name resolve to this machine. The Host of a request must therefore be a known name, and
// so must its Origin if it has one.
package gate

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Host reports whether a request with this Host header is permitted: it names this machine, or is
// in known, with or without its port.
func Host(host string, known []string) bool {
	name := nameOf(host)
	return thisMachine(name) || slices.ContainsFunc(known,
		func(h string) bool { return strings.EqualFold(h, host) || strings.EqualFold(h, name) })
}

// Origin reports whether a request with this Origin header is permitted. An empty origin means no
// header. The page must come from this machine, or its origin must be in known.
func Origin(origin string, known []string) bool {
	if origin == "" || slices.ContainsFunc(known, func(o string) bool { return strings.EqualFold(o, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && thisMachine(u.Hostname())
}

// Token returns the token of an Authorization header, or "" if there is none.
func Token(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Same compares tokens in constant time.
func Same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func nameOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

// thisMachine reports whether a host is a name or address of this machine.
func thisMachine(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
