package runs

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
)

// Cmd has the commands of durable runs.
type Cmd struct {
	List    runsListCmd    `cmd:"" help:"List runs, the last one first."`
	Show    runsShowCmd    `cmd:"" help:"Show what happened in one."`
	Resume  runsResumeCmd  `cmd:"" help:"@runs_resume"`
	Cancel  runsCancelCmd  `cmd:"" help:"@runs_cancel"`
	Approve runsApproveCmd `cmd:"" help:"Approve pending calls."`
	Deny    runsDenyCmd    `cmd:"" help:"Refuse pending calls."`
	Answer  runsAnswerCmd  `cmd:"" help:"Give pending calls their results."`
	Verify  runsVerifyCmd  `cmd:"" help:"Check that the records of a run are unchanged."`
	Replay  runsReplayCmd  `cmd:"" help:"@runs_replay"`
	Fork    runsForkCmd    `cmd:"" help:"Start another run with the first steps of one."`
	Diff    runsDiffCmd    `cmd:"" help:"Show where two runs differ."`
	Delete  runsDeleteCmd  `cmd:"" help:"Remove runs with all their records."`
}

// runArg is the argument that names a run.
type runArg struct {
	ID string `arg:"" name:"RUN" help:"@run_arg_id"`
}

type runsListCmd struct {
	State string `enum:"${states}" default:"" placeholder:"STATE" help:"@runs_list_state"`
	assemble.ListFlags
	assemble.EngineFlags
}

// Run lists the runs of the user.
func (c *runsListCmd) Run(sys *cli.System) error {
	if err := c.EngineFlags.Check(&c.StoreFlags); err != nil {
		return err
	}
	if c.Away() {
		return remote{&c.ClusterFlags}.list(sys, c.State, c.JSON)
	}
	j, err := c.OpenRuns(sys)
	if err != nil {
		return err
	}
	defer j.Close()
	runs, err := j.All(context.Background(), c.State)
	if err != nil {
		return err
	}
	hide := assemble.Secrets(sys.Env, nil)
	return cli.List(sys.Out, c.JSON, runs, "RUN|STATE|REQUESTS|COST|LAST|TASK", func(r store.JournalRun) []any {
		s, requests, cost := assemble.SummaryOf(r), "", ""
		if s.Spent.Requests > 0 {
			requests = cli.Grouped(s.Spent.Requests)
		}
		if s.Spent.Usage.Cost > 0 {
			cost = cli.Dollars(s.Spent.Usage.Cost)
		}
		return []any{cli.Visible(r.ID), j.StateOf(r), requests, cost, cli.Moment(r.Updated, ""),
			cli.Line(hide.String(r.Task), 50)}
	})
}

type runsDeleteCmd struct {
	IDs []string `arg:"" name:"RUN" help:"As pawl runs list shows them, whole."`
	assemble.StoreFlags
}

// Run removes runs, and reports the first missing one.
func (c *runsDeleteCmd) Run(sys *cli.System) error {
	j, err := c.OpenRuns(sys)
	if err != nil {
		return err
	}
	defer j.Close()
	ctx := context.Background()
	return cli.Deleted(sys.Out, c.IDs, func(id string) error {
		r, err := j.Journal.JournalRun(ctx, j.Scope(), id)
		if err != nil {
			return err
		}
		if j.StateOf(r) == "running" {
			return fmt.Errorf("run %s: a process executes it; first: %s", id, j.Command("runs", "cancel", id))
		}
		return j.Journal.DeleteJournal(ctx, j.Scope(), id)
	}, func(id string) error {
		runs, err := j.All(ctx, "")
		if err != nil {
			return err
		}
		return cli.Unknown("run", id, cli.Names(runs, assemble.RunID), j.Command("runs", "list"))
	})
}

type runsVerifyCmd struct {
	runArg
	Heads []string `name:"head" sep:"none" placeholder:"HASH" help:"@runs_verify_heads"`
	assemble.StoreFlags
}

// Run checks the chain.
func (c *runsVerifyCmd) Run(sys *cli.System) error {
	ctx := context.Background()
	j, r, err := c.OpenRun(ctx, sys, c.ID)
	if err != nil {
		return err
	}
	defer j.Close()
	v, err := j.Verify(j.Scoped(ctx), r.ID, c.Heads...)
	if err != nil {
		return cli.Fail(cli.StatusFailed, err, "the records of the run were changed; do not resume it")
	}
	_, err = fmt.Fprintf(sys.Out, "%s: %s in order, head %s\n", cli.Visible(r.ID), cli.Count(int(v.Records),
		"record"), v.Head)
	return err
}
