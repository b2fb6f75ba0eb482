package mcp

import (
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
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

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
		handler := func(client *http.Client) (auth.OAuthHandler, error) { return s.OAuth.handler(o, client) }
		w.tokens, err = transport.NewTokens(o.Login == nil, w.guard, handler)
		if err != nil {
			return nil, fmt.Errorf("mcp server %q: oauth: %w", s.Name, err)
		}
	}
	return w, nil
}

// transport returns the SDK transport for the server.
func (w *web) transport(s *session) sdk.Transport {
	c := &carrier{web: w, m: s.repairer, cancels: &s.cancels, denied: &s.denied}
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
	web     *web
	m       *repairer
	cancels *transport.Cancels
	denied  *atomic.Bool // whether the server refused to begin the session
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
		l := transport.Listener{Send: c.send, Events: c.m.reader(wire.Source{}).Events}
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
	res, err := c.sendOnce(authorized(r, token))
	if err != nil || res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
		return res, err
	}

	token, err = t.Renew(r, res, token)
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
		c.m.requests.Done(head.ID)
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
		c.m.requests.Done(head.ID)
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
	c.m.requests.Sent(message)
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
		res.Body = c.m.reader(from).Events(res.Body)
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
		reply = c.m.reader(wire.Source{For: head.ID, Sole: true}).Body(body)
	}
	c.m.requests.Done(head.ID)
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

// certainty says what is known about a request that has no result.
type certainty int

const (
	unknown  certainty = iota // it was sent, and may have been executed
	notSent                   // it was not sent
	refused                   // the server refused it before any work
	expired                   // the server no longer has the session, and did not process it
	answered                  // the server executed it, or says why not
)

// certaintyOf judges the error of a request.
func certaintyOf(err error) certainty {
	var said *jsonrpc.Error
	var undone *wire.NotDone
	switch {
	case errors.As(err, &undone):
		return notSent
	case errors.Is(err, sdk.ErrSessionMissing):
		return expired
	case lost(err), !errors.As(err, &said):
		return unknown
	}
	switch said.Code {
	case wire.CodeExpired:
		return expired
	case wire.CodeRefused, wire.CodeBusy:
		return refused
	case wire.CodeUnread, wire.CodeAway:
		return unknown
	}
	return answered
}

// errDenied is part of the error of a session that the server did not begin for this client.
var errDenied = errors.New("the server refused this client")

// isDown reports whether err says that the server is away or busy, and not that it refuses this
// client, or that this side refused the request.
func isDown(err error) bool {
	var undone *wire.NotDone
	var said *jsonrpc.Error
	switch {
	case errors.Is(err, errDenied):
		return false
	case errors.As(err, &undone):
		return !undone.Own
	case errors.As(err, &said):
		return said.Code == wire.CodeBusy || said.Code == wire.CodeAway || said.Code == wire.CodeExpired
	}
	return true
}

// retryable marks an error of a server that is down, so that the pipeline retries the call if its
// effect allows it.
func retryable(err, cause error) error {
	if isDown(cause) {
		return pawl.RetryableError(err)
	}
	return err
}

// fault is an error with a text for people.
type fault struct {
	text  string
	cause error
}

// Error returns the text.
func (f *fault) Error() string { return f.text }

// Unwrap returns the cause.
func (f *fault) Unwrap() error { return f.cause }

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
