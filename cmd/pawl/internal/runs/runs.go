package runs

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/temporal"
	"github.com/pawl-go/pawl/internal/agentfile"
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
			spent := assemble.SummaryOf(r).Spent
			requests := ""
			cost := ""
			if spent.Requests > 0 {
				requests = cli.Grouped(spent.Requests)
			}
			if spent.Usage.Cost > 0 {
				cost = cli.Dollars(spent.Usage.Cost)
			}
			task := cli.Line(hide.String(r.Task), 50)
			return []any{cli.Visible(r.ID), j.StateOf(r), requests, cost, cli.Moment(r.Updated, ""), task}
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
		remove := func(id string) error {
			r, err := j.Journal.JournalRun(ctx, j.Scope(), id)
			if err != nil {
				return err
			}
			if j.StateOf(r) == "running" {
				return fmt.Errorf("run %s: a process executes it; first: %s", id, j.Command("runs", "cancel", id))
			}
			return j.Journal.DeleteJournal(ctx, j.Scope(), id)
		}
		missing := func(id string) error {
			runs, err := j.All(ctx, "")
			if err != nil {
				return err
			}
			return cli.Unknown("run", id, cli.Names(runs, assemble.RunID), j.Command("runs", "list"))
		}

		// What was deleted before an error must not remain in the file.
		err := cli.Deleted(sys.Out, c.IDs, remove, missing)
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
			fmt.Fprintf(sys.Out, "%s: %s in order, head %s%s\n",
				cli.Visible(id), cli.Count(int(v.Records), "record"), v.Head, c.reservations(v))
		}

		if len(bad) > 0 {
			return cli.Fail(cli.StatusFailed, errors.Join(bad...),
				"the records of the run were changed; do not resume it")
		}
		// A chain proves nothing against a person who can write all of it.
		if o.Keys == nil || o.Anchors == nil {
			sys.Notice("without --key and --anchors this cannot see a chain that was written anew, " +
				"a truncated run, or an older copy of the database")
		}
		return nil
	})
}

// reservations returns what a valid chain does not prove, for the end of its line.
func (c *runsVerifyCmd) reservations(v durable.Verified) string {
	text := ""
	if !v.Sealed {
		text = "; its columns in the list of runs have no seal yet"
	}
	if c.Anchors != "" && v.Unanchored > 0 {
		text += fmt.Sprintf("; %s after the last anchor", cli.Count(int(v.Unanchored), "record"))
	}
	return text
}

// options reads the keys and the anchors.
func (c *runsVerifyCmd) options() (*durable.VerifyOptions, error) {
	o := &durable.VerifyOptions{Heads: c.Heads}
	for _, name := range c.Keys {
		k, err := agentfile.ReadKey(name)
		// A private key is accepted, since a person who seals runs has only that file at hand.
		if private, ok := k.(ed25519.PrivateKey); ok { // of the program that sealed the runs
			k = private.Public()
		}
		public, ok := k.(ed25519.PublicKey)
		if err != nil || !ok {
			return nil, cli.Usage("openssl pkey -in KEY -pubout -out FILE writes the public key",
				"--key %s: %v", name, err)
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
	o.Anchors, err = store.ReadAnchors(f)
	if err != nil {
		return nil, cli.Usage("", "--anchors %s: %v", c.Anchors, err)
	}
	return o, nil
}

// named returns the ID of the run, or the IDs of all runs of the user, with anchored runs that are
// not there.
func (c *runsVerifyCmd) named(ctx context.Context, j *assemble.Journal, o *durable.VerifyOptions) ([]string, error) {
	if c.ID != "" {
		r, err := j.Find(ctx, c.ID)
		// A run that is anchored and not there is a fault, which Verify reports.
		if err != nil && slices.ContainsFunc(o.Anchors, func(a store.Anchor) bool { return a.Run == c.ID }) {
			return []string{c.ID}, nil
		}
		return []string{r.ID}, err
	}

	runs, err := j.All(ctx, "")
	ids := cli.Names(runs, assemble.RunID)

	// The last anchor of a run says whether it was deleted.
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

type runsPruneCmd struct {
	Older *cli.Age `name:"older-than" placeholder:"TIME" help:"@runs_prune_older"`
	State string   `enum:"${states}" default:"" placeholder:"STATE" help:"@runs_prune_state"`
	All   bool     `help:"@runs_prune_all"`
	assemble.StoreFlags
}

// keeper is a database that can list old runs, and delete all data of a user.
type keeper interface {
	EndedRuns(ctx context.Context, state, tenant, user string, before, now time.Time) ([]store.JournalRun, error)
	Erase(ctx context.Context, tenant, user string) error
}

// Run deletes old runs, or all data of a user.
func (c *runsPruneCmd) Run(sys *cli.System) error {
	switch {
	case c.All == (c.Older != nil):
		return cli.Usage("pawl runs prune --older-than 30d, or --all --tenant NAME --user NAME",
			"want --older-than or --all to choose what is deleted")
	case c.All && (c.User == "" || c.State != ""):
		return cli.Usage("pawl runs prune --all --user NAME",
			"--all deletes all data of one user: name the user, and no state")
	}
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		ctx := context.Background()
		db, ok := j.Journal.(keeper)
		if !ok {
			return cli.Usage("", "this database cannot be pruned")
		}

		deleted := "all data of " + cli.Visible(c.User)
		if c.All {
			if err := db.Erase(ctx, c.Tenant, c.User); err != nil {
				return cli.Failed(err)
			}
		} else {
			n, err := c.deleteOld(ctx, j, db)
			if err != nil {
				return cli.Failed(err)
			}
			deleted = cli.Count(n, "run")
		}
		fmt.Fprintf(sys.Out, "deleted %s\n", deleted)
		return compact(ctx, sys, j)
	})
}

// deleteOld deletes the runs that ended before --older-than, and returns their number.
func (c *runsPruneCmd) deleteOld(ctx context.Context, j *assemble.Journal, db keeper) (n int, err error) {
	state := cmp.Or(c.State, store.JournalOver)
	now := time.Now()
	for {
		runs, err := db.EndedRuns(ctx, state, c.Tenant, c.User, now.Add(-time.Duration(*c.Older)), now)
		if err != nil || len(runs) == 0 {
			return n, err
		}
		for _, r := range runs {
			if err := j.Journal.DeleteJournal(ctx, r.Scope, r.ID); err != nil {
				return n, err
			}
		}
		n += len(runs)
	}
}

// compact removes the remains of deleted data, if the database can do so.
func compact(ctx context.Context, sys *cli.System, j *assemble.Journal) error {
	db, ok := j.Journal.(store.Compacter)
	if !ok {
		sys.Notice("the server keeps remains of deleted data until it vacuums its tables: VACUUM FULL")
		return nil
	}
	if err := db.Compact(ctx); err != nil {
		return cli.Fail(cli.StatusStorage, err,
			"the runs are deleted; pawl runs prune --older-than 100000d removes their remains later")
	}
	return nil
}

// LivenessCmd lists the runs of all users that break the guarantee R9.
type LivenessCmd struct {
	assemble.ListFlags
	assemble.EngineFlags
}

// Run lists the runs. It fails if there are any.
func (c *LivenessCmd) Run(sys *cli.System) error {
	if err := c.EngineFlags.Check(&c.StoreFlags); err != nil {
		return err
	}
	stuck, err := c.stuck(sys)
	if err != nil {
		return err
	}

	if len(stuck) == 0 && !c.JSON {
		_, err = fmt.Fprintln(sys.Out, "no run is stuck")
	} else {
		err = cli.List(sys.Out, c.JSON, stuck, "RUN|TENANT|USER|STATE|SINCE|WHY", func(r durable.StuckRun) []any {
			return []any{
				cli.Visible(r.Run),
				cli.Visible(r.Scope.Tenant),
				cli.Visible(r.Scope.User),
				r.State,
				cli.Moment(r.Since, ""),
				cli.Line(r.Why, 200),
			}
		})
	}
	if err == nil && len(stuck) > 0 {
		err = cli.Silent(cli.StatusFailed)
	}
	return err
}

// stuck returns the stuck runs of the tenant and the user of the flags, or of all.
func (c *LivenessCmd) stuck(sys *cli.System) (stuck []durable.StuckRun, err error) {
	if c.Away() {
		err = remote{&c.ClusterFlags}.there(sys, func(ctx context.Context, e *temporal.Engine) (err error) {
			stuck, err = e.CheckLiveness(ctx)
			return c.Failed(err)
		})
	} else {
		err = c.WithRuns(sys, func(j *assemble.Journal) (err error) {
			stuck, err = j.CheckLiveness(context.Background())
			return cli.Failed(err)
		})
	}
	return slices.DeleteFunc(stuck, func(r durable.StuckRun) bool {
		otherTenant := c.Tenant != "" && r.Scope.Tenant != c.Tenant
		otherUser := c.User != "" && r.Scope.User != c.User
		return otherTenant || otherUser
	}), err
}
