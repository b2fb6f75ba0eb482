package outside

// head stores the beginning of the output and counts the rest.
type head struct {
	b       []byte
	limit   int
	dropped int64
}

// Write never returns an error.
func (h *head) Write(b []byte) (int, error) {
	n := min(len(b), h.limit-len(h.b))
	h.b = append(h.b, b[:n]...)
	h.dropped += int64(len(b) - n)
	return len(b), nil
}

// tail stores the end of the output.
type tail struct {
	b     []byte // up to twice the limit
	limit int
}

// Write never returns an error.
func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	if len(b) > t.limit {
		b = b[len(b)-t.limit:]
	}
	if t.b = append(t.b, b...); len(t.b) > 2*t.limit {
		t.b = append(t.b[:0], t.b[len(t.b)-t.limit:]...)
	}
	return n, nil
}

func (t *tail) bytes() []byte { return t.b[max(0, len(t.b)-t.limit):] }
