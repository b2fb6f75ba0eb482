package netguard

import (
	"encoding/binary"
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
			return nil, fmt.Errorf(`%q: %w; want a host such as "example.com", "*.example.com" or "localhost:8080", `+
				`an address or a network such as "10.1.0.0/16"`, text, err)
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
		host = h
		p.port = port
	}

	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && a.Zone() == "" {
		p.net = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		return p, nil
	}
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		p.suffix = true
		host = rest
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
		switch {
		case p.host == "" || !p.onPort(port):
		case p.suffix && strings.HasSuffix(name, "."+p.host), !p.suffix && name == p.host:
			return true
		}
	}
	return false
}

// onPort reports whether the pattern names a port.
func (p pattern) onPort(port string) bool { return p.port == "" || p.port == port }

// addr reports whether a pattern names the address itself or an IPv4 address that it contains.
func (ps patterns) addr(a netip.Addr, port string) bool {
	a = a.Unmap()
	return slices.ContainsFunc(ps, func(p pattern) bool {
		return p.host == "" && p.onPort(port) && p.net.Contains(a)
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
		return netip.Addr{}, false, errors.New("it looks like an address but is not valid; " +
			"an IPv4 address has four decimal numbers")
	}
	for _, r := range host {
		if r >= 0x80 || r <= ' ' || strings.ContainsRune(`%\/"<>^|{}`, r) {
			return netip.Addr{}, false, errors.New("it is not a host name; a name with other letters must be written " +
				"in its ASCII form, xn--…")
		}
	}
	return netip.Addr{}, false, nil
}

// numeric reports whether the last label of a host makes it an address, by the WHATWG's rule for
// URLs.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
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
	p := u.Port()
	switch {
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

// networks lists the special-purpose networks of the IANA registries (RFC 6890 and its successors),
// and the addresses of cloud services that give credentials to any client (any cloud, ECS, Alibaba,
// Oracle, Azure, EC2, Google), by what they are. The first match names the reason.
var networks = [][2]string{
	{"the metadata service of a cloud", "169.254.169.254/32 169.254.170.2/32 100.100.100.200/32 192.0.0.192/32 " +
		"168.63.129.16/32 fd00:ec2::/32 fd20:ce::254/128"},
	{"this network", "0.0.0.0/8 ::/128"},
	{"this machine", "127.0.0.0/8 ::1/128"},
	// also local-use NAT64 (RFC 8215), and site-local addresses, which were withdrawn
	{"a private network", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 64:ff9b:1::/48 fc00::/7 fec0::/10"},
	{"a link-local network", "169.254.0.0/16 fe80::/10"},
	{"shared address space", "100.64.0.0/10"},
	{"a relay of 6to4", "192.88.99.0/24"},
	{"reserved for documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"},
	{"reserved for benchmarks", "198.18.0.0/15"},
	{"multicast", "224.0.0.0/4 ff00::/8"},
	// includes broadcast
	{"reserved", "192.0.0.0/24 240.0.0.0/4 100::/64 100:0:0:1::/64 5f00::/16"},
}

// block is a network that is not part of the public internet.
type block struct {
	prefix netip.Prefix
	what   string
}

var blocks = func() (all []block) {
	for _, n := range networks {
		for prefix := range strings.FieldsSeq(n[1]) {
			all = append(all, block{netip.MustParsePrefix(prefix), n[0]})
		}
	}
	return all
}()

// IPv6 networks whose addresses contain an IPv4 address.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	compatible = netip.MustParsePrefix("::/96")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
	ietf       = netip.MustParsePrefix("2001::/23")
	global     = netip.MustParsePrefix("2000::/3")
)

// special describes an address that is not public. It returns "" for a public address.
func special(a netip.Addr) string {
	a = a.Unmap()
	for _, b := range blocks {
		if b.prefix.Contains(a) {
			return b.what
		}
	}
	if a.Is4() {
		return ""
	}
	for _, v4 := range carried(a) {
		if what := special(v4); what != "" {
			return what + ", in an IPv6 form"
		}
	}
	switch {
	case nat64.Contains(a):
		return "" // the IPv4 address in it is public
	case ietf.Contains(a), !global.Contains(a):
		return "reserved"
	}
	return ""
}

// carried returns the IPv4 addresses that an IPv6 address may lead to. It returns none for an IPv4
// address.
func carried(a netip.Addr) []netip.Addr {
	if a.Is4() {
		return nil
	}
	b := a.As16()
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	switch {
	case nat64.Contains(a), compatible.Contains(a), translated.Contains(a):
		return []netip.Addr{at(12)}
	case sixToFour.Contains(a):
		return []netip.Addr{at(2)}
	case teredo.Contains(a):
		var client [4]byte
		binary.BigEndian.PutUint32(client[:], ^binary.BigEndian.Uint32(b[12:]))
		return []netip.Addr{at(4), netip.AddrFrom4(client)} // server and client
	case b[8]&^2 == 0 && string(b[9:12]) == "\x00\x5e\xfe": // ISATAP, RFC 5214
		return []netip.Addr{at(12)}
	}
	return nil
}
