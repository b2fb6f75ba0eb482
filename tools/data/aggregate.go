package data

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

var metricOps = []string{"sum", "count", "avg", "min", "max"}

type aggregateArgs struct {
	source
	GroupBy []string `json:"group_by"`
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
	values []value   // values of the group's columns, as first written
	by     []sortKey // the same as sort keys
	rows   int
	of     []tally // one for each metric
}

// A tally is the state of one metric for one group.
type tally struct {
	count   int // number of numeric values
	sum     sum
	best    decimal // the least or the most
	written string  // best as written in the input
}

func (t *tally) add(op string, d decimal, written string) {
	switch op {
	case "sum", "avg":
		t.sum.add(d, written)
	case "min", "max":
		order := d.cmp(t.best)
		if op == "min" {
			order = -order
		}
		if t.count == 0 || order > 0 {
			t.best = d
			t.written = written
		}
	}
	t.count++
}

// append appends the result for a group of rows records. A sum of no values is 0; every other
// metric of no values is null.
func (t *tally) append(b []byte, op string, rows int) []byte {
	switch {
	case op == "count":
		return strconv.AppendInt(b, int64(rows), 10)
	case op == "sum":
		return append(b, t.sum.over(1)...)
	case t.count == 0:
		return append(b, "null"...)
	case op == "avg":
		return append(b, t.sum.over(t.count)...)
	}
	return append(b, t.written...)
}

func (s *Set) aggregate(ctx context.Context, a aggregateArgs) ([]byte, error) {
	if len(a.Metrics) == 0 {
		return nil, toolrun.Refuse("metrics are required")
	}
	t, err := s.input(ctx, a.source)
	if err != nil {
		return nil, err
	}
	by, metrics, err := a.resolve(t)
	if err != nil {
		return nil, err
	}

	groups, err := groupsOf(ctx, t, by, metrics)
	if err != nil {
		return nil, err
	}
	if len(by) == 0 && len(groups) == 0 {
		// one group of no records: their count is 0
		groups = append(groups, &group{of: make([]tally, len(metrics))})
	}
	// In the order of their values: the order of a Go map differs from call to call.
	slices.SortStableFunc(groups, func(a, b *group) int {
		return slices.CompareFunc(a.by, b.by, func(x, y sortKey) int { return x.order(&y, false) })
	})

	out, err := a.table(groups, metrics, s.tables.limit)
	if err != nil {
		return nil, err
	}
	out.notes = t.notes
	if err := s.save(ctx, a.SaveAs, out); err != nil {
		return nil, err
	}

	ans := out.answer(a.SaveAs)
	ans.groups = true
	// Values that are no numbers are left out of a sum. The model must not take it for the sum of
	// all rows.
	ans.Skipped = map[string]int{}
	for _, m := range metrics {
		if m.skipped > 0 {
			ans.Skipped[m.name] = m.skipped
		}
	}
	return ans.json()
}

// table returns the groups as records.
func (a *aggregateArgs) table(groups []*group, metrics []*metric, most int) (*table, error) {
	out := newTable(most)
	for _, name := range a.GroupBy {
		out.column(name)
	}
	for _, m := range metrics {
		out.column(m.name)
	}
	out.headed = true

	var packed, written []byte
	for _, g := range groups {
		packed = packed[:0]
		for i, v := range g.values {
			packed = appendCell(packed, i, v)
		}
		for i, m := range metrics {
			v := value{}
			written = g.of[i].append(written[:0], m.op, g.rows)
			// A metric of no values, as avg of an empty column, has no number.
			if string(written) != "null" {
				v = value{number, string(written)}
			}
			packed = appendCell(packed, len(g.values)+i, v)
		}
		if err := out.push(packed); err != nil {
			return nil, err
		}
	}
	out.last = nil
	return out, nil
}

// resolve finds the columns and checks that no two results have the same name.
func (a *aggregateArgs) resolve(t *table) (by []int, metrics []*metric, err error) {
	fields := map[string]string{} // of the result, and the argument that each comes from
	column := func(name, field, where string) (int, error) {
		i, err := t.need(name, where)
		if err != nil {
			return 0, err
		}
		if other, taken := fields[field]; taken {
			return 0, toolrun.Refuse("%s: the result has a field %s already, from %s", where, clip(field), other)
		}
		fields[field] = where
		return i, nil
	}

	for i, name := range a.GroupBy {
		c, err := column(name, name, fmt.Sprintf("group_by[%d]", i))
		if err != nil {
			return nil, nil, err
		}
		by = append(by, c)
	}

	for i, m := range a.Metrics {
		where := fmt.Sprintf("metrics[%d]", i)
		if !slices.Contains(metricOps, m.Op) {
			return nil, nil, toolrun.Refuse("%s: unknown op %s; the ops are %s", where, clip(m.Op), strings.Join(metricOps, " "))
		}
		field := m.Op + "_" + m.Column
		c, err := column(m.Column, field, where)
		if err != nil {
			return nil, nil, err
		}
		metrics = append(metrics, &metric{column: c, op: m.Op, name: field})
	}
	return by, metrics, nil
}

// groupsOf returns the groups in the order of their first records.
func groupsOf(ctx context.Context, t *table, by []int, metrics []*metric) ([]*group, error) {
	var groups []*group
	found := map[string]*group{}
	c := t.cursor()
	var key []byte
	for n, r := range t.rows {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}

		c.load(r)
		key = key[:0]
		for _, column := range by {
			// a record without the column is grouped with records in which it is null
			v, _ := c.get(column)
			key = append(v.group(key), ',')
		}

		g := found[string(key)]
		if g == nil {
			g = newGroup(c, by, metrics)
			found[string(key)] = g
			groups = append(groups, g)
		}
		g.add(c, metrics)
	}
	return groups, nil
}

// newGroup returns the group of the current row of c, without records.
func newGroup(c *cursor, by []int, metrics []*metric) *group {
	g := &group{of: make([]tally, len(metrics))}
	for _, column := range by {
		v, _ := c.get(column)
		g.values = append(g.values, v)
		g.by = append(g.by, v.sortKey(0))
	}
	return g
}

// add adds the current row of c.
func (g *group) add(c *cursor, metrics []*metric) {
	g.rows++
	for i, m := range metrics {
		if m.op == "count" {
			continue
		}
		v, _ := c.get(m.column)
		if d, ok := v.decimal(); ok {
			g.of[i].add(m.op, d, v.s)
		} else if !v.empty() {
			m.skipped++
		}
	}
}
