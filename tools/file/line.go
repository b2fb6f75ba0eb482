package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"unicode/utf8"
)

// lineReader reads lines of any length in constant memory.
type lineReader struct {
	f    *os.File
	r    *bufio.Reader
	line int   // number of the last line read, from 1
	at   int64 // file offset at which the next line begins
}

// next returns the next line without its line ending, and the position of the first match of m in
// it. A nil match means that nothing matches. For a line longer than a piece, text is the part
// around the match, or the beginning of the line. The result is valid until the next call. The
// error at the end of the file is io.EOF.
func (l *lineReader) next(ctx context.Context, m *regexp.Regexp) (text []byte, match []int, err error) {
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
	return b, m.FindIndex(b), nil
}

// long examines a line that begins with head and continues in l.r.
func (l *lineReader) long(ctx context.Context, head []byte, m *regexp.Regexp) (text []byte, match []int, err error) {
	s := &longLine{ctx: ctx, r: l.r, held: bytes.Clone(head), size: int64(len(head))}
	if bytes.IndexByte(head, 0) >= 0 {
		s.err = &binaryError{"binary data"}
	}
	match = m.FindReaderIndex(s)
	for s.err == nil { // read the rest of the line
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

// longLine reads one line piece by piece. It is an io.RuneReader whose runes end where the line
// ends, so that ^ and $ of a regular expression match the ends of the line.
type longLine struct {
	ctx  context.Context
	r    *bufio.Reader
	held []byte // read but not yet consumed
	size int64  // bytes read, including the line ending
	err  error  // io.EOF once the line has ended and held is its last piece
}

// fill appends a piece to held.
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

func (s *longLine) ReadRune() (r rune, size int, err error) {
	// so that the \r of the line ending is dropped together with the \n
	for s.err == nil && len(s.held) < utf8.UTFMax {
		s.held = bytes.Clone(s.held) // clone so that the underlying array does not grow forever
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

// chomp returns line without its end, \n or \r\n.
func chomp(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
