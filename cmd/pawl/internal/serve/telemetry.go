package serve

import (
	"context"
	"iter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/telemetry"
	"github.com/pawl-go/pawl/telemetry/export"
)

// measure measures the runs of all agents for /metrics of the server, and sends them to the
// collector of --otel until the agents are closed. Call it after every other change of the agents.
func (c *Cmd) measure(sys *cli.System, all *served, o *server.Options) error {
	page := export.NewPrometheus()
	base := &telemetry.Options{Content: c.Content, Redactor: all.secrets, Names: telemetry.Names(c.Names)}
	switch {
	case c.OTel != "":
		p, err := assemble.Pipeline(c.OTel, sys, page)
		if err != nil {
			return err
		}
		base.Tracer = p.Tracer
		base.Meter = p.Meter
		all.closers = append(all.closers, func() { cli.Report(sys.Err, p.Close(context.Background())) })
	case c.Content:
		return cli.Usage("--otel URL", "--include-content: there is no collector for the content")
	default:
		base.Meter = page.Meter()
	}

	// Each agent has the model of its own spans and figures.
	byAgent := map[string]*telemetry.Telemetry{}
	for i, a := range all.agents {
		one := *base
		if models := all.files[i].Model; len(models) > 0 {
			one.Provider, one.Model = assemble.Named(models[0].Name)
		}
		tel, err := telemetry.New(&one)
		if err != nil {
			return err
		}
		a.Middleware = append(a.Middleware, tel.Middleware())
		byAgent[a.Name] = tel
	}

	o.Metrics = page
	o.Around = func(id, agent string, r pawl.Runner) pawl.Runner {
		if tel := byAgent[agent]; tel != nil {
			return withRunID(id, tel.Runner(r))
		}
		return r
	}
	return nil
}

// withRunID returns r with the ID of the run in the telemetry of its requests.
func withRunID(id string, r pawl.Runner) pawl.Runner {
	return observe.RunnerFunc(func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		return r.Stream(telemetry.WithRunID(ctx, id), msgs...)
	})
}
