package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

type runsCancelCmd struct {
	runArg
	storeFlags
	engineFlags
}

// Help says when.
func (*runsCancelCmd) Help() string {
	return `A process that is at work on the run ends it within a third of its lease. If none is, the run is ended here: calls that wait get a result that says so. It cannot be resumed then.`
}

// Run gives the run up.
func (c *runsCancelCmd) Run(sys *system) error {
	if err := c.engineFlags.check(&c.storeFlags); err != nil {
		return err
	}
	if c.away() {
		return remote{&c.clusterFlags}.cancel(sys, c.ID)
	}
	ctx, stop := interruptibleBy(context.Background(), sys.err, errStopped)
	defer stop()
	j, r, err := c.openRun(ctx, sys, c.ID)
	if err != nil {
		return err
	}
	defer j.Close()
	id := visible(r.ID)
	if r.State == store.JournalOver {
		return fail(statusFailed, fmt.Errorf("run %s is over: %s", id, j.stateOf(r)), j.command("runs", "show", id))
	}
	if err := j.Cancel(j.scoped(ctx), r.ID); err != nil {
		return err
	}
	if j.stateOf(r) == "running" {
		_, err := fmt.Fprintf(sys.out, "%s is told to stop\n", id)
		return err
	}
	if err := c.end(ctx, sys, j, r.ID); err != nil {
		sys.tell(err.Error())
		_, err := fmt.Fprintf(sys.out, "%s is given up when it is resumed: its agent could not be made\n", id)
		return err
	}
	_, err = fmt.Fprintf(sys.out, "cancelled %s\n", id)
	return err
}

// end has the run write its end, which asks and runs nothing.
func (c *runsCancelCmd) end(ctx context.Context, sys *system, j *journal, id string) error {
	again := remade{agentFlags: agentFlags{toolFlags: toolFlags{storeFlags: c.storeFlags}}}
	again.carryBy(offline{}, true)
	if err := again.remember(ctx, sys, j, id); err != nil {
		return err
	}
	s, err := again.setup(ctx, sys, again.File)
	if err != nil {
		return err
	}
	defer s.close()
	s.agent.Middleware = append(s.agent.Middleware, s.rules.Middleware())
	res, err := j.Runner(id, s.agent).Run(j.scoped(ctx))
	switch {
	case err != nil:
		return err
	case res.Stop != pawl.StopCancelled:
		return fmt.Errorf("it ended otherwise: %s", res.Stop)
	}
	return nil
}

// offline is for models that are not asked.
type offline struct{}

// RoundTrip sends nothing.
func (offline) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return nil, &pawl.ProviderError{Code: pawl.CodeInvalidRequest, Message: "nothing is sent here"}
}
