package schedule

import (
	"context"
	"errors"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

func (s *Set) deleteTool() *pawl.Tool {
	return toolrun.Define(definitions, "delete", &pawl.Tool{
		Name:   "schedule_delete",
		Effect: pawl.EffectWrite,
		Serial: serial,
		Run:    toolrun.Func(s.delete),
	})
}

type deleteArgs struct {
	ID               string
	DescriptionQuery string `json:"description_query"`
}

func (s *Set) delete(ctx context.Context, a deleteArgs) (llm.ToolResult, error) {
	scope, err := s.whose(ctx)
	if err != nil {
		return llm.ToolResult{}, err
	}
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
