package pawltest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// Fault is what goes wrong with one request. Fields can be combined; the zero Fault changes nothing. Events of a stream are
// counted from 1.
type Fault struct {
	Hold <-chan struct{} // the answer waits until it is closed, or the client leaves

	// Status, when not 0, answers with an error of that status in place of the reply.
	Status     int
	Code       string // the error's code (OpenAI), type (Anthropic) or status (Gemini); "": one that fits Status
	Message    string // the error's message; "": "made to fail"
	RetryAfter string // what the client should wait, in seconds or as a date: a header, or (Gemini, seconds) in the body; "": nothing

	Body        []byte // this body in place of the reply, or of the error's; nil: none; empty: an empty body
	ContentType string // its content type, or that of the reply; "": what the reply would have had

	// Break breaks the connection: of a stream after After events, of a whole reply after half of its body; of both after Bytes
	// bytes, when that is not 0.
	Break bool
	After int
	Bytes int
	Raw   string // written into a stream after After events; the stream then ends there, with the connection unbroken. "": nothing

	Insert string          // written into a stream after After events; the stream goes on. "": nothing
	Stall  <-chan struct{} // after After events a stream is silent until it is closed, or the client leaves; nil: it is not
	Repeat int             // this event comes twice; 0: none
	Swap   int             // this event and the one after it change places; 0: none

	Header  map[string]string          // set on the answer
	Rewrite func(answer []byte) []byte // changes the answer, a stream's events all at once; nil: it stays
	Cut     float64                    // with Break: of the answer, this part comes, from 0 to 1, however long it is; 0: see Break
	Chunk   int                        // the answer comes in pieces of so many bytes; 0: as it is made
}

// Faults returns a Fault function that gives faults to the first requests, in order; nil stands for none.
func Faults(faults ...*Fault) func(int, *Received) *Fault {
	return func(n int, _ *Received) *Fault {
		if n > len(faults) {
			return nil
		}
		return faults[n-1]
	}
}

// kept is how much of n bytes comes.
func (f *Fault) kept(n int) int {
	if f.Cut > 0 {
		return int(float64(n) * f.Cut)
	}
	return n
}

// errEnded is what ends a stream early and in order.
var errEnded = errors.New("ended by a fault")

// stream writes events, and what goes wrong with them.
type stream struct {
	w      http.ResponseWriter
	fault  *Fault
	gone   <-chan struct{} // closed when the client left
	events int             // that came, written or held back
	bytes  int
	array  bool // Gemini without alt=sse: one JSON array
	held   *event
	later  []byte // what Rewrite is still to see
}

// send writes events. It panics with errEnded, or http.ErrAbortHandler, where a fault ends the stream.
func (s *stream) send(events []event) {
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

// before does what is to be done after After events.
func (s *stream) before() {
	f := s.fault
	if s.events != f.After {
		return
	}
	if f.Insert != "" {
		s.put([]byte(f.Insert))
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
		s.put([]byte(f.Raw))
	}
	switch {
	case f.Break && f.Bytes == 0 && f.Cut == 0:
		panic(http.ErrAbortHandler)
	case f.Raw != "":
		panic(errEnded)
	}
}

func (s *stream) write(e event) {
	var b bytes.Buffer
	if s.array {
		b.WriteString(map[bool]string{true: "[", false: ",\r\n"}[s.bytes == 0] + e.data)
	} else {
		e.write(&b)
	}
	s.put(b.Bytes())
}

// end writes what is left.
func (s *stream) end() {
	if s.held != nil {
		s.write(*s.held)
		s.held = nil
	}
	if s.array {
		s.put([]byte("]"))
	}
	if s.later == nil {
		return
	}
	if s.fault.Rewrite != nil {
		s.later = s.fault.Rewrite(s.later)
	}
	inPieces(s.w, s.later[:s.fault.kept(len(s.later))], s.fault.Chunk)
	if s.fault.Cut > 0 {
		panic(http.ErrAbortHandler)
	}
}

// put writes bytes, as many as the fault lets through.
func (s *stream) put(b []byte) {
	if s.fault.Rewrite != nil || s.fault.Cut > 0 { // there is no half of what is yet to be changed
		s.later = append(s.later, b...)
		s.bytes += len(b)
		return
	}
	if f := s.fault; f.Break && f.Bytes > 0 && s.bytes+len(b) >= f.Bytes {
		s.w.Write(b[:f.Bytes-s.bytes])
		s.flush()
		panic(http.ErrAbortHandler)
	}
	s.bytes += len(b)
	inPieces(s.w, b, s.fault.Chunk)
}

// inPieces writes b, size bytes at a time.
func inPieces(w http.ResponseWriter, b []byte, size int) {
	if size <= 0 {
		size = max(1, len(b))
	}
	for piece := range slices.Chunk(b, size) {
		w.Write(piece)
		w.(http.Flusher).Flush()
	}
}

func (s *stream) flush() { s.w.(http.Flusher).Flush() }

// write writes the event as a server sends it.
func (e event) write(w io.Writer) {
	end := "\n"
	if e.crlf {
		end = "\r\n"
	}
	if e.name != "" {
		io.WriteString(w, "event: "+e.name+end)
	}
	io.WriteString(w, "data: "+e.data+end+end)
}

// raw writes a whole body, or the head of it where the fault says so.
func raw(w http.ResponseWriter, status int, contentType string, fault *Fault, body []byte) {
	if fault.Rewrite != nil {
		body = fault.Rewrite(body)
	}
	w.Header().Set("Content-Type", or(fault.ContentType, contentType))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if fault.Break {
		n := len(body) / 2
		if fault.Bytes > 0 {
			n = min(fault.Bytes, len(body))
		} else if fault.Cut > 0 {
			n = fault.kept(len(body))
		}
		w.Write(body[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	inPieces(w, body, fault.Chunk)
}
