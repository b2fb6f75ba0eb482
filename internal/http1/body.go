package http1

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
)

// maxLine bounds the line before a chunk, and the lines after the last one together.
const maxLine = 16 << 10

// Read reads the body of the answer: as much as is there, over as many chunks as that is. At the body's end, and not before, the connection is free for others.
func (x *Exchange) Read(p []byte) (n int, err error) {
	n, err = x.read(p)
	for n < len(p) && err == nil && x.framing == byChunks && x.left == 0 && x.c.hasChunk() {
		var more int
		more, err = x.read(p[n:])
		n += more
	}
	if n > 0 && err != io.EOF {
		err = nil // it comes again
	}
	return n, err
}

func (x *Exchange) read(p []byte) (n int, err error) {
	if x.err != nil || len(p) == 0 {
		return 0, x.err
	}
	if x.framing == byChunks && x.left == 0 {
		if err := x.chunk(); err != nil {
			return 0, x.fail(err)
		}
		if x.left == 0 {
			return 0, x.whole()
		}
	}
	c := x.c
	if c.r == c.w {
		switch err := c.fill(); {
		case err == io.EOF && x.framing == byClose && x.Aborted() == nil:
			return 0, x.whole()
		case err == io.EOF:
			return 0, x.fail(io.ErrUnexpectedEOF)
		case err != nil:
			return 0, x.fail(err)
		}
	}
	most := c.buf[c.r:c.w]
	if x.framing != byClose && int64(len(most)) > x.left {
		most = most[:x.left]
	}
	n = copy(p, most)
	c.r += n
	if x.framing == byClose {
		return n, nil
	}
	if x.left -= int64(n); x.left == 0 && x.framing == byLength {
		return n, x.whole()
	}
	return n, nil
}

// hasChunk reports whether the buffer has the end of a chunk, and the beginning of the next: one that is not the last, after which there may be something to wait for.
func (c *conn) hasChunk() bool {
	b := c.buf[c.r:c.w]
	if len(b) < 3 || b[2] == '0' {
		return false
	}
	k := bytes.IndexByte(b[2:], '\n')
	return k >= 0 && 2+k+1 < len(b)
}

// whole ends an exchange whose answer was read to its end.
func (x *Exchange) whole() error {
	x.err = io.EOF
	x.end(true)
	return io.EOF
}

// Drain reads what is left of a body of which nothing more is wanted, so that its connection can be used again: at most 64 KiB, and it waits for at most limit. A body
// that is longer is closed.
func (x *Exchange) Drain(limit time.Duration) {
	if x.err == nil && !x.atEnd() {
		x.limit(limit)
	}
	var waste [1 << 10]byte
	for read := 0; x.err == nil && read < 64<<10; {
		n, _ := x.Read(waste[:])
		read += n
	}
	x.Close()
}

// atEnd reports whether nothing has to be waited for: the usual end of a body in chunks is there already.
func (x *Exchange) atEnd() bool {
	return x.framing == byChunks && x.left == 0 && x.inChunks && string(x.c.buf[x.c.r:x.c.w]) == "\r\n0\r\n\r\n"
}

// chunk reads the line before the next chunk. After the last one it reads the trailers, which nobody asked for, and leaves 0.
func (x *Exchange) chunk() error {
	if x.inChunks {
		switch line, err := x.c.line(2); {
		case err != nil:
			return err
		case len(line) > 0:
			return fmt.Errorf("%w: a chunk is longer than was said", errAnswer)
		}
	}
	x.inChunks = true
	line, err := x.c.line(maxLine)
	if err != nil {
		return err
	}
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, ok := hexadecimal(bytes.TrimRight(size, " \t"))
	if !ok || !isValue(line) {
		return fmt.Errorf("%w: the size of a chunk is %.60q", errAnswer, line)
	}
	if x.left = n; n > 0 {
		return nil
	}
	for left := maxLine; ; {
		line, err := x.c.line(left)
		if err != nil || len(line) == 0 {
			return err
		}
		if left -= len(line) + 2; left <= 0 {
			return fmt.Errorf("%w: the trailers are too long", errAnswer)
		}
		var h head
		if err := h.field(line); err != nil || h != (head{}) {
			return fmt.Errorf("%w: trailer %.60q", errAnswer, line)
		}
	}
}

// line returns the next line, without the \r\n that ends it: of at most so many bytes with it.
func (c *conn) line(most int) ([]byte, error) {
	for seen := 0; ; {
		b := c.buf[c.r:c.w]
		if k := bytes.IndexByte(b[seen:], '\n'); k >= 0 {
			end := seen + k
			if end == 0 || b[end-1] != '\r' || end+1 > most {
				return nil, fmt.Errorf("%w: the line of a chunk, %.60q", errAnswer, b[:end])
			}
			c.r += end + 1
			return b[:end-1], nil
		}
		if seen = len(b); seen >= most {
			return nil, fmt.Errorf("%w: the line of a chunk is too long, or missing", errAnswer)
		}
		if err := c.fill(); err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
	}
}

// hexadecimal reads at most 15 digits and nothing else.
func hexadecimal(b []byte) (n int64, ok bool) {
	if len(b) > 15 {
		return 0, false
	}
	u, err := strconv.ParseUint(string(b), 16, 64)
	return int64(u), err == nil
}
