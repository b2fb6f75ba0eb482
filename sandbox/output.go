package sandbox

import (
	"fmt"
	"strings"
)

// Output is what a program wrote to one descriptor: all of it, or head and tail.
type Output struct {
	Head, Tail []byte // Tail is nil when nothing was left out
	Bytes      int64  // that were written in all
}

// Truncated reports whether something was left out between Head and Tail.
func (o *Output) Truncated() bool { return o.Bytes > int64(len(o.Head)+len(o.Tail)) }

// String returns the output as text. Where something was left out, a line in brackets says how much; bytes that are no UTF-8 become U+FFFD.
func (o *Output) String() string {
	head, tail := string(o.Head), string(o.Tail)
	if o.Truncated() {
		head = fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", head, o.Bytes-int64(len(o.Head)+len(o.Tail)), tail)
	} else {
		head += tail
	}
	return strings.ToValidUTF8(head, "\uFFFD")
}

// capture is a writer that keeps the first and the last half of what it is given, and counts all of it. It takes everything: an
// endless print costs its time and no memory.
type capture struct {
	half  int
	head  []byte
	ring  []byte // of the tail
	next  int    // where the ring is written next
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

// output returns what was kept.
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
