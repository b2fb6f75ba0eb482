package http1

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
)

// framing is how the end of a body is told.
type framing int

const (
	byLength framing = iota
	byChunks
	byClose
)

// maxInterim is how many answers may come before the answer: 100, 102, 103.
const maxInterim = 5

// readHead reads the head of the answer, and those that come before it and say nothing.
func (x *Exchange) readHead() error {
	for range maxInterim + 1 {
		b, err := x.c.untilBlank()
		if err == io.EOF {
			err = fmt.Errorf("the server closed the connection without an answer: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
		h, err := parseHead(b)
		if err != nil {
			return err
		}
		if h.status < 200 {
			x.c.r += len(b)
			continue
		}
		if x.Full || h.status > 299 {
			x.lines = bytes.Clone(b)
		}
		x.c.r += len(b)
		x.Status, x.Length, x.keep = h.status, h.length, h.keep
		switch {
		case h.status == http.StatusNoContent || h.status == http.StatusNotModified:
			x.Length = 0
			x.keep = h.keep && !h.chunked && h.length <= 0 // it has no body, whatever it says
		case h.chunked:
			x.framing = byChunks
		case h.length < 0:
			x.framing, x.keep = byClose, false
		}
		x.left = max(x.Length, 0)
		if x.framing == byLength && x.left == 0 {
			x.err = io.EOF
			x.end(true)
		}
		return nil
	}
	return fmt.Errorf("%w: too many answers before the answer", errAnswer)
}

// untilBlank returns what stands in the buffer up to and with a blank line.
func (c *conn) untilBlank() ([]byte, error) {
	seen := 0
	for {
		b := c.buf[c.r:c.w]
		for i := seen; i < len(b); {
			k := bytes.IndexByte(b[i:], '\n')
			if k < 0 {
				seen = len(b)
				break
			}
			i += k + 1
			seen = i - 1 // the line end that may be the last one
			if rest := b[i:]; len(rest) > 0 && rest[0] == '\n' {
				return b[:i+1], nil
			} else if len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n' {
				return b[:i+2], nil
			} else if len(rest) == 0 || len(rest) == 1 && rest[0] == '\r' {
				break
			}
		}
		if len(b) >= maxHead {
			return nil, fmt.Errorf("%w: its header has more than %d bytes", errAnswer, maxHead)
		}
		if err := c.fill(); err != nil {
			if err == io.EOF && len(b) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// head is what the head of an answer says of its body.
type head struct {
	status  int
	length  int64 // -1: nothing
	chunked bool
	keep    bool // the connection stays open
}

// parseHead reads a status line and a header, up to and with the blank line.
func parseHead(b []byte) (head, error) {
	h := head{length: -1}
	line, rest := cutLine(b)
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' || len(line) > 12 && line[12] != ' ' || !isValue(line) {
		return h, fmt.Errorf("%w: status line %.60q", errAnswer, line)
	}
	for _, d := range line[9:12] {
		if d < '0' || d > '9' {
			return h, fmt.Errorf("%w: status line %.60q", errAnswer, line)
		}
		h.status = 10*h.status + int(d-'0')
	}
	if h.status < 100 || h.status == http.StatusSwitchingProtocols {
		return h, fmt.Errorf("%w: status %d", errAnswer, h.status)
	}
	h.keep = line[7] == '1'
	for {
		if line, rest = cutLine(rest); len(line) == 0 {
			break
		}
		if err := h.field(line); err != nil {
			return h, err
		}
	}
	switch {
	case h.chunked && h.length >= 0:
		return h, fmt.Errorf("%w: both a length and chunks", errAnswer)
	case h.chunked && b[7] == '0':
		return h, fmt.Errorf("%w: chunks in HTTP/1.0", errAnswer)
	}
	return h, nil
}

// field reads one line of a header.
func (h *head) field(line []byte) error {
	k := bytes.IndexByte(line, ':')
	if k < 1 || !isToken(line[:k]) {
		return fmt.Errorf("%w: header line %.60q", errAnswer, line)
	}
	value := bytes.Trim(line[k+1:], " \t")
	if !isValue(value) {
		return fmt.Errorf("%w: the value of the header %q", errAnswer, line[:k])
	}
	switch {
	case is(line[:k], "content-length"):
		n, ok := decimal(value)
		if !ok || h.length >= 0 {
			return fmt.Errorf("%w: content length %.60q", errAnswer, value)
		}
		h.length = n
	case is(line[:k], "transfer-encoding"):
		if !is(value, "chunked") || h.chunked {
			return fmt.Errorf("%w: transfer encoding %.60q", errAnswer, value)
		}
		h.chunked = true
	case is(line[:k], "connection"):
		for of := range bytes.SplitSeq(value, []byte(",")) {
			if is(bytes.Trim(of, " \t"), "close") {
				h.keep = false
			}
		}
	}
	return nil
}

// Head returns the header of an answer whose status is none of success, or of any with Full; else nil.
func (x *Exchange) Head() http.Header {
	if x.lines == nil {
		return nil
	}
	h := http.Header{}
	_, rest := cutLine(x.lines)
	for {
		var line []byte
		if line, rest = cutLine(rest); len(line) == 0 {
			return h
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		key := textproto.CanonicalMIMEHeaderKey(string(name))
		h[key] = append(h[key], strings.Trim(string(value), " \t"))
	}
}

// cutLine returns a line without its end, and what follows.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// decimal reads digits and nothing else.
func decimal(b []byte) (n int64, ok bool) {
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + int64(d-'0')
	}
	return n, len(b) > 0 && len(b) <= 18
}

// is reports whether b is a word, which stands in small letters, in any case.
func is(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// isToken reports whether s can be the name of a header (RFC 9110, 5.6.2).
func isToken[T string | []byte](s T) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return len(s) > 0
}

// isValue reports whether s can stand in a header: no controls but tabs.
func isValue[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
