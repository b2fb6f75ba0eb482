package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/schedule"
)

// SchedulesCmd shows and executes schedules.
type SchedulesCmd struct {
	List   schedulesListCmd   `cmd:"" help:"List them, with their next times."`
	Show   schedulesShowCmd   `cmd:"" help:"Show one: its task, its times and its results."`
	Run    schedulesRunCmd    `cmd:"" help:"Execute what is due, until Ctrl-C."`
	Delete schedulesDeleteCmd `cmd:"" help:"Remove schedules with their results."`
}

func scheduleID(v store.Schedule) string { return v.ID }

// Schedules are the schedules of the database.
var Schedules = assemble.Stored[store.Schedule]{
	Kind: "schedule", Command: "pawl schedules list", ID: scheduleID,
	Text:   func(v store.Schedule) string { return v.Name },
	All:    assemble.Pages(store.Store.Schedules, scheduleID),
	Remove: store.Store.DeleteSchedule,
	Head:   "SCHEDULE|WHAT|WHEN|NEXT",
	Row: func(v store.Schedule) []any {
		next := cli.Moment(v.Next, v.Zone)
		if !v.Enabled {
			next = "off"
		}
		return []any{cli.Visible(v.ID), cli.Line(v.Description, 40), cli.Line(v.When, 40), next}
	},
}

type schedulesListCmd struct{ assemble.ListFlags }

// Run lists the schedules of the user.
func (c *schedulesListCmd) Run(sys *cli.System) error { return Schedules.List(sys, &c.ListFlags) }

type schedulesShowCmd struct {
	ID   string `arg:"" name:"SCHEDULE" help:"The ID, as pawl schedules list shows it."`
	JSON bool   `name:"json" help:"Print a JSON object, with up to 1000 of its times."`
	assemble.StoreFlags
}

const timesShown = 10

// Run shows one schedule.
func (c *schedulesShowCmd) Run(sys *cli.System) error {
	return c.With(sys, false, func(ctx context.Context, db store.Store) error {
		v, err := db.Schedule(ctx, c.Scope(), c.ID)
		if errors.Is(err, store.ErrNotFound) {
			return Schedules.Unknown(ctx, db, c.Scope(), c.ID)
		}
		if err != nil {
			return err
		}
		limit := timesShown
		if c.JSON {
			limit = 1000
		}
		done, err := db.Occurrences(ctx, c.Scope(), c.ID, limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return cli.PrintJSON(sys.Out, map[string]any{"schedule": v, "occurrences": done})
		}
		return shownSchedule(sys.Out, v, done)
	})
}

func shownSchedule(w io.Writer, v store.Schedule, done []store.Occurrence) error {
	state := "on"
	if !v.Enabled {
		state = "off"
	}
	fmt.Fprintf(w, "%s: %s\n\nwhen     %s (%s), %s\n", cli.Visible(v.ID), cli.Visible(v.Description),
		cli.Visible(v.When), cli.Visible(cmp.Or(v.Zone, "UTC")), state)
	if when, err := schedule.ParseWhen(v.When, v.Zone); err == nil && v.Enabled {
		for at, i := v.Next, 0; i < 5 && !at.IsZero(); at, i = when.Next(at), i+1 {
			fmt.Fprintf(w, "next     %s\n", cli.Moment(at, v.Zone))
		}
	}
	var task schedule.Task
	if err := json.Unmarshal(v.Task, &task); err != nil {
		fmt.Fprintf(w, "task     %s\n", cli.Visible(string(v.Task)))
	}
	for _, call := range task.Calls {
		fmt.Fprintf(w, "calls    %s %s\n", cli.Visible(call.Tool), cli.Visible(string(call.Args)))
	}
	if task.Prompt != "" {
		fmt.Fprintf(w, "asks     %s\n", cli.Indented(cli.Visible(task.Prompt)))
	}
	for _, o := range done {
		fmt.Fprintf(w, "%-8s %s  %s\n", o.State, cli.Moment(o.Due, v.Zone), cli.Beginning(o.Text, 100))
	}
	return nil
}

type schedulesDeleteCmd struct {
	IDs []string `arg:"" name:"SCHEDULE" help:"The ID, as pawl schedules list shows them."`
	assemble.StoreFlags
}

// Run removes schedules, and reports the first missing entry.
func (c *schedulesDeleteCmd) Run(sys *cli.System) error {
	return Schedules.Delete(sys, &c.StoreFlags, c.IDs)
}
