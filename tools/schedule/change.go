package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// times holds the arguments for the time of a schedule. Nil means not given.
type times struct {
	When, Zone, Time, Recurrence, Day, Misfire *string
}

// any reports whether one of the arguments for times is given.
func (t *times) any() bool {
	return t.When != nil || t.Time != nil || t.Recurrence != nil || t.Day != nil
}

func str(p *string) string {
	if p == nil {
		return ""
	}
	return strings.TrimSpace(*p)
}

type createArgs struct {
	times
	Description     string
	Prompt          string
	SynthesisPrompt string `json:"synthesis_prompt"`
	Tools           []struct {
		Tool   string
		Params json.RawMessage
	}
}

func (s *Set) create(ctx context.Context, scope store.Scope, a createArgs) (llm.ToolResult, error) {
	task := Task{Prompt: cmp.Or(strings.TrimSpace(a.Prompt), strings.TrimSpace(a.SynthesisPrompt))}
	// Later runs must know who could have written the task: a web page may have asked for it.
	if v := pawl.InvocationFrom(ctx); v != nil {
		task.Label = v.Label()
	}
	for _, c := range a.Tools {
		if len(c.Params) == 0 {
			c.Params = json.RawMessage("{}")
		}
		task.Calls = append(task.Calls, Call{Tool: c.Tool, Args: c.Params})
	}

	if task.Prompt == "" && len(task.Calls) == 0 {
		return llm.ToolResult{}, toolrun.Refuse("Give a prompt, or tools to call.")
	}
	if err := s.checkCalls(ctx, task.Calls); err != nil {
		return llm.ToolResult{}, err
	}

	v := store.Schedule{
		Description: strings.TrimSpace(a.Description),
		Zone:        s.opts.Zone,
		Misfire:     str(a.Misfire),
		Enabled:     true,
	}
	if a.Zone != nil {
		v.Zone = str(a.Zone)
	}
	when, err := s.settle(&v, &a.times)
	if err != nil {
		return llm.ToolResult{}, err
	}

	v.Task, err = json.Marshal(task)
	if err != nil {
		return llm.ToolResult{}, err
	}
	v, err = s.db.PutSchedule(ctx, scope, v)
	if err != nil {
		return llm.ToolResult{}, err
	}
	return s.shown("Scheduled as "+v.ID, v, when)
}

// settle sets the time of v from t, and its next time.
func (s *Set) settle(v *store.Schedule, t *times) (When, error) {
	if t.any() || v.When == "" {
		text, err := t.text()
		if err != nil {
			return When{}, err
		}
		v.When = text
	}

	// "once" with a time of day means the next moment at which the clock shows it.
	if rest, ok := strings.CutPrefix(v.When, "once "); ok {
		daily, err := ParseWhen("daily "+rest, v.Zone)
		if err != nil {
			return When{}, toolrun.Refusal(err.Error())
		}
		v.When = daily.Next(s.opts.Now()).Format(time.RFC3339)
	}

	when, err := ParseWhen(v.When, v.Zone)
	if err != nil {
		return when, toolrun.Refusal(err.Error())
	}
	v.Next = when.Next(s.opts.Now())
	if v.Next.IsZero() {
		now := s.opts.Now().In(when.zone).Format("2006-01-02 15:04 MST")
		return when, toolrun.Refuse("%q has passed: it is %s now.", v.When, now)
	}
	return when, nil
}

// text converts the arguments to one of the forms of ParseWhen.
func (t *times) text() (string, error) {
	if t.When != nil {
		if t.Time != nil || t.Recurrence != nil || t.Day != nil {
			return "", toolrun.Refuse("Give when alone, or time, recurrence and day; not both.")
		}
		return str(t.When), nil
	}

	clock := str(t.Time)
	day := str(t.Day)
	if clock == "" {
		// A recurrence alone is clear but for its time, which gets a default. No argument at all is
		// not.
		if t.Recurrence == nil {
			return "", toolrun.Refuse(`Say when: "daily 08:00", or the other forms of when.`)
		}
		clock = "08:00"
	}

	switch str(t.Recurrence) {
	case "once":
		return "once " + clock, nil
	case "daily", "":
		if day != "" {
			return "", toolrun.Refuse("A daily time has no day; leave day out, or say recurrence weekly or monthly.")
		}
		return "daily " + clock, nil
	case "custom":
		return "weekly " + cmp.Or(day, "monday,wednesday,friday") + " " + clock, nil
	case "weekly":
		return "weekly " + cmp.Or(day, "monday") + " " + clock, nil
	}
	return "monthly " + cmp.Or(day, "1") + " " + clock, nil
}

// checkCalls checks that the arguments of each call match its tool. It uses the pipeline's own
// check by executing the call with a copy of the tool that does nothing.
func (s *Set) checkCalls(ctx context.Context, calls []Call) error {
	if len(calls) == 0 {
		return nil
	}
	if s.opts.Tools == nil {
		return toolrun.Refuse("No tools can be called by a schedule here; say it as a prompt instead.")
	}
	tools, err := s.opts.Tools.Tools(ctx)
	if err != nil {
		return err
	}
	idle := Idle(tools)
	for i, c := range calls {
		if x := (pawl.Toolsets{idle}).Execute(ctx,
			llm.ToolCall{Name: c.Tool, Args: c.Args}); x.Outcome != pawl.OutcomeOK {
			return toolrun.Refuse("tools/%d: %s", i, x.Result.Text())
		}
	}
	return nil
}

// Idle returns copies of tools that do nothing, to validate the calls of a schedule by
// Toolsets.Execute before their time. Passive tools are left out, because no client can execute
// them at that time.
func Idle(tools []*pawl.Tool) pawl.Toolset {
	var idle pawl.Toolsets
	for _, t := range tools {
		if t.Passive {
			continue
		}
		c := t.Clone()
		c.Effect = pawl.EffectPure
		c.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.TextResult(""), nil
		}
		idle = append(idle, c)
	}
	return idle
}

// shown returns a result with the next times of a schedule.
func (s *Set) shown(head string, v store.Schedule, when When) (llm.ToolResult, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n%s", head, v.Description, v.When)
	if !when.Once() {
		fmt.Fprintf(&b, " (%s)", when.zone)
	}
	data := struct {
		ID   string      `json:"id"`
		When string      `json:"when"`
		Zone string      `json:"zone"`
		Next []time.Time `json:"next"`
	}{v.ID, v.When, when.zone.String(), []time.Time{}}
	if !v.Enabled {
		b.WriteString("\nIt is turned off.")
	} else {
		b.WriteString("\nNext:")
		// The next times show the model whether it has understood the user.
		for next := v.Next; !next.IsZero() && len(data.Next) < 5; next = when.Next(next) {
			data.Next = append(data.Next, next)
			fmt.Fprintf(&b, "\n  %s", next.In(when.zone).Format("Mon 2006-01-02 15:04 MST"))
		}
	}
	return toolrun.Result(b.String(), data)
}

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
	if !a.apply(&v) && !a.times.any() {
		return llm.ToolResult{}, toolrun.Refuse("Nothing would change: give enabled, description, or a new time.")
	}
	if err := a.times.rest(v.When); err != nil {
		return llm.ToolResult{}, err
	}

	// The next time is computed again: times missed while the schedule was off do not run.
	when, err := s.settle(&v, &a.times)
	if err != nil && (v.Enabled || a.times.any()) {
		return llm.ToolResult{}, err
	}
	v, err = s.db.PutSchedule(ctx, scope, v)
	if errors.Is(err, store.ErrConflict) {
		return llm.ToolResult{}, toolrun.Refuse("The schedule was changed concurrently. " +
			"Look at it again with schedule_list, then decide.")
	}
	if err != nil {
		return llm.ToolResult{}, err
	}
	return s.shown("Changed "+v.ID, v, when)
}

// apply sets the fields of v that are given, other than its times. It returns false if none is.
func (a *updateArgs) apply(v *store.Schedule) bool {
	given := false
	if a.Enabled != nil {
		v.Enabled = *a.Enabled
		given = true
	}
	for _, field := range []struct {
		value *string
		to    *string
	}{
		{a.Description, &v.Description},
		{a.Zone, &v.Zone},
		{a.Misfire, &v.Misfire},
	} {
		if field.value != nil {
			*field.to = str(field.value)
			given = true
		}
	}
	return given
}

// rest fills in the parts of time, recurrence and day that are not given from the current time of
// the schedule.
func (t *times) rest(when string) error {
	if t.When != nil || !t.any() {
		return nil
	}

	kind, day, clock := parts(when)
	switch kind {
	case "daily", "weekdays", "weekly", "monthly":
	default:
		if t.Recurrence == nil {
			return toolrun.Refuse("Its times are %q now, which have no part that could be changed alone: "+
				"give when, or time and recurrence.", when)
		}
		return nil
	}
	if t.Time == nil {
		t.Time = &clock
	}

	asked := str(t.Recurrence)
	switch {
	case kind == "weekdays" && asked == "":
		t.restOfWeekdays()
		return nil
	// The day of a week is no day of a month.
	case t.Day == nil && day != "" && sameKind(asked, kind):
		t.Day = &day
	}
	if asked == "" {
		t.Recurrence = &kind
	}
	return nil
}

// restOfWeekdays changes the time of day, or the days, of a schedule for weekdays.
func (t *times) restOfWeekdays() {
	if t.Day == nil {
		text := "weekdays " + str(t.Time)
		t.When = &text
		t.Time = nil
		return
	}
	weekly := "weekly"
	t.Recurrence = &weekly
}

// sameKind reports whether the recurrence asked, or none, keeps the days of times of a kind.
func sameKind(asked, kind string) bool {
	switch asked {
	case "", kind:
		return true
	case "custom":
		return kind == "weekly"
	}
	return false
}

// parts splits times in the form "weekly mon,thu 08:00".
func parts(when string) (kind, day, clock string) {
	words := strings.Fields(strings.ToLower(when))
	last := len(words) - 1
	if last < 1 {
		return "", "", ""
	}
	return words[0], strings.Join(words[1:last], " "), words[last]
}
