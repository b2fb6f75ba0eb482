package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/outside"
)

// toolsCmd is about the built-in tools.
type toolsCmd struct {
	List toolsListCmd `cmd:"" help:"List them."`
	Lint toolsLintCmd `cmd:"" help:"Report what providers do not take of the schemas in a file, and what makes tools hard to choose."`
	Show toolsShowCmd `cmd:"" help:"Show one: what the model is told of it."`
	Call toolsCallCmd `cmd:"" help:"Call one, as a model would: arguments are checked, the result is what a model would be told."`
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

// builtinTools returns every built-in tool and those of the files, and what must be closed when no call runs any more. With show, none of them will be called.
func builtinTools(ctx context.Context, sys *system, f toolFlags, o outsideFlags, m serverFlags, show bool) ([]shownTool, *pawl.Registry, func(), error) {
	a := new(config.Agent)
	for _, name := range config.SetNames() {
		a.Tools = append(a.Tools, config.Tool{Set: name})
	}
	f.over(a)
	o.over(a)
	if err := m.over(a); err != nil {
		return nil, nil, nil, err
	}
	options := &config.Options{Getenv: sys.env, Tell: sys.tell, Dry: true, Connect: true}
	if o.AllowCommands {
		options.Commands = outside.Exec
	}
	sets, _, closeSets, err := a.Toolsets(ctx, options)
	if err != nil {
		return nil, nil, nil, misconfigured(err)
	}
	all, registry := []shownTool{}, new(pawl.Registry)
	for _, s := range sets {
		tools, err := s.Tools.Tools(ctx)
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
	outsideFlags
	serverFlags
}

// Run lists the built-in tools.
func (c *toolsListCmd) Run(sys *system) error {
	all, _, closeSets, err := builtinTools(context.Background(), sys, toolFlags{}, c.outsideFlags, c.serverFlags, true)
	if err != nil {
		return err
	}
	defer closeSets()
	if c.JSON {
		return printJSON(sys.out, all)
	}
	w := tabwriter.NewWriter(sys.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tNAME\tEFFECT\tWHAT IT DOES")
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Set, t.Name, t.Effect, firstSentence(t.Description, 50))
	}
	return w.Flush()
}

func firstSentence(s string, width int) string {
	s, _, _ = strings.Cut(s, "\n")
	if i := strings.IndexAny(s, ".:"); i > 0 {
		s = s[:i]
	}
	return line(s, width)
}

type toolsShowCmd struct {
	Name string `arg:"" name:"TOOL" help:"The tool."`
	codeFlags
	planFlags
	outsideFlags
	serverFlags
}

// Run shows one tool.
func (c *toolsShowCmd) Run(sys *system) error {
	all, _, closeSets, err := builtinTools(context.Background(), sys, toolFlags{codeFlags: c.codeFlags, planFlags: c.planFlags}, c.outsideFlags, c.serverFlags, true)
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
		fmt.Fprintf(sys.out, "%s (set %s, effect %s)\n\n%s\n\ninput:\n%s\n", t.Name, t.Set, t.Effect, t.Description, pretty(t.Input))
		if t.Output != nil {
			fmt.Fprintf(sys.out, "\noutput:\n%s\n", pretty(t.Output))
		}
		return nil
	}
	return usage("there are: "+strings.Join(names, ", "), "no tool is named %q", c.Name)
}

func pretty(b json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}

type toolsCallCmd struct {
	Name string `arg:"" name:"TOOL" help:"The tool."`
	Args string `arg:"" optional:"" name:"JSON" help:"Its arguments, a JSON object; - reads them from standard input. Default: {}."`
	JSON bool   `name:"json" help:"Print the whole execution: outcome, result, times."`
	mendFlags
	toolFlags
	outsideFlags
	serverFlags
}

// Run calls the tool. A call that does not end well is status 1; its result says why, in the words that a model would read.
func (c *toolsCallCmd) Run(sys *system) error {
	ctx, stop := interruptible(context.Background(), sys.err)
	defer stop()
	args := []byte(c.Args)
	if c.Args == "-" {
		var err error
		if args, err = io.ReadAll(sys.in); err != nil {
			return usage("", "the arguments could not be read from standard input: %v", err)
		}
	}
	_, registry, closeSets, err := builtinTools(ctx, sys, c.toolFlags, c.outsideFlags, c.serverFlags, false)
	if err != nil {
		return err
	}
	defer closeSets()
	x, over, err := c.mend(ctx, sys, registry, args)
	if err != nil || over && x.Outcome == pawl.OutcomeOK {
		return err
	}
	if !over {
		x = registry.Execute(ctx, c.Name, args)
	}
	if c.JSON {
		if err := printJSON(sys.out, x); err != nil {
			return err
		}
	} else if text := x.Result.Text(); x.Outcome == pawl.OutcomeOK {
		if sys.outTerm {
			text = visible(text)
		}
		fmt.Fprintln(sys.out, strings.TrimSuffix(text, "\n"))
	}
	told := errors.New(x.Result.Text())
	switch {
	case x.Outcome == pawl.OutcomeOK:
		return nil
	case x.Outcome == pawl.OutcomeCancelled && ctx.Err() != nil:
		return fail(statusInterrupted, told, "")
	case c.JSON:
		return silent(statusFailed)
	case strings.Contains(told.Error(), sandbox.ErrUnenforced.Error()):
		return fail(statusFailed, told, "pawl doctor says what can be enforced; --sandbox LEVEL takes it, --sandbox-host names what a program may reach, and --allow-commands runs command tools outside of it")
	case x.Outcome == pawl.OutcomeUnknownTool:
		return fail(statusFailed, told, "pawl tools list")
	case x.Outcome == pawl.OutcomeInvalid:
		return fail(statusFailed, told, "pawl tools show "+c.Name)
	}
	return fail(statusFailed, told, "")
}

// printJSON prints v, indented.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
