package netguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
)

// pattern is an entry of Allow or Deny.
type pattern struct {
	text   string
	host   string // empty for a network
	suffix bool   // *.host
	net    netip.Prefix
	port   string // empty means all ports
}

type patterns []pattern

func parsePatterns(list []string) (patterns, error) {
	var ps patterns
	for _, text := range list {
		p, err := parsePattern(text)
		if err != nil {
			return nil, fmt.Errorf(`%q: %w; want a host such as "example.com", "*.example.com" or "localhost:8080", an address or a network such as "10.1.0.0/16"`, text, err)
		}
		ps = append(ps, p)
	}
	return ps, nil
}

func parsePattern(text string) (pattern, error) {
	p := pattern{text: text}
	s := strings.ToLower(strings.TrimSpace(text))
	if n, err := netip.ParsePrefix(s); err == nil {
		p.net = n.Masked()
		return p, nil
	}
	host := s
	if h, port, err := net.SplitHostPort(s); err == nil {
		if !validPort(port) {
			return p, fmt.Errorf("%q is no port", port)
		}
		host, p.port = h, port
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && a.Zone() == "" {
		p.net = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		return p, nil
	}
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		p.suffix, host = true, rest
	}
	switch {
	case host == "":
		return p, errors.New("it has no host")
	case strings.ContainsAny(host, "*/:@?#[] \\"):
		return p, errors.New("it is no host")
	}
	p.host = strings.TrimSuffix(host, ".")
	return p, nil
}

// Matches reports whether a pattern, in the form of Options.Allow, names the host of u. The error
// reports an invalid pattern, or a host that is no name and no address.
func Matches(text string, u *url.URL) (bool, error) {
	ps, err := parsePatterns([]string{text})
	if err != nil || u.Host == "" {
		return false, err
	}
	g := Guard{allow: ps}
	_, _, err = literal(canonicalHost(u.Hostname()))
	return g.Named(u), err
}

// host reports whether a pattern names the host.
func (ps patterns) host(name, port string) bool {
	for _, p := range ps {
		if p.host == "" || p.port != "" && p.port != port {
			continue
		}
		if !p.suffix && name == p.host || p.suffix && strings.HasSuffix(name, "."+p.host) {
			return true
		}
	}
	return false
}

// addr reports whether a pattern names the address itself or an IPv4 address that it contains.
func (ps patterns) addr(a netip.Addr, port string) bool {
	a = a.Unmap()
	return slices.ContainsFunc(ps, func(p pattern) bool {
		return p.host == "" && (p.port == "" || p.port == port) && p.net.Contains(a)
	})
}

// networks reports whether any pattern is an address or a network. The addresses of a host then
// decide.
func (ps patterns) networks() bool {
	return slices.ContainsFunc(ps, func(p pattern) bool { return p.host == "" })
}

// said lists the patterns for a message.
func (ps patterns) said() string {
	if len(ps) == 0 {
		return ""
	}
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.text
	}
	return ": " + text.First(names, 10, ", …")
}

// canonicalHost returns the name in the form in which DNS compares it.
func canonicalHost(h string) string { return strings.TrimSuffix(strings.ToLower(h), ".") }

// literal parses an IP address. Notations that only some programs accept (2130706433, 0x7f.1,
// 0177.0.0.1, 127.1) are an error, because their meaning depends on the program.
func literal(host string) (netip.Addr, bool, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return a, true, errors.New("an address with a zone belongs to a network of this machine")
		}
		return a, true, nil
	}
	if strings.Contains(host, ":") {
		return netip.Addr{}, false, errors.New("it is not an IPv6 address")
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if numeric(last) {
		return netip.Addr{}, false, errors.New("it looks like an address but is not valid; an IPv4 address has four decimal numbers")
	}
	for _, r := range host {
		if r >= 0x80 || r <= ' ' || strings.ContainsRune(`%\/"<>^|{}`, r) {
			return netip.Addr{}, false, errors.New("it is not a host name; a name with other letters must be written in its ASCII form, xn--…")
		}
	}
	return netip.Addr{}, false, nil
}

// numeric reports whether the last label of a host makes it an address, by the WHATWG's rule for
// URLs.
func numeric(label string) bool {
	if label == "" {
		return false
	}
	if strings.Trim(label, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(label, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// local reports whether a name belongs to this machine or its network, independent of its
// addresses.
func local(name string) bool {
	for _, s := range []string{"localhost", "local", "localdomain", "internal", "home.arpa", "lan", "intranet"} {
		if name == s || strings.HasSuffix(name, "."+s) {
			return true
		}
	}
	return !strings.Contains(name, ".")
}

func portOf(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func validPort(p string) bool {
	n, err := strconv.Atoi(p)
	return err == nil && 0 < n && n < 1<<16
}
