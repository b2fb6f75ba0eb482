package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/schedule"
)

// SchedulesCmd is about what is to be done later.
type SchedulesCmd struct {
	List   schedulesListCmd   `cmd:"" help:"List them, with their next times."`
	Show   schedulesShowCmd   `cmd:"" help:"Show one: what it does, when, and what came of it."`
	Run    schedulesRunCmd    `cmd:"" help:"Do what is due, until Ctrl-C."`
	Delete schedulesDeleteCmd `cmd:"" help:"Remove schedules, with what came of them."`
}

// ScheduleID returns the ID of v.
func ScheduleID(v store.Schedule) string { return v.ID }

// Schedules are those of a scope.
func Schedules(ctx context.Context, db store.Schedules, s store.Scope) ([]store.Schedule, error) {
	return cli.Everything(func(p store.Page) ([]store.Schedule, error) { return db.Schedules(ctx, s, p) }, ScheduleID)
}

type schedulesListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
	assemble.StoreFlags
}

// Run lists the schedules of the user.
func (c *schedulesListCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	all, err := Schedules(context.Background(), db, c.Scope())
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(sys.Out, all)
	}
	w := tabwriter.NewWriter(sys.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCHEDULE\tWHAT\tWHEN\tNEXT")
	for _, v := range all {
		next := cli.Moment(v.Next, v.Zone)
		if !v.Enabled {
			next = "off"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cli.Visible(v.ID), cli.Line(v.Description, 40), cli.Line(v.When, 40), next)
	}
	return w.Flush()
}

type schedulesShowCmd struct {
	ID   string `arg:"" name:"SCHEDULE" help:"As pawl schedules list shows it."`
	JSON bool   `name:"json" help:"Print a JSON object, with up to 1000 of its times."`
	assemble.StoreFlags
}

const timesShown = 10

// Run shows one schedule.
func (c *schedulesShowCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	ctx := context.Background()
	v, err := db.Schedule(ctx, c.Scope(), c.ID)
	if errors.Is(err, store.ErrNotFound) {
		return noSchedule(ctx, db, c.Scope(), c.ID)
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
}

func shownSchedule(w io.Writer, v store.Schedule, done []store.Occurrence) error {
	zone := v.Zone
	if zone == "" {
		zone = "UTC"
	}
	state := "on"
	if !v.Enabled {
		state = "off"
	}
	fmt.Fprintf(w, "%s: %s\n\nwhen     %s (%s), %s\n", cli.Visible(v.ID), cli.Visible(v.Description),
		cli.Visible(v.When), cli.Visible(zone), state)
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

func noSchedule(ctx context.Context, db store.Schedules, s store.Scope, id string) error {
	all, err := Schedules(ctx, db, s)
	if err != nil {
		return err
	}
	return cli.Unknown("schedule", id, cli.Names(all, ScheduleID), "pawl schedules list")
}

type schedulesDeleteCmd struct {
	IDs []string `arg:"" name:"SCHEDULE" help:"As pawl schedules list shows them."`
	assemble.StoreFlags
}

// Run removes schedules, and reports the first missing one.
func (c *schedulesDeleteCmd) Run(sys *cli.System) error {
	d, db, err := c.Open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	return cli.Deleted(sys.Out, c.IDs, func(id string) error {
		return db.DeleteSchedule(context.Background(), c.Scope(), id)
	},
		func(id string) error { return noSchedule(context.Background(), db, c.Scope(), id) })
}
