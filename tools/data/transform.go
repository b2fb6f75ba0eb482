package data

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/toolrun"
)

//go:embed transform.md
var transformText string

func transformTool() *pawl.Tool {
	return &pawl.Tool{
		Name:        "data_transform",
		Description: strings.TrimSpace(transformText),
		Input: json.RawMessage(`{"type":"object","properties":{"records":` + recordsSchema + `,` +
			`"select":{"type":"array","items":{"type":"string"},"description":"The columns to keep, in this order. Default: all."},` +
			`"rename":{"type":"object","additionalProperties":{"type":"string"},"description":"New names of columns: {\"old\":\"new\"}."},` +
			`"sort_by":{"type":"string","description":"The column to sort by, by its new name."},` +
			`"sort_desc":{"type":"boolean","description":"Sort the greatest first. Default false."},` +
			`"limit":{"type":"integer","minimum":0,"description":"The most records to keep, after sorting. Default: all."}` +
			`},"required":["records"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{` + commonOutput + `,"records":` + recordsOutput +
			`},"required":["count","records"],"additionalProperties":false}`),
		Effect:    pawl.Pure,
		MaxResult: -1, // an answer is bounded
		Run:       run(transformRecords),
	}
}

type transformArgs struct {
	Records  json.RawMessage   `json:"records"`
	Select   []string          `json:"select"`
	Rename   map[string]string `json:"rename"`
	SortBy   string            `json:"sort_by"`
	SortDesc bool              `json:"sort_desc"`
	Limit    toolrun.Whole     `json:"limit"`
}

// transformRecords selects, renames, sorts and limits, in this order.
func transformRecords(ctx context.Context, a transformArgs) ([]byte, error) {
	t, err := tableOf(ctx, a.Records)
	if err != nil {
		return nil, err
	}
	if err := t.pick(a.Select); err != nil {
		return nil, err
	}
	if err := t.rename(a.Rename); err != nil {
		return nil, err
	}
	switch {
	case a.SortBy != "":
		if err := t.sort(a); err != nil {
			return nil, err
		}
	case a.SortDesc:
		return nil, toolrun.Refuse("sort_desc needs sort_by: the column to sort by")
	}
	if limit := int(a.Limit); limit > 0 && limit < len(t.rows) {
		t.rows = t.rows[:limit]
	}
	return (&answer{
		list: "records", total: len(t.rows), most: -1, notes: t.notes,
		record: func(b []byte, i int) []byte { return appendRow(b, t.rows[i], t.columns) },
	}).json()
}

// pick keeps the named columns, in this order; none named keeps all.
func (t *table) pick(names []string) error {
	if len(names) == 0 || len(t.columns) == 0 {
		return nil
	}
	var columns []int
	index := map[string]int{}
	for _, name := range names {
		i, err := t.need(name, "select")
		if err != nil {
			return err
		}
		if _, twice := index[name]; twice {
			return toolrun.Refuse("select: %s stands twice", clip(name))
		}
		index[name] = len(columns)
		columns = append(columns, i)
	}
	c := t.cursor()
	for n, r := range t.rows {
		c.load(r)
		kept := make(row, 0, len(columns))
		for i, column := range columns {
			if v, ok := c.get(column); ok {
				kept = append(kept, cell{i, v})
			}
		}
		t.rows[n] = kept
	}
	t.columns, t.index = slices.Clone(names), index
	return nil
}

// rename gives columns new names, all at once, so that two may change theirs with each other.
func (t *table) rename(names map[string]string) error {
	if len(t.columns) == 0 {
		return nil
	}
	columns := slices.Clone(t.columns)
	for _, from := range slices.Sorted(maps.Keys(names)) {
		i, err := t.need(from, "rename")
		if err != nil {
			return err
		}
		if names[from] == "" {
			return toolrun.Refuse("rename: the new name of %s is empty", clip(from))
		}
		columns[i] = names[from]
	}
	index := map[string]int{}
	for i, name := range columns {
		if j, taken := index[name]; taken {
			if t.columns[i] == name {
				i, j = j, i // the one that was renamed is at fault
			}
			return toolrun.Refuse("rename: %s cannot become %s, since there is another column of that name; the columns are %s",
				clip(t.columns[i]), clip(name), listed(t.columns, 100))
		}
		index[name] = i
	}
	t.columns, t.index = columns, index
	return nil
}

// sort sorts by a column; records that are equal in it stay in their order.
func (t *table) sort(a transformArgs) error {
	column, err := t.need(a.SortBy, "sort_by")
	if err != nil {
		if to, renamed := a.Rename[a.SortBy]; renamed {
			return toolrun.Refuse("sort_by: %s is now named %s; sort by that name", clip(a.SortBy), clip(to))
		}
		return err
	}
	type keyed struct {
		key value
		row row
	}
	all := make([]keyed, len(t.rows))
	c := t.cursor()
	for i, r := range t.rows {
		c.load(r)
		all[i].key, _ = c.get(column)
		all[i].row = r
	}
	slices.SortStableFunc(all, func(x, y keyed) int { return order(x.key, y.key, a.SortDesc) })
	for i, k := range all {
		t.rows[i] = k.row
	}
	return nil
}
