package sandbox

import (
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
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

// output returns the stored output.
func output(kept *text.Ends) Output {
	if o := (Output{kept.Head, kept.Tail(), kept.Bytes}); o.Truncated() {
		return o
	}
	return Output{Head: append(kept.Head, kept.Tail()...), Bytes: kept.Bytes}
}
