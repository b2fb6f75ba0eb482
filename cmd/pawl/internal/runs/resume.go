package runs

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/tui"
	"github.com/pawl-go/pawl/store"
)

// remade builds the agent of a run again, from the recipe of the run and from flags.
type remade struct {
	File string `name:"file" placeholder:"FILE.yaml" help:"@remade_file"`
	assemble.AgentFlags
}

// remember completes the flags with the recipe of the run, and changes to its working directory.
func (c *remade) remember(ctx context.Context, sys *cli.System, j *assemble.Journal, id string) error {
	meta, err := j.Meta(j.Scoped(ctx), id)
	if err != nil {
		return j.Failed(id, err)
	}
	n := assemble.ReadRecipe(meta)
	if n == nil {
		if c.File == "" && c.Model == "" {
			return cli.Usage("--file FILE.yaml, or --model and the other flags of pawl run",
				"the run %s was not started by pawl run, so its agent is not known", id)
		}
		return nil
	}
	if err := n.Enter(&c.AgentFlags, &c.File); err != nil {
		return err
	}
	c.File = cmp.Or(c.File, n.File)
	if err := n.Over(&c.AgentFlags); err != nil {
		return err
	}
	if n.Changed(c.File) {
		sys.Notice(c.File + " has changed since the run was started")
	}
	return nil
}

// again builds the agent of the run.
func (c *remade) again(ctx context.Context, sys *cli.System, j *assemble.Journal, id string) (*assemble.Setup, error) {
	if err := c.remember(ctx, sys, j, id); err != nil {
		return nil, err
	}
	return c.Setup(ctx, sys, c.File)
}

// recorded builds the agent of the run for a replay by transport, which asks no model.
func (c *remade) recorded(ctx context.Context, sys *cli.System, j *assemble.Journal, id string,
	transport http.RoundTripper) (*assemble.Setup, error) {
	c.CarryBy(transport, true)
	s, err := c.again(ctx, sys, j, id)
	if err == nil {
		s.Agent.Middleware = append(s.Agent.Middleware, s.Rules.Middleware())
	}
	return s, err
}

type runsResumeCmd struct {
	runArg
	remade
	assemble.SettleFlags
	assemble.TelemetryFlags
	Changed bool           `name:"accept-changes" help:"@runs_resume_accept"`
	Accept  []string       `name:"accept-changed-tool" hidden:"" help:"@runs_resume_tools"`
	Lease   *time.Duration `name:"lease" placeholder:"TIME" help:"@runs_resume_lease"`
	JSON    bool           `name:"json" help:"@runs_resume_json"`
	assemble.EngineFlags
}

// Run resumes the run.
func (c *runsResumeCmd) Run(sys *cli.System) error {
	if err := c.EngineFlags.Check(&c.StoreFlags); err != nil {
		return err
	}
	if c.Away() {
		if c.File != "" || len(assemble.Given(&c.AgentFlags)) > 0 || c.Changed || len(c.Accept) > 0 || c.Lease != nil {
			return cli.Usage("set it in the agent's file, which pawl worker reads",
				"on Temporal the worker has the agent and its settings")
		}
		return remote{&c.ClusterFlags}.resume(sys, c.ID, c.SettleFlags, c.JSON)
	}
	ctx, stop := cli.InterruptibleBy(context.Background(), sys.Err, cli.ErrStopped)
	defer stop()
	ctx, sys = cli.Attended(ctx, sys, cli.ErrStopped)
	if err := (&assemble.DurableFlags{Durable: true, Lease: c.Lease}).Check(); err != nil {
		return err
	}
	return c.WithRun(ctx, sys, c.ID, func(j *assemble.Journal, r store.JournalRun) error {
		j.AcceptChangedTools, j.AcceptChanges = c.Accept, c.Changed
		if c.Lease != nil {
			j.Engine.Lease = *c.Lease
		}
		return c.goOn(ctx, sys, j, r)
	})
}

func (c *runsResumeCmd) goOn(ctx context.Context, sys *cli.System, j *assemble.Journal, r store.JournalRun) error {
	other := !c.Changed && (c.System != "" || c.Model != "")
	if err := c.remember(ctx, sys, j, r.ID); err != nil {
		return err
	}
	if !c.SettleFlags.Empty() {
		if _, err := j.Decide(ctx, r.ID, assemble.WhoSays(sys), c.SettleFlags); err != nil {
			return err
		}
	}
	c.Durably()
	s, err := c.Setup(ctx, sys, c.File)
	if err != nil {
		return err
	}
	defer func() { s.Close() }()
	if other {
		sys.Notice("the run continues with the instructions and the model that it began with; " +
			"--accept-changes continues it with these")
	}
	out := tui.NewScreen(sys.Err)
	tui.AskPerson(s, sys, out, nil, nil, false)
	if err := c.TelemetryFlags.Open(sys, s); err != nil {
		return err
	}
	if r.State != store.JournalOver {
		if err := j.Free(ctx, sys, r.ID); err != nil {
			return err
		}
	}
	return (&tui.DurableRun{Journal: j, Runner: j.Runner(r.ID, s.Agent), Setup: s, Sys: sys, Out: out,
		JSON: c.JSON}).Do(ctx, nil)
}
