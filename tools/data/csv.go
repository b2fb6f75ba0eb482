package data

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// A csvReader reads comma-separated text as people and programs write it. encoding/csv is no help here: it either refuses
// a quote within a field, or takes the rest of the file for one field when a quote is never closed.
type csvReader struct {
	in    *input
	comma byte
	text  []byte // of the row's fields, one after the other
	ends  []int  // where each ends in text
	plain bool   // the row's only field had no quotes
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

// row reads the next row and returns the line it begins in; io.EOF at the end. A line without anything is no row.
func (r *csvReader) row() (line int, err error) {
	for {
		r.text, r.ends = r.text[:0], r.ends[:0]
		if r.in.peek() < 0 {
			return r.in.line, io.EOF
		}
		line = r.in.line
		for last := false; !last; {
			if last, err = r.field(); err != nil {
				return line, err
			}
			r.ends = append(r.ends, len(r.text))
		}
		if len(r.ends) > 1 || len(r.text) > 0 || !r.plain {
			return line, nil
		}
	}
}

// cell is the row's field of that index.
func (r *csvReader) cell(i int) []byte {
	from := 0
	if i > 0 {
		from = r.ends[i-1]
	}
	return r.text[from:r.ends[i]]
}

// field reads the next field and reports whether it is the last of its row.
func (r *csvReader) field() (last bool, err error) {
	for r.in.peek() == ' ' {
		r.in.next()
	}
	if r.plain = r.in.peek() != '"'; !r.plain {
		return r.quoted()
	}
	start := len(r.text)
	for {
		c := r.in.next()
		if c < 0 || c == '\n' || byte(c) == r.comma {
			r.text = append(r.text[:start], bytes.TrimRight(r.text[start:], " \r")...)
			return c < 0 || c == '\n', r.in.failed()
		}
		r.text = append(r.text, byte(c))
	}
}

// quoted reads a field in quotes. A quote ends it where the field can end; two stand for one; any other is
// taken as it is, for that is what was meant.
func (r *csvReader) quoted() (last bool, err error) {
	opened := r.in.line
	r.in.next()
	for {
		c := r.in.next()
		if c == '"' && r.in.peek() != '"' {
			after := len(r.text)
			r.text = append(r.text, '"')
			for _, blank := range []int{' ', '\r'} {
				for r.in.peek() == blank {
					r.text = append(r.text, byte(r.in.next()))
				}
			}
			if c := r.in.peek(); c < 0 || c == '\n' || byte(c) == r.comma {
				r.text = r.text[:after]
				r.in.next()
				return c < 0 || c == '\n', r.in.failed()
			}
			continue
		}
		if c < 0 {
			if err := r.in.failed(); err != nil {
				return false, err
			}
			return false, toolrun.Refuse("csv parse error: line %d: a quoted field begins here and is never closed", opened)
		}
		if c == '"' {
			r.in.next() // of two
		}
		r.text = append(r.text, byte(c))
	}
}

// parseCSV reads a table whose first row names the columns. No row and no field is left out: what a short row lacks is null, and what
// a long row has more goes to columns extra_1, extra_2 and so on.
func parseCSV(ctx context.Context, in *input, t *table) error {
	first, _, _ := strings.Cut(strings.TrimLeft(in.ahead(), " \n\r"), "\n")
	r := &csvReader{in: in, comma: delimiter(first)}
	if _, err := r.row(); err != nil && err != io.EOF {
		return err
	}
	var header []string
	for i := range r.ends {
		header = append(header, strings.ToValidUTF8(string(r.cell(i)), "\uFFFD"))
	}
	t.headed = true
	t.header(header)
	var short, long, odd faulty
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := r.row()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if n := len(r.ends); n != len(header) {
			fault := &short
			if n > len(header) {
				fault = &long
			}
			fault.at(line)
		}
		if !utf8.Valid(r.text) {
			odd.at(line)
		}
		if err := t.push(r.pack(t, len(header))); err != nil {
			return err
		}
	}
	if short.n > 0 {
		t.note("%s shorter than the header, first in line %d: the columns they lack are null", rows(short.n), short.line)
	}
	if long.n > 0 {
		t.note("%s longer than the header, first in line %d: what they have more is in %s", rows(long.n), long.line, listed(t.names[len(header):], 10))
	}
	t.noteOdd(odd)
	return nil
}

// pack packs the row that was read.
func (r *csvReader) pack(t *table, width int) []byte {
	b := t.packed[:0]
	for i := range r.ends {
		column := i
		if i >= width {
			column = t.extra(width, i-width+1)
		}
		f := r.cell(i)
		if !utf8.Valid(f) {
			f = bytes.ToValidUTF8(f, []byte("\uFFFD"))
		}
		b = appendTextCell(b, column, f)
	}
	for i := len(r.ends); i < width; i++ {
		b = appendCell(b, i, value{})
	}
	t.packed = b
	return b
}

// faulty counts rows with some fault.
type faulty struct{ n, line int }

func (f *faulty) at(line int) {
	if f.n++; f.n == 1 {
		f.line = line
	}
}

func (t *table) noteOdd(odd faulty) {
	if odd.n > 0 {
		t.note("%s not UTF-8 throughout, first in line %d: such bytes stand here as \uFFFD", rows(odd.n), odd.line)
	}
}

func rows(n int) string {
	if n == 1 {
		return "1 row is"
	}
	return fmt.Sprintf("%d rows are", n)
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
	for len(t.names) < width+n {
		t.column(t.free(fmt.Sprintf("extra_%d", len(t.names)-width+1), nil))
	}
	return width + n - 1
}
