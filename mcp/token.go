package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// tokenTime is the limit for one request to the server that issues tokens.
const tokenTime = 30 * time.Second

// tokens obtains the tokens of a server, and renews them when they expire. A token serves many
// requests, so what obtains it is not bound to the context of one of them. It is safe for
// concurrent use.
type tokens struct {
	handler auth.OAuthHandler
	// The program itself is the user, so that a login needs no person and outlives the request that
	// began it.
	alone bool

	turn   chan struct{} // holds an element while a goroutine uses the handler
	last   string        // the last token; under turn
	status lastStatus
}

// lastStatus sends requests, and keeps the status of the last response. 0 means that there was none.
type lastStatus struct {
	http.RoundTripper
	code atomic.Int32
}

// RoundTrip sends a request.
func (s *lastStatus) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.RoundTripper.RoundTrip(r)
	s.code.Store(0)
	if err == nil {
		s.code.Store(int32(res.StatusCode))
	}
	return res, err
}

// tokens returns what obtains the tokens. send sends the requests.
func (a *OAuth) tokens(o *Options, send http.RoundTripper) (*tokens, error) {
	t := &tokens{alone: o.Login == nil, turn: make(chan struct{}, 1)}
	t.status.RoundTripper = send
	var err error
	t.handler, err = a.handler(o, &http.Client{Transport: &t.status, CheckRedirect: stay, Timeout: tokenTime})
	return t, err
}

// current returns a valid token. It is empty before the first login, and if the token cannot be
// renewed without one.
func (t *tokens) current(ctx context.Context) (token string, err error) {
	done, err := t.begin(ctx)
	if err != nil {
		return "", err
	}
	return t.wait(ctx, done, func() (string, error) {
		t.last = ""
		source, err := t.handler.TokenSource(context.WithoutCancel(ctx))
		if err != nil || source == nil {
			return "", err
		}
		issued, err := source.Token()
		refused := t.status.code.Load()/100 == 4
		switch {
		case err == nil:
			t.last = issued.AccessToken
			return t.last, nil
		case refused:
			return "", nil // the server of the tools then asks for a login
		}
		return "", fmt.Errorf("a new token: %w", err)
	})
}

// renew obtains another token after the server has refused used with the response res.
func (t *tokens) renew(r *http.Request, res *http.Response, used string) (token string, err error) {
	ctx := r.Context()
	done, err := t.begin(ctx)
	if err != nil {
		_ = res.Body.Close()
		return "", err
	}
	return t.wait(ctx, done, func() (string, error) {
		defer res.Body.Close()

		// Another request has obtained one meanwhile.
		if t.last != used && t.last != "" && res.StatusCode == http.StatusUnauthorized {
			return t.last, nil
		}
		t.last = ""
		login := ctx
		if t.alone {
			login = context.WithoutCancel(ctx)
		}
		// The handler drains the body, which may not end.
		limited := *res
		limited.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, 64<<10), res.Body}
		if err := t.handler.Authorize(login, r, &limited); err != nil {
			return "", fmt.Errorf("the login failed: %w", err)
		}

		source, err := t.handler.TokenSource(login)
		if err != nil || source == nil {
			return "", err
		}
		issued, err := source.Token()
		if err != nil {
			return "", fmt.Errorf("a new token: %w", err)
		}
		t.last = issued.AccessToken
		return t.last, nil
	})
}

// begin waits for the turn. done passes it on.
func (t *tokens) begin(ctx context.Context) (done func(), err error) {
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// wait executes get, which has the turn. If ctx ends before, get continues alone.
func (t *tokens) wait(ctx context.Context, done func(), get func() (string, error)) (string, error) {
	type got struct {
		token string
		err   error
	}
	came := make(chan got, 1)
	go func() {
		defer done()
		token, err := get()
		came <- got{token, err}
	}()
	select {
	case g := <-came:
		return g.token, g.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

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
