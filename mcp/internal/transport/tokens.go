package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// tokenTime is the limit for one request to the server that issues tokens.
const tokenTime = 30 * time.Second

// Tokens obtains the tokens of a server, and renews them when they expire. A token serves many
// requests, so what obtains it is not bound to the context of one of them. It is safe for
// concurrent use.
type Tokens struct {
	handler auth.OAuthHandler
	alone   bool

	turn   chan struct{} // holds an element while a goroutine uses the handler
	last   string        // the last token; under turn
	status lastStatus
}

// lastStatus sends requests, and keeps the status of the last response. 0 means that there was
// none.
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

// NewTokens returns Tokens. alone means that the program itself is the user, so that a login needs
// no person and outlives the request that began it. send sends the requests to the server that
// issues the tokens, through the client of the handler.
func NewTokens(alone bool, send http.RoundTripper,
	handler func(*http.Client) (auth.OAuthHandler, error)) (*Tokens, error) {
	t := &Tokens{alone: alone, turn: make(chan struct{}, 1)}
	t.status.RoundTripper = send
	var err error
	t.handler, err = handler(&http.Client{Transport: &t.status, CheckRedirect: Stay, Timeout: tokenTime})
	return t, err
}

// Current returns a valid token. It is empty before the first login, and if the token cannot be
// renewed without one.
func (t *Tokens) Current(ctx context.Context) (token string, err error) {
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

// Renew obtains another token after the server has refused used with the response res.
func (t *Tokens) Renew(r *http.Request, res *http.Response, used string) (token string, err error) {
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
func (t *Tokens) begin(ctx context.Context) (done func(), err error) {
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// wait executes get, which has the turn. If ctx ends before, get continues alone.
func (t *Tokens) wait(ctx context.Context, done func(), get func() (string, error)) (string, error) {
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
