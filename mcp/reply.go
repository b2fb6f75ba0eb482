package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl/mcp/internal/wire"
)

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
		return made(r, http.StatusAccepted, "", nil), nil
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
		same := made(r, res.StatusCode, "", body)
		same.Header = res.Header
		return same, nil
	}
	out := made(r, http.StatusOK, "application/json", reply)
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
	if verdict(res.StatusCode, false, body) == wire.CodeUnread {
		return nil, err
	}
	return nil, &wire.NotDone{Err: err}
}

// begins are the requests whose status the SDK reads, to choose a version of the protocol.
var begins = []string{"initialize", "server/discover", "subscriptions/listen"}

// reply returns the reply to a request, or an error reply in its place. Nil means that the response
// is passed on.
func (c *carrier) reply(r *http.Request, res *http.Response, body []byte, head wire.Head) []byte {
	session := r.Header.Get(sessionHeader) != ""
	failed := res.StatusCode < 200 || res.StatusCode >= 300
	code := verdict(res.StatusCode, session, body)

	var reply []byte
	if len(body) <= maxMessage && code != wire.CodeExpired {
		reply = c.m.reader(wire.Source{For: head.ID, Sole: true}).Body(body)
	}
	c.m.requests.Done(head.ID)
	switch {
	case slices.Contains(begins, head.Method) && (failed || reply == nil):
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

// lostSession matches what servers write that lose a session and do not respond with 404.
var lostSession = regexp.MustCompile(`(?i)session[^.]{0,40}(not found|invalid|expired|unknown|missing|terminated|closed)|` +
	`(no valid|invalid|unknown|expired|missing) session|server not initialized`)

// verdict returns what a status of failure says about the request. session reports whether the
// request named a session.
func verdict(status int, session bool, body []byte) int {
	switch {
	case session && (status == http.StatusNotFound || status == http.StatusGone):
		return wire.CodeExpired
	case session && status == http.StatusBadRequest && lostSession.Match(body):
		return wire.CodeExpired

	// The server, or a proxy, may have begun to work.
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == 499:
		return wire.CodeUnread
	case status == http.StatusServiceUnavailable && len(bytes.TrimSpace(body)) == 0:
		return wire.CodeRefused
	case status >= 300 && status < 500:
		return wire.CodeRefused
	}
	return wire.CodeUnread
}

// made returns a response with a body.
func made(r *http.Request, status int, kind string, body []byte) *http.Response {
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
	case wire.CodeRefused:
		return refused
	case wire.CodeUnread:
		return unknown
	}
	return answered
}
