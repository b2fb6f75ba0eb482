package data

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/toolrun"
)

//go:embed parse.md
var parseText string

const parseLimit = 1000

func parseTool() *pawl.Tool {
	return &pawl.Tool{
		Name:        "data_parse",
		Description: strings.TrimSpace(parseText),
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"content":{"type":"string","description":"The text of the file as it is."},` +
			`"format":{"type":"string","enum":["csv","json","jsonl"],"description":"Default: found out. Text that begins with [ or { is json or jsonl, any other csv."},` +
			`"limit":{"type":"integer","minimum":0,"description":"The most records to return. Default 1000."},` +
			`"offset":{"type":"integer","minimum":0,"description":"How many records to skip: to go on after a truncated answer. Default 0."}` +
			`},"required":["content"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{` + commonOutput + `,"next_offset":{"type":"integer"},` +
			`"columns":{"type":"array","items":{"type":"string"}},"records":` + recordsOutput +
			`},"required":["columns","count","records"],"additionalProperties":false}`),
		Effect:    pawl.Pure,
		MaxResult: -1, // an answer is bounded
		Run:       run(parseRecords),
	}
}

type parseArgs struct {
	Content string        `json:"content"`
	Format  string        `json:"format"`
	Limit   toolrun.Whole `json:"limit"`
	Offset  toolrun.Whole `json:"offset"`
}

func parseRecords(ctx context.Context, a parseArgs) ([]byte, error) {
	t, err := parse(ctx, a.Content, a.Format)
	if err != nil {
		return nil, err
	}
	offset, limit := int(a.Offset), int(a.Limit)
	if offset < 0 || offset > 0 && offset >= len(t.rows) {
		return nil, toolrun.Refuse("offset %d is out of range: there are %d records", offset, len(t.rows))
	}
	if limit <= 0 {
		limit = parseLimit
	}
	columns := texts(t.shownColumns())
	return (&answer{
		list: "records", total: len(t.rows), from: offset, most: limit, next: true,
		fields: append([]byte(`,"columns":`), columns...), notes: t.notes,
		record: func(b []byte, i int) []byte { return appendRow(b, t.rows[i], t.columns) },
	}).json()
}

// shownColumns returns the columns, those of JSON sorted, as many as fit beside the records, and notes when that is not all.
func (t *table) shownColumns() []string {
	columns := t.columns
	if !t.headed {
		columns = slices.Sorted(slices.Values(columns))
	}
	room := maxAnswer / 4
	for i, c := range columns {
		if room -= len(c) + 3; room < 0 {
			t.note("there are %d columns; the first %d are listed", len(columns), i)
			return columns[:i]
		}
	}
	return columns
}

// parse reads content. Without a format it looks: an array or an object is JSON, objects line by line are JSONL, anything else is CSV.
func parse(ctx context.Context, content, format string) (*table, error) {
	content = strings.TrimPrefix(content, "\uFEFF")
	if strings.TrimSpace(content) == "" {
		return nil, toolrun.Refuse("content is required: it is empty")
	}
	if format == "" {
		format = guess(content)
	}
	switch format {
	case "csv":
		return parseCSV(ctx, content)
	case "json":
		return parseJSON(ctx, content)
	case "jsonl":
		return parseJSONL(ctx, content)
	}
	return nil, toolrun.Refuse("unknown format: %s (use csv, json, or jsonl)", clip(format))
}

func guess(content string) string {
	content = strings.TrimSpace(content)
	switch content[0] {
	case '[':
		return "json"
	case '{':
		first, rest, _ := strings.Cut(content, "\n")
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "{") || rest != "" && json.Valid([]byte(first)) {
			return "jsonl"
		}
		return "json"
	}
	return "csv"
}

// parseJSON reads an array of objects, or one object.
func parseJSON(ctx context.Context, content string) (*table, error) {
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(content), &raw); err != nil {
		return nil, syntax(content, err)
	}
	t := newTable()
	switch content = strings.TrimSpace(content); content[0] {
	case '[':
		if err := t.addAll(ctx, raw, "json parse error: element"); err != nil {
			return nil, err
		}
	case '{':
		if err := t.add(raw); err != nil {
			return nil, toolrun.Refuse("json parse error: %s", err)
		}
		for _, c := range t.rows[0] {
			if c.value.kind == list && strings.HasPrefix(c.value.s, "[{") {
				t.note("the content is one object, so it is one record; its %s is an array of objects: give that array to work with them", clip(t.columns[c.column]))
			}
		}
	default:
		return nil, toolrun.Refuse("json parse error: expected an array of objects, or one object; got %s", valueOf(raw).kind)
	}
	return t, nil
}

// syntax words an error of encoding/json with the line and the column it is in.
func syntax(content string, err error) error {
	var s *json.SyntaxError
	if !errors.As(err, &s) {
		return toolrun.Refuse("json parse error: %s", err)
	}
	before := content[:min(max(int(s.Offset)-1, 0), len(content))]
	line := strings.Count(before, "\n") + 1
	column := len(before) - strings.LastIndexByte(before, '\n')
	return toolrun.Refuse("json parse error: line %d, column %d: %s", line, column, s)
}

// parseJSONL reads an object a line. Empty lines are passed over; any other line that is no object is an error.
func parseJSONL(ctx context.Context, content string) (*table, error) {
	t := newTable()
	n := 0
	for line := range strings.Lines(content) {
		n++
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		raw := []byte(strings.TrimSpace(line))
		if len(raw) == 0 {
			continue
		}
		var v json.RawMessage
		err := json.Unmarshal(raw, &v)
		if err == nil {
			err = t.add(raw)
		}
		if err != nil {
			return nil, toolrun.Refuse("jsonl parse error: line %d: %s", n, err)
		}
	}
	return t, nil
}
