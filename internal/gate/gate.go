// Package gate says who may speak with a server of ours over HTTP: by the name that the client used for this machine, by the page that asks, and by token.
//
// A page on the web can have a browser ask any address, this machine's too, and can point a name of its own at this machine. So the Host of a request must be a name that is
// known, and so must its Origin, where there is one.
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

// Host reports whether a request with this Host header is meant for us: it names this machine, or is among known, with or without its port.
func Host(host string, known []string) bool {
	name := nameOf(host)
	return thisMachine(name) || slices.ContainsFunc(known, func(h string) bool { return strings.EqualFold(h, host) || strings.EqualFold(h, name) })
}

// Origin reports whether a request with this Origin header ("": none) may be answered: the page is this machine's, or its origin is among known.
func Origin(origin string, known []string) bool {
	if origin == "" || slices.ContainsFunc(known, func(o string) bool { return strings.EqualFold(o, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && thisMachine(u.Hostname())
}

// Token returns the token of an Authorization header; "": there is none.
func Token(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Same compares tokens in a time that says nothing about them.
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

// thisMachine reports whether a host is written as this machine.
func thisMachine(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
