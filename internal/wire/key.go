package wire

import (
	"net"
	"net/url"
	"strings"
)

// MayHaveKey reports whether a key of the environment may go to an address that a program or a flag gave: to a host that is one of own (the
// provider's, and the one that the environment names beside the key), or below it, and to this machine, whose servers are the user's. Elsewhere
// a key goes only where it was given for that address, or a mistyped or a foreign address would learn it.
func MayHaveKey(address string, own ...string) bool {
	host := hostname(address)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return true
	}
	for _, o := range own {
		if o = hostname(o); o != "" && (host == o || strings.HasSuffix(host, "."+o)) {
			return true
		}
	}
	return false
}

func hostname(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
