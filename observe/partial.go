package observe

import (
	"cmp"
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Partial decodes the answer of a run with an output while it is being written: from the events of
// a Stream it makes growing values of T, and at the end the complete one.
//
//	var report observe.Partial[Report]
//	for e, err := range agent.Stream(ctx, msgs...) {
//		if r, ok := report.Add(e); ok {
//			show(r)
//		}
//	}
//
// A value contains what is complete so far: a number once its end is known, a text once it is
// closed (see Strings). Missing values are zero. Only the last value is validated: it equals
// Result.Output. If an answer does not fit and is sent back to the model, the value starts again.
//
// The zero value is ready to use. It serves one run, and is not safe for concurrent use. Its total
// time is linear in the size of the answer: the longer the answer, the more text arrives between
// two values.
type Partial[T any] struct {
	// Strings shows texts while they are being written. False means complete texts only.
	Strings bool

	run   llm.Key
	index int // the index of the part that is read
	read  forming
	shown int // the length of the part in the last value
}

// Add accepts the next event. ok reports that v is a new value with more content. Events of nested
// runs are ignored.
func (p *Partial[T]) Add(e pawl.Event) (v T, ok bool) {
	p.run = cmp.Or(p.run, e.Run)
	if e.Run != p.run {
		return v, false
	}
	switch e.Kind {
	case pawl.EventStepStarted, pawl.EventTextRetracted:
		p.restart(-1)
	case pawl.EventText:
		return p.add(e)
	case pawl.EventCallDelta:
		if e.Call != nil && e.Call.Name == "final_answer" {
			return p.add(e)
		}
	case pawl.EventRunEnded:
		if e.Result != nil && e.Result.Output != nil {
			return v, jsonform.Decode(e.Result.Output, &v) == nil
		}
	}
	return v, false
}

func (p *Partial[T]) restart(index int) {
	p.index, p.shown = index, 0
	p.read = forming{}
}

func (p *Partial[T]) add(e pawl.Event) (v T, ok bool) {
	if e.Index != p.index {
		p.restart(e.Index)
	}
	p.read.add(e.Text)
	n, closing := p.read.whole, ""
	if p.Strings && p.read.text > n {
		n, closing = p.read.text, `"`
	}
	if n <= p.shown+p.shown/8 {
		return v, false
	}
	p.shown = n
	return v, jsonform.Decode(p.read.closed(n, closing), &v) == nil
}

// forming is JSON that is being written. It reads each byte once, and knows where the written JSON
// could end.
type forming struct {
	buf   []byte
	open  []byte  // the closing brackets of the open values, outermost first
	want  wanting // the next expected element
	begun bool    // the first bracket of the value was read; prose or a fence may precede it
	over  bool    // the value is complete or is not JSON; the rest is ignored
	whole int     // all values are complete up to here
	text  int     // the text being written is valid up to here; below whole means no open text
	code  int     // missing hexadecimal digits of an escape
	esc   bool    // the previous byte was a backslash
}

// wanting is the next element that forming expects.
type wanting byte

const (
	wantValue wanting = iota
	wantKey           // or the end of the object
	wantColon
	wantComma // or the end
	inKey
	inText
	inScalar // a number, or true, false, null
)

// add reads the next bytes.
func (f *forming) add(s string) {
	for i := 0; i < len(s) && !f.over; i++ {
		c := s[i]
		if !f.begun {
			if c != '{' && c != '[' {
				continue
			}
			f.begun = true
		}
		f.buf = append(f.buf, c)
		f.byte(c)
	}
}

func (f *forming) byte(c byte) {
	switch f.want {
	case inKey, inText:
		f.inString(c)
		return
	case inScalar:
		switch c {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			f.whole, f.want = len(f.buf)-1, wantComma
		default:
			return
		}
	}
	switch c {
	case ' ', '\t', '\n', '\r':
		return
	case '"':
		switch f.want {
		case wantKey:
			f.want = inKey
		case wantValue:
			f.want = inText
		default:
			f.over = true
		}
		return
	case '{', '[':
		if f.over = f.want != wantValue; f.over {
			return
		}
		// Both closing brackets are two after the opening ones in ASCII.
		f.open = append(f.open, c+2)
		if f.whole = len(f.buf); c == '{' {
			f.want = wantKey
		}
		return
	case '}', ']':
		if n := len(f.open); n > 0 && f.open[n-1] == c {
			f.open = f.open[:n-1]
			f.whole, f.want = len(f.buf), wantComma
			f.over = n == 1
			return
		}
	case ':':
		if f.want == wantColon {
			f.want = wantValue
			return
		}
	case ',':
		if f.want == wantComma {
			if f.want = wantValue; f.open[len(f.open)-1] == '}' {
				f.want = wantKey
			}
			return
		}
	default:
		if f.want == wantValue {
			f.want = inScalar
			return
		}
	}
	f.over = true
}

func (f *forming) inString(c byte) {
	switch {
	case f.code > 0:
		f.code--
	case f.esc:
		if f.esc = false; c == 'u' {
			f.code = 4
		}
	case c == '\\':
		f.esc = true
		return
	case c == '"':
		if f.want == inText {
			f.whole, f.want = len(f.buf), wantComma
		} else {
			f.want = wantColon
		}
		return
	case c >= 0x80:
		return // it may end within a character
	}
	if f.want == inText && !f.esc && f.code == 0 {
		f.text = len(f.buf)
	}
}

// closed returns the first n bytes as JSON.
func (f *forming) closed(n int, closing string) json.RawMessage {
	b := append(make([]byte, 0, n+len(closing)+len(f.open)), f.buf[:n]...)
	b = append(b, closing...)
	for i := len(f.open) - 1; i >= 0; i-- {
		b = append(b, f.open[i])
	}
	return b
}
