package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/whatif"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/store"
)

// WhatIfCmd replays stored runs under a change.
type WhatIfCmd struct {
	Last  int      `name:"last" default:"100" placeholder:"N" help:"@whatif_last"`
	Since *cli.Age `name:"since" placeholder:"TIME" help:"@whatif_since"`

	Instructions string   `name:"instructions" placeholder:"FILE" help:"@whatif_instructions"`
	Tool         []string `name:"tool" placeholder:"SET" help:"@whatif_tool"`
	Without      []string `name:"without-tool" placeholder:"TOOL" help:"@whatif_without"`
	RulesFile    string   `name:"rules" placeholder:"FILE.yaml" help:"@whatif_rules"`

	Offline   bool    `name:"offline" help:"@whatif_offline"`
	LiveReads bool    `name:"live-reads" help:"@whatif_livereads"`
	Budget    float64 `name:"budget" placeholder:"USD" help:"@whatif_budget"`
	At        int     `name:"at-once" default:"4" placeholder:"N" help:"@whatif_atonce"`
	JSON      bool    `name:"json" help:"@whatif_json"`
	remade
}

// whatIfReport is what --json prints.
type whatIfReport struct {
	Summary whatif.Summary `json:"summary"`
	Runs    []*whatif.Run  `json:"runs"`
	// Left out are the runs that could not be replayed, with the reason.
	LeftOut []leftOut `json:"left_out"`
}

type leftOut struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// Run replays the runs, and reports what would be different.
func (c *WhatIfCmd) Run(sys *cli.System) error {
	if err := c.prepare(); err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	return c.WithRuns(sys, func(j *assemble.Journal) error {
		selected, err := c.selected(ctx, j)
		if err != nil {
			return err
		}
		if len(selected) == 0 {
			return cli.Fail(cli.StatusFailed, errors.New("no stored run has stopped, or the flags select none"),
				j.Command("runs", "list"))
		}
		report, err := c.replayAll(ctx, sys, j, selected)
		if err != nil {
			return err
		}
		if len(report.Runs) == 0 {
			return cli.Fail(cli.StatusFailed, fmt.Errorf("no run could be replayed: %s", report.LeftOut[0].Why), "")
		}
		if c.JSON {
			return cli.PrintJSON(sys.Out, report)
		}
		return report.print(sys)
	})
}

// prepare checks the flags, and reads the files that they name.
func (c *WhatIfCmd) prepare() error {
	switch {
	case c.Last < 1:
		return cli.Usage("--last 1000", "--last %d: want at least one run", c.Last)
	case c.At < 1:
		return cli.Usage("--at-once 4", "--at-once %d: want at least one", c.At)
	case c.Budget < 0:
		return cli.Usage("--budget 2.50", "--budget %v: want an amount in US dollars", c.Budget)
	case c.Instructions != "" && c.System != "":
		return cli.Usage("one of them", "--instructions and --system both set the instructions")
	case c.Offline && c.LiveReads:
		return cli.Usage("one of them", "--offline stops before --live-reads could read")
	}

	if c.Instructions != "" {
		text, err := cli.ReadFile("--instructions", c.Instructions)
		if err != nil {
			return err
		}
		c.System = string(text)
	}
	if c.RulesFile != "" {
		rules, err := agentfile.ReadRules(c.RulesFile)
		if err != nil {
			return assemble.Misconfigured(err)
		}
		if rules.Else != "" || rules.Within != nil {
			return cli.Usage("the keys deny, ask and allow",
				"--rules %s: else and within are not for one change", c.RulesFile)
		}
		c.DenyTool = append(c.DenyTool, rules.Deny...)
		c.AskTool = append(c.AskTool, rules.Ask...)
		c.AllowTool = append(c.AllowTool, rules.Allow...)
	}
	c.AddTools(c.Tool...)
	if c.Offline {
		c.CarryBy(durable.Transport(offline{}), true)
	}
	return nil
}

// change returns what the flags change. Without a change it is the agent as its file is now.
func (c *WhatIfCmd) change() whatif.Change {
	given := assemble.Given(&c.AgentFlags)
	isGiven := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return given[name] != nil })
	}
	change := whatif.Change{
		Instructions: isGiven("System"),
		Model:        isGiven("Model", "BaseURL", "KeyEnv", "Driver", "Format", "Parallel", "Lenient"),
		Settings:     isGiven("ToolChoice"),
		Tools:        isGiven("Tools", "ToolFile", "Passive", "Rehearse") || len(c.Tool) > 0,
		Rules:        isGiven("Yes", "AllowTool", "AskTool", "DenyTool"),
	}
	limits := isGiven("MaxRounds", "MaxCalls", "MaxTokens", "MaxCost")
	nothing := change == (whatif.Change{}) && !limits && len(c.Without) == 0
	if c.File != "" || nothing {
		change.All = true
	}
	return change
}

// selected returns the runs that the flags select, the last one first.
func (c *WhatIfCmd) selected(ctx context.Context, j *assemble.Journal) (out []store.JournalRun, err error) {
	all, err := j.All(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		switch {
		case r.State == store.JournalOpen:
			continue
		case c.Agent != "" && r.Agent != c.Agent:
			continue
		case c.Since != nil && time.Since(r.Updated) > time.Duration(*c.Since):
			continue
		}
		out = append(out, r)
		if len(out) == c.Last {
			break
		}
	}
	return out, nil
}

// replayAll replays the runs. Runs of one recipe are replayed together, because they share an
// agent.
func (c *WhatIfCmd) replayAll(ctx context.Context, sys *cli.System, j *assemble.Journal,
	selected []store.JournalRun) (*whatIfReport, error) {
	trial := &whatif.Trial{
		Journal:   j.Journal,
		Change:    c.change(),
		Offline:   c.Offline,
		LiveReads: c.LiveReads,
		Budget:    c.Budget,
	}
	recipes, err := byRecipe(ctx, j, selected)
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}

	report := &whatIfReport{Runs: []*whatif.Run{}, LeftOut: []leftOut{}}
	for _, ids := range recipes {
		err := c.replayGroup(ctx, sys, j, trial, ids, report)
		back := os.Chdir(here) // a recipe has its own folder
		if err = cmp.Or(err, back); err != nil {
			return nil, err
		}
	}
	for _, r := range report.Runs {
		report.Summary.Add(r)
	}
	return report, nil
}

// byRecipe groups the IDs of runs whose agents are built in the same way, in the order of the runs.
func byRecipe(ctx context.Context, j *assemble.Journal, selected []store.JournalRun) (groups [][]string, err error) {
	places := map[string]int{}
	for _, r := range selected {
		meta, err := j.Meta(j.Scoped(ctx), r.ID)
		if err != nil {
			return nil, j.Failed(r.ID, err)
		}
		form := r.Agent + "\n"
		if recipe := assemble.ReadRecipe(meta); recipe != nil {
			recipe.Digest = "" // the present file counts
			b, err := json.Marshal(recipe)
			if err != nil {
				return nil, err
			}
			form += string(b)
		}

		place, known := places[form]
		if !known {
			place = len(groups)
			places[form] = place
			groups = append(groups, nil)
		}
		groups[place] = append(groups[place], r.ID)
	}
	return groups, nil
}

// replayGroup replays runs of one agent, and adds what it finds to the report.
func (c *WhatIfCmd) replayGroup(ctx context.Context, sys *cli.System, j *assemble.Journal, trial *whatif.Trial,
	ids []string, report *whatIfReport) error {
	// Each recipe completes its own copy of the flags.
	flags := c.remade
	if flags.File == "" {
		flags.Agent = "" // it selects runs; their recipe names the agent of the file
	}
	s, err := flags.again(ctx, sys, j, ids[0])
	if err != nil {
		return err
	}
	defer s.Close()
	if err := c.withoutTools(s); err != nil {
		return err
	}
	rules := s.Rules.Middleware()
	rules.Check = func([]*pawl.Tool) error {
		return s.Rules.Check(s.Tools) // a rule may name a tool that is removed
	}
	s.Agent.Middleware = append(s.Agent.Middleware, rules)

	found := make([]*whatif.Run, len(ids))
	errs := make([]error, len(ids))
	places := make(chan int)
	var workers sync.WaitGroup
	for range min(c.At, len(ids)) {
		workers.Go(func() {
			for i := range places {
				found[i], errs[i] = c.replayOne(ctx, sys, j, trial, s, ids[i])
			}
		})
	}
	for i := range ids {
		places <- i
	}
	close(places)
	workers.Wait()

	for i, id := range ids {
		switch {
		case errors.Is(errs[i], whatif.ErrLeak):
			return cli.Fail(cli.StatusFailed, errs[i], "this is a bug in pawl: nothing was executed")
		case ctx.Err() != nil:
			return cli.Fail(cli.StatusInterrupted, errors.New("interrupted"), "")
		case errs[i] != nil:
			report.LeftOut = append(report.LeftOut, leftOut{id, s.Secrets.Error(errs[i]).Error()})
		default:
			report.Runs = append(report.Runs, found[i])
		}
	}
	return nil
}

// replayOne replays one run, and hides its secrets.
func (c *WhatIfCmd) replayOne(ctx context.Context, sys *cli.System, j *assemble.Journal, trial *whatif.Trial,
	s *assemble.Setup, id string) (*whatif.Run, error) {
	run, err := trial.Replay(j.Scoped(ctx), id, s.Agent)
	if err != nil {
		return nil, err
	}
	hide, err := j.Hide(ctx, sys, id, s.Secrets)
	if err != nil {
		return nil, err
	}
	return run.Redacted(hide), nil
}

// withoutTools removes the tools of --without-tool from the agent.
func (c *WhatIfCmd) withoutTools(s *assemble.Setup) error {
	known := cli.Names(s.Tools, func(t *pawl.Tool) string { return t.Name })
	for _, name := range c.Without {
		if !slices.Contains(known, name) {
			return cli.Usage("there are: "+strings.Join(known, ", "), "--without-tool %s: the agent has no such tool%s",
				name, cli.Meant(name, known))
		}
	}
	if len(c.Without) > 0 {
		s.Agent.Tools = []pawl.Toolset{&remaining{pawl.Toolsets(s.Agent.Tools), c.Without}}
	}
	return nil
}

// remaining is a toolset without some of its tools.
type remaining struct {
	pawl.Toolset
	without []string
}

// Tools returns the tools that remain.
func (r *remaining) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	all, err := r.Toolset.Tools(ctx)
	gone := func(t *pawl.Tool) bool { return slices.Contains(r.without, t.Name) }
	return slices.DeleteFunc(slices.Clone(all), gone), err
}

// print prints the report for a person.
func (r *whatIfReport) print(sys *cli.System) error {
	s := &r.Summary
	fmt.Fprintf(sys.Out, "%s of %s the same, %s differ, %s unknown\n", cli.Grouped(s.Same),
		cli.Count(s.Runs, "run"), cli.Grouped(s.Differ), cli.Grouped(s.Unknown))
	for _, line := range s.Lines() {
		fmt.Fprintf(sys.Out, "  %s\n", cli.Visible(line))
	}
	cost := "$0"
	if s.Cost > 0 {
		cost = cli.Dollars(s.Cost)
	}
	fmt.Fprintf(sys.Out, "requests: %s from the journal, %s asked, %s\n",
		cli.Grouped(s.Played), cli.Grouped(s.Asked), cost)
	fmt.Fprintf(sys.Out, "questions to people: %s, and were %s; writes not executed: %s; live reads: %s\n",
		cli.Grouped(s.Questions.Is), cli.Grouped(s.Questions.Was), cli.Grouped(s.Shadowed), cli.Grouped(s.LiveReads))
	for _, l := range r.LeftOut {
		sys.Notice(fmt.Sprintf("%s: not replayed: %s", cli.Visible(l.Run), cli.Line(l.Why, 200)))
	}

	other := slices.DeleteFunc(slices.Clone(r.Runs), func(r *whatif.Run) bool { return r.Verdict == whatif.Same })
	if len(other) == 0 {
		return nil
	}
	fmt.Fprintln(sys.Out)
	return cli.List(sys.Out, false, other, "RUN|VERDICT|LEFT AT|BECAUSE|WHAT", func(r *whatif.Run) []any {
		what := r.Stopped
		if len(r.Changes) > 0 {
			what = r.Changes[0].String()
		}
		if n := len(r.Changes); n > 1 {
			what += fmt.Sprintf(" and %d more", n-1)
		}
		return []any{cli.Visible(r.ID), r.Verdict, r.Left, cli.Line(r.Cause, 60), cli.Line(what, 100)}
	})
}
