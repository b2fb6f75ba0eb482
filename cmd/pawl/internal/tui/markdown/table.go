package markdown

import (
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// table is a table that is being read. Its first rows determine the widths of the columns.
type table struct {
	head   []string
	align  []byte // 'l', 'c' or 'r'
	rows   [][]string
	widths []int // nil means that the widths are not determined yet
}

// sampled is the number of rows that determine the widths of the columns. Cells of later rows are
// wrapped, so that a long table is shown before its end.
const sampled = 40

// newTable starts a table if under is the delimiter row below the header head.
func newTable(head, under string) (table, bool) {
	if !strings.Contains(under, "-") || !strings.Contains(head, "|") || strings.Trim(under, "|:- \t") != "" {
		return table{}, false
	}
	t := table{head: fields(head)}
	for _, f := range fields(under) {
		a := byte('l')
		switch {
		case strings.Trim(f, ":-") != "" || !strings.Contains(f, "-"):
			return table{}, false
		case strings.HasPrefix(f, ":") && strings.HasSuffix(f, ":"):
			a = 'c'
		case strings.HasSuffix(f, ":"):
			a = 'r'
		}
		t.align = append(t.align, a)
	}
	return t, len(t.align) == len(t.head)
}

// fields splits a row into cells.
func fields(l string) []string {
	l = strings.TrimSpace(l)
	l = strings.TrimPrefix(l, "|")
	var out []string
	var cell strings.Builder
	ticked := false
	for i := 0; i < len(l); i++ {
		switch c := l[i]; {
		case c == '\\' && i+1 < len(l) && l[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '|' && !ticked:
			out = append(out, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			ticked = ticked != (c == '`')
			cell.WriteByte(c)
		}
	}
	if rest := strings.TrimSpace(cell.String()); rest != "" || !strings.HasSuffix(l, "|") {
		out = append(out, rest)
	}
	return out
}

// tableRow handles a row.
func (s *state) tableRow(l string, width int) {
	t := &s.table
	row := make([]string, len(t.head))
	copy(row, fields(l))
	t.rows = append(t.rows[:len(t.rows):len(t.rows)], row)
	switch {
	case t.widths != nil:
		s.show(t.row(row, 0, s.live)...)
		t.rows = nil
	case len(t.rows) == sampled:
		s.show(t.lines(s.room(width), s.live)...)
		t.rows = nil
	}
}

const between = " │ "

// lines returns the header and the first rows, and fixes the widths of the columns. Once they are
// fixed it returns nothing.
func (t *table) lines(width int, live bool) []term.Line {
	if t.widths != nil {
		return nil
	}
	t.widths = t.fit(width)
	var out []term.Line
	if t.widths[0] > 0 {
		out = t.row(t.head, term.Bold, live)
		var rule []string
		for _, w := range t.widths {
			rule = append(rule, strings.Repeat("─", w))
		}
		out = append(out, term.Text(term.Dim, strings.Join(rule, "─┼─")))
	}
	for _, r := range t.rows {
		out = append(out, t.row(r, 0, live)...)
	}
	return out
}

// fit returns the widths of the columns for a table of width columns. Zeros mean that there is no
// room for columns, and that each cell has a line of its own.
func (t *table) fit(width int) []int {
	want := make([]int, len(t.head))
	for _, r := range append([][]string{t.head}, t.rows...) {
		for i, c := range r {
			want[i] = max(want[i], inline(c, 0, false).Width(), 1)
		}
	}
	room := width - len([]rune(between))*(len(want)-1)
	const least = 6
	if room < least*len(want) && sum(want) > room {
		return make([]int, len(want))
	}
	for sum(want) > room {
		most := 0
		for i, w := range want {
			if w > want[most] {
				most = i
			}
		}
		second := least
		for i, w := range want {
			if i != most && w < want[most] {
				second = max(second, w)
			}
		}
		want[most] = max(second, want[most]-(sum(want)-room), least)
		if want[most] == second && sum(want) > room && want[most] > least {
			want[most]--
		}
	}
	return want
}

func sum(all []int) (n int) {
	for _, v := range all {
		n += v
	}
	return n
}

// row returns the lines of a row, as many as its longest cell needs.
func (t *table) row(cells []string, style term.Style, live bool) []term.Line {
	if t.widths[0] == 0 {
		return t.record(cells, live)
	}
	wrapped := make([][]term.Line, len(cells))
	height := 1
	for i, c := range cells {
		wrapped[i] = inline(c, style, live).Wrap(t.widths[i])
		height = max(height, len(wrapped[i]))
	}
	out := make([]term.Line, height)
	for y := range out {
		var l term.Line
		for i := range cells {
			var c term.Line
			if y < len(wrapped[i]) {
				c = wrapped[i][y]
			}
			free := max(0, t.widths[i]-c.Width())
			left := 0
			switch t.align[i] {
			case 'r':
				left = free
			case 'c':
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

// record returns the lines of a row without columns, one for each cell.
func (t *table) record(cells []string, live bool) []term.Line {
	var out []term.Line
	for i, c := range cells {
		mark := "  "
		if i == 0 {
			mark = "• "
		}
		out = append(out, term.Text(term.Dim, mark).With(inline(t.head[i], term.Bold, live)...).Add(0,
			": ").With(inline(c, 0, live)...))
	}
	return out
}
