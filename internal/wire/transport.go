package wire

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// sharedTransport keeps as many idle connections as runs are likely to be open. The default transport keeps two a host,
// which costs a third more CPU under load.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          4096,
		MaxIdleConnsPerHost:   1024,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		WriteBufferSize:       16 << 10, // most requests leave in one write
		ReadBufferSize:        16 << 10, // a streamed reply in few reads
		DisableCompression:    true,     // replies are small, and compressed streams arrive late
	}
})
