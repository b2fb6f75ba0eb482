package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/store"
)

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
		return cli.Usage("pawl runs prune --all --user NAME", "--all deletes all data of one user: name the user, and no state")
	}
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		ctx := context.Background()
		db, ok := j.Journal.(keeper)
		if !ok {
			return cli.Usage("", "this database cannot be pruned")
		}
		if c.All {
			if err := db.Erase(ctx, c.Tenant, c.User); err != nil {
				return cli.Failed(err)
			}
			fmt.Fprintf(sys.Out, "deleted all data of %s\n", cli.Visible(c.User))
			return compact(ctx, sys, j)
		}
		state := c.State
		if state == "" {
			state = store.JournalOver
		}
		now, n := time.Now(), 0
		for {
			runs, err := db.EndedRuns(ctx, state, c.Tenant, c.User, now.Add(-time.Duration(*c.Older)), now)
			if err != nil {
				return cli.Failed(err)
			}
			for _, r := range runs {
				if err := j.Journal.DeleteJournal(ctx, r.Scope, r.ID); err != nil {
					return cli.Failed(err)
				}
			}
			if n += len(runs); len(runs) == 0 {
				break
			}
		}
		fmt.Fprintf(sys.Out, "deleted %s\n", cli.Count(n, "run"))
		return compact(ctx, sys, j)
	})
}

// compact removes the remains of deleted data, if the database can do so.
func compact(ctx context.Context, sys *cli.System, j *assemble.Journal) error {
	db, ok := j.Journal.(interface{ Compact(context.Context) error })
	if !ok {
		sys.Notice("the server keeps remains of deleted data until it vacuums its tables: VACUUM FULL")
		return nil
	}
	if err := db.Compact(ctx); err != nil {
		return cli.Fail(cli.StatusStorage, err, "the runs are deleted; pawl runs prune --older-than 100000d removes their remains later")
	}
	return nil
}
