package data

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

type transformArgs struct {
	source
	Select   []string          `json:"select"`
	Rename   map[string]string `json:"rename"`
	SortBy   string            `json:"sort_by"`
	SortDesc bool              `json:"sort_desc"`
	Limit    toolrun.Whole     `json:"limit"`
	Offset   toolrun.Whole     `json:"offset"`
}

// transform applies select, rename, sort and limit, in this order.
func (s *Set) transform(ctx context.Context, a transformArgs) ([]byte, error) {
	from, err := s.input(ctx, a.source)
	if err != nil {
		return nil, err
	}
	t := from.with(from.rows)
	if err := t.pick(a.Select); err != nil {
		return nil, err
	}
	if err := t.rename(a.Rename); err != nil {
		return nil, err
	}

	switch {
	case a.SortBy != "":
		if err := t.sort(ctx, a); err != nil {
			return nil, err
		}
	case a.SortDesc:
		return nil, toolrun.Refuse("sort_desc needs sort_by: the column to sort by")
	}

	if err := t.checkOffset(int(a.Offset)); err != nil {
		return nil, err
	}
	if a.Offset > 0 {
		t = t.with(t.rows[a.Offset:])
	}
	if limit := int(a.Limit); limit > 0 && limit < len(t.rows) {
		t = t.with(t.rows[:limit])
	}
	return s.done(ctx, t, a.SaveAs)
}

// checkOffset checks the number of records to skip. 0 is always allowed, also of no records.
func (t *table) checkOffset(offset int) error {
	if offset < 0 || offset > 0 && offset >= len(t.rows) {
		return toolrun.Refuse("offset %d is out of range: there are %d records", offset, len(t.rows))
	}
	return nil
}

// pick selects the named columns, in this order. No names select all.
func (t *table) pick(names []string) error {
	// An empty table has no columns, and any selection of it is empty.
	if len(names) == 0 || len(t.names) == 0 {
		return nil
	}
	var picked []int
	index := map[string]int{}
	for _, name := range names {
		i, err := t.need(name, "select")
		if err != nil {
			return err
		}
		if _, twice := index[name]; twice {
			return toolrun.Refuse("select: %s occurs twice", clip(name))
		}
		index[name] = i
		picked = append(picked, i)
	}
	t.picked = picked
	t.index = index
	return nil
}

// rename renames columns simultaneously, so that two can exchange their names.
func (t *table) rename(names map[string]string) error {
	if len(t.names) == 0 {
		return nil
	}
	columns := slices.Clone(t.names)
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

	// Only the columns that are shown must differ: the others can no longer be named.
	index := map[string]int{}
	for _, i := range t.shown() {
		name := columns[i]
		if j, taken := index[name]; taken {
			if t.names[i] == name {
				i, j = j, i // report the renamed column
			}
			return toolrun.Refuse("rename: %s cannot become %s, since there is another column of that name; "+
				"the columns are %s",
				clip(t.names[i]), clip(name), listed(t.columns(), 100))
		}
		index[name] = i
	}
	t.names = columns
	t.index = index
	return nil
}

// sort sorts by a column. The sort is stable.
func (t *table) sort(ctx context.Context, a transformArgs) error {
	column, err := t.need(a.SortBy, "sort_by")
	if err != nil {
		if to, renamed := a.Rename[a.SortBy]; renamed {
			return toolrun.Refuse("sort_by: %s is now named %s; sort by that name", clip(a.SortBy), clip(to))
		}
		return err
	}

	// The keys are made once for each row, because parsing the number in a text costs more than
	// comparing two.
	all := make([]sortKey, len(t.rows))
	c := t.cursor()
	for i, r := range t.rows {
		c.load(r)
		v, _ := c.get(column)
		all[i] = v.sortKey(i)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	slices.SortFunc(all, func(x, y sortKey) int {
		return cmp.Or(x.order(&y, a.SortDesc), cmp.Compare(x.row, y.row))
	})

	rows := make([]row, len(all))
	for i := range all {
		rows[i] = t.rows[all[i].row]
	}
	t.rows = rows
	return nil
}

var filterOps = []string{"==", "!=", ">", "<", ">=", "<=", "contains", "in"}

type filterArgs struct {
	source
	Where []struct {
		Column string          `json:"column"`
		Op     string          `json:"op"`
		Value  json.RawMessage `json:"value"`
	} `json:"where"`
}

// A condition is one element of where, prepared for evaluation.
type condition struct {
	column int
	op     string
	value  value
	among  []value // for the op in
}

func (s *Set) filter(ctx context.Context, a filterArgs) ([]byte, error) {
	if len(a.Where) == 0 {
		return nil, toolrun.Refuse("where conditions are required")
	}
	t, err := s.input(ctx, a.source)
	if err != nil {
		return nil, err
	}

	// All conditions are checked before the first row, so that a fault is not hidden by an empty
	// table.
	conds := make([]condition, len(a.Where))
	for i, w := range a.Where {
		where := fmt.Sprintf("where[%d]", i)
		conds[i], err = newCondition(t, where, w.Column, w.Op, w.Value)
		if err != nil {
			return nil, err
		}
	}

	c := t.cursor()
	var matching []row
	for i, r := range t.rows {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c.load(r)
		if !slices.ContainsFunc(conds, func(cond condition) bool { return !cond.met(c) }) {
			matching = append(matching, r)
		}
	}
	return s.done(ctx, t.with(matching), a.SaveAs)
}

func newCondition(t *table, where, column, op string, raw json.RawMessage) (condition, error) {
	if !slices.Contains(filterOps, op) {
		return condition{}, toolrun.Refuse("%s: unknown op %s; the ops are %s", where, clip(op), strings.Join(filterOps, " "))
	}
	i, err := t.need(column, where)
	if err != nil {
		return condition{}, err
	}
	if len(raw) == 0 {
		return condition{}, toolrun.Refuse("%s: value is required", where)
	}

	c := condition{column: i, op: op, value: valueOf(raw)}
	kind := c.value.kind

	switch op {
	case "in":
		var all []json.RawMessage
		if json.Unmarshal(raw, &all) != nil || kind != list {
			return condition{}, toolrun.Refuse("%s: op in needs an array as its value, such as "+
				"[\"a\",\"b\"]; got %s", where, kind)
		}
		for _, v := range all {
			c.among = append(c.among, valueOf(v))
		}
	case "<", ">", "<=", ">=":
		if kind != number && kind != text {
			return condition{}, toolrun.Refuse("%s: op %s needs a number or a text as its value; got "+
				"%s", where, op, kind)
		}
	case "contains":
		if kind == null || kind == list || kind == object {
			return condition{}, toolrun.Refuse("%s: op contains needs a text as its value; got %s", where, kind)
		}
		c.value = value{text, strings.ToLower(c.value.s)}
	}
	return c, nil
}

// met reports whether the current row of c meets the condition. A record without the column meets
// none except == null.
func (w *condition) met(c *cursor) bool {
	v, ok := c.get(w.column)
	if !ok {
		return w.op == "==" && w.value.kind == null
	}
	switch w.op {
	case "==":
		return equal(v, w.value)
	case "!=":
		return !equal(v, w.value)
	case "in":
		return slices.ContainsFunc(w.among, func(a value) bool { return equal(v, a) })
	case "contains":
		return v.kind != null && strings.Contains(strings.ToLower(v.s), w.value.s)
	}

	n, ok := compare(v, w.value)
	switch w.op {
	case "<":
		return ok && n < 0
	case "<=":
		return ok && n <= 0
	case ">":
		return ok && n > 0
	}
	return ok && n >= 0
}
