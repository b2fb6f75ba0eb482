package text

// Ends is a writer that stores the first and the last Half bytes, and counts all bytes. Endless
// text costs no more memory than four halves.
type Ends struct {
	Half  int
	Head  []byte
	Bytes int64
	tail  []byte // at most two halves
}

// Write never returns an error.
func (e *Ends) Write(b []byte) (int, error) {
	n := len(b)
	e.Bytes += int64(n)
	k := min(max(e.Half-len(e.Head), 0), n)
	e.Head = append(e.Head, b[:k]...)
	b = b[k:]
	e.tail = append(e.tail, b[max(0, len(b)-e.Half):]...)
	if len(e.tail) > 2*e.Half {
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-e.Half:]...)
	}
	return n, nil
}

// Tail returns the last Half bytes that are not in Head.
func (e *Ends) Tail() []byte { return e.tail[max(0, len(e.tail)-e.Half):] }
