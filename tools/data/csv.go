package data

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/toolrun"
)

// A csvReader reads comma-separated text as people and programs write it. encoding/csv is no help here: it either refuses
// a quote within a field, or takes the rest of the file for one field when a quote is never closed.
type csvReader struct {
	s     string
	comma byte
	at    int
	line  int // of at, from 1
}

// delimiter returns the comma of the text whose first line is line: a comma where there is one, else the most frequent of
// the other usual ones.
func delimiter(line string) byte {
	best, most := byte(','), 0
	for _, c := range []byte{',', '\t', ';', '|'} {
		n, quoted := 0, false
		for i := range len(line) {
			if line[i] == '"' {
				quoted = !quoted
			}
			if line[i] == c && !quoted {
				n++
			}
		}
		if n > most {
			best, most = c, n
		}
		if c == ',' && n > 0 {
			break
		}
	}
	return best
}

// row returns the next row and the line it begins in; nil at the end. A line without anything is no row.
func (r *csvReader) row() (fields []string, line int, err error) {
	for r.at < len(r.s) {
		start := r.at
		end := strings.IndexByte(r.s[r.at:], '\n')
		if end < 0 {
			end = len(r.s) - r.at
		}
		if strings.Trim(r.s[start:start+end], " \r") != "" {
			break
		}
		r.at = min(start+end+1, len(r.s))
		r.line++
	}
	if r.at >= len(r.s) {
		return nil, r.line, nil
	}
	line = r.line
	for {
		field, last, err := r.field()
		if err != nil {
			return nil, line, err
		}
		fields = append(fields, field)
		if last {
			return fields, line, nil
		}
	}
}

// field returns the next field and whether it is the last of its row.
func (r *csvReader) field() (field string, last bool, err error) {
	r.blanks()
	if r.at < len(r.s) && r.s[r.at] == '"' {
		return r.quoted()
	}
	start := r.at
	for r.at < len(r.s) && r.s[r.at] != r.comma && r.s[r.at] != '\n' {
		r.at++
	}
	return strings.TrimRight(r.s[start:r.at], " \r"), r.ends(), nil
}

// quoted reads a field in quotes. A quote ends it where the field can end; two stand for one; any other is
// taken as it is, for that is what was meant.
func (r *csvReader) quoted() (string, bool, error) {
	opened := r.line
	r.at++
	var b strings.Builder
	for r.at < len(r.s) {
		c := r.s[r.at]
		r.at++
		switch {
		case c == '\n':
			r.line++
		case c == '"' && r.at < len(r.s) && r.s[r.at] == '"':
			r.at++
		case c == '"':
			back := r.at
			r.blanks()
			for r.at < len(r.s) && r.s[r.at] == '\r' {
				r.at++
			}
			if r.at == len(r.s) || r.s[r.at] == r.comma || r.s[r.at] == '\n' {
				return b.String(), r.ends(), nil
			}
			r.at = back
		}
		b.WriteByte(c)
	}
	return "", false, toolrun.Refuse("csv parse error: line %d: a quoted field begins here and is never closed", opened)
}

func (r *csvReader) blanks() {
	for r.at < len(r.s) && r.s[r.at] == ' ' {
		r.at++
	}
}

// ends passes what is after a field and reports whether that ends the row.
func (r *csvReader) ends() bool {
	if r.at >= len(r.s) {
		return true
	}
	r.at++
	if r.s[r.at-1] == '\n' {
		r.line++
		return true
	}
	return false
}

// parseCSV reads content, whose first row names the columns. No row and no field is left out: what a short row lacks is null, and what
// a long row has more goes to columns extra_1, extra_2 and so on.
func parseCSV(ctx context.Context, content string) (*table, error) {
	content = strings.ReplaceAll(content, "\r\n", "\n")
	if !strings.Contains(content, "\n") {
		content = strings.ReplaceAll(content, "\r", "\n") // of an old Mac, and of some spreadsheets today
	}
	first, _, _ := strings.Cut(strings.TrimLeft(content, " \n"), "\n")
	r := &csvReader{s: content, comma: delimiter(first), line: 1}
	header, _, err := r.row()
	if err != nil {
		return nil, err
	}
	t := newTable()
	t.headed = true
	t.header(header)
	var short, long, shortLine, longLine int
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fields, line, err := r.row()
		if err != nil {
			return nil, err
		}
		if fields == nil {
			break
		}
		rec := make(row, 0, max(len(header), len(fields)))
		for i, f := range fields {
			if i >= len(header) {
				i = t.extra(len(header), i-len(header)+1)
			}
			rec = append(rec, cell{i, value{text, f}})
		}
		for i := len(fields); i < len(header); i++ {
			rec = append(rec, cell{column: i})
		}
		switch {
		case len(fields) < len(header):
			if short++; short == 1 {
				shortLine = line
			}
		case len(fields) > len(header):
			if long++; long == 1 {
				longLine = line
			}
		}
		t.rows = append(t.rows, rec)
	}
	if short > 0 {
		t.note("%s shorter than the header, first in line %d: the columns they lack are null", rows(short), shortLine)
	}
	if long > 0 {
		t.note("%s longer than the header, first in line %d: what they have more is in %s", rows(long), longLine, listed(t.columns[len(header):], 10))
	}
	return t, nil
}

func rows(n int) string {
	if n == 1 {
		return "1 row is"
	}
	return fmt.Sprintf("%d rows are", n)
}

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// header makes the columns, with names of their own where the header has none or has one twice.
func (t *table) header(names []string) {
	given := map[string]bool{}
	for _, n := range names {
		given[n] = true
	}
	var twice, unnamed []string
	times := map[string]int{} // how often a name was there; it goes on from that, so that a thousand of one name do not take a million tries
	for i, n := range names {
		name := n
		if n == "" {
			name = t.free(fmt.Sprintf("column_%d", i+1), given)
			unnamed = append(unnamed, name)
		} else if times[n]++; times[n] > 1 {
			for {
				name = fmt.Sprintf("%s_%d", n, times[n])
				if _, taken := t.index[name]; !taken && !given[name] {
					break
				}
				times[n]++
			}
			twice = append(twice, name)
		}
		t.column(name)
	}
	if len(twice) > 0 {
		t.note("headers that stand twice were made distinct: %s", listed(twice, 10))
	}
	if len(unnamed) > 0 {
		t.note("columns without a header were named: %s", listed(unnamed, 10))
	}
}

// free returns name, with underscores before it where it is taken.
func (t *table) free(name string, given map[string]bool) string {
	for {
		if _, taken := t.index[name]; !taken && !given[name] {
			return name
		}
		name = "_" + name
	}
}

// extra returns the n-th column, from 1, beyond the first width ones.
func (t *table) extra(width, n int) int {
	for len(t.columns) < width+n {
		t.column(t.free(fmt.Sprintf("extra_%d", len(t.columns)-width+1), nil))
	}
	return width + n - 1
}
