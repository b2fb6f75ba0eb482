// Package markdown formats Markdown for a terminal while it arrives.
//
// A Stream accepts text in fragments. It returns lines as soon as later text cannot change them: a
// paragraph at its end, a line of code at its line end, a table when the widths of its columns are
// known. Open returns the incomplete rest, which the caller repaints as more text arrives. Lines
// that have scrolled away are therefore never repainted, and the fragments of a text do not change
// its lines.
//
// It supports the Markdown of models: headings, paragraphs, nested lists, tasks, quotes, code with
// its language, tables, rules, emphasis, code spans and links. Other text is shown unchanged.
// goldmark and glamour are not used, because they parse complete documents only.
package markdown

import (
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// Stream formats a text that arrives in fragments. New makes one; the zero value is not usable. A
// Stream must not be used concurrently.
type Stream struct {
	width int
	tail  string // the incomplete last line
	state
}

// longest is the maximum number of bytes of a line, and of a paragraph, that are formatted
// together. It bounds the work for one fragment.
const longest = 4096

// state is the position in the text. It is a value: Open formats incomplete text on a copy.
type state struct {
	out  []term.Line // permanent lines that the caller has not received yet
	any  bool        // there was a line before
	gap  bool        // an empty line precedes the next line
	bars int         // the quote depth of that empty line
	cont bool        // the next line continues a line that was too long

	quote int    // the quote depth of the block
	items []item // the list items around the block
	mark  string // the bullet before the first line of the block
	para  string // the text of the paragraph so far
	block block

	fence, lang string // of a block of code: its fence
	shift       int    // of a block of code: its indentation
	table       table
	live        bool // the lines will be repainted
}

type block int

const (
	nothing block = iota
	paragraph
	code
	rows
)

// item is a list item. content is the column where its text starts.
type item struct{ content int }

// New returns a stream for lines of at most width columns. The minimum is 10.
func New(width int) *Stream { return &Stream{width: max(width, 10)} }

// Render formats a complete text.
func Render(text string, width int) []term.Line {
	s := New(width)
	return append(s.Write(text), s.Close()...)
}

// Resize sets the width of later lines.
func (s *Stream) Resize(width int) { s.width = max(width, 10) }

// Write adds a fragment and returns the lines that have become permanent.
func (s *Stream) Write(text string) []term.Line {
	s.tail += text
	for {
		end := strings.IndexByte(s.tail, '\n')
		if end < 0 || end > longest {
			if len(s.tail) <= longest {
				break
			}
			end = cutAt(s.tail)
			s.line(s.tail[:end], s.width)
			s.tail, s.cont = s.tail[end:], true
			continue
		}
		l := strings.TrimSuffix(s.tail[:end], "\r")
		s.tail = s.tail[end+1:]
		s.line(l, s.width)
		s.cont = false
	}
	return s.take()
}

// cutAt returns the offset at which a long line is cut: after a space, or else between characters.
func cutAt(s string) int {
	if i := strings.LastIndexByte(s[:longest], ' '); i > 0 {
		return i + 1
	}
	n := longest
	for n > longest-4 && s[n]&0xc0 == 0x80 {
		n--
	}
	return n
}

// Open returns the incomplete end of the text, as it looks so far.
func (s *Stream) Open() []term.Line {
	c := s.state
	c.out, c.live = nil, true
	c.items = append([]item(nil), c.items...)
	if s.tail != "" {
		c.line(s.tail, s.width)
	}
	c.flush(s.width)
	return c.out
}

// Close returns the remaining lines and resets the stream for another text.
func (s *Stream) Close() []term.Line {
	if s.tail != "" {
		s.line(strings.TrimSuffix(s.tail, "\r"), s.width)
	}
	s.flush(s.width)
	out := s.take()
	s.tail, s.state = "", state{}
	return out
}

func (s *state) take() []term.Line {
	out := s.out
	s.out = nil
	return out
}

// line handles a line of the text.
func (s *state) line(l string, width int) {
	if s.cont {
		s.continued(l, width)
		return
	}
	quote, l := quoted(l)
	if s.block == code {
		if s.quote == quote || quote == 0 && s.quote == 0 {
			if !closes(l, s.fence) {
				s.code(l, width)
				return
			}
			s.block = nothing
			return
		}
		s.block = nothing // the end of the quote also ends the code
	}
	if quote != s.quote && !(s.block == paragraph && quote == 0 && isText(l)) {
		s.flush(width)
		s.items = nil
		s.quote = quote
	}
	if strings.TrimSpace(l) == "" {
		s.flush(width)
		s.gap, s.bars = true, quote
		return
	}
	if s.block == rows {
		if strings.Contains(l, "|") {
			s.tableRow(l, width)
			return
		}
		s.flush(width)
	}
	s.begin(l, width)
}

// continued handles the rest of a line that was cut.
func (s *state) continued(l string, width int) {
	switch s.block {
	case code:
		s.code(l, width)
	case rows:
	default:
		s.flush(width)
		s.block, s.para = paragraph, l
	}
}

// begin handles a line that may start a block.
func (s *state) begin(l string, width int) {
	indent, text := indented(l)
	if s.block == paragraph && s.setext(text, width) {
		return
	}
	if mark, rest, at, ok := bullet(text); ok && !(s.block == paragraph && len(s.items) == 0 && indent > 3) &&
		!isRule(text) {
		s.flush(width)
		s.leave(indent)
		s.items = append(s.items, item{indent + at})
		s.mark = mark
		s.block, s.para = paragraph, rest
		if fence, lang, ok := fenced(rest); ok {
			s.para = ""
			s.openCode(fence, lang, indent+at, width)
		}
		return
	}
	if s.block != paragraph {
		s.leave(indent)
	}
	if fence, lang, ok := fenced(text); ok {
		s.flush(width)
		s.leave(indent)
		s.openCode(fence, lang, indent, width)
		return
	}
	if level := heading(text); level > 0 {
		s.flush(width)
		s.items = nil
		s.heading(strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text[level:]), "#")), level, width)
		return
	}
	if s.block == nothing && isRule(text) {
		s.items = nil
		s.show(term.Text(term.Dim, strings.Repeat("─", max(3, s.room(width)))))
		return
	}
	if s.block == nothing && len(s.items) == 0 && indent >= 4 {
		s.codeLine(l[4*btoi(strings.HasPrefix(l, "    ")):], width)
		return
	}
	if s.block == paragraph && !strings.Contains(s.para, "\n") {
		if t, ok := newTable(s.para, text); ok {
			s.table, s.block, s.para = t, rows, ""
			return
		}
	}
	if s.block == paragraph {
		if strings.HasSuffix(s.para, "\\") {
			s.para = strings.TrimSuffix(s.para, "\\") + "  "
		}
		s.para += "\n" + text
	} else {
		s.block, s.para = paragraph, text
	}
	if len(s.para) > longest {
		s.flush(width)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// leave ends the list items that do not contain a line with this indentation.
func (s *state) leave(indent int) {
	for len(s.items) > 0 && indent < s.items[len(s.items)-1].content {
		s.items = s.items[: len(s.items)-1 : len(s.items)-1]
	}
}

// setext turns the paragraph into a heading if text is its underline.
func (s *state) setext(text string, width int) bool {
	level := 0
	switch t := strings.TrimRight(text, " "); {
	case len(t) >= 2 && strings.Trim(t, "=") == "":
		level = 1
	case len(t) >= 3 && strings.Trim(t, "-") == "":
		level = 2
	}
	if level == 0 || s.mark != "" || strings.Contains(s.para, "\n") || len(s.items) > 0 {
		return false
	}
	title := s.para
	s.block, s.para = nothing, ""
	s.heading(title, level, width)
	return true
}

func (s *state) heading(text string, level, width int) {
	style := term.Bold
	if level <= 2 {
		style |= term.Cyan
	}
	if level == 1 {
		style |= term.Underline
	}
	s.gap, s.bars = s.any, s.quote
	s.show(inline(text, style, s.live).Wrap(s.room(width))...)
	s.gap = true
}

// flush ends the block and emits it.
func (s *state) flush(width int) {
	switch s.block {
	case paragraph:
		s.paragraph(width)
	case rows:
		s.show(s.table.lines(s.room(width), s.live)...)
		s.table = table{}
	case code:
		return // only the closing fence ends it
	}
	s.block, s.para, s.mark = nothing, "", ""
}

// paragraph emits the paragraph.
func (s *state) paragraph(width int) {
	room := s.room(width)
	var lines []term.Line
	text := s.para
	if s.mark != "" {
		for _, task := range []struct{ mark, box string }{{"[ ] ", "☐ "}, {"[x] ", "☑ "}, {"[X] ", "☑ "}} {
			if rest, ok := strings.CutPrefix(text, task.mark); ok {
				text = task.box + rest
			}
		}
	}
	for _, part := range hardBreaks(text) {
		lines = append(lines, inline(part, 0, s.live).Wrap(room)...)
	}
	if len(lines) == 0 {
		lines = []term.Line{{}}
	}
	s.show(lines...)
}

// hardBreaks splits a paragraph at its explicit line breaks.
func hardBreaks(text string) []string {
	var out []string
	for i, l := range strings.Split(text, "\n") {
		if i == 0 || strings.HasSuffix(out[len(out)-1], "  ") {
			if i > 0 {
				out[len(out)-1] = strings.TrimRight(out[len(out)-1], " ")
			}
			out = append(out, l)
		} else {
			out[len(out)-1] = strings.TrimRight(out[len(out)-1], " ") + " " + strings.TrimLeft(l, " ")
		}
	}
	return out
}

// show emits lines after the bars of its quotes and the bullets of its lists.
func (s *state) show(lines ...term.Line) {
	for _, l := range lines {
		head := s.prefix()
		if s.gap && s.any {
			gap := term.Line{}
			if bars := min(s.bars, s.quote); bars > 0 {
				gap = term.Text(term.Dim, strings.TrimRight(strings.Repeat("▎ ", bars), " "))
			}
			s.out = append(s.out, gap)
		}
		s.gap, s.any, s.mark = false, true, ""
		s.out = append(s.out, head.With(l...))
	}
}

var bullets = []string{"•", "◦", "▪"}

// prefix returns the bars and the bullet before a line of the block.
func (s *state) prefix() term.Line {
	var head term.Line
	if s.quote > 0 {
		head = head.Add(term.Dim, strings.Repeat("▎ ", s.quote))
	}
	depth := min(len(s.items), 8)
	if depth == 0 {
		return head
	}
	head = head.Add(0, strings.Repeat("  ", depth-1))
	switch {
	case s.mark == "":
		return head.Add(0, "  ")
	case s.mark == "-":
		return head.Add(term.Cyan, bullets[(depth-1)%len(bullets)]).Add(0, " ")
	}
	return head.Add(term.Cyan, s.mark).Add(0, " ")
}

// room returns the number of columns for a line of the block.
func (s *state) room(width int) int {
	used := 2*s.quote + 2*min(len(s.items), 8)
	if len(s.mark) > 1 {
		used += len(s.mark) - 1
	}
	return max(width-used, 8)
}
