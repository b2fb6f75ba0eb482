// Package transport keeps an HTTP connection to an MCP server usable for months: it renews tokens
// independent of requests, opens the stream of unsolicited messages again, and judges responses
// that are no replies.
package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"github.com/pawl-go/pawl/mcp/internal/wire"
)

// Stay follows redirects on the same host only, because headers and calls are meant for that host.
func Stay(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return fmt.Errorf("a redirect to another host (%s) is not followed", req.URL.Host)
	}
	if len(via) > 3 {
		return errors.New("there are too many redirects")
	}
	return nil
}

// lostSession matches what servers write that lose a session and do not respond with 404.
var lostSession = regexp.MustCompile(`(?i)session[^.]{0,40}(not found|invalid|expired|unknown|missing|terminated|closed)|` +
	`(no valid|invalid|unknown|expired|missing) session|server not initialized`)

// Verdict returns what a status of failure says about the request. session reports whether the
// request named a session.
func Verdict(status int, session bool, body []byte) int {
	switch {
	case session && (status == http.StatusNotFound || status == http.StatusGone):
		return wire.CodeExpired
	case session && status == http.StatusBadRequest && lostSession.Match(body):
		return wire.CodeExpired

	// The server, or a proxy, may have begun to work.
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == 499:
		return wire.CodeUnread
	case status == http.StatusTooManyRequests,
		status == http.StatusServiceUnavailable && len(bytes.TrimSpace(body)) == 0:
		return wire.CodeBusy
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable,
		status == http.StatusGatewayTimeout:
		return wire.CodeAway
	case status >= 300 && status < 500:
		return wire.CodeRefused
	}
	return wire.CodeUnread
}

// Response returns a response with a body. An empty kind means no type.
func Response(r *http.Request, status int, kind string, body []byte) *http.Response {
	res := &http.Response{
		StatusCode:    status,
		Status:        fmt.Sprintf("%d %s", status, http.StatusText(status)),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Request:       r,
		Header:        http.Header{},
		ContentLength: int64(len(body)),
		Body:          io.NopCloser(bytes.NewReader(body)),
	}
	if kind != "" {
		res.Header.Set("Content-Type", kind)
	}
	return res
}
