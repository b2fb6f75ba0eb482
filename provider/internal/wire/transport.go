package wire

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/http1"
)

// carrier carries the requests of Clients that were given no RoundTripper: what is plain http, without a proxy, over connections of our own, everything
// else over net/http.
type carrier struct {
	plain http1.Transport
	std   *http.Transport
}

// shared is the carrier of all Clients with the default connect timeout.
var shared = sync.OnceValue(func() *carrier { return newCarrier(connectTimeout) })

// Transport returns it as a RoundTripper, for those who stand in front of it.
func Transport() http.RoundTripper { return shared() }

func newCarrier(connect time.Duration) *carrier {
	std := newTransport(connect, dial)
	return &carrier{plain: http1.Transport{Dial: std.DialContext}, std: std}
}

// RoundTrip carries one request.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if http1.Takes(r) && !proxied(r) {
		return c.plain.RoundTrip(r)
	}
	return c.std.RoundTrip(r)
}

// proxied reports whether the environment names a proxy for r, or cannot be read.
func proxied(r *http.Request) bool {
	proxy, err := http.ProxyFromEnvironment(r)
	return proxy != nil || err != nil
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: 30 * time.Second}
	return d.DialContext(ctx, network, address)
}

// carrier returns what carries the requests of a Client that was given no RoundTripper.
func (c *Client) carrier() *carrier {
	connect := c.Timeouts.limits().Connect
	if connect == connectTimeout {
		return shared()
	}
	c.once.Do(func() { c.own = newCarrier(connect) })
	return c.own
}

// newTransport keeps as many idle connections as runs are likely to be open. The default transport keeps two a host,
// which costs a third more CPU under load.
func newTransport(connect time.Duration, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
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
		WriteBufferSize:       16 << 10, // most requests leave in one write
		ReadBufferSize:        16 << 10, // a streamed reply in few reads
		DisableCompression:    true,     // replies are small, and compressed streams arrive late
	}
}
