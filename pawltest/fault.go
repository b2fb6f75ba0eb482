package pawltest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
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
	case f.Break && f.Bytes == 0:
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
}

// put writes bytes, as many as the fault lets through.
func (s *stream) put(b []byte) {
	if f := s.fault; f.Break && f.Bytes > 0 && s.bytes+len(b) >= f.Bytes {
		s.w.Write(b[:f.Bytes-s.bytes])
		s.flush()
		panic(http.ErrAbortHandler)
	}
	n, _ := s.w.Write(b)
	s.bytes += n
	s.flush()
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
	w.Header().Set("Content-Type", or(fault.ContentType, contentType))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if fault.Break {
		n := len(body) / 2
		if fault.Bytes > 0 {
			n = min(fault.Bytes, len(body))
		}
		w.Write(body[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Write(body)
}
