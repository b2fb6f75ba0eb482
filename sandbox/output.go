package sandbox

import (
	"fmt"
	"strings"
)

// Output is the output of a program on one descriptor: all of it, or head and tail.
type Output struct {
	Head, Tail []byte // Tail is nil if nothing was left out
	Bytes      int64  // number of bytes written
}

// Truncated reports whether bytes were left out between Head and Tail.
func (o *Output) Truncated() bool { return o.Bytes > int64(len(o.Head)+len(o.Tail)) }

// String returns the output as text. If bytes were left out, a line in brackets gives their number.
// Invalid UTF-8 becomes U+FFFD.
func (o *Output) String() string {
	head, tail := string(o.Head), string(o.Tail)
	if o.Truncated() {
		head = fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", head, o.Bytes-int64(len(o.Head)+len(o.Tail)), tail)
	} else {
		head += tail
	}
	return strings.ToValidUTF8(head, "\uFFFD")
}

// capture is a writer that stores the first and the last half of the output up to its limit, and
// counts all bytes. It accepts any amount: endless output costs the program its time and this
// process no memory.
type capture struct {
	half  int
	head  []byte
	ring  []byte // holds the tail
	next  int    // position of the next write in the ring
	bytes int64
}

func (c *capture) Write(b []byte) (int, error) {
	n := len(b)
	c.bytes += int64(n)
	if room := c.half - len(c.head); room > 0 {
		k := min(room, len(b))
		c.head = append(c.head, b[:k]...)
		b = b[k:]
	}
	if len(b) > c.half {
		b = b[len(b)-c.half:]
	}
	for len(b) > 0 {
		if len(c.ring) < c.half {
			k := min(c.half-len(c.ring), len(b))
			c.ring = append(c.ring, b[:k]...)
			b = b[k:]
			continue
		}
		k := copy(c.ring[c.next:], b)
		c.next = (c.next + k) % c.half
		b = b[k:]
	}
	return n, nil
}

// output returns the stored output.
func (c *capture) output() Output {
	o := Output{Head: c.head, Bytes: c.bytes}
	if len(c.ring) > 0 {
		o.Tail = append(append([]byte{}, c.ring[c.next:]...), c.ring[:c.next]...)
	}
	if !o.Truncated() {
		o.Head, o.Tail = append(o.Head, o.Tail...), nil
	}
	return o
}
