package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/outside"
)

// toolsCmd lists, checks, shows and calls tools.
type toolsCmd struct {
	List toolsListCmd `cmd:"" help:"List them."`
	Lint toolsLintCmd `cmd:"" help:"@tools_lint"`
	Show toolsShowCmd `cmd:"" help:"Show one, as the model sees it."`
	Call toolsCallCmd `cmd:"" help:"@tools_call"`
}

// shownTool is a tool as list --json prints it.
type shownTool struct {
	Set         string          `json:"set"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Effect      pawl.Effect     `json:"effect"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output,omitempty"`
}

// builtinTools returns the built-in tools and the tools of the flags. The caller calls the returned
// function when no call runs any more.
func builtinTools(ctx context.Context, sys *cli.System, f assemble.ToolFlags, o assemble.OutsideFlags,
	m assemble.ServerFlags) ([]shownTool, *pawl.Registry, func(), error) {
	a := new(agentfile.Agent)
	for _, name := range agentfile.SetNames() {
		a.Tools = append(a.Tools, agentfile.Tool{Set: name})
	}
	assemble.Apply(&f, a)
	assemble.Apply(&o, a)
	if err := m.Over(a); err != nil {
		return nil, nil, nil, err
	}

	// Nothing has to be set up to list tools: what is missing shows at a call. Only the servers
	// know their tools, so they are connected.
	options, err := assemble.BuildOptions(sys)
	if err != nil {
		return nil, nil, nil, err
	}
	options.Dry = true
	options.Connect = true
	if o.AllowCommands {
		options.Commands = outside.Exec
	}
	sets, _, closeSets, err := a.Toolsets(ctx, options)
	if err != nil {
		return nil, nil, nil, assemble.Misconfigured(err)
	}

	all := []shownTool{} // a list in JSON, too
	registry := new(pawl.Registry)
	for _, s := range sets {
		tools, err := s.Tools.Tools(caller.OutsideRuns(ctx))
		if err == nil {
			err = registry.Add(tools...)
		}
		if err != nil {
			closeSets()
			return nil, nil, nil, err
		}
		for _, t := range tools {
			all = append(all, shownTool{s.Name, t.Name, t.Description, t.Effect, t.Input, t.Output})
		}
	}
	return all, registry, closeSets, nil
}

type toolsListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list with descriptions and schemas."`
	assemble.OutsideFlags
	assemble.ServerFlags
}

// Run lists the built-in tools.
func (c *toolsListCmd) Run(sys *cli.System) error {
	all, _, closeSets, err := builtinTools(context.Background(), sys, assemble.ToolFlags{}, c.OutsideFlags,
		c.ServerFlags)
	if err != nil {
		return err
	}
	defer closeSets()
	return cli.List(sys.Out, c.JSON, all, "SET|NAME|EFFECT|WHAT IT DOES", func(t shownTool) []any {
		return []any{t.Set, t.Name, t.Effect, cli.FirstSentence(t.Description, 50)}
	})
}

type toolsShowCmd struct {
	Name string `arg:"" name:"TOOL" help:"The tool."`
	assemble.CodeFlags
	assemble.PlanFlags
	assemble.OutsideFlags
	assemble.ServerFlags
}

// Run shows one tool.
func (c *toolsShowCmd) Run(sys *cli.System) error {
	flags := assemble.ToolFlags{CodeFlags: c.CodeFlags, PlanFlags: c.PlanFlags}
	all, _, closeSets, err := builtinTools(context.Background(), sys, flags, c.OutsideFlags, c.ServerFlags)
	if err != nil {
		return err
	}
	defer closeSets()

	var names []string
	for _, t := range all {
		names = append(names, t.Name)
		if t.Name != c.Name {
			continue
		}
		fmt.Fprintf(sys.Out, "%s (set %s, effect %s)\n\n%s\n\ninput:\n%s\n",
			t.Name, t.Set, t.Effect, t.Description, cli.Pretty(t.Input))
		if t.Output != nil {
			fmt.Fprintf(sys.Out, "\noutput:\n%s\n", cli.Pretty(t.Output))
		}
		return nil
	}
	return cli.Usage(nearest.Hint(c.Name, names), "no tool is named %q", c.Name)
}

type toolsCallCmd struct {
	Name string `arg:"" name:"TOOL" help:"The tool."`
	Args string `arg:"" optional:"" name:"JSON" help:"@tools_call_args"`
	JSON bool   `name:"json" help:"Print the whole execution: outcome, result, times."`
	repairFlags
	assemble.ToolFlags
	assemble.OutsideFlags
	assemble.ServerFlags
}

// Run calls the tool. If the call fails, the status is 1 and the error is the result that a model
// would read.
func (c *toolsCallCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	args := []byte(c.Args)
	if c.Args == "-" {
		var err error
		args, err = io.ReadAll(sys.In)
		if err != nil {
			return cli.Usage("", "the arguments could not be read from standard input: %v", err)
		}
	}

	_, registry, closeSets, err := builtinTools(ctx, sys, c.ToolFlags, c.OutsideFlags, c.ServerFlags)
	if err != nil {
		return err
	}
	defer closeSets()

	x, over, err := c.repair(ctx, sys, registry, args)
	if err != nil || over && x.Outcome == pawl.OutcomeOK {
		return err
	}
	if !over {
		x = registry.Execute(ctx, c.Name, args)
	}
	if err := c.print(sys, x); err != nil {
		return err
	}
	return c.failure(ctx, x)
}

// print prints the result of a successful execution or, with --json, any execution.
func (c *toolsCallCmd) print(sys *cli.System, x pawl.Execution) error {
	switch {
	case c.JSON:
		return cli.PrintJSON(sys.Out, x)
	case x.Outcome != pawl.OutcomeOK:
		return nil
	}
	text := x.Result.Text()
	if sys.OutTerm {
		text = cli.Visible(text)
	}
	fmt.Fprintln(sys.Out, strings.TrimSuffix(text, "\n"))
	return nil
}

// failure returns the error of an execution, with what helps. Nil means that it succeeded.
func (c *toolsCallCmd) failure(ctx context.Context, x pawl.Execution) error {
	result := errors.New(x.Result.Text())
	switch {
	case x.Outcome == pawl.OutcomeOK:
		return nil
	// A tool may be cancelled for other reasons. Only the person's interruption has its own status.
	case x.Outcome == pawl.OutcomeCancelled && ctx.Err() != nil:
		return cli.Fail(cli.StatusInterrupted, result, "")
	case c.JSON: // the printed execution says why
		return cli.Silent(cli.StatusFailed)
	}

	hint := ""
	switch {
	case errors.Is(x.Err(), sandbox.ErrUnenforced):
		hint = "pawl doctor lists the levels that can be enforced; --sandbox LEVEL selects one, " +
			"--sandbox-host names the hosts that a program may reach, " +
			"and --allow-commands runs command tools without a sandbox"
	case x.Outcome == pawl.OutcomeUnknownTool:
		hint = "pawl tools list"
	case x.Outcome == pawl.OutcomeInvalid:
		hint = "pawl tools show " + c.Name
	}
	return cli.Fail(cli.StatusFailed, result, hint)
}

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

	x, err = withoutTool(ctx, registry, llm.ToolCall{Name: c.Name, Args: args})
	if err != nil {
		return x, false, err
	}
	if x.Outcome != pawl.OutcomeOK {
		return x, true, nil
	}
	if c.DryRun && c.JSON {
		return x, true, cli.PrintJSON(sys.Out, x)
	}

	// The standard output has the result, or with --dry-run the arguments, and nothing else.
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

// withoutTool checks and repairs a call as an execution does, with tools that do nothing.
func withoutTool(ctx context.Context, registry *pawl.Registry, call llm.ToolCall) (x pawl.Execution, err error) {
	tools, err := registry.Tools(ctx)
	if err != nil {
		return x, err
	}
	idle := make(pawl.Toolsets, len(tools))
	for i, t := range tools {
		one := t.Clone()
		one.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult(""), nil }
		idle[i] = one
	}
	return pawl.Toolsets{idle}.Execute(ctx, call), nil
}

type toolsLintCmd struct {
	File     string   `arg:"" optional:"" help:"@tools_lint_file"`
	Provider []string `default:"all" placeholder:"NAME" help:"@tools_lint_provider"`
	Verbose  bool     `short:"v" help:"@tools_lint_verbose"`
	JSON     bool     `name:"json" help:"@tools_lint_json"`
	MCP      string   `name:"mcp" placeholder:"SERVER" help:"@tools_lint_mcp"`
}

// Run reports the parts of the schemas that each provider loses, and the faults that make tools
// hard to choose. If a provider cannot express a tool, the status is 1.
func (c *toolsLintCmd) Run(sys *cli.System) error {
	dialects, err := c.dialects()
	if err != nil {
		return err
	}
	source, b, err := c.definitions(sys)
	if err != nil {
		return err
	}
	tools, err := dialect.ReadTools(b)
	if err != nil {
		return cli.Usage("", "%s: %v", source, err)
	}
	if len(tools) == 0 {
		return cli.Usage("", "%s: there is no tool in it", source)
	}

	r := dialect.Lint(tools, dialects...)
	if err := c.print(sys, r); err != nil {
		return err
	}
	if !r.OK() {
		return cli.Silent(cli.StatusFailed)
	}
	return nil
}

// dialects returns the dialects of the providers to check for.
func (c *toolsLintCmd) dialects() ([]*dialect.Dialect, error) {
	var all []*dialect.Dialect
	for _, name := range c.Provider {
		d := dialect.ByName(name)
		switch {
		case name == "all":
			all = append(all, dialect.All()...)
		case d == nil:
			return nil, cli.Usage(
				"there are: openai, openai-strict, anthropic, anthropic-strict, gemini, gemini-json, all",
				"--provider: no provider is named %q", name)
		default:
			all = append(all, d)
		}
	}
	return all, nil
}

// definitions reads the tools to check: of a file, of standard input or of an MCP server. source is
// what errors call it.
func (c *toolsLintCmd) definitions(sys *cli.System) (source string, b []byte, err error) {
	if (c.MCP != "") == (c.File != "") {
		return "", nil, cli.Usage("pawl tools lint FILE, or pawl tools lint --mcp SERVER",
			"either a file or --mcp is needed, and not both")
	}
	if c.MCP != "" {
		b, err = c.listed(sys)
		return "--mcp " + c.MCP, b, err
	}

	if c.File == "-" {
		b, err = io.ReadAll(sys.In)
	} else {
		b, err = os.ReadFile(c.File)
	}
	if err != nil {
		return "", nil, cli.Usage("", "%s: %s", c.File, cli.Cause(err))
	}
	return c.File, b, nil
}

// print prints the report.
func (c *toolsLintCmd) print(sys *cli.System, r *dialect.Report) error {
	if c.JSON {
		return cli.PrintJSON(sys.Out, r)
	}
	var text strings.Builder
	if err := r.Text(&text, c.Verbose); err != nil {
		return err
	}
	shown := text.String()
	if sys.OutTerm {
		shown = cli.Visible(shown)
	}
	_, err := io.WriteString(sys.Out, shown)
	return err
}

// listed returns the tools of the server of --mcp, as the server sent them.
func (c *toolsLintCmd) listed(sys *cli.System) ([]byte, error) {
	var tools []mcp.Definition
	f := lockedFlags{ServerFlags: assemble.ServerFlags{MCP: []string{c.MCP}}}
	err := f.each(sys, func(_ mcp.Server, listed []mcp.Listed, _ *mcp.Lock, _ string) error {
		for _, l := range listed {
			tools = append(tools, l.Definition)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(tools)
}
