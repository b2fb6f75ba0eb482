package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/temporal"
)

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
	var stuck []durable.StuckRun
	var err error
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
	if err != nil {
		return err
	}
	stuck = slices.DeleteFunc(stuck, func(r durable.StuckRun) bool {
		return c.Tenant != "" && r.Scope.Tenant != c.Tenant || c.User != "" && r.Scope.User != c.User
	})
	if len(stuck) == 0 && !c.JSON {
		_, err = fmt.Fprintln(sys.Out, "no run is stuck")
	} else {
		err = cli.List(sys.Out, c.JSON, stuck, "RUN|TENANT|USER|STATE|SINCE|WHY", func(r durable.StuckRun) []any {
			return []any{cli.Visible(r.Run), cli.Visible(r.Scope.Tenant), cli.Visible(r.Scope.User), r.State,
				cli.Moment(r.Since, ""), cli.Line(r.Why, 200)}
		})
	}
	if err == nil && len(stuck) > 0 {
		err = cli.Silent(cli.StatusFailed)
	}
	return err
}
