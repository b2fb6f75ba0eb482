package schedule

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

type updateArgs struct {
	times
	ID               string
	DescriptionQuery string `json:"description_query"`
	Enabled          *bool
	Description      *string
}

func (s *Set) update(ctx context.Context, scope store.Scope, a updateArgs) (llm.ToolResult, error) {
	v, err := s.one(ctx, scope, a.ID, a.DescriptionQuery)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if a.Enabled == nil && a.Description == nil && a.Zone == nil && a.Misfire == nil && !a.given() {
		return llm.ToolResult{}, toolrun.Refuse("Nothing would change: give enabled, description, or a new time.")
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
	if err := a.times.rest(v.When); err != nil {
		return llm.ToolResult{}, err
	}
	// The next time is computed again: times missed while the schedule was off do not run.
	when, err := s.settle(&v, &a.times)
	if err != nil && (v.Enabled || a.given()) {
		return llm.ToolResult{}, err
	}
	v, err = s.db.PutSchedule(ctx, scope, v)
	if errors.Is(err, store.ErrConflict) {
		return llm.ToolResult{}, toolrun.Refuse("The schedule was changed concurrently. Look at it again with schedule_list, then decide.")
	}
	if err != nil {
		return llm.ToolResult{}, err
	}
	return s.shown("Changed "+v.ID, v, when)
}

// rest fills in the parts of time, recurrence and day that are not given from the current time of
// the schedule.
func (t *times) rest(when string) error {
	if t.When != nil || t.Time == nil && t.Day == nil && t.Recurrence == nil {
		return nil
	}
	words := strings.Fields(strings.ToLower(when))
	kind, clock, day := "", "", ""
	if n := len(words); n > 1 {
		kind, clock, day = words[0], words[n-1], strings.Join(words[1:n-1], " ")
	}
	if !slices.Contains([]string{"daily", "weekdays", "weekly", "monthly"}, kind) {
		if t.Recurrence == nil {
			return toolrun.Refuse("Its times are %q now, which have no part that could be changed alone: give when, or time and recurrence.", when)
		}
		return nil
	}
	if t.Time == nil {
		t.Time = &clock
	}
	asked := str(t.Recurrence)
	switch same := asked == "" || asked == kind || asked == "custom" && kind == "weekly"; {
	case kind == "weekdays" && asked == "" && t.Day == nil:
		text := "weekdays " + str(t.Time)
		t.When, t.Time = &text, nil
		return nil
	case kind == "weekdays" && asked == "":
		kind = "weekly"
	case same && t.Day == nil && day != "":
		t.Day = &day
	}
	if asked == "" {
		t.Recurrence = &kind
	}
	return nil
}
