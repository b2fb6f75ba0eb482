// Package data gives a model tools for small tables: to read CSV, JSON and JSONL text into records, and to filter,
// aggregate and reshape records. They compute; the model need not.
//
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files, data.New()}}
//
// A Set is a pawl.Toolset of four tools, each of which can also be offered alone. All are Pure: they depend on their
// arguments alone, and give the same bytes for the same arguments.
//
//	data_parse      text to records: {"columns", "count", "records"}
//	data_filter     the records that meet all conditions: {"count", "records"}
//	data_aggregate  sum, count, avg, min and max, of all or by groups: {"count", "groups"}
//	data_transform  select, rename, sort and limit: {"count", "records"}
//
// The last three take records as an array of objects, or the text that data_parse would take, as it is.
//
// Answers are JSON of at most 32 KiB. Where records were left out, the answer says "truncated":true, with the total and how
// many were returned; count is always that of all. Where input was mended (rows of uneven length, headers that stand twice),
// "notes" say how. What cannot be right is an error that says what there is: an unknown column, an unknown op.
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
package data

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/toolrun"
)

// Set is the data tools. It may be used concurrently; its fields are not to be changed after the first use.
type Set struct {
	Parse     *pawl.Tool // data_parse
	Filter    *pawl.Tool // data_filter
	Aggregate *pawl.Tool // data_aggregate
	Transform *pawl.Tool // data_transform
}

var _ pawl.Toolset = (*Set)(nil)

// New returns the tools.
func New() *Set {
	return &Set{Parse: parseTool(), Filter: filterTool(), Aggregate: aggregateTool(), Transform: transformTool()}
}

// Tools returns the tools in the order data_parse, data_filter, data_aggregate, data_transform.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	return []*pawl.Tool{s.Parse, s.Filter, s.Aggregate, s.Transform}, nil
}

// recordsSchema is that of the records argument.
const recordsSchema = `{"type":["array","string"],"items":{"type":"object"},` +
	`"description":"The records: an array of objects, or the text of a CSV, JSON or JSONL file as it is."}`

// recordsOutput and its companions are the parts of the output schemas.
const (
	recordsOutput = `{"type":"array","items":{"type":"object"}}`
	commonOutput  = `"count":{"type":"integer"},"truncated":{"type":"boolean"},"total":{"type":"integer"},"returned":{"type":"integer"},` +
		`"notes":{"type":"array","items":{"type":"string"}}`
)

// run makes a ToolFunc of fn, which returns JSON.
func run[Args any](fn func(context.Context, Args) ([]byte, error)) pawl.ToolFunc {
	return toolrun.Func(func(ctx context.Context, args Args) (pawl.ToolResult, error) {
		b, err := fn(ctx, args)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return pawl.ToolResult{}, err
		}
		return pawl.ToolResult{Parts: []pawl.Part{pawl.Text{Text: string(b)}}, Data: b}, nil
	})
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
