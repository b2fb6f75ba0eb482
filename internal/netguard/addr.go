package netguard

import (
	"encoding/binary"
	"net/netip"
)

// block is a network that is not part of the public internet.
type block struct {
	prefix netip.Prefix
	what   string
}

// blocks lists the special-purpose networks of the IANA registries (RFC 6890 and its successors),
// and the addresses of cloud services that give credentials to any client. The first match names
// the reason.
var blocks = []block{
	{netip.MustParsePrefix("169.254.169.254/32"), "the metadata service of a cloud"},
	// ECS task roles
	{netip.MustParsePrefix("169.254.170.2/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("100.100.100.200/32"), "the metadata service of a cloud"}, // Alibaba
	{netip.MustParsePrefix("192.0.0.192/32"), "the metadata service of a cloud"},     // Oracle
	{netip.MustParsePrefix("168.63.129.16/32"), "the metadata service of a cloud"},   // Azure
	{netip.MustParsePrefix("fd00:ec2::/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "the metadata service of a cloud"}, // Google

	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private network"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private network"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private network"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared address space"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "reserved for documentation"},
	{netip.MustParsePrefix("198.51.100.0/24"), "reserved for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "reserved for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a relay of 6to4"},
	{netip.MustParsePrefix("198.18.0.0/15"), "reserved for benchmarks"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"}, // includes broadcast

	{netip.MustParsePrefix("::1/128"), "this machine"},
	{netip.MustParsePrefix("::/128"), "this network"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a private network"}, // local-use NAT64, RFC 8215
	{netip.MustParsePrefix("100::/64"), "reserved"},
	{netip.MustParsePrefix("100:0:0:1::/64"), "reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "reserved for documentation"},
	{netip.MustParsePrefix("3fff::/20"), "reserved for documentation"},
	{netip.MustParsePrefix("5f00::/16"), "reserved"},
	{netip.MustParsePrefix("fc00::/7"), "a private network"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local network"},
	{netip.MustParsePrefix("fec0::/10"), "a private network"}, // site-local, withdrawn
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

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
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP, RFC 5214
		return []netip.Addr{at(12)}
	}
	return nil
}
