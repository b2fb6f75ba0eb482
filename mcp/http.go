package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/mcp/internal/wire"
)

// web is the connection to a server with a URL.
type web struct {
	server *Server
	home   *url.URL
	guard  *netguard.Guard
	tokens *tokens // nil means that the server gets no token
}

// web checks the address and its settings. It sends nothing.
func (s *Server) web(o *Options) (*web, error) {
	home, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	allow := s.Allow
	// A person wrote the address, so an address that is obviously private is intended.
	if _, err := netip.ParseAddr(home.Hostname()); err == nil || home.Hostname() == "localhost" {
		allow = append(append([]string{}, allow...), home.Host)
	}
	w := &web{server: s, home: home}
	w.guard, err = netguard.New(netguard.Options{Allow: allow, Dial: o.dial})
	if err != nil {
		return nil, fmt.Errorf("mcp server %q: %w", s.Name, err)
	}
	if s.OAuth != nil {
		w.tokens, err = s.OAuth.tokens(o, w.guard)
		if err != nil {
			return nil, fmt.Errorf("mcp server %q: oauth: %w", s.Name, err)
		}
	}
	return w, nil
}

// transport returns the SDK transport for the server.
func (w *web) transport(m *repairer, sent *cancels) sdk.Transport {
	client := &http.Client{Transport: &carrier{web: w, m: m, cancels: sent}, CheckRedirect: stay}
	if w.server.Transport == "sse" {
		return &sdk.SSEClientTransport{Endpoint: w.server.URL, HTTPClient: client, MaxEventSize: 2 * maxMessage}
	}
	return &sdk.StreamableClientTransport{Endpoint: w.server.URL, HTTPClient: client, MaxEventSize: 2 * maxMessage,
		MaxRetries: 2}
}

// stay follows redirects on the same host only, because headers and calls are meant for that host.
func stay(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return fmt.Errorf("a redirect to another host (%s) is not followed", req.URL.Host)
	}
	if len(via) > 3 {
		return errors.New("there are too many redirects")
	}
	return nil
}

// carrier adds the server's headers and token, enforces the guard, and repairs and limits the
// responses. A response that is no reply becomes a reply with an error, because the SDK would end
// the connection, and with it the other calls.
type carrier struct {
	web     *web
	m       *repairer
	cancels *cancels
}

// RoundTrip sends one request.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	// A server that uses SSE names the address for messages. It must not be another host, which
	// would then get the headers.
	if r.URL.Host != c.web.home.Host || r.URL.Scheme != c.web.home.Scheme {
		return nil, &wire.NotDone{Err: fmt.Errorf("the server names another host (%s), which is refused", r.URL.Host)}
	}
	if isCancel(r) {
		defer c.cancels.add(-1)
	}
	r = r.Clone(r.Context())
	for k, v := range c.web.server.Headers {
		r.Header.Set(k, v)
	}

	resumes := r.Header.Get("Last-Event-Id") != ""
	switch {
	case r.Method == http.MethodPost:
		return c.post(r)
	case r.Method == http.MethodGet && !resumes && c.web.server.Transport != "sse":
		return c.listen(r)
	case r.Method == http.MethodDelete:
		// A DELETE ends a session. A server that does not respond must not block it.
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		return c.send(r.WithContext(ctx))
	}
	res, err := c.send(r)
	if err != nil {
		return nil, err
	}
	return c.events(res, wire.Source{}), nil
}

// send sends a request with the server's token. After a response that asks for another token, it
// obtains one and sends the request once more.
func (c *carrier) send(r *http.Request) (*http.Response, error) {
	t := c.web.tokens
	if t == nil {
		return c.sendOnce(r)
	}

	token, err := t.current(r.Context())
	if err != nil {
		return nil, &wire.NotDone{Err: err}
	}
	res, err := c.sendOnce(authorized(r, token))
	if err != nil || res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
		return res, err
	}

	token, err = t.renew(r, res, token)
	if err != nil {
		return nil, &wire.NotDone{Err: err}
	}
	again := authorized(r, token)
	if r.GetBody != nil {
		again.Body, err = r.GetBody()
		if err != nil {
			return nil, err
		}
	}
	return c.sendOnce(again)
}

// authorized returns r with a token. Empty means none.
func authorized(r *http.Request, token string) *http.Request {
	if token == "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// sendOnce sends a request. An error of a request for which there was no connection is a
// *wire.NotDone.
func (c *carrier) sendOnce(r *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	res, err := c.web.guard.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil && !connected.Load() {
		return nil, &wire.NotDone{Err: err}
	}
	return res, err
}
