// Package client runs agents that a pawl server has: a pawl.Runner over its HTTP API.
//
//	c := client.New("http://127.0.0.1:8080", nil)
//	for e, err := range c.Runner("invoice-7", "clerk").Stream(ctx, llm.User("Pay invoice 7.")) { … }
//
// The run is the server's, and durable: the same line begins it and goes on with it, a connection that breaks is made again from the event that was seen last, and a program that ends
// leaves the run at work.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Options say how to reach a server. Nil stands for the defaults.
type Options struct {
	Token   string            // sent as Authorization: Bearer; "": none
	HTTP    http.RoundTripper // carries the requests; nil: http.DefaultTransport
	Retries int               // how often a broken stream is taken up again without an event between; 0: 5; negative: never
	Pause   time.Duration     // before the first time, doubling after that; 0: 200 ms
}

// Client speaks to a server. It may be used concurrently.
type Client struct {
	base string
	o    Options
	http *http.Client
}

// New returns a client of the server at a URL such as http://127.0.0.1:8080. o may be nil.
func New(base string, o *Options) *Client {
	c := &Client{base: strings.TrimSuffix(base, "/")}
	if o != nil {
		c.o = *o
	}
	if c.o.Retries == 0 {
		c.o.Retries = 5
	}
	if c.o.Pause == 0 {
		c.o.Pause = 200 * time.Millisecond
	}
	c.http = &http.Client{Transport: c.o.HTTP, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c
}

// Error is what the server says went wrong. docs/server.md has the codes.
type Error struct {
	Status  int    `json:"-"` // of the reply; 0: it came among the events
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// Error returns "pawl server: code: message".
func (e *Error) Error() string { return "pawl server: " + e.Code + ": " + e.Message }

// send sends a request; a reply that is no success is an *Error.
func (c *Client) send(ctx context.Context, method, path string, body []byte, accept, last string) (*http.Response, error) {
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
	if c.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	var said struct{ Error Error }
	b, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil || json.Unmarshal(b, &said) != nil || said.Error.Code == "" {
		return nil, &Error{Status: res.StatusCode, Code: "unreadable", Message: fmt.Sprintf("status %s, and no word why", res.Status)}
	}
	said.Error.Status = res.StatusCode
	return nil, &said.Error
}

// post sends a word about a run.
func (c *Client) post(ctx context.Context, path string, body []byte) error {
	res, err := c.send(ctx, http.MethodPost, path, body, "application/json", "")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<20))
	return errors.Join(err, res.Body.Close())
}
