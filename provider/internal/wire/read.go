package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/sse"
	"github.com/pawl-go/pawl/llm"
)

// byteOrderMark begins the bodies of some servers. It is not part of JSON.
var byteOrderMark = []byte("\ufeff")

// Read passes the body of a response to dec. Servers may answer a request for a stream with a
// whole body, and the reverse, so the body decides and whole is only a hint. size is the length of
// the body; -1 means unknown.
func Read(provider string, body io.Reader, size int64, whole bool, dec Decoder) error {
	if whole {
		all, err := readAll(nil, body, size)
		if err != nil {
			return cut(provider, err)
		}
		text := bytes.TrimPrefix(all, byteOrderMark)
		if looksLikeJSON(text) {
			return dec.Whole(text)
		}
		body = bytes.NewReader(text)
	}
	// The first bytes decide. A server that cannot stream answers with a whole body, and status
	// 200.
	events := sse.NewReader(body)
	head, err := events.Peek()
	if err != nil && err != io.EOF {
		return cut(provider, err)
	}
	if looksLikeJSON(bytes.TrimPrefix(head, byteOrderMark)) {
		all, err := readAll(head, body, size)
		if err != nil {
			return cut(provider, err)
		}
		return dec.Whole(bytes.TrimPrefix(all, byteOrderMark))
	}
	// title is the title of a page. Events may still follow a line of garbage.
	var title string
	if isPage(head) {
		title = page(head)
	}
	events.Wait = dec.Flush
	eof, err := readEvents(provider, events, dec)
	// A fragment that waits belongs before the error: readers get all that has arrived.
	if err != ErrStopped {
		if e := dec.Flush(); e != nil {
			return e
		}
	}
	if eof && err != nil && title != "" {
		return &llm.ProviderError{Provider: provider, Code: llm.CodeStream, Message: title +
			"; is the base URL right for the API?", Retryable: true, Err: err}
	}
	// A connection can be used again only if its body was read to the end.
	if err == nil && !eof {
		drain(body)
	}
	return err
}

// readEvents passes the events to dec, up to the last one. eof means that the stream ended.
func readEvents(provider string, events *sse.Reader, dec Decoder) (eof bool, err error) {
	some := false   // an event with content arrived
	marked := false // the mark of the end arrived
	for {
		ev, err := events.Next()
		switch {
		case err == io.EOF && marked && !some:
			return true, Nothing(provider)
		case err == io.EOF:
			return true, dec.End()
		case err == ErrStopped: // from Flush
			return false, err
		case err != nil && dec.Stated():
			return true, dec.End() // nothing is missing that decides about the reply
		case err != nil:
			return false, cut(provider, err)
		}

		data := bytes.TrimSpace(ev.Data)
		switch {
		case isHeartbeat(ev.Type, data):
			continue
		case isEndMark(data):
			marked = true
			data = endMark
		case dec.Stated() && !json.Valid(data):
			continue // some gateways write a line of their own behind the reply
		default:
			some = true
		}
		if err := dec.Event(data); err != nil {
			return false, err
		}
		// An end mark behind nothing but heartbeats is what some proxies send in place of a reply.
		if dec.Over() && !some {
			return false, Nothing(provider)
		}
		if dec.Over() {
			return false, dec.End()
		}
	}
}

// endMark is the data of the event with which servers end a stream.
var endMark = []byte("[DONE]")

// isEndMark reports whether data is a form of endMark.
func isEndMark(data []byte) bool { return bytes.Equal(data, endMark) || word(data) == "done" }

// isHeartbeat reports whether an event only keeps the connection open. Gateways send events without
// data, with a value that holds nothing, or with a word for it, as data or as their type.
func isHeartbeat(typ, data []byte) bool {
	hasType := len(typ) > 0
	return isBeat(word(data)) || hasType && isBeat(word(typ))
}

// longestWord is the length of the longest text that word returns.
const longestWord = 12

// word returns a word in lower case without the brackets and quotes around it. It returns "" for an
// empty word, and a text that is no word for a long text.
func word(text []byte) string {
	if len(text) > longestWord {
		return "{"
	}
	return strings.ToLower(strings.Trim(string(text), "[]\" "))
}

// isBeat reports whether a word, or a value of JSON, says nothing.
func isBeat(word string) bool {
	switch word {
	case "", "null", "true", "false", "0", "1",
		"ping", "pong", "heartbeat", "keepalive", "keep-alive", "keep_alive", "alive", "noop":
		return true
	}
	return false
}

// Nothing returns the error of a reply that says only that it has ended. It is retryable: a proxy
// may have lost the rest.
func Nothing(provider string) *llm.ProviderError {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeMalformedReply,
		Message: "the reply has nothing but its end", Retryable: true}
}

// readAll returns head and the rest of a body, at most maxBody bytes. size is the length of the
// whole; -1 means unknown.
func readAll(head []byte, body io.Reader, size int64) ([]byte, error) {
	var all bytes.Buffer
	if size > 0 && size < maxBody {
		all.Grow(int(size) + bytes.MinRead)
	}
	all.Write(head)
	_, err := all.ReadFrom(io.LimitReader(body, maxBody))
	return all.Bytes(), err
}

// drain reads the rest of a body whose reply is complete, because only then can its connection be
// reused. Usually the end has arrived with the last event. If the server leaves the connection
// open, drain gives up quickly.
func drain(body io.Reader) {
	const wait = 100 * time.Millisecond
	if c, ok := body.(io.Closer); ok {
		t := time.AfterFunc(wait, func() { c.Close() })
		defer t.Stop()
		io.Copy(io.Discard, io.LimitReader(body, 64<<10))
	}
}

// cut returns the error of a body that broke off.
func cut(provider string, err error) error {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeStream, Message: "the reply broke off: " +
		err.Error(), Retryable: true, Err: err}
}

func looksLikeJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[')
}

// isPage reports whether a body begins like HTML. Proxies and portals answer with pages and status
// 200.
func isPage(b []byte) bool {
	b = bytes.TrimSpace(b[:min(len(b), 512)])
	return len(b) > 0 && b[0] == '<'
}

const maxBody = 64 << 20 // of a reply
