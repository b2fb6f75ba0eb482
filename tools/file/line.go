package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"unicode/utf8"
)

// lineReader reads lines of any length in little memory.
type lineReader struct {
	f    *os.File
	r    *bufio.Reader
	line int   // the last one that was read, from 1
	at   int64 // where in the file the next one begins
}

// next returns the next line without its end, and where in it the first match of m is: nil, nowhere. Of a line that is longer than a piece it is the part around
// the match, or the beginning. What it returns is good until the next call; the error at the end is io.EOF.
func (l *lineReader) next(ctx context.Context, m *matcher) (text []byte, match []int, err error) {
	b, err := l.r.ReadSlice('\n')
	if len(b) == 0 && err != nil {
		return nil, nil, err
	}
	l.line++
	if errors.Is(err, bufio.ErrBufferFull) {
		return l.long(ctx, b, m)
	}
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, nil, &binaryError{"binary data"}
	}
	l.at += int64(len(b))
	b = chomp(b)
	return b, m.find(b), nil
}

// long looks at a line that begins with head and goes on in l.r.
func (l *lineReader) long(ctx context.Context, head []byte, m *matcher) (text []byte, match []int, err error) {
	s := &longLine{ctx: ctx, r: l.r, held: bytes.Clone(head), size: int64(len(head))}
	if bytes.IndexByte(head, 0) >= 0 {
		s.err = &binaryError{"binary data"}
	}
	if m.literal != nil {
		match = s.index(m.literal)
	} else {
		match = m.re.FindReaderIndex(s)
	}
	for s.err == nil { // the rest
		s.held = s.held[:0]
		s.fill()
	}
	if s.err != io.EOF {
		return nil, nil, s.err
	}
	from := 0
	if match != nil {
		from = max(0, match[0]-shownLine)
	}
	text = make([]byte, 3*shownLine)
	n, err := l.f.ReadAt(text, l.at+int64(from))
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	text, _, _ = bytes.Cut(text[:n], []byte("\n"))
	text = bytes.TrimSuffix(text, []byte("\r"))
	l.at += s.size
	if match == nil {
		return text, nil, nil
	}
	match = []int{min(match[0]-from, len(text)), min(match[1]-from, len(text))}
	if from > 0 {
		text = append([]byte("…"), text...)
		match[0], match[1] = match[0]+len("…"), match[1]+len("…")
	}
	return text, match, nil
}

// longLine reads one line, piece by piece. It is an io.RuneReader whose runes end where the line does, so that a regular expression takes the line's ends for what
// they are.
type longLine struct {
	ctx  context.Context
	r    *bufio.Reader
	held []byte // read, and not yet taken
	size int64  // read, with the line's end
	err  error  // io.EOF once the line has ended, and what is held is the last of it
}

// fill appends a piece to what is held.
func (s *longLine) fill() {
	if s.err != nil {
		return
	}
	if s.err = s.ctx.Err(); s.err != nil {
		return
	}
	b, err := s.r.ReadSlice('\n')
	s.size += int64(len(b))
	switch {
	case bytes.IndexByte(b, 0) >= 0:
		s.err = &binaryError{"binary data"}
	case errors.Is(err, bufio.ErrBufferFull):
	case err != nil && err != io.EOF:
		s.err = err
	default:
		s.err = io.EOF
	}
	s.held = append(s.held, b...)
	if s.err == io.EOF {
		s.held = chomp(s.held)
	}
}

// ReadRune returns the next rune of the line.
func (s *longLine) ReadRune() (r rune, size int, err error) {
	for s.err == nil && len(s.held) < utf8.UTFMax { // so that a \r of the line's end goes with it
		s.held = bytes.Clone(s.held) // not to grow for ever at its end
		s.fill()
	}
	if s.err != nil && s.err != io.EOF {
		return 0, 0, s.err
	}
	if len(s.held) == 0 {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRune(s.held)
	s.held = s.held[size:]
	return r, size, nil
}

// index returns where in the line the first text is, nil when it is nowhere.
func (s *longLine) index(text []byte) []int {
	at := 0 // of held
	for {
		if s.err != nil && s.err != io.EOF {
			return nil
		}
		if i := bytes.Index(s.held, text); i >= 0 {
			return []int{at + i, at + i + len(text)}
		}
		if s.err == io.EOF {
			return nil
		}
		gone := max(0, len(s.held)-len(text)-1) // a \r at its end may yet go
		at += gone
		s.held = s.held[:copy(s.held, s.held[gone:])]
		s.fill()
	}
}

// chomp returns line without its end, \n or \r\n.
func chomp(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
