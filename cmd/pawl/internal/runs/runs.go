package runs

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/durable"
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
	Verify  runsVerifyCmd  `cmd:"" help:"Check that the records of runs are unchanged."`
	Replay  runsReplayCmd  `cmd:"" help:"@runs_replay"`
	Fork    runsForkCmd    `cmd:"" help:"Start another run with the first steps of one."`
	Diff    runsDiffCmd    `cmd:"" help:"Show where two runs differ."`
	Delete  runsDeleteCmd  `cmd:"" help:"Remove runs with all their records."`
	Prune   runsPruneCmd   `cmd:"" help:"@runs_prune"`
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
	return c.WithRuns(sys, func(j *assemble.Journal) error {
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
	})
}

type runsDeleteCmd struct {
	IDs []string `arg:"" name:"RUN" help:"As pawl runs list shows them, whole."`
	assemble.StoreFlags
}

// Run removes runs, and reports the first missing one.
func (c *runsDeleteCmd) Run(sys *cli.System) error {
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		ctx := context.Background()
		err := cli.Deleted(sys.Out, c.IDs, func(id string) error {
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
		return errors.Join(err, compact(ctx, sys, j))
	})
}

type runsVerifyCmd struct {
	ID      string   `arg:"" optional:"" name:"RUN" help:"@runs_verify_id"`
	Heads   []string `name:"head" sep:"none" placeholder:"HASH" help:"@runs_verify_heads"`
	Keys    []string `name:"key" sep:"none" placeholder:"FILE" help:"@runs_verify_keys"`
	Anchors string   `placeholder:"FILE" help:"@runs_verify_anchors"`
	assemble.StoreFlags
}

// Run checks the chains. It reports each run with a fault.
func (c *runsVerifyCmd) Run(sys *cli.System) error {
	ctx := context.Background()
	o, err := c.options()
	if err != nil {
		return err
	}
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		ids, err := c.named(ctx, j, o)
		if err != nil {
			return err
		}
		var bad []error
		for _, id := range ids {
			v, err := j.Verify(j.Scoped(ctx), id, o)
			if err != nil {
				bad = append(bad, err)
				continue
			}
			text := ""
			if !v.Sealed {
				text = "; its columns in the list of runs have no seal yet"
			}
			if c.Anchors != "" && v.Unanchored > 0 {
				text += fmt.Sprintf("; %s after the last anchor", cli.Count(int(v.Unanchored), "record"))
			}
			fmt.Fprintf(sys.Out, "%s: %s in order, head %s%s\n", cli.Visible(id), cli.Count(int(v.Records), "record"), v.Head, text)
		}
		if len(bad) > 0 {
			return cli.Fail(cli.StatusFailed, errors.Join(bad...), "the records of the run were changed; do not resume it")
		}
		if o.Keys == nil || o.Anchors == nil {
			sys.Notice("without --key and --anchors this cannot see a chain that was written anew, a truncated run, or an older copy of the database")
		}
		return nil
	})
}

// options reads the keys and the anchors.
func (c *runsVerifyCmd) options() (*durable.VerifyOptions, error) {
	o := &durable.VerifyOptions{Heads: c.Heads}
	for _, name := range c.Keys {
		k, err := config.ReadKey(name)
		if private, ok := k.(ed25519.PrivateKey); ok {
			k = private.Public()
		}
		public, ok := k.(ed25519.PublicKey)
		if err != nil || !ok {
			return nil, cli.Usage("openssl pkey -in KEY -pubout -out FILE writes the public key", "--key %s: %v", name, err)
		}
		o.Keys = append(o.Keys, public)
	}
	if c.Anchors == "" {
		return o, nil
	}
	f, err := os.Open(c.Anchors)
	if err != nil {
		return nil, cli.Usage("", "--anchors: %s", cli.Plain(err))
	}
	defer f.Close()
	if o.Anchors, err = store.ReadAnchors(f); err != nil {
		return nil, cli.Usage("", "--anchors %s: %v", c.Anchors, err)
	}
	return o, nil
}

// named returns the ID of the run, or the IDs of all runs of the user, with anchored runs that are
// not there.
func (c *runsVerifyCmd) named(ctx context.Context, j *assemble.Journal, o *durable.VerifyOptions) ([]string, error) {
	if c.ID != "" {
		r, err := j.Find(ctx, c.ID)
		if err != nil && slices.ContainsFunc(o.Anchors, func(a store.Anchor) bool { return a.Run == c.ID }) {
			return []string{c.ID}, nil
		}
		return []string{r.ID}, err
	}
	runs, err := j.All(ctx, "")
	ids := cli.Names(runs, assemble.RunID)
	gone := map[string]bool{}
	for _, a := range o.Anchors {
		if a.Scope == j.Scope() {
			gone[a.Run] = a.Gone
		}
	}
	for id, deleted := range gone {
		if !deleted && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}
