package observe

import (
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Partial reads the answer of a run that has an output while it is being written: from the events of a Stream it makes values of T that grow, and at the
// end the whole one.
//
//	var report pawl.Partial[Report]
//	for e, err := range agent.Stream(ctx, msgs...) {
//		if r, ok := report.Add(e); ok {
//			show(r)
//		}
//	}
//
// A value has what is whole so far: a number once it is known where it ends, a text once it is closed (see Strings). What is not there yet is
// zero. Nothing of it is validated but the last, which is that of Result.Output. An answer that does not fit and is sent back begins anew.
//
// The zero value is ready; it serves one run, and is not safe for concurrent use. All in all it takes time linear in the size of the answer: the
// longer that is, the more has to come before there is a value again.
type Partial[T any] struct {
	Strings bool // show texts while they are still being written; false: whole ones only

	run   llm.Key
	index int // the part of the reply that is read
	read  forming
	shown int // how much of it was in the last value
}

// Add takes the next event. ok reports that there is more to see than before; v is it. Events of runs inside the run are passed over.
func (p *Partial[T]) Add(e pawl.Event) (v T, ok bool) {
	if p.run == "" {
		p.run = e.Run
	}
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

// forming is JSON that is still being written. It looks at each byte once, and knows where what was written could end.
type forming struct {
	buf   []byte
	open  []byte  // the brackets that close what is open, outermost first
	want  wanting // what comes next
	begun bool    // the value's first bracket was seen; before it stands prose, or a fence
	over  bool    // the value is whole, or is no JSON: what follows is of no interest
	whole int     // up to here all values are whole
	text  int     // up to here the text that is being written is whole; less than whole: none is
	code  int     // hexadecimal digits of an escape that are still to come
	esc   bool    // the byte before was a backslash
}

// wanting is what forming waits for.
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

// add takes what was written next.
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
		f.open = append(f.open, c+2) // both closing brackets stand two after the opening ones
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
		return // it may be cut inside of a character
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
