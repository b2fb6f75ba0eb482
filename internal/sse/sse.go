// Package sse reads event streams of the WHATWG standard (text/event-stream), in which providers
// send replies in fragments and pawl's server sends events.
//
//	r := sse.NewReader(body)
//	for {
//		ev, err := r.Next()
//		if err == io.EOF { break }
//		…
//		use(ev.Data) // valid until the next call of Next
//	}
//
// A Reader has one buffer, which it fills from the stream and from which it slices the events: the
// data of an event of one line is not copied. Lines may end in \n, \r\n or \r. A leading byte order
// mark is dropped. Comments and unknown fields are skipped.
//
// One behaviour differs from the standard: an event that the end of the stream cut off before its
// blank line is returned with Event.Unended set. The standard drops it, but some providers end
// their streams in this way. A caller can drop it itself.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// MaxEvent is the default limit for the size of one event, in bytes.
const MaxEvent = 32 << 20

const bom = "\ufeff"

// ErrTooLong is wrapped by the error for an event, or a line, over the limit.
var ErrTooLong = errors.New("event too long")

// Event is one event of a stream. Its slices are valid until the next call of Next.
type Event struct {
	Type    []byte        // the event field; empty means "message"
	Data    []byte        // the data lines, joined by newlines
	ID      []byte        // the last ID in the stream, from this event or an earlier one
	Retry   time.Duration // the reconnection time if this event contains one; otherwise 0
	Unended bool          // the stream ended before the blank line that ends an event
}

// Reader reads events from a stream. It is not safe for concurrent use.
type Reader struct {
	// Max is the limit for the size of one event. 0 means MaxEvent.
	Max int

	// Wait is called before each read of the stream, when all data read before has been consumed
	// and the next may take a while. Next returns its error. Nil means that nothing is called.
	Wait func() error

	source io.Reader
	err    error // error of source, returned after the data before it
	buf    []byte
	pos    int // start of the next line
	stop   int // end of the last line, without its \n or \r
	end    int // end of the data read from source
	lf     sight
	cr     sight
	bom    bool // the start of the stream was checked for a byte order mark
	skip   bool // the last line ended in a \r at the end of the buffer: drop a \n that follows

	data, dataEnd int // the data of the current event is buf[data:dataEnd]
	has           bool
	typ, id       []byte
	retry         time.Duration
}

// sight is the first occurrence of a byte at or after pos.
type sight struct {
	at int // its position; less than pos means unknown
	to int // there is none before this position
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	x := new(Reader)
	x.Reset(r)
	return x
}

// Reset makes x read from r. It keeps the buffer and clears Wait. A nil r releases the previous
// reader.
func (x *Reader) Reset(r io.Reader) {
	*x = Reader{Max: x.Max, source: r, buf: x.buf, lf: unseen, cr: unseen, typ: x.typ[:0], id: x.id[:0]}
}

var unseen = sight{at: -1}

// Next returns the next event that has data. At the end of the stream the error is io.EOF. Any
// other error is the error of the stream, or wraps ErrTooLong.
func (x *Reader) Next() (Event, error) {
	x.has, x.retry, x.typ = false, 0, x.typ[:0]
	for {
		line, err := x.line()
		if err != nil {
			if err == io.EOF && x.has {
				x.has = false
				return x.event(true), nil
			}
			return Event{}, err
		}
		if len(line) > 0 {
			if err := x.field(line); err != nil {
				return Event{}, err
			}
			continue
		}
		if x.has {
			return x.event(false), nil
		}
		x.typ = x.typ[:0] // an event without data is dropped
	}
}

// Peek reads until the buffer contains something other than white space, and returns the buffer's
// content without consuming it. It serves to distinguish an event stream from another body, and
// must be called before the first Next. At the end of the stream it returns the content and io.EOF.
func (x *Reader) Peek() ([]byte, error) {
	for {
		if len(bytes.TrimLeft(x.buf[x.pos:x.end], " \t\r\n")) > 0 || x.err != nil {
			return x.buf[x.pos:x.end], x.err
		}
		if err := x.fill(); err != nil {
			return nil, err
		}
	}
}

func (x *Reader) event(unended bool) Event {
	return Event{Type: x.typ, Data: x.buf[x.data:x.dataEnd:x.dataEnd], ID: x.id, Retry: x.retry, Unended: unended}
}

// field processes one line that is not empty; it is the last line that the method line returned.
func (x *Reader) field(line []byte) error {
	k := bytes.IndexByte(line, ':')
	if k == 0 {
		return nil // a comment
	}
	name := line
	value := line[len(line):]
	if k > 0 {
		name = line[:k]
		value = line[k+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(name) {
	case "data":
		if !x.has {
			x.has = true
			x.data = x.stop - len(value)
			x.dataEnd = x.stop
			break
		}
		// The lines before end at least a line ending and a field name earlier, so there is room
		// for the newline.
		x.buf[x.dataEnd] = '\n'
		x.dataEnd += 1 + copy(x.buf[x.dataEnd+1:], value)
	case "event":
		x.typ = append(x.typ[:0], value...)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			x.id = append(x.id[:0], value...)
		}
	case "retry":
		for _, b := range value {
			if b < '0' || b > '9' {
				return nil
			}
		}
		if ms, err := strconv.ParseInt(string(value), 10, 32); err == nil {
			x.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return nil
}

// line returns the next line without its ending. The slice refers to the buffer.
func (x *Reader) line() ([]byte, error) {
	for {
		if x.skip && x.pos < x.end {
			x.skip = false
			if x.buf[x.pos] == '\n' {
				x.pos++
			}
		}
		if !x.bom {
			x.skipBOM()
		}
		if x.bom {
			if line, ok := x.cut(); ok {
				return line, nil
			}
		}

		switch {
		case x.err == io.EOF && x.bom && x.pos < x.end: // the last line may have no ending
			line := x.buf[x.pos:x.end]
			x.pos = x.end
			x.stop = x.end
			return line, nil
		case x.err != nil:
			return nil, x.err
		}
		if err := x.fill(); err != nil {
			return nil, err
		}
	}
}

// skipBOM skips a byte order mark at the beginning, once enough is read to see whether there is
// one. A stream that begins with another byte is not held up.
func (x *Reader) skipBOM() {
	begin := x.buf[x.pos:x.end]
	other := len(begin) > 0 && begin[0] != bom[0]
	if len(begin) < len(bom) && !other && x.err == nil {
		return
	}
	x.bom = true
	if bytes.HasPrefix(begin, []byte(bom)) {
		x.pos += len(bom)
	}
}

// cut returns the line at pos if its end is in the buffer.
func (x *Reader) cut() ([]byte, bool) {
	lf := x.find(&x.lf, '\n')
	cr := x.find(&x.cr, '\r')
	stop := lf
	next := lf + 1
	switch {
	case cr >= 0 && (lf < 0 || cr < lf):
		stop = cr
		next = cr + 1

		// The \n of a \r\n is part of the ending, and may not have arrived yet.
		if next == lf {
			next++
		} else if next == x.end {
			x.skip = true
		}
	case lf < 0:
		return nil, false
	}
	x.stop = stop
	line := x.buf[x.pos:stop]
	x.pos = next
	return line, true
}

// find returns the position of the first b at or after pos, or -1. No part is searched twice.
func (x *Reader) find(s *sight, b byte) int {
	if s.at < x.pos {
		from := max(x.pos, s.to)
		s.at = -1
		s.to = x.end
		if k := bytes.IndexByte(x.buf[from:x.end], b); k >= 0 {
			s.at = from + k
			s.to = from + k
		}
	}
	return s.at
}

// fill reads more from the stream. It first moves the data in use to the front of the buffer, and
// grows the buffer if that is not enough.
func (x *Reader) fill() error {
	limit := x.Max
	if limit <= 0 {
		limit = MaxEvent
	}
	if keep := x.end - x.pos + x.held(); keep > limit {
		return fmt.Errorf("%w: over %d bytes", ErrTooLong, limit)
	}
	if x.Wait != nil {
		if err := x.Wait(); err != nil {
			return err
		}
	}
	if x.end == len(x.buf) {
		x.shift()
		if free := len(x.buf) - x.end; free < len(x.buf)/4 || free == 0 {
			buf := make([]byte, max(4<<10, 2*len(x.buf)))
			copy(buf, x.buf[:x.end])
			x.buf = buf
		}
	}

	// As many reads without data as package bufio allows.
	for range 100 {
		n, err := x.source.Read(x.buf[x.end:])
		x.end += max(n, 0)
		x.err = err
		if n > 0 || err != nil {
			return nil
		}
	}
	x.err = io.ErrNoProgress
	return nil
}

// held returns the size of the data of the current event.
func (x *Reader) held() int {
	if x.has {
		return x.dataEnd - x.data
	}
	return 0
}

func (x *Reader) shift() {
	to := 0
	if x.has {
		to = copy(x.buf, x.buf[x.data:x.dataEnd]) + 1 // room for a newline
		x.data = 0
		x.dataEnd = to - 1
	}
	by := x.pos - to
	if by <= 0 {
		return
	}
	copy(x.buf[to:], x.buf[x.pos:x.end])
	x.pos -= by
	x.end -= by
	x.lf.shift(by)
	x.cr.shift(by)
}

func (s *sight) shift(by int) { s.at, s.to = max(s.at-by, -1), max(s.to-by, 0) }
