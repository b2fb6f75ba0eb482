package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/pawl-go/pawl/internal/guard"
	"github.com/pawl-go/pawl/internal/netguard"
)

// web is the connection to a server with a URL.
type web struct {
	server *Server
	home   *url.URL
	guard  *netguard.Guard
	oauth  auth.OAuthHandler
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
	w.guard, err = netguard.New(netguard.Options{Allow: allow})
	if err != nil {
		return nil, fmt.Errorf("mcp server %q: %w", s.Name, err)
	}
	if s.OAuth != nil {
		w.oauth, err = s.OAuth.handler(o, &http.Client{Transport: w.guard, CheckRedirect: stay})
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
	return &sdk.StreamableClientTransport{Endpoint: w.server.URL, HTTPClient: client, OAuthHandler: w.oauth,
		MaxEventSize: 2 * maxMessage, MaxRetries: 2}
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

// carrier adds the server's headers, enforces the guard, and repairs and limits the responses.
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
		return nil, fmt.Errorf("the server names another host (%s), which is refused", r.URL.Host)
	}
	if isCancel(r) {
		defer c.cancels.add(-1)
	}
	r = r.Clone(r.Context())
	for k, v := range c.web.server.Headers {
		r.Header.Set(k, v)
	}

	// A DELETE ends a session. A server that does not respond must not block it.
	send := c.web.guard.RoundTrip
	if r.Method == http.MethodDelete {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		r = r.WithContext(ctx)
	}
	if r.Method == http.MethodGet && c.web.server.Transport != "sse" {
		send = c.listen
	}
	res, err := send(r)
	if err != nil {
		return nil, err
	}

	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		res.Body = c.m.lines(res.Body, true)
	case "application/json":
		res.Body = &whole{body: res.Body, m: c.m}
		res.ContentLength = -1
	default:
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, 64<<10), res.Body}
	}
	return res, nil
}

// listenTime is the maximum time until the stream of unsolicited messages begins.
const listenTime = 2 * time.Second

// listen opens that stream. Some servers respond only when they have a message, and the SDK waits
// for the response. After listenTime, listen therefore returns a response, and the stream follows
// when it begins.
func (c *carrier) listen(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	type answer struct {
		res *http.Response
		err error
	}
	came := make(chan answer, 1)
	go func() {
		var a answer
		if err := guard.Call(func() { a.res, a.err = c.web.guard.RoundTrip(r.WithContext(ctx)) }); err != nil {
			a.err = err
		}
		came <- a
	}()

	wait := time.NewTimer(listenTime)
	defer wait.Stop()
	select {
	case a := <-came:
		if a.err != nil {
			cancel()
			return nil, a.err
		}
		a.res.Body = &ends{a.res.Body, cancel}
		return a.res, nil
	case <-wait.C:
	}

	out, in := io.Pipe()
	go func() {
		a := <-came
		if a.err == nil && a.res.StatusCode == http.StatusOK {
			var err error
			panicked := guard.Call(func() { _, err = io.Copy(in, a.res.Body) })
			in.CloseWithError(cmp.Or(panicked, err))
		}
		if a.res != nil {
			a.res.Body.Close()
		}

		// A stream that never began does not end, because the SDK would request it again.
		<-ctx.Done()
		in.Close()
	}()
	return &http.Response{
		StatusCode:    http.StatusOK,
		Status:        "200 OK",
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Request:       r,
		Header:        http.Header{"Content-Type": {"text/event-stream"}},
		ContentLength: -1,
		Body:          &ends{out, cancel},
	}, nil
}

// ends is a body with a function to call when it is closed.
type ends struct {
	io.ReadCloser
	close func()
}

// Close closes the body.
func (e *ends) Close() error {
	e.close()
	return e.ReadCloser.Close()
}

// whole is a body that is one message.
type whole struct {
	body io.ReadCloser
	m    *repairer
	rest *strings.Reader
}

// Read fetches the message at its first call.
func (w *whole) Read(p []byte) (int, error) {
	if w.rest == nil {
		b, err := io.ReadAll(io.LimitReader(w.body, maxMessage+1))
		if err == nil && len(b) > maxMessage {
			err = errTooLong
		}
		if err != nil {
			return 0, err
		}
		w.rest = strings.NewReader(string(w.m.message(b)))
	}
	return w.rest.Read(p)
}

// Close closes the body.
func (w *whole) Close() error { return w.body.Close() }

// handler returns the handler that obtains tokens.
func (a *OAuth) handler(o *Options, client *http.Client) (auth.OAuthHandler, error) {
	var known *oauthex.ClientCredentials
	document := strings.HasPrefix(a.ClientID, "https://")
	if a.ClientID != "" && !document {
		known = &oauthex.ClientCredentials{ClientID: a.ClientID}
		if a.SecretEnv != "" {
			secret := o.getenv(a.SecretEnv)
			if secret == "" {
				return nil, fmt.Errorf("the variable %s is empty", a.SecretEnv)
			}
			known.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: secret}
		}
	}

	// Without a person, the program itself is the user.
	if o.Login == nil {
		if known == nil || known.ClientSecretAuth == nil {
			return nil, errors.New("no person can log in here, and there is no client_id with secret_env")
		}
		return extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
			Credentials: known,
			HTTPClient:  client,
		})
	}

	if a.Redirect == "" {
		return nil, errors.New("a login needs redirect, the address that it leads back to")
	}
	c := &auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient:      known,
		RedirectURL:              a.Redirect,
		Client:                   client,
		AuthorizationCodeFetcher: o.authorize,
	}
	if document {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: a.ClientID}
	}
	if known == nil {
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName:              "pawl",
				RedirectURIs:            []string{a.Redirect},
				TokenEndpointAuthMethod: "none",
			},
		}
	}
	return auth.NewAuthorizationCodeHandler(c)
}

// authorize lets a person log in, and returns what the login page sent back.
func (o *Options) authorize(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	back, err := o.Login(ctx, args.URL)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(back)
	if err != nil {
		return nil, fmt.Errorf("the address that the login led back to: %w", err)
	}

	q := u.Query()
	if e := q.Get("error"); e != "" {
		return nil, fmt.Errorf("the login was refused: %s", clean(clip(e+" "+q.Get("error_description"), 300)))
	}
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}
