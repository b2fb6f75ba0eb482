// Package markdown formats Markdown for a terminal while it arrives.
//
// A Stream accepts text in fragments. It returns lines as soon as later text cannot change them: a
// paragraph at its end, a line of code at its line end, a table when the widths of its columns are
// known. Open returns the incomplete rest, which the caller repaints as more text arrives. Lines
// that have scrolled away are therefore never repainted, and the fragments of a text do not change
// its lines.
//
// goldmark parses CommonMark with the tables, tasks, links and deletions of GitHub. HTML and link
// definitions are shown unchanged. goldmark accepts complete documents only. A Stream therefore
// parses again after each line, but only the block that is open: a line that opens the quotes and
// list items around it stands for the text that has been shown.
package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// flush returns the lines that were shown since the last call.
func (s *state) flush() []term.Line {
	out := s.out
	s.out = nil
	return out
}

var syntax = parser.NewParser(
	parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000)),
	parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewLinkifyParser(), 999))...),
	parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
	parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)))

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

	head   string // opens the quotes and list items around the end of the shown text
	text   string // the complete lines of the open block
	begun  bool   // the first lines of the open block are shown
	widths []int  // of the columns of an open table; nil means that they are not determined yet
}

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
		// An unfinished line is held. A very long one is cut, because a paragraph is parsed anew
		// with each fragment.
		if end < 0 && len(s.tail) <= longest {
			break
		}
		if end < 0 || end > longest {
			end = cutAt(s.tail)
			s.line(s.tail[:end], s.width)
			s.tail = s.indent() + s.tail[end:]
			continue
		}
		l := strings.TrimSuffix(s.tail[:end], "\r")
		s.tail = s.tail[end+1:]
		s.line(l, s.width)
	}
	return s.flush()
}

// cutAt returns the offset at which a long line is cut: after a space, or else between characters.
func cutAt(s string) int {
	if i := strings.LastIndexByte(s[:longest], ' '); i > longest/2 {
		return i + 1
	}
	n := longest
	for n > longest-4 && s[n]&0xc0 == 0x80 {
		n--
	}
	return n
}

// Open returns the incomplete end of the text, as it looks so far. Emphasis and code spans that are
// open end with the text, so that their marks do not appear and disappear. A line of marks is not
// shown before its end, because its meaning is not known.
func (s *Stream) Open() []term.Line {
	c := s.state
	c.out = nil
	if strings.Trim(s.tail, " \t-=*+#>`~|:") != "" {
		c.text += strings.TrimSuffix(s.tail, "\r") + "\n"
	}
	if all, _ := c.blocks(); len(all) > 0 {
		if start := openText(all[len(all)-1]) - len(c.head); start >= 0 {
			c.text = c.text[:start] + closed(c.text[start:]) + "\n"
		}
	}
	c.read(s.width, true)
	return c.out
}

// openText returns the offset at which the text begins whose marks may be open: the last block, or
// the last row of a table. It is -1 for code, in which nothing is a mark.
func openText(last ast.Node) int {
	switch last := last.(type) {
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		return -1
	case *east.Table:
		return last.LastChild().Pos()
	}
	if last.Lines().Len() == 0 {
		return -1
	}
	return last.Lines().At(0).Start
}

// Close returns the remaining lines and resets the stream for another text.
func (s *Stream) Close() []term.Line {
	if s.tail != "" {
		s.line(strings.TrimSuffix(s.tail, "\r"), s.width)
	}
	s.read(s.width, true)
	out := s.flush()
	s.tail = ""
	s.state = state{}
	return out
}

// line handles a complete line of the text.
func (s *state) line(l string, width int) {
	s.text += l + "\n"
	blank := strings.Trim(l, "> \t") == ""
	if open := s.read(width, blank); blank && !open {
		s.gap = true
		s.bars = strings.Count(l, ">")
	}
}

// blocks parses the open text. It returns the blocks without other blocks in them, except the one
// in head.
func (s *state) blocks() (all []ast.Node, source []byte) {
	source = []byte(s.head + s.text)
	var walk func(ast.Node)
	walk = func(n ast.Node) {
		c := n.FirstChild()
		if _, table := n.(*east.Table); table || c == nil || c.Type() == ast.TypeInline {
			all = append(all, n)
			return
		}
		for ; c != nil; c = c.NextSibling() {
			walk(c)
		}
	}

	if doc := syntax.Parse(text.NewReader(source)); doc.HasChildren() {
		walk(doc)
	}
	// The block in head only opens the quotes and lists that the text continues. It was shown
	// before.
	if s.head != "" && len(all) > 0 {
		all = all[1:]
	}
	return all, source
}

// read shows the blocks that have ended, and the lines of code and the rows of the last one. end
// says that the last block has ended too, except code, which only its fence ends. open says that
// the last block is code that has not ended.
func (s *state) read(width int, end bool) (open bool) {
	all, source := s.blocks()
	if len(all) == 0 {
		s.text = ""
		return false
	}
	for i, n := range all[:len(all)-1] {
		s.show(n, source, width)
		s.begun = false
		s.widths = nil
		if i == len(all)-2 {
			s.head = opening(n, source)
		}
	}

	last := all[len(all)-1]
	t := s.tailOf(last, source)
	lines := strings.SplitAfter(s.text, "\n")
	lines = lines[max(0, len(lines)-1-t.size):]
	if _, table := last.(*east.Table); table && len(all) > 1 && all[len(all)-2].Parent() == last.Parent() {
		for i, l := range lines[:len(lines)-1] { // its paragraph is shown: no line continues it
			lines[i] = s.indent() + strings.TrimLeft(l, "> \t")
		}
	}
	s.text = strings.Join(lines, "")

	if t.decides {
		end = t.ended
	}
	end = end || t.keep == 0 && len(s.text) > longest
	if end || t.keep > 0 {
		s.show(last, source, width)
		s.text = strings.Join(lines[:min(t.keep, len(lines))], "")
	}
	if end {
		s.head = opening(last, source)
		s.text = ""
		s.begun = false
		s.widths = nil
	}
	return t.decides && !t.ended
}

// tail is the last block of the text.
type tail struct {
	size    int  // lines of the block in the text
	keep    int  // lines at its start that the next lines need; 0 means that it is shown as a whole
	decides bool // whether the block has ended shows by the block itself
	ended   bool // with decides
}

// tailOf returns what the last block of the text is.
func (s *state) tailOf(last ast.Node, source []byte) tail {
	t := tail{size: max(last.Lines().Len(), 1)}
	switch n := last.(type) {
	case *ast.FencedCodeBlock:
		after := bytes.Count(source[n.Pos():], []byte("\n")) - 1
		t.size = after + 1
		t.keep = 1
		t.decides = true
		t.ended = after != n.Lines().Len()
	case *east.Table:
		t.size = n.ChildCount() + 1
		if s.widths != nil || t.size >= sampled+2 {
			t.keep = 2
		}
	// No later line continues these blocks.
	case *ast.Heading, *ast.ThematicBreak:
		t.decides = true
		t.ended = true
	}
	return t
}
