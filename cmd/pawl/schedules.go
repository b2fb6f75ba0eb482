package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/schedule"
)

// schedulesCmd is about what is to be done later.
type schedulesCmd struct {
	List   schedulesListCmd   `cmd:"" help:"List them, with their next times."`
	Show   schedulesShowCmd   `cmd:"" help:"Show one: what it does, when, and what came of it."`
	Run    schedulesRunCmd    `cmd:"" help:"Do what is due, until Ctrl-C."`
	Delete schedulesDeleteCmd `cmd:"" help:"Remove schedules, with what came of them."`
}

func scheduleID(v store.Schedule) string { return v.ID }

// schedules are those of a scope.
func schedules(ctx context.Context, db store.Schedules, s store.Scope) ([]store.Schedule, error) {
	return everything(func(p store.Page) ([]store.Schedule, error) { return db.Schedules(ctx, s, p) }, scheduleID)
}

type schedulesListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
	storeFlags
}

// Run lists the schedules of the user.
func (c *schedulesListCmd) Run(sys *system) error {
	d, db, err := c.open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	all, err := schedules(context.Background(), db, c.scope())
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(sys.out, all)
	}
	w := tabwriter.NewWriter(sys.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCHEDULE\tWHAT\tWHEN\tNEXT")
	for _, v := range all {
		next := moment(v.Next, v.Zone)
		if !v.Enabled {
			next = "off"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", visible(v.ID), line(v.Description, 40), line(v.When, 40), next)
	}
	return w.Flush()
}

type schedulesShowCmd struct {
	ID   string `arg:"" name:"SCHEDULE" help:"As pawl schedules list shows it."`
	JSON bool   `name:"json" help:"Print a JSON object, with up to 1000 of its times."`
	storeFlags
}

const timesShown = 10

// Run shows one schedule.
func (c *schedulesShowCmd) Run(sys *system) error {
	d, db, err := c.open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	ctx := context.Background()
	v, err := db.Schedule(ctx, c.scope(), c.ID)
	if errors.Is(err, store.ErrNotFound) {
		return noSchedule(ctx, db, c.scope(), c.ID)
	}
	if err != nil {
		return err
	}
	limit := timesShown
	if c.JSON {
		limit = 1000
	}
	done, err := db.Occurrences(ctx, c.scope(), c.ID, limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(sys.out, map[string]any{"schedule": v, "occurrences": done})
	}
	return shownSchedule(sys.out, v, done)
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
	fmt.Fprintf(w, "%s: %s\n\nwhen     %s (%s), %s\n", visible(v.ID), visible(v.Description), visible(v.When), visible(zone), state)
	if when, err := schedule.ParseWhen(v.When, v.Zone); err == nil && v.Enabled {
		for at, i := v.Next, 0; i < 5 && !at.IsZero(); at, i = when.Next(at), i+1 {
			fmt.Fprintf(w, "next     %s\n", moment(at, v.Zone))
		}
	}
	var task schedule.Task
	if err := json.Unmarshal(v.Task, &task); err != nil {
		fmt.Fprintf(w, "task     %s\n", visible(string(v.Task)))
	}
	for _, call := range task.Calls {
		fmt.Fprintf(w, "calls    %s %s\n", visible(call.Tool), visible(string(call.Args)))
	}
	if task.Prompt != "" {
		fmt.Fprintf(w, "asks     %s\n", indented(visible(task.Prompt)))
	}
	for _, o := range done {
		fmt.Fprintf(w, "%-8s %s  %s\n", o.State, moment(o.Due, v.Zone), beginning(o.Text, 100))
	}
	return nil
}

func noSchedule(ctx context.Context, db store.Schedules, s store.Scope, id string) error {
	all, err := schedules(ctx, db, s)
	if err != nil {
		return err
	}
	return unknown("schedule", id, names(all, scheduleID), "pawl schedules list")
}

type schedulesDeleteCmd struct {
	IDs []string `arg:"" name:"SCHEDULE" help:"As pawl schedules list shows them."`
	storeFlags
}

// Run removes what it can, and tells of the first that is not there.
func (c *schedulesDeleteCmd) Run(sys *system) error {
	d, db, err := c.open(sys, false)
	if err != nil {
		return err
	}
	defer d.Close()
	return deleted(sys.out, c.IDs, func(id string) error { return db.DeleteSchedule(context.Background(), c.scope(), id) },
		func(id string) error { return noSchedule(context.Background(), db, c.scope(), id) })
}
