package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// A table is a list of records with common column names. A record need not have every column, so it
// is stored as cells. Rows and their order do not change after the table is built: a call creates
// another table, which shares the rows.
type table struct {
	names  []string // by column number, as used in the cells of a row
	index  map[string]int
	picked []int // columns to show, in this order; nil means all, in the order of each row
	rows   []row
	notes  []string // repairs made while reading
	headed bool     // a header named the columns, so their order has a meaning
	size   int      // approximate number of bytes
	most   int      // limit for size; 0 means no limit
	last   []int    // while building: the last row with this column, from 1, by column
	packed []byte   // while building: buffer for a row
}

func newTable(most int) *table { return &table{index: map[string]int{}, most: most} }

// with returns a copy of t with other rows.
func (t *table) with(rows []row) *table {
	u := *t
	u.rows = rows
	u.notes = slices.Clone(t.notes)
	// approximate: the bytes of rows are shared and counted for each table
	u.size = t.size - rowSize*(len(t.rows)-len(rows))
	return &u
}

// columns returns the names of the columns to show.
func (t *table) columns() []string {
	names := make([]string, 0, len(t.names))
	for _, c := range t.shown() {
		names = append(names, t.names[c])
	}
	return names
}

// shown returns the numbers of the columns to show.
func (t *table) shown() []int {
	if t.picked != nil {
		return t.picked
	}
	all := make([]int, len(t.names))
	for i := range all {
		all[i] = i
	}
	return all
}

// column returns the index of the column name. It adds the column if it is new.
func (t *table) column(name string) int {
	i, ok := t.index[name]
	if !ok {
		i = len(t.names)
		t.index[name] = i
		t.names = append(t.names, name)
		t.last = append(t.last, 0)
	}
	return i
}

// need returns the index of a column that a call names. A table without records has no columns to
// check against: need returns -1.
func (t *table) need(name, where string) (int, error) {
	i, ok := t.index[name]
	switch {
	case ok:
		return i, nil
	case len(t.names) == 0:
		return -1, nil
	}
	return 0, toolrun.Refuse("%s: unknown column %s; the columns are %s", where, clip(name), listed(t.columns(), 100))
}

// push adds a packed row.
func (t *table) push(packed []byte) error {
	t.size += len(packed) + rowSize
	if t.most > 0 && t.size > t.most {
		return toolrun.Refuse("this is too large: %d MiB are the most, and %d records take more; store less "+
			"of it, or split the file",
			t.most>>20, len(t.rows))
	}
	t.rows = append(t.rows, row(packed))
	return nil
}

// add adds the record raw, which is valid JSON. The error does not contain its position.
func (t *table) add(raw json.RawMessage) error {
	raw = bytes.TrimSpace(raw)
	if raw[0] != '{' {
		return toolrun.Refuse("expected an object, got %s", valueOf(raw).kind)
	}

	// A decoder, and not a map: the columns of a table stand in the order in which records name
	// them.
	d := json.NewDecoder(bytes.NewReader(raw))
	d.Token()
	t.packed = t.packed[:0]
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return err
		}

		i := t.column(key.(string))
		if t.last[i] == len(t.rows)+1 {
			return toolrun.Refuse("the name %s occurs twice in one object", clip(key.(string)))
		}
		t.last[i] = len(t.rows) + 1
		t.packed = appendCell(t.packed, i, valueOf(v))
	}
	return t.push(t.packed)
}

// addAll adds the elements of a valid JSON array. what is its name in texts.
func (t *table) addAll(ctx context.Context, array json.RawMessage, what string) error {
	d := json.NewDecoder(bytes.NewReader(array))
	d.Token()
	for n := 1; d.More(); n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := t.add(raw); err != nil {
			return toolrun.Refuse("%s %d: %s", what, n, err)
		}
	}
	return nil
}

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// maxAnswer is the maximum size of an answer in bytes. The pipeline would cut a longer one in the
// middle of a record.
const maxAnswer = 32 << 10

// An answer is the JSON that a tool returns: some counts, then a list.
type answer struct {
	Count     int               `json:"count"` // number of records
	Truncated bool              `json:"truncated,omitempty"`
	Total     int               `json:"total,omitempty"`
	Returned  int               `json:"returned,omitempty"`
	Next      int               `json:"next_offset,omitempty"`
	Table     string            `json:"table,omitempty"` // name under which the table is stored
	Columns   []string          `json:"columns,omitzero"`
	Skipped   map[string]int    `json:"skipped,omitempty"`
	Notes     []string          `json:"notes,omitempty"`
	Records   []json.RawMessage `json:"records,omitzero"`
	Groups    []json.RawMessage `json:"groups,omitzero"`

	record func(b []byte, i int) []byte // appends record i
	from   int                          // index of the first record to return
	most   int                          // number of records to return; negative means all
	next   bool                         // state where to continue
	groups bool                         // the records are groups
}

// json writes as many records as fit.
func (a *answer) json() ([]byte, error) {
	// The size without records is measured first, so that the records fill what is left and the
	// answer stays valid JSON.
	head, err := jsonform.Marshal(a)
	if err != nil {
		return nil, err
	}
	const frame = 188 // upper limit for the names and counts that follow
	list, err := a.fit(maxAnswer - frame - len(head))
	if err != nil {
		return nil, err
	}
	if a.groups {
		a.Groups = list
	} else {
		a.Records = list
	}

	end := a.from + len(list)
	if end < a.Count {
		a.Truncated = true
		a.Total = a.Count
		a.Returned = len(list)
		if a.next {
			a.Next = end
		}
	}
	return jsonform.Marshal(a)
}

// fit returns the requested records, as many as fit in room bytes.
func (a *answer) fit(room int) ([]json.RawMessage, error) {
	until := a.Count
	if a.most >= 0 {
		until = min(until, a.from+a.most)
	}

	list := []json.RawMessage{}
	for i := a.from; i < until; i++ {
		record := a.record(nil, i)
		room -= len(record) + len(",")
		switch {
		case room >= 0:
			list = append(list, record)
		case len(list) > 0:
			return list, nil
		default:
			// With no record at all, the model would ask for the same again.
			what := "record"
			if a.groups {
				what = "group"
			}
			return nil, toolrun.Refuse("%s %d alone is %d bytes of JSON, and an answer has room for %d; "+
				"leave out columns that are not needed",
				what, i+1, len(record), max(room+len(record), 0))
		}
	}
	return list, nil
}

// appendRow appends a record as JSON.
func (t *table) appendRow(b []byte, c *cursor, r row) []byte {
	b = append(b, '{')
	one := func(column int, v value) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = v.append(append(jsonscan.AppendString(b, t.names[column]), ':'))
	}

	if t.picked == nil {
		for len(r) > 0 {
			var x cell
			x, r = r.next()
			one(x.column, x.value)
		}
		return append(b, '}')
	}

	c.load(r)
	for _, column := range t.picked {
		if v, ok := c.get(column); ok {
			one(column, v)
		}
	}
	return append(b, '}')
}

// A row is a packed record: for each cell its column, its kind and, unless it is null, the length
// and the bytes of its value. A million records are thus a million strings of little more than
// their text. A row is never changed, and tables share it.
type row string

type cell struct {
	column int
	value  value
}

// rowSize is the memory of a row in addition to its bytes: the header of the string.
const rowSize = 16

// appendCell appends a cell to a row that is being packed.
func appendCell(b []byte, column int, v value) []byte {
	b = append(binary.AppendUvarint(b, uint64(column)), byte(v.kind))
	if v.kind == null {
		return b
	}
	return append(binary.AppendUvarint(b, uint64(len(v.s))), v.s...)
}

// appendTextCell is appendCell for text in a byte slice.
func appendTextCell(b []byte, column int, s []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(column)), byte(text))
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// next returns the first cell and the rest of the row. The row must not be empty.
func (r row) next() (cell, row) {
	column, r := r.uvarint()
	c := cell{column: column, value: value{kind: kind(r[0])}}
	r = r[1:]
	if c.value.kind == null {
		return c, r
	}
	n, r := r.uvarint()
	c.value.s = string(r[:n])
	return c, r[n:]
}

func (r row) uvarint() (int, row) {
	if r[0] < 0x80 {
		return int(r[0]), r[1:]
	}
	n := 0
	shift := 0
	for i := 0; ; i++ {
		n |= int(r[i]&0x7f) << shift
		shift += 7
		if r[i] < 0x80 {
			return n, r[i+1:]
		}
	}
}

// A cursor looks up cells by column, row after row, in a time independent of the number of columns.
type cursor struct {
	values []value // by column; valid if seen equals turn
	seen   []int
	turn   int
}

func (t *table) cursor() *cursor {
	return &cursor{values: make([]value, len(t.names)), seen: make([]int, len(t.names))}
}

// load selects r as the row for get.
func (c *cursor) load(r row) {
	c.turn++
	for len(r) > 0 {
		var one cell
		one, r = r.next()
		c.values[one.column] = one.value
		c.seen[one.column] = c.turn
	}
}

// get returns the row's value in a column. It returns null and false if there is none.
func (c *cursor) get(column int) (value, bool) {
	if column < 0 || c.seen[column] != c.turn {
		return value{}, false
	}
	return c.values[column], true
}
