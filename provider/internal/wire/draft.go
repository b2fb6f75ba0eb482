package wire

import (
	"bytes"
	"context"

	"github.com/pawl-go/pawl"
)

// Draft is the body of a request as the run's next one begins: a transcript only grows, so what was encoded of it is kept, and each message is encoded once. What a
// body says in front of its messages is written anew each time, and compared. A Draft is used for one request at a time. Its memory comes from other runs, and goes to
// others when its own is over.
type Draft struct {
	// State is what the adapter's encoder has to know at the end of the messages that are kept, to go on from there.
	State any

	buf   *[]byte        // holds the last body; nil: there was none
	used  bool           // the body that is being written stands there, too
	front int            // where the messages of the body begin
	end   int            // where they end
	said  []pawl.Message // what stands there; none: nothing is kept
	kept  bool           // so it was said of the body that is being written
	model string         // whose rules it keeps
}

// DraftOf returns the draft that owner has in the run of ctx, or a new one for a request to model. Keep gives it back.
func DraftOf(ctx context.Context, owner any, model string) *Draft {
	d, ok := pawl.Kept(ctx, owner).(*Draft)
	if !ok || d.model != model {
		d = &Draft{model: model}
	}
	return d
}

// Keep keeps the draft for owner's next request in the run of ctx, once the body is not read any more.
func (d *Draft) Keep(ctx context.Context, owner any) {
	if len(d.said) == 0 || !pawl.Keep(ctx, owner, d) {
		d.Release()
	}
}

// Release gives the memory of the body to others: the run is over.
func (d *Draft) Release() {
	if d.buf != nil {
		giveBack(&bodies, d.buf)
	}
	*d = Draft{}
}

// Encode returns the body that encode appends to dst. It is the draft's: to be read until Keep.
func (d *Draft) Encode(encode func(dst []byte) ([]byte, error)) ([]byte, error) {
	d.kept, d.used = false, false
	pool := &scratch
	if d.buf == nil {
		pool = &bodies
	}
	p := pool.Get().(*[]byte)
	b, err := encode((*p)[:0])
	if !d.used {
		d.buf, p = p, d.buf
	}
	*d.buf = b
	if p != nil {
		giveBack(&scratch, p)
	}
	if err != nil || !d.kept {
		d.said, d.State = nil, nil
	}
	return b, err
}

// Resume is called before the messages of a body are written. d may be nil: nothing is kept. It returns how many of msgs are there already: all that were, where they are the same, and the body so
// far is; else none. fits may say no; nil: it does not.
func (w *Writer) Resume(d *Draft, msgs []pawl.Message, fits func(n int) bool) int {
	if d == nil {
		return 0
	}
	n := len(d.said)
	if n == 0 || n > len(msgs) || !bytes.Equal(w.B, (*d.buf)[:d.front]) || !same(d.said, msgs[:n]) || fits != nil && !fits(n) {
		d.said, d.front, d.State = d.said[:0], len(w.B), nil
		return 0
	}
	w.B, d.used = (*d.buf)[:d.end], true
	return n
}

// Mark is called when the messages have been written. It reports whether they are kept, and State with them.
func (w *Writer) Mark(d *Draft, msgs []pawl.Message) bool {
	if d == nil || w.Err != nil || len(w.Keys) > 0 {
		return false // options may change what is written, in ways that the front does not show
	}
	if cap(d.said) == 0 {
		d.said = make([]pawl.Message, 0, len(msgs)+8)
	}
	d.said = append(d.said, msgs[len(d.said):]...)
	d.end, d.kept = len(w.B), true
	return true
}

// same reports whether two lists hold the same messages, which do not change once they were sent: not others that say the same.
func same(a, b []pawl.Message) bool {
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Role != y.Role || len(x.Parts) != len(y.Parts) || len(x.Parts) > 0 && &x.Parts[0] != &y.Parts[0] {
			return false
		}
	}
	return true
}
