// Package client runs the agents of a pawl server. Its Runner is a pawl.Runner over the HTTP API.
//
//	c := client.New("http://127.0.0.1:8080", nil)
//	run := c.Runner("invoice-7", "clerk")
//	for e, err := range run.Stream(ctx, llm.User("Pay invoice 7.")) { … }
//
// The run executes on the server and is durable. The same line starts and resumes it. A broken
// connection is opened again from the last event received. When the program ends, the run
// continues.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Options define how to reach a server. Nil and the zero value take the defaults.
type Options struct {
	// Token is sent as Authorization: Bearer. Empty means none.
	Token string
	// HTTP sends the requests. Nil means http.DefaultTransport.
	HTTP http.RoundTripper
	// Retries is the number of times that a broken stream is reopened without an event in between.
	// 0 means 5, negative means never.
	Retries int
	// Pause is the time before the first retry, doubled for each further one. 0 means 200 ms.
	Pause time.Duration
}

// Client sends requests to a server. It is safe for concurrent use.
type Client struct {
	base    string
	options Options
	http    *http.Client
}

// New returns a client for the server at a URL such as http://127.0.0.1:8080. o may be nil.
func New(base string, o *Options) *Client {
	c := &Client{base: strings.TrimSuffix(base, "/")}
	c.options = *cmp.Or(o, new(Options))
	c.options.Retries = cmp.Or(c.options.Retries, 5)
	c.options.Pause = cmp.Or(c.options.Pause, 200*time.Millisecond)
	c.http = &http.Client{
		Transport:     c.options.HTTP,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Error is an error of the server. docs/server.md lists the codes.
type Error struct {
	// Status is the HTTP status. 0 means that the error arrived as an event.
	Status int `json:"-"`
	// Code is for programs.
	Code string `json:"code"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Hint says what would be right. Empty means that the server has no hint.
	Hint string `json:"hint"`
}

// Error returns "pawl server: code: message".
func (e *Error) Error() string { return "pawl server: " + e.Code + ": " + e.Message }

// send sends a request. An unsuccessful response is an *Error.
func (c *Client) send(ctx context.Context, method, path string, body []byte, accept, last string) (*http.Response,
	error) {
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, in)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	if c.options.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.options.Token)
	}

	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, errorOf(res)
}

// errorOf returns the error in an unsuccessful response.
func errorOf(res *http.Response) *Error {
	var said struct{ Error Error }
	b, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil || json.Unmarshal(b, &said) != nil || said.Error.Code == "" {
		what := fmt.Sprintf("status %s, without an explanation", res.Status)
		return &Error{Status: res.StatusCode, Code: "unreadable", Message: what}
	}
	said.Error.Status = res.StatusCode
	return &said.Error
}

// post sends a request about a run.
func (c *Client) post(ctx context.Context, path string, body []byte) error {
	res, err := c.send(ctx, http.MethodPost, path, body, "application/json", "")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<20))
	return errors.Join(err, res.Body.Close())
}
