package data

import (
	"cmp"
	"context"
	"maps"
	"slices"

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
	if offset := int(a.Offset); offset < 0 || offset > 0 && offset >= len(t.rows) {
		return nil, toolrun.Refuse("offset %d is out of range: there are %d records", offset, len(t.rows))
	} else if offset > 0 {
		t = t.with(t.rows[offset:])
	}
	if limit := int(a.Limit); limit > 0 && limit < len(t.rows) {
		t = t.with(t.rows[:limit])
	}
	return s.done(ctx, t, a.SaveAs)
}

// pick selects the named columns, in this order. No names select all.
func (t *table) pick(names []string) error {
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
	t.picked, t.index = picked, index
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
	index := map[string]int{}
	for _, i := range t.shown() {
		name := columns[i]
		if j, taken := index[name]; taken {
			if t.names[i] == name {
				i, j = j, i // report the renamed column
			}
			return toolrun.Refuse("rename: %s cannot become %s, since there is another column of that name; the columns are %s",
				clip(t.names[i]), clip(name), listed(t.columns(), 100))
		}
		index[name] = i
	}
	t.names, t.index = columns, index
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
	slices.SortFunc(all, func(x, y sortKey) int { return cmp.Or(x.order(&y, a.SortDesc), cmp.Compare(x.row, y.row)) })
	rows := make([]row, len(all))
	for i := range all {
		rows[i] = t.rows[all[i].row]
	}
	t.rows = rows
	return nil
}
