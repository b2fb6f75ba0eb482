package netguard

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

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
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP, RFC 5214
		return []netip.Addr{at(12)}
	}
	return nil
}
