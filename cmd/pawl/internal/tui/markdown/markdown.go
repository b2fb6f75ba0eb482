// Package markdown shows Markdown in a terminal while it is being written.
//
// A Stream takes text in fragments. What is certain to stay as it is leaves as lines, for good: a
// paragraph when it ends, a line of code when its line does, a table when its columns are known.
// The rest, Open shows as it looks so far; it is painted again when more comes. So what has
// scrolled away is never painted again, and the lines are the same wherever the text was cut.
//
// It knows what models write: headings, paragraphs, lists and lists in lists, tasks, quotes, code
// with its language, tables, rules, emphasis, code, links. What it does not know, it shows as it
// stands. Refused: a parser for whole documents with a renderer of its own (goldmark, glamour).
// Both want the end of a text before they say how it begins.
package markdown

import (
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// Stream shows a text that comes in fragments. The zero value is not ready: see New. It may be used
// by one goroutine at a time.
type Stream struct {
	width int
	tail  string // the line that has no end yet
	state
}

// longest is how many bytes of a line, and of a paragraph, are looked at together. It bounds what
// one more fragment costs.
const longest = 4096

// state is where in the text the stream is. It is a value: a copy can go on without changing the
// original.
type state struct {
	out  []term.Line // done, and not yet taken
	any  bool        // something was shown
	gap  bool        // an empty line stands before what comes next
	bars int         // how deep that line is quoted
	cont bool        // the line goes on: it was too long to be looked at whole

	quote int    // how deep the block is quoted
	items []item // the list items that the block is in
	mark  string // before the first line of the block: the bullet of an item
	para  string // the paragraph so far
	block block

	fence, lang string // of code: what ends it
	shift       int    // of code: how far it is indented
	table       table
	live        bool // what is shown will be painted again
}

type block int

const (
	nothing block = iota
	paragraph
	code
	rows
)

// item is a list item: where what belongs to it begins, in columns.
type item struct{ content int }

// New returns a stream for lines of at most width columns.
func New(width int) *Stream { return &Stream{width: max(width, 10)} }

// Render shows a whole text.
func Render(text string, width int) []term.Line {
	s := New(width)
	return append(s.Write(text), s.Close()...)
}

// Resize says that lines from now on have width columns.
func (s *Stream) Resize(width int) { s.width = max(width, 10) }

// Write takes a fragment, and returns the lines that are done.
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

// cutAt returns where a long line is cut: behind a space, or else between letters.
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

// Open returns what is not done yet, as it looks so far.
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

// Close returns the rest. The stream is at the beginning of another text then.
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

// line takes a line of the text.
func (s *state) line(l string, width int) {
	if s.cont {
		s.goOn(l, width)
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
		s.block = nothing // the quote ended, and the code with it
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

// goOn takes what follows of a line that was cut.
func (s *state) goOn(l string, width int) {
	switch s.block {
	case code:
		s.code(l, width)
	case rows:
	default:
		s.flush(width)
		s.block, s.para = paragraph, l
	}
}

// begin takes a line that may begin a block.
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

// leave leaves the list items that a line with this indent is not in.
func (s *state) leave(indent int) {
	for len(s.items) > 0 && indent < s.items[len(s.items)-1].content {
		s.items = s.items[: len(s.items)-1 : len(s.items)-1]
	}
}

// setext makes the paragraph a heading, if text is the line under one.
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
	for _, l := range inline(text, style, s.live).Wrap(s.room(width)) {
		s.show(l)
	}
	s.gap = true
}

// flush ends the block.
func (s *state) flush(width int) {
	switch s.block {
	case paragraph:
		s.paragraph(width)
	case rows:
		for _, l := range s.table.lines(s.room(width), s.live) {
			s.show(l)
		}
		s.table = table{}
	case code:
		return // only its fence ends it
	}
	s.block, s.para, s.mark = nothing, "", ""
}

// paragraph shows the paragraph.
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
	for _, l := range lines {
		s.show(l)
	}
}

// hardBreaks cuts a paragraph where its author wants a new line.
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

// show puts a line out, behind the bars of quotes and the bullets of lists.
func (s *state) show(l term.Line) {
	head := s.prefix()
	if s.gap && s.any {
		gap := term.Line{}
		if bars := min(s.bars, s.quote); bars > 0 {
			gap = term.Text(term.Dim, strings.TrimRight(strings.Repeat("▎ ", bars), " "))
		}
		s.out = append(s.out, gap)
	}
	s.gap, s.any = false, true
	s.out = append(s.out, head.With(l...))
	s.mark = ""
}

var bullets = []string{"•", "◦", "▪"}

// prefix is what stands before a line of the block.
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

// room is how many columns a line of the block has.
func (s *state) room(width int) int {
	used := 2*s.quote + 2*min(len(s.items), 8)
	if len(s.mark) > 1 {
		used += len(s.mark) - 1
	}
	return max(width-used, 8)
}
