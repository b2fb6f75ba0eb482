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
	"github.com/pawl-go/pawl/tools/data"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/http"
	"github.com/pawl-go/pawl/tools/plan"
	"github.com/pawl-go/pawl/tools/search"
)

// toolsCmd is about the built-in tools.
type toolsCmd struct {
	List toolsListCmd `cmd:"" help:"List them."`
	Lint toolsLintCmd `cmd:"" help:"Report what providers do not take of the schemas in a file, and what makes tools hard to choose."`
	Show toolsShowCmd `cmd:"" help:"Show one: what the model is told of it."`
	Call toolsCallCmd `cmd:"" help:"Call one, as a model would: arguments are checked, the result is what a model would be told."`
}

// toolset is a family of built-in tools under the name --tools knows it by.
type toolset struct {
	name  string
	tools pawl.Toolset
}

const setNames = "file, data, http, search, knowledge, shell, plan"

// toolFlags say what the built-in tools may reach.
type toolFlags struct {
	Root      string   `default:"." placeholder:"DIR" help:"What the file tools see, and what shell commands may write. Default: the current directory."`
	HTTPAllow []string `name:"http-allow" placeholder:"HOST" help:"What the http and search tools may reach beside public addresses: localhost:8080, *.example.com, 10.1.0.0/16."`
	Sandbox   string   `enum:"strict,standard,none" default:"strict" placeholder:"LEVEL" help:"How shell commands are held: strict, standard or none; docs/security.md says what each stops, pawl doctor which can be had here. Default: strict."`
	planFlags
	storeFlags
	embedFlags
	sharedFlag
}

// planFlags say what the plans of the plan set can do.
type planFlags struct {
	DataFlow bool `name:"data-flow" help:"With the plan tool: steps can take values from steps before them. See docs/plans.md."`
}

// builtin makes the named sets, each once. Close them. What some of them are over is opened at the first call; with now, at once.
func builtin(names []string, f toolFlags, env func(string) string, now bool) (sets []toolset, closeSets func(), err error) {
	var closers []io.Closer
	closeAll := func() {
		for _, c := range closers {
			c.Close()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	seen := map[string]bool{}
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "" || seen[name] {
			continue
		}
		seen[name] = true
		switch name {
		case "file":
			set, err := file.New(f.Root, nil)
			if err != nil {
				return nil, nil, usage("--root takes a directory that is there", "--root %s: %s", f.Root, cause(err))
			}
			closers = append(closers, set)
			sets = append(sets, toolset{name, set})
		case "data":
			sets = append(sets, toolset{name, data.New()})
		case "http":
			fetch, err := http.New(&http.Options{Allow: f.HTTPAllow})
			if err != nil {
				return nil, nil, usage("", "--http-allow: %s", strings.TrimPrefix(err.Error(), "http tools: allow: "))
			}
			sets = append(sets, toolset{name, fetch})
		case "search":
			engine, err := search.Open(env) // without one each call says what is missing
			if err != nil && now {
				return nil, nil, usage("set one of BRAVE_API_KEY, TAVILY_API_KEY and SEARXNG_URL", "--tools search: no search service is set up")
			}
			ranks, err := f.embedder()
			if err != nil {
				return nil, nil, err
			}
			find, err := search.New(engine, &search.Options{Allow: f.HTTPAllow, Embedder: ranks})
			if err != nil {
				return nil, nil, usage("", "--http-allow: %s", strings.TrimPrefix(err.Error(), "search tools: allow: "))
			}
			sets = append(sets, toolset{name, find})
		case "shell":
			run, err := f.shell()
			if err == nil && now {
				err = f.enforceable()
			}
			if err != nil {
				return nil, nil, err
			}
			sets = append(sets, toolset{name, run})
		case "plan":
			sets = append(sets, toolset{name, plan.New(&plan.Options{DataFlow: f.DataFlow})})
		case "knowledge":
			d := &database{flags: f.storeFlags, env: env}
			closers = append(closers, d)
			find, err := knowledgeTool(d, f.embedFlags, f.Shared)
			if err == nil && now {
				_, err = d.open()
			}
			if err != nil {
				return nil, nil, err
			}
			sets = append(sets, toolset{name, find})
		default:
			return nil, nil, usage("there are: "+setNames, "--tools: no set of tools is named %q", name)
		}
	}
	return sets, closeAll, nil
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
func builtinTools(ctx context.Context, sys *system, f toolFlags, o outsideFlags, show bool) ([]shownTool, *pawl.Registry, func(), error) {
	sets, closeSets, err := builtin(strings.Split(setNames, ","), f, sys.env, false)
	if err != nil {
		return nil, nil, nil, err
	}
	others, _, err := o.sets(sys, f.HTTPAllow, show)
	if err != nil {
		closeSets()
		return nil, nil, nil, err
	}
	sets = append(sets, others...)
	all, registry := []shownTool{}, new(pawl.Registry)
	for _, s := range sets {
		tools, err := s.tools.Tools(ctx)
		if err == nil {
			err = registry.Add(tools...)
		}
		if err != nil {
			closeSets()
			return nil, nil, nil, err
		}
		for _, t := range tools {
			all = append(all, shownTool{s.name, t.Name, t.Description, t.Effect, t.Input, t.Output})
		}
	}
	return all, registry, closeSets, nil
}

type toolsListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list with descriptions and schemas."`
	outsideFlags
}

// Run lists the built-in tools.
func (c *toolsListCmd) Run(sys *system) error {
	all, _, closeSets, err := builtinTools(context.Background(), sys, toolFlags{Root: "."}, c.outsideFlags, true)
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
	Name string `arg:"" help:"The tool."`
	planFlags
	outsideFlags
}

// Run shows one tool.
func (c *toolsShowCmd) Run(sys *system) error {
	all, _, closeSets, err := builtinTools(context.Background(), sys, toolFlags{Root: ".", planFlags: c.planFlags}, c.outsideFlags, true)
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
	Name string `arg:"" help:"The tool."`
	Args string `arg:"" optional:"" name:"JSON" help:"Its arguments, a JSON object; - reads them from standard input. Default: {}."`
	JSON bool   `name:"json" help:"Print the whole execution: outcome, result, times."`
	mendFlags
	toolFlags
	outsideFlags
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
	_, registry, closeSets, err := builtinTools(ctx, sys, c.toolFlags, c.outsideFlags, false)
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
		return &failure{status: statusInterrupted, err: told}
	case c.JSON:
		return &failure{status: statusFailed}
	case x.Outcome == pawl.OutcomeUnknownTool:
		return &failure{status: statusFailed, err: told, hint: "pawl tools list"}
	case x.Outcome == pawl.OutcomeInvalid:
		return &failure{status: statusFailed, err: told, hint: "pawl tools show " + c.Name}
	}
	return &failure{status: statusFailed, err: told}
}

// printJSON prints v, indented.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
