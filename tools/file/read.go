package file

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

const (
	pageLines = 2000
	pageBytes = 64 << 10
	headBytes = 8 << 10 // bytes examined to decide whether a file is text
)

type readArgs struct {
	Path   string        `json:"path"`
	Offset toolrun.Whole `json:"offset,omitzero"`
	Column toolrun.Whole `json:"column,omitzero"`
	Limit  toolrun.Whole `json:"limit,omitzero"`
}

// readData is the Data of a page: what a program needs to read on. The content is the first part of
// the result.
type readData struct {
	Path   string    `json:"path"`
	Size   int64     `json:"size"`
	Offset int       `json:"offset"`
	Lines  int       `json:"lines"`
	Next   *readArgs `json:"next,omitempty"`
}

func (s *Set) read(ctx context.Context, a readArgs) (llm.ToolResult, error) {
	name, err := clean(a.Path)
	if err != nil {
		return llm.ToolResult{}, err
	}
	f, info, err := s.open(name)
	if err != nil {
		return llm.ToolResult{}, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, pageBytes)
	head, err := r.Peek(headBytes)
	if err != nil && err != io.EOF {
		return llm.ToolResult{}, s.explain(name, err)
	}
	if kind := binary(head); kind != "" {
		return llm.ToolResult{}, toolrun.Refuse("%s is not text: it is %s, %d bytes", shown(name), kind, info.Size())
	}
	limit := int(a.Limit)
	if limit <= 0 || limit > pageLines {
		limit = pageLines
	}
	p, err := readPage(ctx, r, max(int(a.Offset), 1), max(int(a.Column), 1), limit)
	if err != nil {
		return llm.ToolResult{}, s.explain(name, err)
	}
	switch {
	case p.empty() && p.total == 0 && a.Offset <= 1 && a.Column <= 1:
		return toolrun.Result(fmt.Sprintf("[%s is empty]", name), readData{Path: name, Offset: 1})
	case p.empty() && p.short > 0:
		return llm.ToolResult{}, toolrun.Refuse("column %d is past the end: line %d of %s has %d bytes", a.Column, a.Offset, shown(name), p.short-1)
	case p.empty():
		return llm.ToolResult{}, toolrun.Refuse("offset %d is past the end: %s has %d lines", a.Offset, shown(name), p.total)
	case bytes.IndexByte(p.text, 0) >= 0:
		return llm.ToolResult{}, toolrun.Refuse("%s is not text: lines %d-%d have NUL bytes; %d bytes in all", shown(name), p.first, p.last, info.Size())
	}
	data := readData{Path: name, Size: info.Size(), Offset: p.first, Lines: p.last - p.first + 1}
	var note strings.Builder
	if !p.end || p.start > 0 {
		fmt.Fprintf(&note, "lines %d-%d, bytes %d-%d of %d", p.first, p.last, p.start+1, p.start+int64(len(p.text)),
			max(info.Size(), p.start+int64(len(p.text))))
		if p.end {
			note.WriteString("; this is the end of the file")
		} else {
			data.Next = &readArgs{Path: name, Offset: toolrun.Whole(p.next), Column: toolrun.Whole(p.nextColumn),
				Limit: a.Limit}
			next, _ := json.Marshal(data.Next)
			fmt.Fprintf(&note, "; read on with %s", next)
		}
	}
	text := p.text
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
		if note.Len() > 0 {
			note.WriteString("; ")
		}
		note.WriteString("some bytes are not UTF-8 and stand here as \uFFFD")
	}
	res, err := toolrun.Result(string(text), data)
	if note.Len() > 0 {
		sep := "\n"
		if text[len(text)-1] == '\n' {
			sep = ""
		}
		res.Parts = append(res.Parts, llm.Text{Text: sep + "[" + note.String() + "]"})
	}
	return res, err
}

// A page is a number of whole lines of a file, or a piece of a line that is longer than a page.
type page struct {
	text        []byte
	start       int64 // file offset of text
	first, last int   // line numbers, from 1
	end         bool  // nothing follows
	next        int   // if not end: the line to continue at
	nextColumn  int   // 0 means the beginning of the line
	total       int   // if text is empty: the number of lines of the file
	// if text is empty because the line is shorter than column: the length of the line plus one
	short int
}

func (p *page) empty() bool { return len(p.text) == 0 }

// readPage reads up to limit lines or pageBytes bytes, starting at byte column of line offset. It
// holds only the page and the reader's buffer in memory, for a file of any size.
func readPage(ctx context.Context, r *bufio.Reader, offset, column, limit int) (*page, error) {
	p := &page{first: offset, last: offset - 1}
	var (
		line, col = 1, 1 // position of the next byte
		at        int64  // the same as file offset, from 0
		full      int    // bytes of text that form whole lines
		before    []byte // the last bytes that column skips, in case they are part of a rune
		some      bool   // the current line has a byte
	)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && err != io.EOF {
			return nil, err
		}
		some = some || len(b) > 0
		ended := len(b) > 0 && b[len(b)-1] == '\n'
		if line >= offset {
			skip := 0
			if line == offset && col < column {
				skip = min(column-col, len(b))
				before = append(before, b[max(0, skip-utf8.UTFMax+1):skip]...)
				if skip == len(b) && (ended || err == io.EOF) {
					p.short = col + len(b)
					return p, nil
				}
			}
			if p.empty() && len(b) > skip {
				joined := append(bytes.Clone(before), b[skip:]...)
				from := runeStart(joined, len(before))
				p.text = append(p.text, joined[from:]...)
				p.start = at + int64(skip-len(before)+from)
			} else {
				p.text = append(p.text, b[skip:]...)
			}
		}
		at += int64(len(b))
		col += len(b)
		if len(p.text) > pageBytes {
			if full == 0 { // one line is longer than a page
				full = runeStart(p.text, pageBytes)
				p.last = line
				p.nextColumn = col - (len(p.text) - full)
			}
			p.text, p.next = p.text[:full], line
			return p, nil
		}
		if err == io.EOF {
			if !some {
				line--
			}
			p.end = true
			p.last = line
			p.total = line
			return p, nil
		}
		if !ended {
			continue
		}
		if line >= offset {
			p.last = line
			full = len(p.text)
		}
		line, col, some = line+1, 1, false
		if p.last-offset+1 >= limit {
			_, err := r.Peek(1)
			p.end = err == io.EOF
			p.next = line
			return p, nil
		}
	}
}

// runeStart returns i or, if a rune of b extends across i, the index at which that rune begins.
func runeStart(b []byte, i int) int {
	for j := i - 1; j >= 0 && i-j < utf8.UTFMax; j-- {
		if utf8.RuneStart(b[j]) {
			if _, n := utf8.DecodeRune(b[j:]); j+n > i || !utf8.FullRune(b[j:]) {
				return j
			}
			break
		}
	}
	return i
}
