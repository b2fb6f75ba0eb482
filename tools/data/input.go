package data

import (
	"bytes"
	"io"
	"strings"
)

// An input is a text that is read byte by byte. Every line ending is read as \n.
type input struct {
	r    io.Reader
	buf  []byte
	at   int
	line int   // line of the next byte, from 1
	err  error // error of r; io.EOF at its end
	mac  bool  // lines end in \r
}

const inputSize = 64 << 10

func newInput(r io.Reader) *input {
	in := &input{r: r, line: 1}
	for in.err == nil && len(in.buf) < inputSize {
		in.fill()
	}
	in.buf = bytes.TrimPrefix(in.buf, []byte("\uFEFF"))
	// Old Macs and some current spreadsheets write such files.
	in.mac = bytes.IndexByte(in.buf, '\n') < 0 && bytes.IndexByte(in.buf, '\r') >= 0
	return in
}

// ahead returns the unread beginning, up to 64 KiB.
func (in *input) ahead() string {
	b := in.buf[in.at:]
	if in.mac {
		return strings.ReplaceAll(string(b), "\r", "\n")
	}
	return string(b)
}

// rest returns a reader of the unread rest, unchanged.
func (in *input) rest() io.Reader {
	if in.err == nil {
		return io.MultiReader(bytes.NewReader(in.buf[in.at:]), in.r)
	}
	return io.MultiReader(bytes.NewReader(in.buf[in.at:]), ended{in.err})
}

type ended struct{ err error }

func (e ended) Read([]byte) (int, error) { return 0, e.err }

// failed returns the error of the reader, unless it is io.EOF.
func (in *input) failed() error {
	if in.err == io.EOF {
		return nil
	}
	return in.err
}

func (in *input) fill() {
	if in.at > 0 {
		in.buf = in.buf[:copy(in.buf, in.buf[in.at:])]
		in.at = 0
	}
	if cap(in.buf) < inputSize {
		in.buf = append(make([]byte, 0, inputSize), in.buf...)
	}
	n, err := in.r.Read(in.buf[len(in.buf):cap(in.buf)])
	in.buf = in.buf[:len(in.buf)+n]
	in.err = err
}

// peek returns the next byte, -1 at the end.
func (in *input) peek() int {
	if in.at+1 >= len(in.buf) {
		for in.at+1 >= len(in.buf) && in.err == nil { // one byte more than requested, for \r\n
			in.fill()
		}
		if in.at >= len(in.buf) {
			return -1
		}
	}
	c := in.buf[in.at]
	if c == '\r' && (in.mac || in.at+1 < len(in.buf) && in.buf[in.at+1] == '\n') {
		return '\n'
	}
	return int(c)
}

// next consumes the next byte and returns it, or -1 at the end.
func (in *input) next() int {
	c := in.peek()
	if c < 0 {
		return c
	}
	if c == '\n' {
		in.line++
		if !in.mac && in.buf[in.at] == '\r' {
			in.at++
		}
	}
	in.at++
	return c
}
