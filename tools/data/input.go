package data

import (
	"bufio"
	"bytes"
	"io"
	"strings"
)

// An input is a text that is read byte by byte. Every line ending is read as \n.
type input struct {
	*bufio.Reader
	line int   // line of the next byte, from 1
	err  error // error of the source, except io.EOF
	mac  bool  // lines end in \r
}

const inputSize = 64 << 10

func newInput(r io.Reader) *input {
	in := &input{Reader: bufio.NewReaderSize(r, inputSize), line: 1}
	head, err := in.Peek(inputSize)
	if err != io.EOF {
		in.err = err
	}
	if bytes.HasPrefix(head, []byte("\uFEFF")) {
		in.Discard(len("\uFEFF"))
	}
	// Old Macs and some current spreadsheets write such files.
	in.mac = bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(head, '\r') >= 0
	return in
}

// ahead returns the unread beginning, up to 64 KiB.
func (in *input) ahead() string {
	b, _ := in.Peek(in.Buffered())
	if in.mac {
		return strings.ReplaceAll(string(b), "\r", "\n")
	}
	return string(b)
}

// peek returns the next byte, or -1 at the end or after an error.
func (in *input) peek() int {
	b, err := in.Peek(2)
	switch {
	case len(b) == 0 && err != io.EOF:
		in.err = err
		return -1
	case len(b) == 0:
		return -1
	case b[0] == '\r' && (in.mac || len(b) > 1 && b[1] == '\n'):
		return '\n'
	}
	return int(b[0])
}

// next returns the next byte and moves past it.
func (in *input) next() int {
	c := in.peek()
	if c == '\n' {
		in.line++
		if b, _ := in.Peek(1); !in.mac && b[0] == '\r' {
			in.Discard(1)
		}
	}
	if c >= 0 {
		in.Discard(1)
	}
	return c
}
