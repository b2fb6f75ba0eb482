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
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/internal/outgoing"
	"github.com/pawl-go/pawl/mcp/internal/transport"
	"github.com/pawl-go/pawl/mcp/internal/wire"
)

// web is the connection to a server with a URL.
type web struct {
	server *Server
	home   *url.URL
	guard  *netguard.Guard
	tokens *transport.Tokens                          // nil means that the server gets no token
	header func(context.Context) (http.Header, error) // Options.Header; nil means none
	issued issued
}

// web checks the address and its settings. It sends nothing.
func (s *Server) web(o *Options) (*web, error) {
	home, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	allow := s.Allow
	// A person wrote the addresses, so an address that is obviously private is intended.
	for _, address := range append([]*url.URL{home}, s.issuers()...) {
		if _, err := netip.ParseAddr(address.Hostname()); err == nil || address.Hostname() == "localhost" {
			allow = append(append([]string{}, allow...), address.Host)
		}
	}
	for name, value := range s.Headers {
		if strings.Contains(value, "${caller.") {
			return nil, fmt.Errorf("mcp server %q: headers: %s: a caller stands in files of agents; in Go use Options.Header", s.Name, name)
		}
	}
	w := &web{server: s, home: home, header: o.Header}
	w.guard, err = netguard.New(netguard.Options{Allow: allow})
	if err != nil {
		return nil, fmt.Errorf("mcp server %q: %w", s.Name, err)
	}
	if s.OAuth != nil {
		handler := func(client *http.Client) (auth.OAuthHandler, error) { return s.OAuth.handler(s.URL, o, client) }
		isAlone := o.Login == nil || s.OAuth.Identity != nil
		w.tokens, err = transport.NewTokens(isAlone, w.guard, handler)
		if err != nil {
			return nil, fmt.Errorf("mcp server %q: oauth: %w", s.Name, err)
		}
	}
	return w, nil
}

// issuers returns the addresses of the servers that issue grants and tokens for callers.
func (s *Server) issuers() (all []*url.URL) {
	if s.OAuth == nil || s.OAuth.Identity == nil {
		return nil
	}
	for _, address := range []string{s.OAuth.Identity.Issuer, s.OAuth.Identity.Server} {
		u, err := url.Parse(address)
		if err == nil {
			all = append(all, u)
		}
	}
	return all
}

// transport returns the SDK transport for the server.
func (w *web) transport(s *session) sdk.Transport {
	c := &carrier{web: w, repairer: s.repairer, cancels: &s.cancels, denied: &s.denied}
	client := &http.Client{Transport: c, CheckRedirect: transport.Stay}
	if w.server.Transport == "sse" {
		return &sdk.SSEClientTransport{Endpoint: w.server.URL, HTTPClient: client, MaxEventSize: 2 * maxMessage}
	}
	return &sdk.StreamableClientTransport{Endpoint: w.server.URL, HTTPClient: client, MaxEventSize: 2 * maxMessage,
		MaxRetries: 2}
}

// carrier adds the server's headers and token, enforces the guard, and repairs and limits the
// responses. A response that is no reply becomes a reply with an error, because the SDK would end
// the connection, and with it the other calls.
type carrier struct {
	web      *web
	repairer *repairer
	cancels  *transport.Cancels
	denied   *atomic.Bool // whether the server refused to begin the session
}

// RoundTrip sends one request.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	// A server that uses SSE names the address for messages. It must not be another host, which
	// would then get the headers.
	if r.URL.Host != c.web.home.Host || r.URL.Scheme != c.web.home.Scheme {
		err := fmt.Errorf("the server names another host (%s), which is refused", r.URL.Host)
		return nil, &wire.NotDone{Err: err, Own: true}
	}
	if transport.IsCancel(r) {
		defer c.cancels.Add(-1)
	}
	r = r.Clone(r.Context())
	for k, v := range c.web.server.Headers {
		r.Header.Set(k, v)
	}
	if c.web.header != nil {
		own, err := c.web.header(r.Context())
		if err != nil {
			return nil, &wire.NotDone{Err: fmt.Errorf("nothing was sent: %w", err), Own: true}
		}
		for k, v := range own {
			r.Header[http.CanonicalHeaderKey(k)] = v
		}
	}

	resumes := r.Header.Get("Last-Event-Id") != ""
	switch {
	case r.Method == http.MethodPost:
		return c.post(r)
	case r.Method == http.MethodGet && !resumes && c.web.server.Transport != "sse":
		l := transport.Listener{Send: c.send, Events: c.repairer.reader(wire.Source{}).Events}
		return l.Listen(r), nil
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

	token, err := t.Current(r.Context())
	if err != nil {
		return nil, &wire.NotDone{Err: err}
	}
	res, err := c.sendOnce(c.authorized(r, token))
	if err != nil || res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
		return res, err
	}

	token, err = t.Renew(r, res, token)
	if err != nil {
		return nil, &wire.NotDone{Err: err}
	}
	again := c.authorized(r, token)
	if r.GetBody != nil {
		again.Body, err = r.GetBody()
		if err != nil {
			return nil, err
		}
	}
	return c.sendOnce(again)
}

// authorized returns r with a token. Empty means none.
func (c *carrier) authorized(r *http.Request, token string) *http.Request {
	if token == "" {
		return r
	}
	c.web.issued.add(token)
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// sendOnce sends a request. An error of a request of which nothing was sent is a *wire.NotDone. The
// first byte of a call is sent after the engine of the run has stored its intent.
func (c *carrier) sendOnce(r *http.Request) (*http.Response, error) {
	var begun atomic.Bool
	ctx := outgoing.Before(r.Context(), func() (err error) {
		if isCall, _ := r.Context().Value(sendKey{}).(bool); isCall {
			err = pawl.InvocationFrom(r.Context()).Sending(r.Context())
		}
		begun.Store(err == nil)
		return err
	})
	res, err := c.web.guard.RoundTrip(r.WithContext(ctx))
	if err != nil && !begun.Load() {
		var own *netguard.Refused
		return nil, &wire.NotDone{Err: err, Own: errors.As(err, &own)}
	}
	return res, err
}

// post sends a message and returns the response in a form that does not end the connection.
func (c *carrier) post(r *http.Request) (*http.Response, error) {
	head := c.sending(r)
	res, err := c.send(r)
	if err != nil {
		c.repairer.requests.Done(head.ID)
		return nil, err
	}

	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	succeeded := res.StatusCode >= 200 && res.StatusCode < 300
	if head.Method != "initialize" {
		// The SDK ends the connection if a later response names another session.
		res.Header.Del(sessionHeader)
	}
	switch {
	case head.Method == "" || head.ID == nil:
		// A notification and a reply get no reply. That the server refuses one harms no other.
		_ = res.Body.Close()
		return transport.Response(r, http.StatusAccepted, "", nil), nil
	case follows(r, res):
		return res, nil
	case kind == "text/event-stream" && succeeded:
		return c.events(res, wire.Source{For: head.ID}), nil
	case c.web.server.Transport == "sse":
		return c.accepted(res)
	}

	body, err := io.ReadAll(io.LimitReader(res.Body, maxMessage+1))
	_ = res.Body.Close()
	if err != nil {
		c.repairer.requests.Done(head.ID)
		return nil, err
	}
	reply := c.reply(r, res, body, head)
	if reply == nil {
		// The SDK reads the status of the first requests, to choose a version of the protocol.
		same := transport.Response(r, res.StatusCode, "", body)
		same.Header = res.Header
		return same, nil
	}
	out := transport.Response(r, http.StatusOK, "application/json", reply)
	if id := res.Header.Get(sessionHeader); id != "" {
		out.Header.Set(sessionHeader, id)
	}
	return out, nil
}

const sessionHeader = "Mcp-Session-Id"

// sending records the message of a request.
func (c *carrier) sending(r *http.Request) wire.Head {
	if r.GetBody == nil {
		return wire.Head{}
	}
	body, err := r.GetBody()
	if err != nil {
		return wire.Head{}
	}
	defer body.Close()
	message, err := io.ReadAll(body)
	if err != nil {
		return wire.Head{}
	}
	c.repairer.sent(message)
	return wire.HeadOf(message)
}

// follows reports whether a response is a redirect that the client follows with the same request.
func follows(r *http.Request, res *http.Response) bool {
	if res.StatusCode != http.StatusTemporaryRedirect && res.StatusCode != http.StatusPermanentRedirect {
		return false
	}
	to, err := res.Location()
	return err == nil && to.Host == r.URL.Host && to.Scheme == r.URL.Scheme
}

// events returns a response whose events are repaired. from is the source of its messages.
func (c *carrier) events(res *http.Response, from wire.Source) *http.Response {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		res.Body = c.repairer.reader(from).Events(res.Body)
	}
	return res
}

// accepted returns the response to a message of a server whose replies are in another stream.
func (c *carrier) accepted(res *http.Response) (*http.Response, error) {
	if res.StatusCode < 300 {
		return res, nil
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // it only helps to judge
	_ = res.Body.Close()
	err := errors.New(res.Status)
	switch transport.Verdict(res.StatusCode, false, body) {
	case wire.CodeUnread, wire.CodeAway:
		return nil, err
	case wire.CodeBusy:
		return nil, &wire.NotDone{Err: err}
	}
	return nil, &wire.NotDone{Err: err, Own: true} // of this client
}

// begins are the requests whose status the SDK reads, to choose a version of the protocol.
var begins = []string{"initialize", "server/discover", "subscriptions/listen"}

// reply returns the reply to a request, or an error reply in its place. Nil means that the response
// is passed on.
func (c *carrier) reply(r *http.Request, res *http.Response, body []byte, head wire.Head) []byte {
	session := r.Header.Get(sessionHeader) != ""
	failed := res.StatusCode < 200 || res.StatusCode >= 300
	code := transport.Verdict(res.StatusCode, session, body)

	var reply []byte
	if len(body) <= maxMessage && code != wire.CodeExpired {
		reply = c.repairer.reader(wire.Source{For: head.ID, Sole: true}).Body(body)
	}
	c.repairer.requests.Done(head.ID)
	switch {
	case slices.Contains(begins, head.Method) && (failed || reply == nil):
		c.denied.Store(code == wire.CodeRefused)
		return nil
	case reply != nil:
		return reply
	case failed:
		return wire.Error(head.ID, code, res.Status)
	case len(body) > maxMessage:
		return wire.Error(head.ID, wire.CodeUnread, "its reply has more than 8 MiB")
	}
	return wire.Error(head.ID, wire.CodeUnread, "its response holds no reply: "+res.Status)
}

// credentials returns the credentials of a client whose secret is in a variable; an empty variable
// name means that the client has no secret.
func (o *Options) credentials(id, variable string) (*oauthex.ClientCredentials, error) {
	known := &oauthex.ClientCredentials{ClientID: id}
	if variable == "" {
		return known, nil
	}
	secret := o.getenv(variable)
	if secret == "" {
		return nil, fmt.Errorf("the variable %s is empty", variable)
	}
	known.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: secret}
	return known, nil
}

// forCaller returns the handler that exchanges the ID token of a caller for tokens of the server at
// address. known is the client at the server.
func (a *OAuth) forCaller(address string, known *oauthex.ClientCredentials, o *Options,
	client *http.Client) (auth.OAuthHandler, error) {
	if o.IDToken == nil {
		return nil, errors.New("identity exchanges the ID token of a caller, and there is no caller: set Options.IDToken")
	}
	atProvider, err := o.credentials(cmp.Or(a.Identity.ClientID, a.ClientID), a.Identity.SecretEnv)
	if err != nil {
		return nil, err
	}
	return extauth.NewEnterpriseHandler(&extauth.EnterpriseHandlerConfig{
		IdPIssuerURL:     a.Identity.Issuer,
		IdPCredentials:   atProvider,
		MCPAuthServerURL: a.Identity.Server,
		MCPResourceURI:   address,
		MCPCredentials:   known,
		MCPScopes:        a.Identity.Scopes,
		HTTPClient:       client,
		IDTokenFetcher: func(ctx context.Context) (*oauth2.Token, error) {
			token, err := o.IDToken(ctx)
			if err != nil {
				return nil, err
			}
			return new(oauth2.Token).WithExtra(map[string]any{"id_token": token}), nil
		},
	})
}

// handler returns the handler that obtains tokens of the server at address.
func (a *OAuth) handler(address string, o *Options, client *http.Client) (auth.OAuthHandler, error) {
	var known *oauthex.ClientCredentials
	document := strings.HasPrefix(a.ClientID, "https://")
	if a.ClientID != "" && (!document || a.Identity != nil) {
		var err error
		known, err = o.credentials(a.ClientID, a.SecretEnv)
		if err != nil {
			return nil, err
		}
	}
	if a.Identity != nil {
		return a.forCaller(address, known, o, client)
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
