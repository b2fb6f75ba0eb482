package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Reader are the parts that Lines, Events and Body share.
type Reader struct {
	// Most is the maximum size of a message in bytes. A longer one is skipped.
	Most int
	// Repair returns the message to deliver. An error means that none is delivered.
	Repair func(message []byte) ([]byte, error)
	// Bad is called for each part that is no message, with a code of JSON-RPC and a reason. It
	// returns a message to deliver in its place, or nil. A nil Bad skips such parts.
	Bad func(code int, text string) []byte
}

// messages splits text into messages and delivers them.
type messages struct {
	*Reader
	deliver func(message []byte)

	// The beginning of a message that continues on the next line. Nil means none.
	pending []byte
	nested  nesting // of pending
}

// line takes one line of the text, without white space around it.
func (s *messages) line(line []byte) {
	if len(line) == 0 {
		return
	}
	if s.pending == nil {
		s.values(line)
		return
	}

	// A whole message ends what stands before it, which was cut.
	if isMessage(line) {
		s.abandon()
		s.values(line)
		return
	}
	s.pending = append(append(s.pending, '\n'), line...)
	s.nested.feed(line)
	switch {
	case len(s.pending) > s.Most:
		s.abandon()
	case s.nested.depth <= 0:
		whole := s.pending
		s.pending = nil
		s.values(whole)
	}
}

// abandon drops an unfinished message.
func (s *messages) abandon() {
	s.pending = nil
	s.bad(codeParse, "it is not JSON")
}

// values delivers the messages of a text. What follows the last of them is skipped.
func (s *messages) values(text []byte) {
	text = shallow(text)
	if json.Valid(text) {
		s.value(text, true)
		return
	}
	for len(text) > 0 {
		if text[0] != '{' && text[0] != '[' {
			s.bad(codeParse, "it is not JSON")
			return
		}

		d := json.NewDecoder(bytes.NewReader(text))
		var one json.RawMessage
		err := d.Decode(&one)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			// The message goes on in the next line.
			s.pending = bytes.Clone(text)
			s.nested = nesting{}
			s.nested.feed(text)
			return
		case err != nil:
			s.bad(codeParse, "it is not JSON")
			return
		}
		s.value(one, true)
		text = trim(text[d.InputOffset():])
	}
}

// value delivers a message, or the messages of an array.
func (s *messages) value(v []byte, mayBeList bool) {
	var list []json.RawMessage
	if mayBeList && v[0] == '[' {
		_ = json.Unmarshal(v, &list) // Repair reports what cannot be read
	}
	if len(list) > 0 {
		for _, one := range list {
			s.value(one, false)
		}
		return
	}

	out, err := s.Repair(v)
	switch {
	case err == nil:
		s.deliver(out)
	case errors.Is(err, errUnasked):
	default:
		s.bad(codeInvalid, err.Error())
	}
}

func (s *messages) bad(code int, text string) {
	if s.Bad == nil {
		return
	}
	if out := s.Bad(code, text); out != nil {
		s.deliver(out)
	}
}

// isMessage reports whether a line is a whole message.
func isMessage(line []byte) bool {
	return line[0] == '{' && bytes.Contains(line, []byte(`"jsonrpc"`)) && json.Valid(line)
}

// trim removes white space and byte order marks.
func trim(b []byte) []byte {
	for {
		t := bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\ufeff"))
		if len(t) == len(b) {
			return t
		}
		b = t
	}
}

// lines reads messages that a program writes, one per line.
type lines struct {
	messages
	in    *bufio.Reader
	close io.Closer
	rest  []byte
	err   error
}

// Lines returns the messages of a program, one per line.
func (o Reader) Lines(r io.ReadCloser) io.ReadCloser {
	l := &lines{in: bufio.NewReaderSize(r, 64<<10), close: r}
	l.messages = messages{Reader: &o, deliver: func(m []byte) { l.rest = append(append(l.rest, m...), '\n') }}
	return l
}

// Close closes the underlying stream.
func (l *lines) Close() error { return l.close.Close() }

// Read returns the next bytes of the messages.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		line, fits, err := readLine(l.in, l.Most)
		l.err = err
		line = trim(line)
		switch {
		case fits:
			l.line(line)
		case len(line) > 0 && (line[0] == '{' || line[0] == '['):
			l.bad(codeInvalid, TooLong)
		default:
			l.bad(codeParse, "it is not JSON")
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// beginning is the number of bytes that are kept of a line above the limit.
const beginning = 64

// readLine reads a line. If the line has more than most bytes, it returns the beginning, and fits
// is false.
func readLine(r *bufio.Reader, most int) (line []byte, fits bool, err error) {
	fits = true
	for {
		part, err := r.ReadSlice('\n')
		if fits && len(line)+len(part) > most {
			fits = false
			line = append([]byte{}, append(line, part...)[:min(most, beginning)]...)
		}
		if fits {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, fits, err
		}
	}
}
