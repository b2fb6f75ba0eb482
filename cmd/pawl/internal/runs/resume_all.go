package runs

// resume_all.go: many failed runs go on at once.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentname"
	"github.com/pawl-go/pawl/store"
)

// chosen selects failed runs.
type chosen struct {
	All   bool     `help:"@runs_resume_all"`
	Stop  string   `enum:"${failures}" default:"" placeholder:"STOP" help:"@runs_resume_stop"`
	Agent string   `name:"of-agent" placeholder:"NAME" help:"@runs_resume_agent"`
	Since *cli.Age `placeholder:"TIME" help:"@runs_resume_since"`
	Dry   bool     `name:"dry-run" help:"@runs_resume_dry"`
}

// isSeveral reports whether runs are selected, and not named.
func (c *chosen) isSeveral() bool { return c.All || c.Stop != "" }

// check returns an error for flags that contradict each other. id is the run that is named; ""
// means none.
func (c *chosen) check(id string) error {
	filters := c.Agent != "" || c.Since != nil || c.Dry
	switch {
	case id != "" && (c.isSeveral() || filters):
		return cli.Usage("pawl runs resume RUN, or pawl runs resume --all", "--all, --stop, --of-agent, --since and "+
			"--dry-run select several runs, and %s is one", id)
	case id == "" && !c.isSeveral():
		return cli.Usage("pawl runs resume RUN, or pawl runs resume --all --dry-run", "want the run to resume")
	case c.All && c.Stop != "":
		return cli.Usage("", "--all and --stop exclude each other")
	}
	return nil
}

// has reports whether a run is selected.
func (c *chosen) has(j *assemble.Journal, r store.JournalRun, now time.Time) bool {
	family, _ := agentname.Split(r.Agent)
	switch {
	case r.State != store.JournalFailed:
		return false
	case j.Tenant != "" && r.Scope.Tenant != j.Tenant:
		return false
	case j.User != "" && r.Scope.User != j.User:
		return false
	case c.Stop != "" && j.StateOf(r) != c.Stop:
		return false
	case c.Agent != "" && c.Agent != r.Agent && c.Agent != family:
		return false
	}
	return c.Since == nil || now.Sub(r.Updated) <= time.Duration(*c.Since)
}

// resumeAll opens the selected runs again, the oldest first. Servers with their agents resume them.
func (c *chosen) resumeAll(ctx context.Context, sys *cli.System, j *assemble.Journal, asJSON bool) error {
	all := []store.JournalRun{} // a list in JSON, too
	now := time.Now()
	for r, err := range j.Journal.UnendedRuns(ctx) {
		if err != nil {
			return cli.Failed(err)
		}
		if c.has(j, r, now) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b store.JournalRun) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.ID, b.ID))
	})

	hide := assemble.Secrets(sys.Env, nil)
	err := cli.List(sys.Out, asJSON, all, "RUN|STOP|AGENT|LAST|CAUSE", func(r store.JournalRun) []any {
		cause := cli.Line(hide.String(assemble.SummaryOf(r).Cause), 60)
		return []any{cli.Visible(r.ID), j.StateOf(r), cli.Visible(r.Agent), cli.Moment(r.Updated, ""), cause}
	})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		sys.Notice("no failed run is selected")
	}
	if c.Dry || len(all) == 0 {
		return nil
	}

	opened := 0
	for _, r := range all {
		err := j.Reopen(store.WithScope(ctx, r.Scope), r.ID, assemble.WhoSays(sys))
		if err != nil {
			// another process was faster, or deleted it
			sys.Notice("run " + r.ID + ": " + err.Error())
			continue
		}
		opened++
	}
	sys.Notice(fmt.Sprintf("%s of %d can go on: pawl serve resumes the runs of its agents", cli.Count(opened, "run"), len(all)))
	return nil
}
