package data

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

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
	conds := make([]condition, len(a.Where))
	for i, w := range a.Where {
		where := fmt.Sprintf("where[%d]", i)
		if conds[i], err = newCondition(t, where, w.Column, w.Op, w.Value); err != nil {
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
	switch kind := c.value.kind; op {
	case "in":
		var all []json.RawMessage
		if json.Unmarshal(raw, &all) != nil || kind != list {
			return condition{}, toolrun.Refuse("%s: op in needs an array as its value, such as [\"a\",\"b\"]; got %s", where, kind)
		}
		for _, v := range all {
			c.among = append(c.among, valueOf(v))
		}
	case "<", ">", "<=", ">=":
		if kind != number && kind != text {
			return condition{}, toolrun.Refuse("%s: op %s needs a number or a text as its value; got %s", where, op, kind)
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
