package runs

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

type runsCancelCmd struct {
	runArg
	assemble.StoreFlags
	assemble.EngineFlags
}

// Run cancels the run.
func (c *runsCancelCmd) Run(sys *cli.System) error {
	if err := c.EngineFlags.Check(&c.StoreFlags); err != nil {
		return err
	}
	if c.Away() {
		return remote{&c.ClusterFlags}.cancel(sys, c.ID)
	}
	ctx, stop := cli.InterruptibleBy(context.Background(), sys.Err, cli.ErrStopped)
	defer stop()
	return c.WithRun(ctx, sys, c.ID, func(j *assemble.Journal, r store.JournalRun) error {
		id := cli.Visible(r.ID)
		if r.State == store.JournalOver {
			return cli.Fail(cli.StatusFailed, fmt.Errorf("run %s is over: %s", id, j.StateOf(r)),
				j.Command("runs", "show", id))
		}
		if err := j.Cancel(j.Scoped(ctx), r.ID); err != nil {
			return err
		}
		if j.StateOf(r) == "running" {
			_, err := fmt.Fprintf(sys.Out, "%s will stop soon\n", id)
			return err
		}
		if err := c.end(ctx, sys, j, r.ID); err != nil {
			sys.Notice(err.Error())
			_, err := fmt.Fprintf(sys.Out, "%s ends when it is resumed: its agent could not be built\n", id)
			return err
		}
		_, err := fmt.Fprintf(sys.Out, "cancelled %s\n", id)
		return err
	})
}

// end resumes the cancelled run so that it stores its end. No request is sent and no call runs.
func (c *runsCancelCmd) end(ctx context.Context, sys *cli.System, j *assemble.Journal, id string) error {
	again := remade{AgentFlags: assemble.AgentFlags{ToolFlags: assemble.ToolFlags{StoreFlags: c.StoreFlags}}}
	s, err := again.recorded(ctx, sys, j, id, offline{})
	if err != nil {
		return err
	}
	defer s.Close()
	res, err := j.Runner(id, s.Agent).Run(j.Scoped(ctx))
	var stop *pawl.StopError
	switch {
	case errors.Is(err, pawl.ErrCancelled):
		return nil
	case err == nil, errors.As(err, &stop) && stop.Err == nil:
		return fmt.Errorf("it had ended before: %s", res.Stop)
	}
	return err
}

// offline is the transport of models that must not be asked.
type offline struct{}

// RoundTrip fails.
func (offline) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return nil, &llm.ProviderError{Code: llm.CodeInvalidRequest, Message: "nothing is sent here"}
}
