package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

func (s *Set) list(ctx context.Context, scope store.Scope, _ struct{}) (llm.ToolResult, error) {
	list, err := all(ctx, s.db, scope)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if len(list) == 0 {
		return llm.TextResult("Nothing is scheduled."), nil
	}
	var b strings.Builder
	for _, v := range list {
		when, err := ParseWhen(v.When, v.Zone)
		state := "off"
		switch {
		case err != nil:
			state = "off: " + err.Error()
		case v.Enabled && !v.Next.IsZero():
			state = "next " + v.Next.In(when.zone).Format("Mon 2006-01-02 15:04 MST")
		}
		fmt.Fprintf(&b, "%s: %s\n  %s, %s\n", v.ID, v.Description, v.When, state)
		last, err := s.db.Occurrences(ctx, scope, v.ID, 1)
		if err != nil {
			return llm.ToolResult{}, err
		}
		if len(last) > 0 && when.zone != nil {
			fmt.Fprintf(&b, "  last %s: %s\n", last[0].Due.In(when.zone).Format("Mon 2006-01-02 15:04 MST"), last[0].State)
		}
	}
	return llm.TextResult(strings.TrimSuffix(b.String(), "\n")), nil
}

type deleteArgs struct {
	ID               string
	DescriptionQuery string `json:"description_query"`
}

func (s *Set) delete(ctx context.Context, scope store.Scope, a deleteArgs) (llm.ToolResult, error) {
	if strings.TrimSpace(a.DescriptionQuery) == "*" {
		return llm.ToolResult{}, toolrun.Refuse("All of them are not deleted at once. Delete one after another, by id.")
	}
	v, err := s.one(ctx, scope, a.ID, a.DescriptionQuery)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if err := s.db.DeleteSchedule(ctx, scope, v.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return llm.ToolResult{}, err
	}
	return llm.TextResult("Deleted " + v.ID + ": " + v.Description), nil
}
