package observe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/schema/gotype"
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
	index int    // the index of the part that is read
	buf   []byte // the value so far
	read  int    // its length when it was read
	shown int    // the length of the part in the last value
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
		// A model without structured output answers with a call of this tool, whose arguments are
		// the value.
		if e.Call != nil && e.Call.Name == "final_answer" {
			return p.add(e)
		}
	case pawl.EventRunEnded:
		if e.Result != nil && e.Result.Output != nil {
			return v, gotype.Decode(e.Result.Output, &v) == nil
		}
	}
	return v, false
}

func (p *Partial[T]) restart(index int) {
	p.index = index
	p.buf = nil
	p.shown = 0
	p.read = 0
}

func (p *Partial[T]) add(e pawl.Event) (v T, ok bool) {
	if e.Index != p.index {
		p.restart(e.Index)
	}
	text := e.Text
	if len(p.buf) == 0 { // prose or a fence may precede the value
		i := strings.IndexAny(text, "{[")
		if i < 0 {
			return v, false
		}
		text = text[i:]
	}
	p.buf = append(p.buf, text...)
	// Each reading costs the length of the text. It grows by a part of itself between two readings,
	// so that the total stays linear.
	if len(p.buf) <= max(p.shown+p.shown/8, p.read+p.read/32) {
		return v, false
	}
	p.read = len(p.buf)
	form, n := formed(p.buf, p.Strings)
	if n <= p.shown+p.shown/8 {
		return v, false
	}
	p.shown = n
	return v, gotype.Decode(form, &v) == nil
}

// formed returns the complete part of JSON that is being written, closed, and the length of that
// part in b. texts also closes a text that is being written.
func formed(b []byte, texts bool) (form json.RawMessage, n int) {
	d := jsontext.NewDecoder(bytes.NewReader(b), jsonform.Lenient)
	var err error
	for err == nil {
		var t jsontext.Token
		t, err = d.ReadToken()
		at := int(d.InputOffset())
		// A number may go on, and a name has no value yet.
		mayGoOn := at == len(b) && strings.IndexByte(`"{}[]`, byte(t.Kind())) < 0
		if err != nil || mayGoOn || named(d) {
			continue
		}
		n = at
		if d.StackDepth() == 0 {
			break
		}
	}

	form = slices.Clone(b[:n])
	if texts && errors.Is(err, io.ErrUnexpectedEOF) {
		if open := openText(b, d); open != nil {
			n = len(open)
			form = append(open, '"')
		}
	}
	for depth := d.StackDepth(); depth > 0; depth-- {
		kind, _ := d.StackIndex(depth)
		form = append(form, byte(kind)+2) // a closing bracket is two after its opening one
	}
	return form, n
}

// openText returns b up to the last place at which the text that is being written may end. Nil
// means that no value is being written that is a text.
func openText(b []byte, d *jsontext.Decoder) []byte {
	text := bytes.TrimLeft(b[d.InputOffset():], " \t\r\n,:")
	kind, _ := d.StackIndex(d.StackDepth())
	isValue := kind == '[' || named(d)
	if !isValue || !bytes.HasPrefix(text, []byte(`"`)) {
		return nil
	}
	for k := len(text); k > 1; k-- { // it may end within an escape or a character
		whole := text[k-1] < utf8.RuneSelf && jsontext.Value(append(slices.Clone(text[:k]), '"')).IsValid()
		if whole {
			return slices.Clone(b[:len(b)-len(text)+k])
		}
	}
	return nil
}

// named reports whether d has read a name, and not its value.
func named(d *jsontext.Decoder) bool {
	kind, length := d.StackIndex(d.StackDepth())
	return kind == '{' && length%2 == 1
}
