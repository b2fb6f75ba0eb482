// Package data gives a model tools for tables: to read CSV, JSON and JSONL into records, and to filter,
// aggregate and reshape records. They compute; the model need not.
//
//	tables := data.New(&data.Options{Open: files.Open, Create: files.Create})
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files, tables}}
//
// A Set is a pawl.Toolset of five tools, each of which can also be offered alone. All but the last have the effect Read.
//
//	data_parse      text, or a file, to records: {"columns", "count", "records"}
//	data_filter     the records that meet all conditions: {"count", "records"}
//	data_aggregate  sum, count, avg, min and max, of all or by groups: {"count", "groups"}
//	data_transform  select, rename, sort, skip and limit: {"count", "records"}
//	data_export     a table to a file; Write, and only where the Options say how to
//
// The others take records as an array of objects, or the text that data_parse would take, as it is.
//
// Answers are JSON of at most 32 KiB. Where records were left out, the answer says "truncated":true, with the total and how
// many were returned; count is always that of all. Where input was mended (rows of uneven length, headers that stand twice),
// "notes" say how. What cannot be right is an error that says what there is: an unknown column, an unknown op.
//
// # Tables that are kept
//
// With save_as, the whole result of a call is kept as a table of that name, and the answer shows five records of it; with table, a later call takes it. So a million
// records are read, filtered and summed up without passing through the model. A table belongs to the run that made it: the run's values have its key, and
// no other run finds it. The tables themselves are in memory; the ones used least lately go when they are too many, and all of them with the process, which the model
// is then told. A table takes about as many bytes as its text, and 16 a record and 3 a cell beside.
//
// # Values
//
// Numbers are kept as they are written and computed exactly, in decimal: no integer loses digits, and 0.1 and 0.2 are 0.3.
// The cells of CSV are text, and stay so.
//
// A number, and a text that is written as JSON would write a number ("12", "-0.5", "1e3"), are numeric. So "007", "+1",
// "1,000", "0x10", "NaN" and "" are not, nor is anything as large as 1e308 or as small as 1e-308. Two numeric values are compared as
// numbers; two texts otherwise as text, byte by byte. Everything else is equal only to its like: true to true and to the
// text "true" in any case, null to null. A number and a text that is not numeric are in no order.
//
// In groups, numbers that are equal are one (7 and 7.0), and a text is only itself ("7", "7.0"); null and a missing cell are one, "" is another.
//
// # Where SQL answers otherwise
//
// The answers are those of SQLite, whose rules these are, save where a table for a model is better served:
//
//   - == and != are IS and IS NOT: null is equal to null, and a null is != 5. A record that lacks the column altogether meets == null alone.
//   - A text that is written like a number is one, also beside a number, except in groups; in SQL a column's affinity decides.
//   - < and its like hold between two numbers, or two texts; SQLite has every number below every text.
//   - contains, which ignores case, does so for all letters; LIKE for those of ASCII.
//   - Sorted are numbers, then texts, booleans, the rest, and what is empty (null, "") last, whichever way; SQL sorts null first, and "" with the texts.
//   - Sums and averages are decimal, and exact: 0.1 and 0.2 are 0.3, and there is no overflow. An average has ten decimals more than the sum.
//   - count counts records, as count(*). The sum of nothing is 0, as total(). sum, avg, min and max pass over what is no number.
package data

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// Set is the data tools. It may be used concurrently; its fields are not to be changed after the first use.
type Set struct {
	Parse     *pawl.Tool // data_parse
	Filter    *pawl.Tool // data_filter
	Aggregate *pawl.Tool // data_aggregate
	Transform *pawl.Tool // data_transform
	Export    *pawl.Tool // data_export; nil where nothing can be written

	open   func(context.Context, string) (io.ReadCloser, error)
	create func(context.Context, string, func(io.Writer) error) error
	kept   *keeper
}

var _ pawl.Toolset = (*Set)(nil)

// Options are what New can be told. Nil and the zero value are tools that reach no file.
type Options struct {
	// Open opens a file that data_parse is given the path of, and Create makes one that data_export writes, or replaces it: whole, or not at all. Open and Create of
	// the file tools' Set are such; their refusals are told to the model. Nil: there is no path, and no data_export.
	Open   func(ctx context.Context, path string) (io.ReadCloser, error)
	Create func(ctx context.Context, path string, content func(io.Writer) error) error
	Limit  int // bytes of tables that are kept, of all runs together, and of one that is read; 0: 256 MiB
}

const defaultLimit = 256 << 20

// New returns the tools.
func New(opts *Options) *Set {
	s := &Set{kept: &keeper{limit: defaultLimit, byKey: map[string]*table{}}}
	if opts != nil {
		s.open, s.create = opts.Open, opts.Create
		if opts.Limit > 0 {
			s.kept.limit = opts.Limit
		}
	}
	s.Parse, s.Filter, s.Aggregate, s.Transform = s.parseTool(), s.filterTool(), s.aggregateTool(), s.transformTool()
	if s.create != nil {
		s.Export = s.exportTool()
	}
	return s
}

// Tools returns the tools in the order data_parse, data_filter, data_aggregate, data_transform, data_export.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	tools := []*pawl.Tool{s.Parse, s.Filter, s.Aggregate, s.Transform}
	if s.Export != nil {
		tools = append(tools, s.Export)
	}
	return tools, nil
}

// recordsSchema is that of the records argument.
const recordsSchema = `{"type":["array","string"],"items":{"type":"object"},` +
	`"description":"The records: an array of objects, or the text of a CSV, JSON or JSONL file as it is."}`

// recordsOutput and its companions are the parts of the output schemas.
const (
	recordsOutput = `{"type":"array","items":{"type":"object"}}`
	commonOutput  = `"count":{"type":"integer"},"truncated":{"type":"boolean"},"total":{"type":"integer"},"returned":{"type":"integer"},"table":{"type":"string"},` +
		`"notes":{"type":"array","items":{"type":"string"}}`
)

// run makes a ToolFunc of fn, which returns JSON.
func run[Args any](fn func(context.Context, Args) ([]byte, error)) pawl.ToolFunc {
	return toolrun.Func(func(ctx context.Context, args Args) (llm.ToolResult, error) {
		b, err := fn(ctx, args)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return llm.ToolResult{}, err
		}
		return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: string(b)}}, Data: b}, nil
	})
}

// given reads the records argument of a call.
func (s *Set) given(ctx context.Context, records json.RawMessage) (*table, error) {
	switch records = bytes.TrimSpace(records); records[0] {
	case '"':
		var content string
		if err := json.Unmarshal(records, &content); err != nil {
			return nil, err
		}
		return s.read(ctx, strings.NewReader(content), "", s.kept.limit)
	case '[':
		t := newTable(s.kept.limit)
		err := t.addAll(ctx, records, "record")
		t.last, t.packed = nil, nil
		return t, err
	}
	return nil, toolrun.Refuse("records must be an array of objects, or the text of a CSV, JSON or JSONL file; got %s", valueOf(records).kind)
}

// done keeps t, where that is asked for, and answers with its records.
func (s *Set) done(ctx context.Context, t *table, saveAs string) ([]byte, error) {
	if err := s.save(ctx, saveAs, t); err != nil {
		return nil, err
	}
	return t.answer(saveAs).json()
}

// answer is the answer with the records of t, the first ones when it is kept.
func (t *table) answer(saved string) *answer {
	c := t.cursor()
	a := &answer{list: "records", total: len(t.rows), most: -1, saved: saved, notes: t.notes,
		record: func(b []byte, i int) []byte { return t.appendRow(b, c, t.rows[i]) }}
	if saved != "" {
		a.most = preview
	}
	return a
}

// listed joins names for a text, each quoted and cut, the first ones of more than most.
func listed(names []string, most int) string {
	var b strings.Builder
	for i, n := range names {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(clip(n))
	}
	if len(names) == 0 {
		return "none"
	}
	return b.String()
}

// clip is a name as a text shows it: quoted, and cut after 40 runes.
func clip(name string) string {
	n := 0
	for i := range name {
		if n++; n > 40 {
			return fmt.Sprintf("%q…", name[:i])
		}
	}
	return fmt.Sprintf("%q", name)
}
