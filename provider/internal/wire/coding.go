package wire

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// errCoding is wrapped by the error for a content coding that is not known.
var errCoding = errors.New("a content coding that cannot be decoded")

// decoded is a body without its content codings. Closing it closes the original body.
type decoded struct {
	io.Reader
	io.Closer
}

// decode returns body without its content codings, which are the value of the header
// Content-Encoding. Gateways compress replies although requests have no Accept-Encoding, which
// RFC 9110, section 12.5.3, allows. Events are returned as soon as the server has flushed them.
func decode(body io.ReadCloser, header string) (io.ReadCloser, error) {
	codings := strings.Split(header, ",")
	slices.Reverse(codings) // the last one was applied last
	for _, coding := range codings {
		r, err := decodeOne(body, strings.ToLower(strings.TrimSpace(coding)))
		if err != nil {
			return nil, err
		}
		body = r
	}
	return body, nil
}

func decodeOne(body io.ReadCloser, coding string) (io.ReadCloser, error) {
	switch coding {
	case "", "identity", "gzip", "x-gzip":
		return &unzipped{Closer: body, body: body}, nil
	case "deflate":
		z, err := inflate(body)
		return decoded{z, body}, err
	}
	return nil, fmt.Errorf("%w: %q", errCoding, coding)
}

// unzipped reads a body without gzip, if it begins as gzip does. Gateways compress without the
// header that says so, and keep the header of a body that they have decoded. No reply of an API
// begins like gzip.
type unzipped struct {
	io.Closer
	body  io.Reader
	begun bool
	start [2]byte // of the body
	rest  []byte  // of start, not read yet
}

// Read reads the decoded body.
func (u *unzipped) Read(p []byte) (int, error) {
	if !u.begun {
		if err := u.begin(); err != nil {
			return 0, err
		}
	}
	if len(u.rest) == 0 {
		return u.body.Read(p)
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

func (u *unzipped) begin() error {
	u.begun = true
	n, err := io.ReadFull(u.body, u.start[:])
	u.rest = u.start[:n]
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if string(u.rest) != "\x1f\x8b" {
		return nil
	}

	z, err := gzip.NewReader(io.MultiReader(bytes.NewReader(u.rest), u.body))
	if err != nil {
		return err
	}
	u.body = z
	u.rest = nil
	return nil
}

// inflate reads the coding deflate: the format of zlib, or what some servers send, without its
// header.
func inflate(body io.Reader) (io.Reader, error) {
	r := bufio.NewReader(body)
	head, err := r.Peek(2)
	if err != nil {
		return r, err
	}
	const method, deflated = 0x0f, 8
	if head[0]&method == deflated && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// undecoded returns the error of a body whose content coding cannot be decoded. cause is the cause
// of the context of its exchange; nil means that the context did not end.
func (c *Client) undecoded(cause, err error) error {
	if !errors.Is(err, errCoding) {
		return c.failed(cause, llm.CodeStream, fmt.Errorf("the compressed reply broke off: %w", err))
	}
	return &llm.ProviderError{Provider: c.Provider, Code: llm.CodeStream,
		Message: "the reply has " + err.Error() + "; let the gateway send it without, or as gzip", Err: err}
}
