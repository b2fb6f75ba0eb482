// Package wire reads what the other side of an MCP connection writes, and repairs what would make
// the SDK end the connection.
//
//	bytes ──▶ Lines, Events or Body ──▶ Requests.Repair ──▶ the SDK
//
// A program may log to the stream of its messages, in text or in JSON. It may write a byte order
// mark, several messages in an array, one message on several lines, an ID as text, or a reply of
// another form. None of these ends a connection: what can be read as a message is delivered, and
// the rest is skipped.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// The codes of the errors that this side writes in place of a reply. They are outside of the range
// of JSON-RPC, and Repair replaces them in messages of the other side.
const (
	// CodeExpired means that the server no longer has the session. It did not process the request.
	CodeExpired = -39001
	// CodeRefused means that the server refused the request before any work.
	CodeRefused = -39002
	// CodeUnread means that the server replied, and that the reply cannot be read.
	CodeUnread = -39003
	// CodeBusy is CodeRefused of a server that takes no requests for now.
	CodeBusy = -39004
	// CodeAway is CodeUnread of a gateway in front of a server that is away.
	CodeAway = -39005
)

// The codes of JSON-RPC.
const (
	codeParse    = -32700
	codeInvalid  = -32600
	codeInternal = -32603
)

// TooLong is the text of an error about a message above the limit.
const TooLong = "the message has more bytes than are read"

var (
	errInvalid = errors.New("it is no message of JSON-RPC 2.0")
	// errUnasked is the error of a reply that no open request waits for.
	errUnasked = errors.New("no open request has its ID")
)

// NotDone is the error of a request that the server has certainly not executed.
type NotDone struct {
	Err error
	// Own means that this side refused the request, which says nothing about the server.
	Own bool
}

// Error returns the reason.
func (e *NotDone) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NotDone) Unwrap() error { return e.Err }

// Requests are the requests of this side that wait for a reply. The zero value is ready for use. It
// is safe for concurrent use.
type Requests struct {
	mu   sync.Mutex
	open map[string]Head // their heads as sent, by the text of the ID
}

// Head is the part of a message that says what it is. Method is empty for a reply. ID is nil for a
// notification.
type Head struct {
	ID     json.RawMessage
	Method string
}

// HeadOf returns the head of a message of this side.
func HeadOf(message []byte) Head {
	var h Head
	_ = json.Unmarshal(message, &h) // the SDK wrote it
	return h
}

// Sent records a message that this side has written.
func (q *Requests) Sent(message []byte) {
	h := HeadOf(message)
	switch {
	case h.Method == "notifications/cancelled":
		var m struct {
			Params struct{ RequestID json.RawMessage }
		}
		_ = json.Unmarshal(message, &m)
		q.Done(m.Params.RequestID)
	case h.Method != "" && h.ID != nil:
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.open == nil {
			q.open = map[string]Head{}
		}
		q.open[idText(h.ID)] = h
	}
}

// Done records that a request no longer waits.
func (q *Requests) Done(id json.RawMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, idText(id))
}

// Only returns the ID of the open request if there is exactly one, else nil.
func (q *Requests) Only() json.RawMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) != 1 {
		return nil
	}
	for _, h := range q.open {
		return h.ID
	}
	return nil
}

// waiting returns the head of an open request as it was sent. Its ID is nil if there is none.
func (q *Requests) waiting(id json.RawMessage) Head {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open[idText(id)]
}

// idText returns one text for the forms of an ID: 3, "3" and 3.0.
func idText(id json.RawMessage) string {
	text := string(bytes.TrimSpace(id))
	var s string
	if json.Unmarshal(id, &s) == nil {
		text = strings.TrimSpace(s)
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == float64(int64(n)) {
		return strconv.FormatInt(int64(n), 10)
	}
	return text
}

// Error returns an error message that replies to the request id.
func Error(id json.RawMessage, code int, text string) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	quoted, _ := json.Marshal(text) // a string
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, quoted)
}
