package pawltest

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/pawl-go/pawl/pawltest/internal/reply"
)

// Fault is the failure of one request. Fields can be combined; the zero Fault changes nothing.
// Events of a stream are counted from 1.
type Fault struct {
	// Hold delays the answer until it is closed or the client leaves. Nil means no delay.
	Hold <-chan struct{}

	// Status replaces the reply by an error with that status. 0 means no error.
	Status int
	// Code is the error's code (OpenAI), type (Anthropic) or status (Gemini). Empty means the usual
	// one for Status.
	Code    string
	Message string // the error's message; empty means "made to fail"
	// RetryAfter is the wait for the client, in seconds or as a date: a header, or (Gemini, in
	// seconds) in the body. Empty means none.
	RetryAfter string

	// Body replaces the body of the reply or of the error. Nil means no change; an empty Body is
	// sent.
	Body        []byte
	ContentType string // the content type; empty means no change

	// Break breaks the connection: of a stream after After events, and of a whole reply after half
	// of its body. If Bytes is not 0, it breaks both after Bytes bytes.
	Break bool
	After int // events; see Break and Raw
	Bytes int // see Break
	// Raw is written into a stream after After events. The stream then ends without a broken
	// connection. Empty means none.
	Raw string

	// Insert is written into a stream after After events. The stream continues. Empty means none.
	Insert string
	// Stall makes a stream silent after After events, until it is closed or the client leaves. Nil
	// means none.
	Stall  <-chan struct{}
	Repeat int // this event is sent twice; 0 means none
	Swap   int // this event and the next are swapped; 0 means none

	Header map[string]string // set on the answer
	// Changes the answer, with all events of a stream at once; nil means no change.
	Rewrite func(answer []byte) []byte
	// Cut is the sent fraction of the answer, from 0 to 1, with Break. 0 means as Break says.
	Cut   float64
	Chunk int // the size of the pieces of the answer in bytes; 0 means no split
}

// Faults returns a Fault function that applies faults to the first requests, in order. A nil entry
// means no fault.
func Faults(faults ...*Fault) func(int, *Received) *Fault {
	return func(n int, _ *Received) *Fault {
		if n > len(faults) {
			return nil
		}
		return faults[n-1]
	}
}

// sent returns how many of n bytes are sent.
func (f *Fault) sent(n int) int {
	if f.Cut > 0 {
		return int(float64(n) * f.Cut)
	}
	return n
}

// errEnded ends a stream early without a broken connection.
var errEnded = errors.New("ended by a fault")

// recoverEnded, deferred, recovers from a panic with errEnded. Other panics continue.
func recoverEnded() {
	if v := recover(); v != nil && v != errEnded {
		panic(v)
	}
}

// stream writes events, with the faults.
type stream struct {
	to     http.ResponseWriter
	fault  *Fault
	gone   <-chan struct{} // closed when the client has left
	events int             // events so far, written or held back
	bytes  int
	array  bool // Gemini without alt=sse: one JSON array
	held   *reply.Event
	later  []byte // input of Rewrite
}

// send writes events. It panics with errEnded or http.ErrAbortHandler if a fault ends the stream.
func (s *stream) send(events []reply.Event) {
	for _, e := range events {
		s.before()
		s.events++
		switch {
		case s.fault.Swap > 0 && s.events == s.fault.Swap:
			held := e
			s.held = &held
			continue
		case s.held != nil:
			s.write(e)
			s.write(*s.held)
			s.held = nil
		default:
			s.write(e)
		}
		if s.events == s.fault.Repeat {
			s.write(e)
		}
	}
}

// before applies the faults after After events.
func (s *stream) before() {
	f := s.fault
	if s.events != f.After {
		return
	}
	if f.Insert != "" {
		s.writeBytes([]byte(f.Insert))
	}
	if f.Stall != nil {
		s.flush()
		select {
		case <-f.Stall:
		case <-s.gone:
			panic(http.ErrAbortHandler)
		}
	}
	if f.Raw != "" {
		s.writeBytes([]byte(f.Raw))
	}
	switch {
	case f.Break && f.Bytes == 0 && f.Cut == 0:
		panic(http.ErrAbortHandler)
	case f.Raw != "":
		panic(errEnded)
	}
}

func (s *stream) write(e reply.Event) {
	var b bytes.Buffer
	if s.array {
		b.WriteString(map[bool]string{true: "[", false: ",\r\n"}[s.bytes == 0] + e.Data)
	} else {
		e.WriteTo(&b)
	}
	s.writeBytes(b.Bytes())
}

// finish writes the rest.
func (s *stream) finish() {
	if s.held != nil {
		s.write(*s.held)
		s.held = nil
	}
	if s.array {
		s.writeBytes([]byte("]"))
	}
	if s.later == nil {
		return
	}
	if s.fault.Rewrite != nil {
		s.later = s.fault.Rewrite(s.later)
	}
	inPieces(s.to, s.later[:s.fault.sent(len(s.later))], s.fault.Chunk)
	if s.fault.Cut > 0 {
		panic(http.ErrAbortHandler)
	}
}

// writeBytes writes the bytes that the fault does not drop.
func (s *stream) writeBytes(b []byte) {
	// The length of an answer is unknown before its change.
	if s.fault.Rewrite != nil || s.fault.Cut > 0 {
		s.later = append(s.later, b...)
		s.bytes += len(b)
		return
	}
	if f := s.fault; f.Break && f.Bytes > 0 && s.bytes+len(b) >= f.Bytes {
		s.to.Write(b[:f.Bytes-s.bytes])
		s.flush()
		panic(http.ErrAbortHandler)
	}
	s.bytes += len(b)
	inPieces(s.to, b, s.fault.Chunk)
}

// inPieces writes b in pieces of size bytes.
func inPieces(w http.ResponseWriter, b []byte, size int) {
	if size <= 0 {
		size = max(1, len(b))
	}
	for piece := range slices.Chunk(b, size) {
		w.Write(piece)
		w.(http.Flusher).Flush()
	}
}

func (s *stream) flush() { s.to.(http.Flusher).Flush() }

// raw writes a whole body, or its start if the fault says so.
func raw(w http.ResponseWriter, status int, contentType string, fault *Fault, body []byte) {
	if fault.Rewrite != nil {
		body = fault.Rewrite(body)
	}
	w.Header().Set("Content-Type", cmp.Or(fault.ContentType, contentType))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if fault.Break {
		n := len(body) / 2
		if fault.Bytes > 0 {
			n = min(fault.Bytes, len(body))
		} else if fault.Cut > 0 {
			n = fault.sent(len(body))
		}
		w.Write(body[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	inPieces(w, body, fault.Chunk)
}
