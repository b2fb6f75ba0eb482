// Package data provides tools for tables: they read CSV, JSON and JSONL into records, and filter,
// aggregate and reshape records. They compute, so that the model does not have to.
//
//	tables := data.New(&data.Options{Open: files.Open, Create: files.Create})
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files, tables}}
//
// A Set is a pawl.Toolset of five tools. Each of them can also be offered alone. All but the last
// have the effect EffectRead.
//
//	data_parse      text or a file to records: {"columns", "count", "records"}
//	data_filter     the records that meet all conditions: {"count", "records"}
//	data_aggregate  sum, count, avg, min and max, of all or by groups: {"count", "groups"}
//	data_transform  select, rename, sort, skip and limit: {"count", "records"}
//	data_export     writes a table to a file; EffectWrite, and only if Options.Create is set
//
// The other tools accept records as an array of objects, or as the same text that data_parse
// accepts.
//
// Answers are JSON of at most 32 KiB. If records were left out, the answer contains
// "truncated":true, with the total and the number returned; count always counts all records. If
// input was repaired (rows of uneven length, duplicate headers), "notes" say how. Invalid input is
// an error that says what exists: for an unknown column, an unknown op.
//
// # Stored tables
//
// With save_as, the whole result of a call is stored as a table with that name, and the answer
// shows five of its records. With table, a later call uses it. A million records are thus read,
// filtered and aggregated without passing through the model. A table belongs to the run that
// created it: the run's values contain its key, and no other run can find it. The tables are held
// in memory. The least recently used ones are dropped when they exceed the limit, and all of them
// when the process ends; the model is then informed. A table takes about as many bytes as its text,
// plus 16 per record and 3 per cell.
//
// # Values
//
// Numbers keep their spelling and are computed exactly, in decimal: no integer loses digits, and
// 0.1 plus 0.2 is 0.3. The cells of CSV are text and stay text.
//
// A value is numeric if it is a number, or a text that is a valid JSON number ("12", "-0.5",
// "1e3"). So "007", "+1", "1,000", "0x10", "NaN" and "" are not numeric, nor is a value as large as
// 1e308 or as small as 1e-308. Two numeric values are compared as numbers. Otherwise two texts are
// compared as text, byte by byte. Every other value equals only its own kind: true equals true and
// the text "true" in any case, null equals null. A number and a text that is not numeric have no
// order.
//
// In groups, equal numbers are one (7 and 7.0), and a text equals only itself ("7", "7.0"). A null
// and a missing cell are one group, "" is another.
//
// # Differences to SQL
//
// The answers follow the rules of SQLite, except where other rules serve a model better:
//
//   - == and != are IS and IS NOT: null is equal to null, and a null is != 5. A record that lacks
//     the column meets == null only.
//   - A text that is written like a number is a number, also next to a number, except in groups; in
//     SQL a column's affinity decides.
//   - < and similar operators hold between two numbers, or two texts; SQLite orders every number
//     below every text.
//   - contains ignores case for all letters; LIKE does so for ASCII letters.
//   - Sorting puts numbers first, then texts, booleans, the rest, and empty values (null, "") last,
//     in either direction; SQL sorts null first, and "" with the texts.
//   - Sums and averages are decimal and exact: 0.1 plus 0.2 is 0.3, and there is no overflow. An
//     average has ten decimals more than the sum.
//   - count counts records, as count(*). The sum of nothing is 0, as total(). sum, avg, min and max
//     skip values that are not numeric.
package data

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/pawl-go/pawl"
	texts "github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

// Set holds the data tools. It is safe for concurrent use. Its fields must not be changed after the
// first use.
type Set struct {
	Parse     *pawl.Tool // data_parse
	Filter    *pawl.Tool // data_filter
	Aggregate *pawl.Tool // data_aggregate
	Transform *pawl.Tool // data_transform
	Export    *pawl.Tool // data_export; nil without Options.Create

	open   func(context.Context, string) (io.ReadCloser, error)
	create func(context.Context, string, func(io.Writer) error) error
	tables *tableStore
}

var _ pawl.Toolset = (*Set)(nil)

// Options are the options of New. Nil and the zero value give tools without access to files.
type Options struct {
	// Open opens the file whose path data_parse gets. The model sees its errors. The file tools'
	// Set.Open is an implementation. nil means that data_parse has no path argument.
	Open func(ctx context.Context, path string) (io.ReadCloser, error)
	// Create creates or replaces the file that data_export writes, whole or not at all. The model
	// sees its errors. The file tools' Set.Create is an implementation. nil means that there is no
	// data_export.
	Create func(ctx context.Context, path string, content func(io.Writer) error) error
	// Limit is the maximum size, in bytes, of the stored tables of all runs together, and of one
	// table that is read. 0 means 256 MiB.
	Limit int
}

const defaultLimit = 256 << 20

// New returns the tools.
func New(opts *Options) *Set {
	s := &Set{tables: &tableStore{limit: defaultLimit, byKey: map[string]*table{}}}
	if opts != nil {
		s.open = opts.Open
		s.create = opts.Create
		if opts.Limit > 0 {
			s.tables.limit = opts.Limit
		}
	}

	s.Parse = s.parseTool()
	s.Filter = toolrun.Define(definitions, "filter", &pawl.Tool{
		Name:      "data_filter",
		Effect:    pawl.EffectRead,
		MaxResult: -1, // answers have a size limit
		Run:       run(s.filter),
	})
	s.Aggregate = toolrun.Define(definitions, "aggregate", &pawl.Tool{
		Name:      "data_aggregate",
		Effect:    pawl.EffectRead,
		MaxResult: -1, // answers have a size limit
		Run:       run(s.aggregate),
	})
	s.Transform = toolrun.Define(definitions, "transform", &pawl.Tool{
		Name:      "data_transform",
		Effect:    pawl.EffectRead,
		MaxResult: -1, // answers have a size limit
		Run:       run(s.transform),
	})
	if s.create != nil {
		s.Export = s.exportTool()
	}
	return s
}

// Tools returns the tools in the order data_parse, data_filter, data_aggregate, data_transform,
// data_export.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	tools := []*pawl.Tool{s.Parse, s.Filter, s.Aggregate, s.Transform}
	if s.Export != nil {
		tools = append(tools, s.Export)
	}
	return tools, nil
}

// run converts fn, which returns JSON, to a ToolFunc.
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

// records reads the records argument of a call.
func (s *Set) records(ctx context.Context, records json.RawMessage) (*table, error) {
	records = bytes.TrimSpace(records)
	switch records[0] {
	case '"':
		var content string
		if err := json.Unmarshal(records, &content); err != nil {
			return nil, err
		}
		return s.read(ctx, strings.NewReader(content), "", s.tables.limit)

	case '[':
		t := newTable(s.tables.limit)
		err := t.addAll(ctx, records, "record")
		t.last = nil
		t.packed = nil
		return t, err
	}
	return nil, toolrun.Refuse("records must be an array of objects, or the text of a CSV, JSON or JSONL file; got %s",
		valueOf(records).kind)
}

// done stores t if requested and returns its records.
func (s *Set) done(ctx context.Context, t *table, saveAs string) ([]byte, error) {
	if err := s.save(ctx, saveAs, t); err != nil {
		return nil, err
	}
	return t.answer(saveAs).json()
}

// answer returns the answer with the records of t, or only the first ones if t is stored.
func (t *table) answer(saved string) *answer {
	c := t.cursor()
	a := &answer{
		Count:  len(t.rows),
		Table:  saved,
		Notes:  t.notes,
		record: func(b []byte, i int) []byte { return t.appendRow(b, c, t.rows[i]) },
		most:   -1,
	}
	if saved != "" {
		a.most = preview
	}
	return a
}

// listed joins names for a text, each quoted and shortened; of more than most names, only the
// first.
func listed(names []string, most int) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = clip(n)
	}
	return cmp.Or(texts.First(quoted, most, " and # more"), "none")
}

// clip returns a name for a text: quoted, and shortened to 40 runes.
func clip(name string) string {
	n := 0
	for i := range name {
		n++
		if n > 40 {
			return fmt.Sprintf("%q…", name[:i])
		}
	}
	return fmt.Sprintf("%q", name)
}
