package main

import (
	"context"
	"fmt"
	"io"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
)

// repairFlags repair the arguments of a call as the arguments of a model are repaired.
type repairFlags struct {
	Repair bool `help:"@mend_repair"`
	DryRun bool `name:"dry-run" help:"@mend_dryrun"`
}

// repair prints the repairs of the arguments. over means that the call must not run: x is then its
// execution without the tool.
func (c *toolsCallCmd) repair(ctx context.Context, sys *cli.System, registry *pawl.Registry,
	args []byte) (x pawl.Execution, over bool, err error) {
	if !c.Repair {
		if c.DryRun {
			return x, false, cli.Usage("--repair --dry-run", "--dry-run needs --repair")
		}
		return x, false, nil
	}
	tools, err := registry.Tools(ctx)
	if err != nil {
		return x, false, err
	}
	dry := make(pawl.Toolsets, len(tools))
	for i, t := range tools {
		look := t.Clone()
		look.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult(""), nil }
		dry[i] = look
	}
	x = pawl.Toolsets{dry}.Execute(ctx, llm.ToolCall{Name: c.Name, Args: args})
	if x.Outcome != pawl.OutcomeOK {
		return x, true, nil
	}
	if c.DryRun && c.JSON {
		return x, true, cli.PrintJSON(sys.Out, x)
	}
	for i, r := range x.Repairs {
		fmt.Fprintf(sys.Err, "repair %d: %s\n", i+1, cli.Visible(r))
	}
	if len(x.Repairs) == 0 {
		fmt.Fprintln(sys.Err, "nothing to repair")
	}
	if !c.DryRun {
		fmt.Fprintf(sys.Err, "arguments: %s\n", cli.Visible(string(x.Call.Args)))
		return x, false, nil
	}
	text := string(x.Call.Args)
	if sys.OutTerm {
		text = cli.Visible(text)
	}
	_, err = io.WriteString(sys.Out, text+"\n")
	return x, true, err
}
