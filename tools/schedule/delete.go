package schedule

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

//go:embed delete.md
var deleteText string

func (s *Set) deleteTool() *pawl.Tool {
	return &pawl.Tool{
		Name:        "schedule_delete",
		Description: strings.TrimSpace(deleteText),
		Input:       json.RawMessage(`{"type":"object","properties":{` + which + `},"additionalProperties":false}`),
		Effect:      pawl.Write,
		Serial:      serial,
		Run:         toolrun.Func(s.delete),
	}
}

type deleteArgs struct {
	ID               string
	DescriptionQuery string `json:"description_query"`
}

func (s *Set) delete(ctx context.Context, a deleteArgs) (pawl.ToolResult, error) {
	scope, err := s.whose(ctx)
	if err != nil {
		return pawl.ToolResult{}, err
	}
	if strings.TrimSpace(a.DescriptionQuery) == "*" {
		return pawl.ToolResult{}, toolrun.Refuse("All of them are not deleted at once. Delete one after another, by id.")
	}
	v, err := s.one(ctx, scope, a.ID, a.DescriptionQuery)
	if err != nil {
		return pawl.ToolResult{}, err
	}
	if err := s.db.DeleteSchedule(ctx, scope, v.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return pawl.ToolResult{}, err
	}
	return pawl.TextResult("Deleted " + v.ID + ": " + v.Description), nil
}
