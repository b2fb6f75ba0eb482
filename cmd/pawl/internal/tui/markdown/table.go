package markdown

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// sampled is the number of rows that determine the widths of the columns. Cells of later rows are
// wrapped, so that a long table is shown before its end.
const sampled = 40

const between = " │ "

// table returns the lines of a table, and fixes the widths of its columns. Once they are fixed it
// leaves out the header.
func (s *state) table(n *east.Table, source []byte, width int) (out []term.Line) {
	var rows [][]term.Line
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
			continue
		}
		for i, c := range r {
			mark := "  "
			if i == 0 {
				mark = "• "
			}
			out = append(out, term.Text(term.Dim, mark).With(rows[0][i]...).Add(0, ": ").With(c...))
		}
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
			free, left := max(0, s.widths[i]-c.Width()), 0
			switch n.Alignments[i] {
			case east.AlignRight:
				left = free
			case east.AlignCenter:
				left = free / 2
			}
			if i > 0 {
				l = l.Add(term.Dim, between)
			}
			l = l.Add(0, strings.Repeat(" ", left)).With(c...)
			if i < len(cells)-1 {
				l = l.Add(0, strings.Repeat(" ", free-left))
			}
		}
		out[y] = l
	}
	return out
}
