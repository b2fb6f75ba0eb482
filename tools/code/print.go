package code

import "fmt"

// capture stores the first and the last half of a program's output and counts all of it.
type capture struct {
	half  int
	head  []byte
	tail  []byte // at most two halves; the last half is reported
	bytes int64
}

func (c *capture) line(text string) {
	c.bytes += int64(len(text)) + 1
	for _, b := range []string{text, "\n"} {
		if room := c.half - len(c.head); room > 0 && c.tail == nil {
			k := min(room, len(b))
			c.head = append(c.head, b[:k]...)
			b = b[k:]
		}
		if len(b) > c.half {
			b = b[len(b)-c.half:]
		}
		if b == "" {
			continue
		}
		if c.tail = append(c.tail, b...); len(c.tail) > 2*c.half {
			c.tail = append(c.tail[:0], c.tail[len(c.tail)-c.half:]...)
		}
	}
}

func (c *capture) logs() logs {
	tail := c.tail
	if len(tail) > c.half {
		tail = tail[len(tail)-c.half:]
	}
	text := string(c.head)
	if left := c.bytes - int64(len(c.head)+len(tail)); left > 0 {
		text += fmt.Sprintf("\n[… %d bytes left out …]\n", left)
	}
	return logs{text + string(tail), c.bytes}
}
