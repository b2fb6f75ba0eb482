package data

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/toolrun"
)

// A table is records that share their columns' names. A record need not have every column, so it is held as cells.
type table struct {
	columns []string // in the order they were first seen
	index   map[string]int
	rows    []row
	notes   []string // what was mended in reading it
	headed  bool     // a header named the columns, so their order means something
	last    []int    // by column: the last row that has it, from 1
}

type row []cell

type cell struct {
	column int
	value  value
}

func newTable() *table { return &table{index: map[string]int{}} }

// column returns the index of the column name, which it adds when it is new.
func (t *table) column(name string) int {
	i, ok := t.index[name]
	if !ok {
		i = len(t.columns)
		t.index[name] = i
		t.columns = append(t.columns, name)
		t.last = append(t.last, 0)
	}
	return i
}

// need returns the index of a column that a call names. A table without records has no columns to be wrong about: -1.
func (t *table) need(name, where string) (int, error) {
	i, ok := t.index[name]
	switch {
	case ok:
		return i, nil
	case len(t.columns) == 0:
		return -1, nil
	}
	return 0, toolrun.Refuse("%s: unknown column %s; the columns are %s", where, clip(name), listed(t.columns, 100))
}

// add adds the record raw, which is valid JSON. The error does not say where it stands.
func (t *table) add(raw json.RawMessage) error {
	raw = bytes.TrimSpace(raw)
	if raw[0] != '{' {
		return toolrun.Refuse("expected an object, got %s", valueOf(raw).kind)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.Token()
	var r row
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
			return toolrun.Refuse("the name %s stands twice in one object", clip(key.(string)))
		}
		t.last[i] = len(t.rows) + 1
		r = append(r, cell{i, valueOf(v)})
	}
	t.rows = append(t.rows, r)
	return nil
}

// A cursor looks up cells by column, row after row, in time that does not depend on how many columns there are.
type cursor struct {
	t    *table
	row  row
	at   []int // by column: the place in row, of columns whose seen is turn
	seen []int
	turn int
}

func (t *table) cursor() *cursor {
	return &cursor{t: t, at: make([]int, len(t.columns)), seen: make([]int, len(t.columns))}
}

// load makes r the row that get looks in.
func (c *cursor) load(r row) {
	c.row = r
	c.turn++
	for i, cell := range r {
		c.at[cell.column], c.seen[cell.column] = i, c.turn
	}
}

// get returns the row's value in a column, null and false when it has none.
func (c *cursor) get(column int) (value, bool) {
	if column < 0 || c.seen[column] != c.turn {
		return value{}, false
	}
	return c.row[c.at[column]].value, true
}

// tableOf reads the records argument of a call.
func tableOf(ctx context.Context, records json.RawMessage) (*table, error) {
	records = bytes.TrimSpace(records)
	switch {
	case len(records) == 0:
		return nil, toolrun.Refuse("records are required: an array of objects, or the text of a CSV, JSON or JSONL file")
	case records[0] == '"':
		var content string
		if err := json.Unmarshal(records, &content); err != nil {
			return nil, err
		}
		return parse(ctx, content, "")
	case records[0] == '[':
		t := newTable()
		return t, t.addAll(ctx, records, "record")
	}
	return nil, toolrun.Refuse("records must be an array of objects, or the text of a CSV, JSON or JSONL file; got %s", valueOf(records).kind)
}

// addAll adds the elements of a valid JSON array, which a text calls what.
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

// maxAnswer is the most bytes of an answer; the pipeline would cut a longer one in the middle of a record.
const maxAnswer = 32 << 10

// An answer is the JSON that a tool gives: some counts, then a list.
type answer struct {
	list   string                       // "records" or "groups"
	total  int                          // how many there are
	from   int                          // the first to give
	most   int                          // how many to give; negative: all
	record func(b []byte, i int) []byte // appends the record i
	fields []byte                       // further fields, each with a comma before it
	notes  []string
	next   bool // tell where to go on
}

// json writes as many records as there is room for.
func (a *answer) json() ([]byte, error) {
	fields := a.fields
	if len(a.notes) > 0 {
		fields = append(append(fields, `,"notes":`...), texts(a.notes)...)
	}
	const frame = 200 // the most that braces, names and counts take
	room := maxAnswer - frame - len(fields)
	until := a.total
	if a.most >= 0 {
		until = min(until, a.from+a.most)
	}
	var body []byte
	i := a.from
	for ; i < until; i++ {
		before := len(body)
		if i > a.from {
			body = append(body, ',')
		}
		if body = a.record(body, i); len(body) > room {
			if i == a.from {
				return nil, toolrun.Refuse("%s %d alone is %d bytes of JSON, and an answer has room for %d; leave out columns that are not needed",
					strings.TrimSuffix(a.list, "s"), i+1, len(body), max(room, 0))
			}
			body = body[:before]
			break
		}
	}
	b := strconv.AppendInt([]byte(`{"count":`), int64(a.total), 10)
	if i < a.total {
		b = strconv.AppendInt(append(b, `,"truncated":true,"total":`...), int64(a.total), 10)
		b = strconv.AppendInt(append(b, `,"returned":`...), int64(i-a.from), 10)
		if a.next {
			b = strconv.AppendInt(append(b, `,"next_offset":`...), int64(i), 10)
		}
	}
	b = append(b, fields...)
	b = append(b, `,"`+a.list+`":[`...)
	b = append(b, body...)
	return append(b, "]}"...), nil
}

// texts writes an array of strings.
func texts(all []string) []byte {
	b := []byte{'['}
	for i, s := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, s)
	}
	return append(b, ']')
}

// appendRow appends a record with the names of its columns.
func appendRow(b []byte, r row, names []string) []byte {
	b = append(b, '{')
	for i, c := range r {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, names[c.column]), ':')
		b = c.value.append(b)
	}
	return append(b, '}')
}
