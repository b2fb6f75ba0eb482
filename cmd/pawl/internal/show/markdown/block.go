package markdown

import (
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// deepest is the number of quotes and list items around a block that are shown.
const deepest = 16

var bullets = []string{"•", "◦", "▪"}

var markers = regexp.MustCompile(`^(?:[-+*]|\d{1,9}[.)])`)

// marker returns the marker of a list item.
func marker(n *ast.ListItem, source []byte) string {
	if at := n.Pos(); at >= 0 && at < len(source) {
		if m := markers.Find(source[at:]); m != nil {
			return string(m)
		}
	}
	return "-"
}

// opening returns a line that opens the quotes and the list items around n, and holds a block that
// has ended. "" means that there are none, or too many.
func opening(n ast.Node, source []byte) string {
	l := ""
	for ; n != nil; n = n.Parent() {
		switch n := n.(type) {
		case *ast.Blockquote:
			l = "> " + l
		case *ast.ListItem:
			mark := marker(n, source)
			// The content of an item may be indented by more than its mark. Four spaces and more
			// behind a mark would begin code.
			free := max(n.Offset-len(mark), 1)
			l = strings.Repeat(" ", max(free-4, 0)) + mark + strings.Repeat(" ", min(free, 4)) + l
		}
	}
	if l == "" || len(l) > longest/16 {
		return ""
	}
	return l + "# x\n"
}

// indent returns the start of a line that stays in the quotes and list items of head.
func (s *state) indent() string {
	return strings.Map(func(r rune) rune {
		if r != '>' {
			return ' '
		}
		return r
	}, strings.TrimSuffix(s.head, "# x\n"))
}

// around returns what precedes the first line and the other lines of a block, and the number of
// quotes around it.
func (s *state) around(n ast.Node, source []byte) (first, rest term.Line, quotes int) {
	boxes, own := s.boxes(n)
	items := 0
	for _, box := range boxes[:min(len(boxes), deepest)] {
		item, ok := box.(*ast.ListItem)
		if !ok {
			quotes++
			first = first.Add(term.Dim, "▎ ")
			rest = rest.Add(term.Dim, "▎ ")
			continue
		}

		if item == own {
			mark := marker(item, source)
			if len(mark) == 1 {
				mark = bullets[items%len(bullets)]
			}
			first = first.Add(term.Cyan, mark).Add(0, " ")
		} else {
			first = first.Add(0, "  ")
		}
		items++
		rest = rest.Add(0, "  ")
	}
	return first, rest, quotes
}

// boxes returns the quotes and the list items around a block, outermost first. own is the item
// whose first block is n, if its mark was not shown yet.
func (s *state) boxes(n ast.Node) (boxes []ast.Node, own *ast.ListItem) {
	starts := !s.begun
	for ; n != nil; n = n.Parent() {
		switch p := n.(type) {
		case *ast.Blockquote:
			boxes = append(boxes, p)
		case *ast.ListItem:
			if starts {
				own = p
			}
			starts = false
			boxes = append(boxes, p)
		}
		starts = starts && n.PreviousSibling() == nil
	}
	slices.Reverse(boxes)
	return boxes, own
}

// show shows the lines of a block after the bars of its quotes and the bullets of its lists.
func (s *state) show(n ast.Node, source []byte, width int) {
	first, rest, quotes := s.around(n, source)
	room := max(width-first.Width(), 8)
	emit := func(lines ...term.Line) {
		for _, l := range lines {
			// The empty line has the bars of the quotes that both blocks are in.
			if s.gap && s.any {
				bars := strings.Repeat("▎ ", min(s.bars, quotes))
				s.out = append(s.out, term.Line(nil).Add(term.Dim, strings.TrimRight(bars, " ")))
			}
			s.gap = false
			s.any = true
			s.begun = true
			s.out = append(s.out, first.With(l...))
			first = rest
		}
	}

	switch n := n.(type) {
	case *ast.Blockquote: // without a text
	case *ast.Heading:
		// Empty lines stand around a heading, also where the text has none.
		s.gap = s.any
		s.bars = quotes
		emit(inline(n, source, headingStyle(n.Level), room)...)
		s.gap = true
		s.bars = quotes
	case *ast.ThematicBreak:
		emit(term.Text(term.Dim, strings.Repeat("─", max(3, room))))
	case *ast.FencedCodeBlock:
		lang := strings.Trim(string(n.Language(source)), "{}.")
		// The language stands above the first line of the code only. Later parts of the block
		// continue it.
		if !s.begun && lang != "" {
			emit(term.Text(term.Dim, "  "+lang))
		}
		emit(code(n, source, lang, room)...)
	case *ast.CodeBlock:
		emit(code(n, source, "", room)...)
	case *east.Table:
		emit(s.table(n, source, room)...)
	default:
		emit(inline(n, source, 0, room)...)
	}
}

// headingStyle returns the style of a heading of a level, from 1.
func headingStyle(level int) term.Style {
	switch level {
	case 1:
		return term.Bold | term.Cyan | term.Underline
	case 2:
		return term.Bold | term.Cyan
	}
	return term.Bold
}

// sampled is the number of rows that determine the widths of the columns. Cells of later rows are
// wrapped, so that a long table is shown before its end.
const sampled = 40

const between = " │ "

// table returns the lines of a table, and fixes the widths of its columns. Once they are fixed it
// leaves out the header.
func (s *state) table(n *east.Table, source []byte, width int) (out []term.Line) {
	rows := cellsOf(n, source)
	// Printed lines cannot change, so that the first rows decide about the widths of all.
	if s.widths == nil {
		s.widths = fit(rows, width)
		if s.widths[0] > 0 {
			rule := make([]string, len(s.widths))
			for i, w := range s.widths {
				rule[i] = strings.Repeat("─", w)
			}
			out = append(s.row(n, rows[0]), term.Text(term.Dim, strings.Join(rule, "─┼─")))
		}
	}

	for _, r := range rows[1:] {
		if s.widths[0] > 0 {
			out = append(out, s.row(n, r)...)
		} else {
			out = append(out, listed(rows[0], r)...)
		}
	}
	return out
}

// cellsOf returns the cells of a table, by row. All rows have the columns of the header.
func cellsOf(n *east.Table, source []byte) (rows [][]term.Line) {
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		style := term.Style(0)
		if rows == nil {
			style = term.Bold
		}
		cells := make([]term.Line, 0, len(n.Alignments))
		for c := r.FirstChild(); c != nil && len(cells) < cap(cells); c = c.NextSibling() {
			cells = append(cells, inline(c, source, style, 1<<20)[0])
		}
		rows = append(rows, cells[:cap(cells)])
	}
	return rows
}

// listed returns a row as a list, a line a cell.
func listed(head, row []term.Line) (out []term.Line) {
	for i, c := range row {
		mark := "  "
		if i == 0 {
			mark = "• "
		}
		out = append(out, term.Text(term.Dim, mark).With(head[i]...).Add(0, ": ").With(c...))
	}
	return out
}

// fit returns the widths of the columns for a table of width columns. Zeros mean that there is no
// room for columns, and that each cell has a line of its own.
func fit(rows [][]term.Line, width int) []int {
	want := make([]int, len(rows[0]))
	over := len([]rune(between))*(len(want)-1) - width
	for i := range want {
		for _, r := range rows {
			want[i] = max(want[i], r[i].Width(), 1)
		}
		over += want[i]
	}

	// The widest column gives a column at a time, so that narrow ones keep their words whole.
	const least = 6
	for ; over > 0; over-- {
		widest := 0
		for i, w := range want {
			if w >= want[widest] {
				widest = i
			}
		}
		if want[widest] <= least {
			return make([]int, len(want))
		}
		want[widest]--
	}
	return want
}

// row returns the lines of a row, as many as its longest cell needs.
func (s *state) row(n *east.Table, cells []term.Line) []term.Line {
	var out []term.Line
	wrapped := make([][]term.Line, len(cells))
	for i, c := range cells {
		wrapped[i] = c.Wrap(s.widths[i])
		out = append(out, make([]term.Line, max(0, len(wrapped[i])-len(out)))...)
	}

	for y := range out {
		var l term.Line
		for i := range cells {
			var c term.Line
			if y < len(wrapped[i]) {
				c = wrapped[i][y]
			}
			before, after := padding(n.Alignments[i], s.widths[i]-c.Width())
			if i > 0 {
				l = l.Add(term.Dim, between)
			}
			l = l.Add(0, before).With(c...)
			if i < len(cells)-1 { // no space ends a line
				l = l.Add(0, after)
			}
		}
		out[y] = l
	}
	return out
}

// padding returns the space around a cell that leaves free columns of its column.
func padding(a east.Alignment, free int) (before, after string) {
	free = max(0, free) // a wide character may not fit a narrow column
	left := 0
	switch a {
	case east.AlignRight:
		left = free
	case east.AlignCenter:
		left = free / 2
	}
	return strings.Repeat(" ", left), strings.Repeat(" ", free-left)
}
