package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/schedule"
)

// SchedulesCmd shows and executes schedules.
type SchedulesCmd struct {
	List   schedulesListCmd   `cmd:"" help:"List them, with their next times."`
	Show   schedulesShowCmd   `cmd:"" help:"Show one: its task, its times and its results."`
	Run    schedulesRunCmd    `cmd:"" help:"Execute due schedules, until Ctrl-C."`
	Delete schedulesDeleteCmd `cmd:"" help:"Remove schedules with their results."`
}

func scheduleID(v store.Schedule) string { return v.ID }

// Schedules are the schedules of the database.
var Schedules = assemble.Stored[store.Schedule]{
	Kind:    "schedule",
	Command: "pawl schedules list",
	ID:      scheduleID,
	Text:    func(v store.Schedule) string { return v.Name },
	All:     assemble.Pages(store.Store.Schedules, scheduleID),
	Remove:  store.Store.DeleteSchedule,
	Head:    "SCHEDULE|WHAT|WHEN|NEXT",
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
		at := v.Next
		for shown := 0; shown < 5 && !at.IsZero(); shown++ {
			fmt.Fprintf(w, "next     %s\n", cli.Moment(at, v.Zone))
			at = when.Next(at)
		}
	}

	// A model may have written the task, and the person decides by this text whether it stays.
	var task schedule.Task
	if err := json.Unmarshal(v.Task, &task); err != nil {
		fmt.Fprintf(w, "task     %s\n", cli.Exact(string(v.Task)))
	}
	for _, call := range task.Calls {
		fmt.Fprintf(w, "calls    %s %s\n", cli.Visible(call.Tool), cli.Exact(string(call.Args)))
	}
	if task.Prompt != "" {
		fmt.Fprintf(w, "asks     %s\n", cli.Indented(cli.Exact(task.Prompt)))
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

// schedulesRunCmd executes what is due.
type schedulesRunCmd struct {
	Once  bool          `help:"Execute due schedules, and end."`
	Until string        `placeholder:"TIME" help:"@schedules_run_until"`
	Poll  time.Duration `default:"10s" placeholder:"TIME" help:"@schedules_run_poll"`
	File  string        `arg:"" optional:"" name:"FILE" help:"@schedules_run_file"`
	assemble.AgentFlags
}

// Run works until it is stopped.
func (c *schedulesRunCmd) Run(sys *cli.System) error {
	interrupted, release := cli.Interruptible(context.Background(), sys.Err)
	defer release()
	stop, err := c.until(interrupted, time.Now())
	if err != nil {
		return err
	}
	s, err := c.Build(context.Background(), sys, c.File, true, true)
	if err != nil {
		return err
	}
	defer s.Close()
	db, err := c.database(sys, s)
	if err != nil {
		return err
	}

	var done atomic.Int64
	r := &schedule.Runner{
		DB:     db,
		Poll:   c.Poll,
		Stop:   stop,
		Do:     c.telling(sys, c.work(s, db).Do, s.Secrets, &done),
		Report: func(err error) { cli.Report(sys.Err, err) },
	}
	// The context of the work does not end with an interrupt: what is due and begun is finished.
	if c.Once {
		err = c.once(r, &done)
	} else {
		if sys.ErrTerm {
			fmt.Fprintf(sys.Err, "pawl: checking every %v; Ctrl-C ends\n", c.Poll)
		}
		err = r.Run(context.Background())
	}
	if err == nil && errors.Is(context.Cause(interrupted), pawl.ErrCancelled) {
		return cli.Silent(cli.StatusInterrupted)
	}
	return err
}

// database opens the database, and stores the schedules of the file in it.
func (c *schedulesRunCmd) database(sys *cli.System, s *assemble.Setup) (store.Store, error) {
	open := s.DB.Open
	if len(s.File.Schedules) > 0 {
		open = s.DB.Create
	}
	db, err := open()
	if err != nil {
		return nil, assemble.Misconfigured(err)
	}
	if c.File != "" {
		if err := s.File.KeepSchedules(context.Background(), db, sys.Env, time.Now()); err != nil {
			return nil, cli.Fail(cli.StatusFailed, err, "")
		}
	}
	return db, nil
}

// until checks the flags. The returned channel is closed when the command must end.
func (c *schedulesRunCmd) until(ctx context.Context, now time.Time) (<-chan struct{}, error) {
	switch {
	case c.Tenant != "" || c.User != "":
		return nil, cli.Usage("leave out --tenant and --user",
			"schedules run executes the due schedules of all users of the database, each in the user's name")
	case c.Poll <= 0:
		return nil, cli.Usage("--poll 10s", "--poll %v is not more than 0", c.Poll)
	case c.Once && c.Until != "":
		return nil, cli.Usage("--once ends after the due schedules, --until at a given time",
			"--once and --until contradict each other")
	case c.Until == "":
		return ctx.Done(), nil
	}

	// The two forms have no text in common.
	end, err := time.Parse(time.RFC3339, c.Until)
	if d, short := time.ParseDuration(c.Until); short == nil {
		end = now.Add(d)
		err = nil
	}
	if err != nil || !end.After(now) {
		hint := "a future time, such as " + now.Add(time.Hour).UTC().Format(time.RFC3339) +
			", or a duration from now, such as 90s or 12h"
		return nil, cli.Usage(hint, "--until %q is neither a future time nor a duration", c.Until)
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	context.AfterFunc(ctx, cancel) // the caller has the channel alone, and cannot cancel
	return ctx.Done(), nil
}

// once executes what is due until this process finds nothing more.
func (c *schedulesRunCmd) once(r *schedule.Runner, done *atomic.Int64) error {
	for before := int64(-1); done.Load() != before; {
		before = done.Load()
		if err := r.Tick(context.Background(), time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// work returns the tools and the agent that the flags give to schedules.
func (c *schedulesRunCmd) work(s *assemble.Setup, db store.Traces) *schedule.Work {
	w := &schedule.Work{Tools: assemble.Held(s.Rules, s.Tools), Traces: db}
	if s.Agent.Model != nil {
		s.Agent.Middleware = append(s.Agent.Middleware, s.Rules.Middleware())
		w.Agent = redact.Runner(s.Agent, s.Secrets)
	}
	return w
}

// execute executes an occurrence.
type execute = func(context.Context, store.Due, time.Time) (schedule.Done, error)

// telling prints a line for each occurrence that do has executed.
func (c *schedulesRunCmd) telling(sys *cli.System, do execute, secrets *redact.Redactor, count *atomic.Int64) execute {
	return func(ctx context.Context, d store.Due, at time.Time) (schedule.Done, error) {
		began := time.Now()
		done, err := do(ctx, d, at)
		if errors.Is(err, schedule.ErrNoAgent) {
			err = errors.New("it is a prompt, and no model is set; set one with --model PROVIDER:MODEL")
		}
		count.Add(1)

		// What is stored is printed, without secrets.
		done.Text = secrets.String(done.Text)
		state := store.OccurrenceDone
		text := done.Text
		if err != nil {
			err = secrets.Error(err)
			state = store.OccurrenceFailed
			text = err.Error()
		}

		whose := strings.Trim(d.Scope.Tenant+"/"+d.Scope.User, "/")
		if whose != "" {
			whose = " of " + whose
		}
		fmt.Fprintf(sys.Out, "%s  %s%s  %s  %s after %v: %s\n", cli.Moment(at, d.Schedule.Zone),
			cli.Visible(d.Schedule.ID), cli.Visible(whose), cli.Line(d.Schedule.Description, 40),
			state, time.Since(began).Round(time.Millisecond), cli.Beginning(text, 120))
		return done, err
	}
}
