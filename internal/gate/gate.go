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
	"net/http"
	"net/netip"
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

// Origin reports whether a request with these headers Origin and Host is permitted. An empty origin
// means no header. The page must come from this server itself, or its origin must be in known.
func Origin(origin, host string, known []string) bool {
	return origin == "" || strings.EqualFold(origin, "http://"+host) || strings.EqualFold(origin, "https://"+host) ||
		slices.ContainsFunc(known, func(o string) bool { return strings.EqualFold(o, origin) })
}

// Preflight sets the headers of an answer to a page of another origin, which is permitted. It
// reports whether r only asks whether such a page may send a request (CORS preflight).
func Preflight(h http.Header, r *http.Request) bool {
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", "Retry-After, X-Should-Retry, X-Request-Id, Mcp-Session-Id, X-Vercel-AI-UI-Message-Stream")
	h.Add("Vary", "Origin, Access-Control-Request-Headers")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Max-Age", "600")
	asked := strings.Split(r.Header.Get("Access-Control-Request-Headers"), ",")
	for _, name := range asked[:min(len(asked), mostHeaders)] {
		name = strings.TrimSpace(name)
		if token(name) {
			h.Add("Access-Control-Allow-Headers", name)
		}
	}
	return true
}

// mostHeaders is the number of headers that a preflight answer names.
const mostHeaders = 40

// token reports whether s is a valid name of a header.
func token(s string) bool {
	return s != "" && len(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
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
	x := sha256.Sum256([]byte(a))
	y := sha256.Sum256([]byte(b))
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
