package data

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	texts "github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// A csvReader reads comma-separated text as people and programs write it. Package encoding/csv is
// not suitable: it either refuses a quote within a field, or reads the rest of the file as one
// field if a quote is never closed.
type csvReader struct {
	in    *input
	comma byte
	text  []byte // the row's fields, concatenated
	ends  []int  // where each field ends in text
	plain bool   // the row's only field had no quotes
}

// delimiter returns the separator of the text whose first line is line: a comma if the line
// contains one, otherwise the most frequent of the other usual separators.
func delimiter(line string) byte {
	if outsideQuotes(line, ',') > 0 {
		return ','
	}

	best := byte(',')
	most := 0
	for _, c := range []byte{'\t', ';', '|'} {
		if n := outsideQuotes(line, c); n > most {
			best = c
			most = n
		}
	}
	return best
}

// outsideQuotes counts c in the line, except within quotes.
func outsideQuotes(line string, c byte) int {
	n := 0
	quoted := false
	for i := range len(line) {
		if line[i] == '"' {
			quoted = !quoted
		}
		if line[i] == c && !quoted {
			n++
		}
	}
	return n
}

// row reads the next row and returns the number of its first line. It returns io.EOF at the end. An
// empty line is not a row.
func (r *csvReader) row() (line int, err error) {
	for {
		r.text = r.text[:0]
		r.ends = r.ends[:0]
		if r.in.peek() < 0 {
			return r.in.line, io.EOF
		}

		line = r.in.line
		for last := false; !last; {
			last, err = r.field()
			if err != nil {
				return line, err
			}
			r.ends = append(r.ends, len(r.text))
		}

		// An empty field in quotes is a row: that is how a program writes an empty text.
		if len(r.ends) > 1 || len(r.text) > 0 || !r.plain {
			return line, nil
		}
	}
}

// cell returns field i of the row.
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
	r.plain = r.in.peek() != '"'
	if !r.plain {
		return r.quoted()
	}

	start := len(r.text)
	for {
		c := r.in.next()
		if c < 0 || c == '\n' || byte(c) == r.comma {
			r.text = append(r.text[:start], bytes.TrimRight(r.text[start:], " \r")...)
			return c < 0 || c == '\n', r.in.err
		}
		r.text = append(r.text, byte(c))
	}
}

// quoted reads a quoted field. A quote ends it where a field can end. Two quotes mean one. Any
// other quote is taken literally, because that is what the writer meant.
func (r *csvReader) quoted() (last bool, err error) {
	opened := r.in.line
	r.in.next()
	for {
		c := r.in.next()
		switch {
		case c < 0 && r.in.err != nil:
			return false, r.in.err
		case c < 0:
			return false, toolrun.Refuse("csv parse error: line %d: a quoted field begins here and is never "+
				"closed", opened)

		case c == '"' && r.in.peek() == '"':
			r.in.next()
			r.text = append(r.text, '"')

		case c == '"':
			ended, last := r.closes()
			if ended {
				return last, r.in.err
			}
		default:
			r.text = append(r.text, byte(c))
		}
	}
}

// closes reports whether the quote just read ends its field, and whether that is the last of its
// row. If it does not, the quote and the blanks after it are text.
func (r *csvReader) closes() (ended, last bool) {
	content := len(r.text)
	r.text = append(r.text, '"')
	for _, blank := range []int{' ', '\r'} {
		for r.in.peek() == blank {
			r.text = append(r.text, byte(r.in.next()))
		}
	}

	c := r.in.peek()
	if c >= 0 && c != '\n' && byte(c) != r.comma {
		return false, false
	}
	r.text = r.text[:content]
	r.in.next()
	return true, c < 0 || c == '\n'
}

// parseCSV reads a table whose first row names the columns. No row and no field is dropped: missing
// fields of a short row are null, and additional fields of a long row go to columns extra_1,
// extra_2 and so on.
func parseCSV(ctx context.Context, in *input, t *table) error {
	// The delimiter is found in the header, whose names rarely have one in them.
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

		if len(r.ends) < len(header) {
			short.count(line)
		}
		if len(r.ends) > len(header) {
			long.count(line)
		}
		if !utf8.Valid(r.text) {
			odd.count(line)
		}
		// Faulty rows are counted and kept: one note at the end says what a model must know, and no
		// row is lost.
		if err := t.push(r.pack(t, len(header))); err != nil {
			return err
		}
	}

	if short.n > 0 {
		t.note("%s shorter than the header, first in line %d: the columns they lack are "+
			"null", rows(short.n), short.line)
	}
	if long.n > 0 {
		t.note("%s longer than the header, first in line %d: what they have more is in %s",
			rows(long.n), long.line, listed(t.names[len(header):], 10))
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

// faulty counts rows with a certain fault.
type faulty struct {
	n    int
	line int // of the first such row
}

func (f *faulty) count(line int) {
	f.n++
	if f.n == 1 {
		f.line = line
	}
}

func (t *table) noteOdd(odd faulty) {
	if odd.n > 0 {
		t.note("%s not UTF-8 throughout, first in line %d: such bytes stand here as \uFFFD", rows(odd.n), odd.line)
	}
}

func rows(n int) string { return fmt.Sprint(n, texts.Plural(n, " row is", " rows are")) }

// header creates the columns. Missing and duplicate names are replaced by generated ones.
func (t *table) header(names []string) {
	given := map[string]bool{}
	for _, n := range names {
		given[n] = true
	}
	taken := func(name string) bool {
		_, made := t.index[name]
		return made || given[name]
	}

	var twice, unnamed []string
	// how often a name occurred; counting continues from there, so that a thousand equal names do
	// not take a million attempts
	times := map[string]int{}
	for i, n := range names {
		times[n]++
		name := n
		switch {
		case n == "":
			name = t.free(fmt.Sprintf("column_%d", i+1), given)
			unnamed = append(unnamed, name)

		case times[n] > 1:
			name = fmt.Sprintf("%s_%d", n, times[n])
			for taken(name) {
				times[n]++
				name = fmt.Sprintf("%s_%d", n, times[n])
			}
			twice = append(twice, name)
		}
		t.column(name)
	}

	if len(twice) > 0 {
		t.note("duplicate headers were made distinct: %s", listed(twice, 10))
	}
	if len(unnamed) > 0 {
		t.note("columns without a header were named: %s", listed(unnamed, 10))
	}
}

// free returns name, with leading underscores if it is in use.
func (t *table) free(name string, given map[string]bool) string {
	for {
		if _, taken := t.index[name]; !taken && !given[name] {
			return name
		}
		name = "_" + name
	}
}

// extra returns the n-th column, from 1, after the first width columns.
func (t *table) extra(width, n int) int {
	for len(t.names) < width+n {
		t.column(t.free(fmt.Sprintf("extra_%d", len(t.names)-width+1), nil))
	}
	return width + n - 1
}

// An input is a text that is read byte by byte. Every line ending is read as \n.
type input struct {
	*bufio.Reader
	line int   // line of the next byte, from 1
	err  error // error of the source, except io.EOF
	mac  bool  // lines end in \r
}

const inputSize = 64 << 10

func newInput(r io.Reader) *input {
	in := &input{Reader: bufio.NewReaderSize(r, inputSize), line: 1}
	head, err := in.Peek(inputSize)
	if err != io.EOF {
		in.err = err
	}
	if bytes.HasPrefix(head, []byte("\uFEFF")) {
		in.Discard(len("\uFEFF"))
	}

	// Old Macs and some current spreadsheets write such files.
	in.mac = bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(head, '\r') >= 0
	return in
}

// ahead returns the unread beginning, up to 64 KiB.
func (in *input) ahead() string {
	b, _ := in.Peek(in.Buffered())
	if in.mac {
		return strings.ReplaceAll(string(b), "\r", "\n")
	}
	return string(b)
}

// peek returns the next byte, or -1 at the end or after an error.
func (in *input) peek() int {
	b, err := in.Peek(2)
	switch {
	case len(b) == 0 && err != io.EOF:
		in.err = err
		return -1
	case len(b) == 0:
		return -1
	case string(b) == "\r\n", in.mac && b[0] == '\r':
		return '\n'
	}
	return int(b[0])
}

// next returns the next byte and moves past it.
func (in *input) next() int {
	c := in.peek()
	if c == '\n' {
		in.line++
		if b, _ := in.Peek(1); !in.mac && b[0] == '\r' {
			in.Discard(1)
		}
	}
	if c >= 0 {
		in.Discard(1)
	}
	return c
}
