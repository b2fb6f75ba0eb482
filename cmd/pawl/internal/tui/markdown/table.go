package markdown

import (
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// table is a table under way. Its columns are as wide as its first rows want them.
type table struct {
	head   []string
	align  []byte // 'l', 'c' or 'r'
	rows   [][]string
	widths []int // once they are fixed
}

// looked is how many rows say how wide the columns are. What comes after is broken to fit, so that
// a long table need not be waited for.
const looked = 40

// newTable makes a table of a line and the one under it, if that is the line under the head of a
// table.
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

// fields cuts a row into its cells.
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

// tableRow takes a row.
func (s *state) tableRow(l string, width int) {
	t := &s.table
	row := make([]string, len(t.head))
	copy(row, fields(l))
	t.rows = append(t.rows[:len(t.rows):len(t.rows)], row)
	switch {
	case t.widths != nil:
		for _, l := range t.row(row, 0, s.live) {
			s.show(l)
		}
		t.rows = nil
	case len(t.rows) == looked:
		for _, l := range t.lines(s.room(width), s.live) {
			s.show(l)
		}
		t.rows = nil
	}
}

const between = " │ "

// lines shows the head and the rows so far, and fixes the columns; without rows nothing is left to
// show.
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

// fit says how wide the columns are: as wide as they want to be, or as much as there is. Zeros:
// there is no room for columns, and each cell has a line.
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

// row shows a row, in as many lines as its longest cell needs.
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

// record shows a row where there is no room for columns: a line for each cell.
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
