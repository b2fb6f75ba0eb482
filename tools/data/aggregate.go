package data

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/toolrun"
)

//go:embed aggregate.md
var aggregateText string

var metricOps = []string{"sum", "count", "avg", "min", "max"}

func aggregateTool() *pawl.Tool {
	return &pawl.Tool{
		Name:        "data_aggregate",
		Description: strings.TrimSpace(aggregateText),
		Input: json.RawMessage(`{"type":"object","properties":{"records":` + recordsSchema + `,` +
			`"group_by":{"type":"array","items":{"type":"string"},"description":"The columns to group by. Default: all records are one group."},` +
			`"metrics":{"type":"array","minItems":1,"description":"What to compute; each result is named op_column, such as sum_amount.","items":{"type":"object","properties":{` +
			`"column":{"type":"string"},` +
			`"op":{"type":"string","enum":["sum","count","avg","min","max"]}` +
			`},"required":["column","op"],"additionalProperties":false}}` +
			`},"required":["records","metrics"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{` + commonOutput + `,` +
			`"skipped":{"type":"object","additionalProperties":{"type":"integer"}},"groups":` + recordsOutput +
			`},"required":["count","groups"],"additionalProperties":false}`),
		Effect:    pawl.Pure,
		MaxResult: -1, // an answer is bounded
		Run:       run(aggregateRecords),
	}
}

type aggregateArgs struct {
	Records json.RawMessage `json:"records"`
	GroupBy []string        `json:"group_by"`
	Metrics []struct {
		Column string `json:"column"`
		Op     string `json:"op"`
	} `json:"metrics"`
}

type metric struct {
	column  int
	op      string
	name    string
	skipped int // values that are neither numeric nor empty
}

type group struct {
	by   []value
	rows int
	of   []tally // by metric
}

// A tally is what one metric knows of one group.
type tally struct {
	n         int // numeric values
	sum       sum
	least     decimal
	most      decimal
	leastText string // as it is written
	mostText  string
}

func (t *tally) add(op string, d decimal, written string) {
	switch op {
	case "sum", "avg":
		t.sum.add(d)
	case "min":
		if t.n == 0 || d.cmp(t.least) < 0 {
			t.least, t.leastText = d, written
		}
	case "max":
		if t.n == 0 || d.cmp(t.most) > 0 {
			t.most, t.mostText = d, written
		}
	}
	t.n++
}

// append appends the result for a group of rows records. A sum of nothing is 0; any other figure of nothing is null.
func (t *tally) append(b []byte, op string, rows int) []byte {
	switch {
	case op == "count":
		return strconv.AppendInt(b, int64(rows), 10)
	case op == "sum":
		return append(b, t.sum.String()...)
	case t.n == 0:
		return append(b, "null"...)
	case op == "avg":
		return append(b, t.sum.over(t.n)...)
	case op == "min":
		return append(b, t.leastText...)
	}
	return append(b, t.mostText...)
}

func aggregateRecords(ctx context.Context, a aggregateArgs) ([]byte, error) {
	if len(a.Metrics) == 0 {
		return nil, toolrun.Refuse("metrics are required")
	}
	t, err := tableOf(ctx, a.Records)
	if err != nil {
		return nil, err
	}
	by, metrics, err := a.resolve(t)
	if err != nil {
		return nil, err
	}
	groups := groupsOf(t, by, metrics)
	if len(by) == 0 && len(groups) == 0 {
		groups = append(groups, &group{of: make([]tally, len(metrics))}) // of no records: their number is 0
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return slices.CompareFunc(a.by, b.by, func(x, y value) int { return order(x, y, false) })
	})
	return (&answer{
		list: "groups", total: len(groups), most: -1, notes: t.notes, fields: skipped(metrics),
		record: func(b []byte, i int) []byte {
			g := groups[i]
			b = append(b, '{')
			for j, v := range g.by {
				b = append(appendText(b, a.GroupBy[j]), ':')
				b = append(v.append(b), ',')
			}
			for j, m := range metrics {
				b = append(appendText(b, m.name), ':')
				b = append(g.of[j].append(b, m.op, g.rows), ',')
			}
			b[len(b)-1] = '}'
			return b
		},
	}).json()
}

// resolve finds the columns and checks that no two results have one name.
func (a *aggregateArgs) resolve(t *table) (by []int, metrics []*metric, err error) {
	names := map[string]string{}
	take := func(name, where string) error {
		if other, taken := names[name]; taken {
			return toolrun.Refuse("%s: the result has a field %s already, from %s", where, clip(name), other)
		}
		names[name] = where
		return nil
	}
	for i, name := range a.GroupBy {
		where := fmt.Sprintf("group_by[%d]", i)
		column, err := t.need(name, where)
		if err == nil {
			err = take(name, where)
		}
		if err != nil {
			return nil, nil, err
		}
		by = append(by, column)
	}
	for i, m := range a.Metrics {
		where := fmt.Sprintf("metrics[%d]", i)
		if !slices.Contains(metricOps, m.Op) {
			return nil, nil, toolrun.Refuse("%s: unknown op %s; the ops are %s", where, clip(m.Op), strings.Join(metricOps, " "))
		}
		column, err := t.need(m.Column, where)
		if err == nil {
			err = take(m.Op+"_"+m.Column, where)
		}
		if err != nil {
			return nil, nil, err
		}
		metrics = append(metrics, &metric{column: column, op: m.Op, name: m.Op + "_" + m.Column})
	}
	return by, metrics, nil
}

func groupsOf(t *table, by []int, metrics []*metric) []*group {
	var groups []*group
	found := map[string]*group{}
	c := t.cursor()
	var key []byte
	for _, r := range t.rows {
		c.load(r)
		key = key[:0]
		for _, column := range by {
			v, _ := c.get(column) // a record without the column is with those where it is null
			key = append(v.append(key), ',')
		}
		g := found[string(key)]
		if g == nil {
			g = &group{of: make([]tally, len(metrics))}
			for _, column := range by {
				v, _ := c.get(column)
				g.by = append(g.by, v)
			}
			found[string(key)] = g
			groups = append(groups, g)
		}
		g.rows++
		for i, m := range metrics {
			v, _ := c.get(m.column)
			if d, ok := v.decimal(); ok {
				g.of[i].add(m.op, d, v.s)
			} else if !v.empty() && m.op != "count" {
				m.skipped++
			}
		}
	}
	return groups
}

// skipped tells, by metric, how many values were no numbers.
func skipped(metrics []*metric) []byte {
	var b []byte
	for _, m := range metrics {
		if m.skipped == 0 {
			continue
		}
		if b == nil {
			b = append(b, `,"skipped":{`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(appendText(b, m.name), ':'), int64(m.skipped), 10)
	}
	if b != nil {
		b = append(b, '}')
	}
	return b
}
