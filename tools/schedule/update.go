package schedule

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/toolrun"
	"github.com/pawl-go/pawl/store"
)

//go:embed update.md
var updateText string

// which are the arguments that say which schedule is meant.
const which = `"id":{"type":"string","description":"As schedule_list shows it."},` +
	`"description_query":{"type":"string","description":"Instead of id: words of its description."}`

func (s *Set) updateTool() *pawl.Tool {
	return &pawl.Tool{
		Name:        "schedule_update",
		Description: strings.TrimSpace(updateText),
		Input: json.RawMessage(`{"type":"object","properties":{` + which + `,` +
			`"enabled":{"type":"boolean","description":"false turns it off, true on again."},` +
			`"description":{"type":"string","minLength":1,"maxLength":500,"pattern":"\\S"},` + timeFields +
			`},"additionalProperties":false}`),
		Effect: pawl.Write,
		Serial: serial,
		Run:    toolrun.Func(s.update),
	}
}

type updateArgs struct {
	times
	ID               string
	DescriptionQuery string `json:"description_query"`
	Enabled          *bool
	Description      *string
}

func (s *Set) update(ctx context.Context, a updateArgs) (pawl.ToolResult, error) {
	scope, err := s.whose(ctx)
	if err != nil {
		return pawl.ToolResult{}, err
	}
	v, err := s.one(ctx, scope, a.ID, a.DescriptionQuery)
	if err != nil {
		return pawl.ToolResult{}, err
	}
	if a.Enabled == nil && a.Description == nil && a.Zone == nil && a.Misfire == nil && !a.given() {
		return pawl.ToolResult{}, toolrun.Refuse("Nothing would change: give enabled, description, or a new time.")
	}
	if a.Enabled != nil {
		v.Enabled = *a.Enabled
	}
	if a.Description != nil {
		v.Description = str(a.Description)
	}
	if a.Zone != nil {
		v.Zone = str(a.Zone)
	}
	if a.Misfire != nil {
		v.Misfire = str(a.Misfire)
	}
	// The next time is found anew: what was missed while it was off is not made up for.
	when, err := s.settle(&v, &a.times)
	if err != nil && (v.Enabled || a.given()) {
		return pawl.ToolResult{}, err
	}
	v, err = s.db.PutSchedule(ctx, scope, v)
	if errors.Is(err, store.ErrConflict) {
		return pawl.ToolResult{}, toolrun.Refuse("The schedule was changed meanwhile. Look at it again with schedule_list, then decide.")
	}
	if err != nil {
		return pawl.ToolResult{}, err
	}
	return s.shown("Changed "+v.ID, v, when)
}
