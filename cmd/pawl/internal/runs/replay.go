package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

type runsReplayCmd struct {
	runArg
	remade
	JSON bool `name:"json" help:"@runs_replay_json"`
}

// replayed is what --json prints.
type replayed struct {
	Run        string      `json:"run"`
	Requests   int         `json:"requests"` // that were compared
	Bytes      int         `json:"bytes"`    // of them as bytes
	Calls      int         `json:"calls"`
	Same       bool        `json:"same"`
	Error      string      `json:"error,omitempty"`
	Difference *difference `json:"difference,omitempty"`
}

type difference struct {
	Key llm.Key `json:"key"`
	At  int     `json:"at"` // the first byte that differs
	Was string  `json:"was"`
	Is  string  `json:"is"`
}

// Run replays the run.
func (c *runsReplayCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	return c.WithRun(ctx, sys, c.ID, func(j *assemble.Journal, r store.JournalRun) error {
		s, err := c.recorded(ctx, sys, j, r.ID, durable.Transport(offline{}))
		if err != nil {
			return err
		}
		defer s.Close()
		p, err := j.Replay(j.Scoped(ctx), r.ID, s.Agent)
		hide, hideErr := j.Hide(ctx, sys, r.ID, s.Secrets)
		if hideErr != nil {
			return j.Failed(r.ID, hideErr)
		}
		var m *durable.Mismatch
		if errors.As(err, &m) {
			err = m.Redacted(hide)
		}
		if err != nil && !errors.Is(err, durable.ErrChanged) {
			return j.Failed(r.ID, err)
		}
		if c.JSON {
			return c.report(sys, r.ID, p, hide.Error(err))
		}
		if err != nil {
			return cli.Fail(cli.StatusFailed, hide.Error(err), "")
		}
		how := " byte for byte"
		switch {
		case p.Bytes == 0:
			how = " (compared by digest)"
		case p.Bytes < p.Requests:
			how = fmt.Sprintf(" (%s of them byte for byte)", cli.Grouped(p.Bytes))
		}
		_, err = fmt.Fprintf(sys.Out, "%s: %s made again%s, %s played back: the same\n", cli.Visible(r.ID),
			cli.Count(p.Requests, "request"), how, cli.Count(p.Calls, "call"))
		return err
	})
}

func (c *runsReplayCmd) report(sys *cli.System, id string, p durable.Played, err error) error {
	out := replayed{Run: id, Requests: p.Requests, Bytes: p.Bytes, Calls: p.Calls, Same: err == nil}
	var m *durable.Mismatch
	if errors.As(err, &m) {
		out.Difference = &difference{m.Key, m.At(), string(m.Was), string(m.Is)}
	}
	if err != nil {
		out.Error = err.Error()
	}
	if err := cli.PrintJSON(sys.Out, out); err != nil {
		return err
	}
	if err != nil {
		return cli.Silent(cli.StatusFailed)
	}
	return nil
}
