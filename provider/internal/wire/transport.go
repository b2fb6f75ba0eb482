package wire

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// shared is the transport of all Clients with the default connect timeout and no RoundTripper.
var shared = sync.OnceValue(func() *http.Transport { return newTransport(connectTimeout, dial) })

// Transport returns the shared transport, for programs that wrap it.
func Transport() http.RoundTripper { return shared() }

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: 30 * time.Second}
	return d.DialContext(ctx, network, address)
}

// transport returns the transport of a Client without a RoundTripper.
func (c *Client) transport() *http.Transport {
	connect := c.Timeouts.limits().Connect
	if connect == connectTimeout {
		return shared()
	}
	c.once.Do(func() { c.own = newTransport(connect, dial) })
	return c.own
}

// newTransport returns a transport that keeps an idle connection for each open run. The default
// transport keeps two per host, which costs a third more CPU under load.
func newTransport(connect time.Duration, dial func(ctx context.Context, network, address string) (net.Conn,
	error)) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if connect > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, connect, &timeoutError{"no connection within " + connect.String()})
				defer cancel()
			}
			conn, err := dial(ctx, network, address)
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return conn, err
		},
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          4096,
		MaxIdleConnsPerHost:   1024,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   connect,
		ExpectContinueTimeout: time.Second,
		WriteBufferSize:       16 << 10, // most requests need one write
		ReadBufferSize:        16 << 10, // a streamed reply needs few reads
		DisableCompression:    true,     // replies are small, and compressed streams arrive late
	}
}
