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
	file   *os.File
	buffer *bufio.Reader // of file
	line   int           // number of the last line read, from 1
	at     int64         // file offset at which the next line begins
}

// next returns the next line without its line ending, and the position of the first match of m in
// it. A nil match means that nothing matches. For a line longer than a piece, text is the part
// around the match, or the beginning of the line. The result is valid until the next call. The
// error at the end of the file is io.EOF.
func (l *lineReader) next(ctx context.Context, m *regexp.Regexp) (text []byte, match []int, err error) {
	b, err := l.buffer.ReadSlice('\n')
	if len(b) == 0 && err != nil {
		return nil, nil, err
	}
	l.line++
	if errors.Is(err, bufio.ErrBufferFull) {
		return l.long(ctx, m)
	}
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, nil, &binaryError{"binary data"}
	}
	l.at += int64(len(b))
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	return b, m.FindIndex(b), nil
}

// long examines the line at l.at rune by rune.
func (l *lineReader) long(ctx context.Context, m *regexp.Regexp) (text []byte, match []int, err error) {
	if _, err := l.file.Seek(l.at, io.SeekStart); err != nil {
		return nil, nil, err
	}
	l.buffer.Reset(l.file)
	s := &longLine{ctx: ctx, buffer: l.buffer}
	match = m.FindReaderIndex(s)
	for s.err == nil { // read the rest of the line
		s.ReadRune()
	}
	if s.err != io.EOF {
		return nil, nil, s.err
	}

	// The part of the line that is shown is read a second time, because the line was not stored.
	from := 0
	if match != nil {
		from = max(0, match[0]-shownLine)
	}
	text = make([]byte, 3*shownLine)
	n, err := l.file.ReadAt(text, l.at+int64(from))
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
		match[0] += len("…")
		match[1] += len("…")
	}
	return text, match, nil
}

// longLine reads the runes of a line, without its line ending.
type longLine struct {
	ctx    context.Context
	buffer *bufio.Reader
	size   int64 // bytes read, including the line ending
	err    error // io.EOF at the end of the line
}

func (s *longLine) ReadRune() (r rune, size int, err error) {
	if s.err == nil && s.size%piece < utf8.UTFMax {
		s.err = s.ctx.Err()
	}
	if s.err != nil {
		return 0, 0, s.err
	}
	r, size, s.err = s.buffer.ReadRune()
	s.size += int64(size)

	switch {
	case s.err != nil:
	case r == 0:
		s.err = &binaryError{"binary data"}
	case r == '\n':
		s.err = io.EOF
	// A carriage return within a line is text. At the end of the line it belongs to the line break.
	case r == '\r':
		if next, _ := s.buffer.Peek(1); len(next) == 0 || next[0] == '\n' {
			s.buffer.Discard(len(next))
			s.size += int64(len(next))
			s.err = io.EOF
		}
	}
	return r, size, s.err
}
