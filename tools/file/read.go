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
	fromStart := a.Offset <= 1 && a.Column <= 1
	// Beyond the beginning, an empty page of an empty file is an error of the offset.
	if p.empty() && p.total == 0 && fromStart {
		return toolrun.Result(fmt.Sprintf("[%s is empty]", name), readData{Path: name, Offset: 1})
	}
	if err := p.check(name, a, info.Size()); err != nil {
		return llm.ToolResult{}, err
	}
	return p.result(name, a, info.Size())
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

// check refuses a page without text, or with bytes that text does not have. size is the size of the
// file.
func (p *page) check(name string, a readArgs, size int64) error {
	switch {
	case p.empty() && p.short > 0:
		return toolrun.Refuse("column %d is past the end: line %d of %s has %d bytes",
			a.Column, a.Offset, shown(name), p.short-1)
	case p.empty():
		return toolrun.Refuse("offset %d is past the end: %s has %d lines", a.Offset, shown(name), p.total)
	case bytes.IndexByte(p.text, 0) >= 0:
		return toolrun.Refuse("%s is not text: lines %d-%d have NUL bytes; %d bytes in all",
			shown(name), p.first, p.last, size)
	}
	return nil
}

// result returns the page as the result of a call. size is the size of the file. A note behind the
// text says which part it is, unless it is the whole file.
func (p *page) result(name string, a readArgs, size int64) (llm.ToolResult, error) {
	data := readData{Path: name, Size: size, Offset: p.first, Lines: p.last - p.first + 1}
	var notes []string
	if !p.end || p.start > 0 {
		to := p.start + int64(len(p.text))
		notes = append(notes, fmt.Sprintf("lines %d-%d, bytes %d-%d of %d",
			p.first, p.last, p.start+1, to, max(size, to)))
	}
	switch {
	case !p.end:
		data.Next = &readArgs{
			Path:   name,
			Offset: toolrun.Whole(p.next),
			Column: toolrun.Whole(p.nextColumn),
			Limit:  a.Limit,
		}
		next, _ := json.Marshal(data.Next)
		notes = append(notes, fmt.Sprintf("read on with %s", next))
	case p.start > 0:
		notes = append(notes, "this is the end of the file")
	}

	text := p.text
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
		notes = append(notes, "some bytes are not UTF-8 and stand here as \uFFFD")
	}

	res, err := toolrun.Result(string(text), data)
	if len(notes) > 0 {
		sep := "\n"
		if text[len(text)-1] == '\n' {
			sep = ""
		}
		res.Parts = append(res.Parts, llm.Text{Text: sep + "[" + strings.Join(notes, "; ") + "]"})
	}
	return res, err
}

// readPage reads up to limit lines or pageBytes bytes, starting at byte column of line offset. It
// holds only the page and the reader's buffer in memory, for a file of any size.
func readPage(ctx context.Context, r *bufio.Reader, offset, column, limit int) (*page, error) {
	p := &page{first: offset, last: offset - 1}
	g := &paging{page: p, offset: offset, column: column, line: 1, col: 1}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := r.ReadSlice('\n')
		last := err == io.EOF
		if err != nil && !last && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}

		ended := bytes.HasSuffix(b, []byte("\n"))
		if !g.add(b, ended || last) {
			return p, nil
		}
		switch {
		case len(p.text) > pageBytes:
			g.cut()
			return p, nil
		case last:
			g.finish()
			return p, nil
		case !ended: // a line that is longer than the buffer
			continue
		}

		g.endLine()
		if p.last-offset+1 >= limit {
			// A page that ends with the file must not offer another page.
			_, err := r.Peek(1)
			p.end = err == io.EOF
			p.next = g.line
			return p, nil
		}
	}
}

// paging is the state of readPage.
type paging struct {
	page           *page
	offset, column int // where the page begins

	line, col int    // position of the next byte
	at        int64  // the same as file offset, from 0
	begun     bool   // the current line has a byte
	whole     int    // bytes of the text that form whole lines
	skipped   []byte // the last bytes before column, in case they are part of a rune
}

// add adds the next bytes of the file, of one line. last means that the line has no more. It
// returns false if the line ends before the column at which the page begins.
func (g *paging) add(b []byte, last bool) bool {
	p := g.page
	skip := 0
	if g.line == g.offset && g.col < g.column {
		skip = min(g.column-g.col, len(b))
		g.skipped = append(g.skipped, b[max(0, skip-utf8.UTFMax+1):skip]...)
		if skip == len(b) && last {
			p.short = g.col + len(b)
			return false
		}
	}

	switch {
	case g.line < g.offset:
	case p.empty() && len(b) > skip:
		// A page does not begin inside a rune.
		joined := append(bytes.Clone(g.skipped), b[skip:]...)
		from := runeStart(joined, len(g.skipped))
		p.text = append(p.text, joined[from:]...)
		p.start = g.at + int64(skip-len(g.skipped)+from)
	default:
		p.text = append(p.text, b[skip:]...)
	}

	g.begun = g.begun || len(b) > 0
	g.at += int64(len(b))
	g.col += len(b)
	return true
}

// cut ends a page that has become too long, after its last whole line. If one line is longer than a
// page, the page ends inside it.
func (g *paging) cut() {
	p := g.page
	if g.whole == 0 {
		g.whole = runeStart(p.text, pageBytes)
		p.last = g.line
		p.nextColumn = g.col - (len(p.text) - g.whole)
	}
	p.text = p.text[:g.whole]
	p.next = g.line
}

// finish ends the page at the end of the file.
func (g *paging) finish() {
	if !g.begun {
		g.line--
	}
	g.page.end = true
	g.page.last = g.line
	g.page.total = g.line
}

// endLine moves to the beginning of the next line.
func (g *paging) endLine() {
	if g.line >= g.offset {
		g.page.last = g.line
		g.whole = len(g.page.text)
	}
	g.line++
	g.col = 1
	g.begun = false
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
