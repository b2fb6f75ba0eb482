package data

import "encoding/binary"

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
	if r = r[1:]; c.value.kind == null {
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
	n, shift := 0, 0
	for i := 0; ; i++ {
		n |= int(r[i]&0x7f) << shift
		if shift += 7; r[i] < 0x80 {
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
		c.values[one.column], c.seen[one.column] = one.value, c.turn
	}
}

// get returns the row's value in a column. It returns null and false if there is none.
func (c *cursor) get(column int) (value, bool) {
	if column < 0 || c.seen[column] != c.turn {
		return value{}, false
	}
	return c.values[column], true
}
