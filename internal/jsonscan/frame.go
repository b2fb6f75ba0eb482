package jsonscan

import "bytes"

// Frame holds the text around one value of a document. It serves readers of many documents that
// differ in little more than that value, so that the rest is compared and not parsed. The zero
// Frame matches no document.
type Frame struct{ before, after []byte }

// Set makes f the frame of the value data[from:to].
func (f *Frame) Set(data []byte, from, to int) {
	f.before = append(f.before[:0], data[:from]...)
	f.after = append(f.after[:0], data[to:]...)
}

// Find returns a Cursor at the value of a document, and reports whether the document has this
// frame. The Cursor is valid for the value only.
func (f *Frame) Find(data []byte) (Cursor, bool) {
	if len(f.before) == 0 || !bytes.HasPrefix(data, f.before) {
		return Cursor{}, false
	}
	c := Resume(data, len(f.before), 0)
	end := c
	end.Skip()
	return c, end.fault == "" && bytes.Equal(data[end.i:], f.after)
}
