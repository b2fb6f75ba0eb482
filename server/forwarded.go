package server

// forwarded.go: limits the requests that trusted proxies pass on, by the address of the client.

import (
	"net/netip"
	"sync"
)

// clientCounts counts the requests of clients behind proxies. The connections of a proxy belong to
// many clients, so that their number is no limit for one of them. The zero value is ready to use.
type clientCounts struct {
	mu   sync.Mutex
	from map[netip.Prefix]int
}

// acquire counts a request of a network until release is called. False means that the network has
// its limit of requests; 0 means no limit. The zero Prefix has no limit.
func (c *clientCounts) acquire(from netip.Prefix, limit int) (release func(), ok bool) {
	if !from.IsValid() || limit == 0 {
		return func() {}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from[from] >= limit {
		return nil, false
	}

	if c.from == nil {
		c.from = map[netip.Prefix]int{}
	}
	c.from[from]++
	return func() { c.drop(from) }, true
}

// drop ends the counting of a request.
func (c *clientCounts) drop(from netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.from[from]--
	if c.from[from] == 0 {
		delete(c.from, from)
	}
}
