package main

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// onCluster executes the task on a Temporal cluster.
func (c *runCmd) onCluster(ctx context.Context, sys *cli.System) error {
	name, err := c.agentThere(sys)
	if err != nil {
		return err
	}
	switch {
	case c.DurableFlags.Run == assemble.LastRun:
		return cli.Usage("another name", "--run last: this stands for the last run")
	case c.DurableFlags.Run != "":
		if err := store.CheckID(c.DurableFlags.Run); err != nil {
			return cli.Usage("a name such as invoice-7", "--run: %v", err)
		}
	}
	from, msgs, err := c.start(sys)
	if err != nil {
		return err
	}
	if err := cli.Savable("--save", c.Save); err != nil {
		return err
	}
	w := runs.RemoteRun{ID: cmp.Or(c.DurableFlags.Run, assemble.NewRunID()), Agent: name, JSON: c.JSON, Save: c.Save}
	return w.Do(ctx, sys, &c.ClusterFlags, append(from.Messages, msgs...))
}

// agentThere returns the name of the agent. Flags of an agent are refused, because the worker
// builds the agent.
func (c *runCmd) agentThere(sys *cli.System) (string, error) {
	flags := assemble.Given(&c.AgentFlags)
	delete(flags, "Agent")
	if len(flags) > 0 {
		field, _ := reflect.TypeFor[assemble.AgentFlags]().FieldByName(slices.Min(slices.Collect(maps.Keys(flags))))
		return "", cli.Usage("say it in the agent's file, which pawl worker is given",
			"%s: on Temporal the agent is the worker's", assemble.FlagName(field))
	}
	for flag, said := range map[string]bool{"--durable": c.Durable, "--lease": c.Lease != nil, "--plan": c.Plan != "",
		"--record, --replay": c.RecordFlags != (assemble.RecordFlags{}), "--approve, --deny, --answer": !c.SettleFlags.Empty()} {
		if said {
			return "", cli.Usage("see docs/temporal.md", "%s: this is not there with --engine temporal", flag)
		}
	}
	if !reflect.ValueOf(c.TelemetryFlags).IsZero() {
		return "", cli.Usage("telemetry is the worker's",
			"--engine temporal: this process has nothing to tell a collector")
	}
	if c.File == "" {
		if c.Agent == "" {
			return "", cli.Usage(`pawl run FILE.yaml --engine temporal "…", or --agent NAME`, "it is not known which agent of the workers to run")
		}
		return c.Agent, nil
	}
	a, err := c.Read(c.File, sys)
	if err != nil {
		return "", err
	}
	return a.Name, nil
}
