package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// events reads server-sent events.
type events struct {
	messages
	in    *bufio.Reader
	close io.Closer
	rest  []byte
	err   error

	// the event that is being read
	fields  []byte // its lines, without its data
	marks   bool   // an ID or a time to wait is among them
	data    []byte
	name    string
	hasData bool
	long    bool     // its data is above the limit and skipped
	found   [][]byte // the messages in its data
}

// Events returns a stream of server-sent events with the messages of r, one in each event. Events
// with another name than message, and those without data, stay as they are.
func (o Reader) Events(r io.ReadCloser) io.ReadCloser {
	e := &events{in: bufio.NewReaderSize(r, 64<<10), close: r}
	e.messages = messages{Reader: &o, deliver: func(m []byte) { e.found = append(e.found, m) }}
	return e
}

// Close closes the underlying stream.
func (e *events) Close() error { return e.close.Close() }

// Read returns the next bytes of the stream.
func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		line, fits, err := readLine(e.in, e.Most)
		e.err = err
		e.read(bytes.TrimPrefix(bytes.TrimRight(line, "\r\n"), []byte("\ufeff")), fits)
		if err != nil {
			e.endEvent() // a stream may end without the empty line of its last event
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// read takes one line of an event.
func (e *events) read(line []byte, fits bool) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case !fits:
		e.long = true
	case len(line) == 0:
		e.endEvent()
	case string(field) == "data":
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.hasData = true
		e.data = append(e.data, value...)
		if len(e.data) > e.Most {
			e.long = true
			e.data = nil
		}
	case string(field) == "event":
		e.name = string(value)
		e.fields = append(append(e.fields, line...), '\n')
	case string(field) == "id" || string(field) == "retry":
		e.marks = true
		e.fields = append(append(e.fields, line...), '\n')
	}
}

// endEvent delivers the event that was read.
func (e *events) endEvent() {
	switch {
	case e.name != "" && e.name != "message":
		e.write(bytes.Split(e.data, []byte("\n"))...)
	case e.long:
		e.bad(codeInvalid, TooLong)
	case e.hasData && len(e.data) > 0:
		e.values(trim(e.data))
		e.pending = nil
	}

	// The ID belongs to the last message of the event. It counts also without a message.
	for i, m := range e.found {
		fields := e.fields
		if i < len(e.found)-1 {
			e.fields = nil
		}
		e.write(flat(m))
		e.fields = fields
	}

	// An event without a message may still set the position from which the stream is resumed.
	isMessage := e.name == "" || e.name == "message"
	if len(e.found) == 0 && e.marks && isMessage {
		e.rest = append(append(e.rest, e.fields...), '\n')
	}

	e.fields = nil
	e.data = nil
	e.found = nil
	e.name = ""
	e.marks = false
	e.hasData = false
	e.long = false
}

// write appends an event with the fields that were read, and with lines of data.
func (e *events) write(data ...[]byte) {
	e.rest = append(e.rest, e.fields...)
	for _, line := range data {
		e.rest = append(append(append(e.rest, "data: "...), line...), '\n')
	}
	e.rest = append(e.rest, '\n')
}

// flat returns a message on one line.
func flat(message []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, message) != nil {
		return message // it is JSON
	}
	return b.Bytes()
}

// Body returns the reply in the body of a response. Nil means that it contains none.
func (o Reader) Body(b []byte) []byte {
	var reply []byte
	s := &messages{Reader: &o, deliver: func(m []byte) {
		if reply == nil && HeadOf(m).Method == "" {
			reply = m
		}
	}}
	if text := trim(b); len(text) > 0 {
		s.values(text)
	}
	return reply
}
