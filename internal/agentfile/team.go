package agentfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/team"
)

// asks are the tools by which each manager asks its lead. A network, which has none, is not in it.
var asks = map[string][]string{
	"":          {"make_plan", "sum_up"},
	"strategic": {"make_plan", "sum_up"},
	"router":    {"choose_worker", "sum_up"},
	"script":    {"write_script", "sum_up"},
}

// workers returns stand-ins for the tools of a team, which rules may name: tools that give work to
// workers, and tools that ask the lead.
func (a *Agent) workers() (out []*pawl.Tool) {
	t := a.group()
	if len(t.Workers) == 0 {
		return nil
	}

	names := slices.Clone(asks[t.Manager])
	prefix := ""
	if t.Manager == handoffs {
		prefix = team.TransferPrefix
	}
	for _, w := range t.Workers {
		names = append(names, prefix+w.Name)
	}
	for _, name := range names {
		out = append(out, &pawl.Tool{Name: name, Effect: pawl.EffectCompose, Passive: true})
	}
	return out
}

// team makes a team of an agent that is built: it builds the workers and replaces the agent by its
// lead.
func (b *builder) team(ctx context.Context, built *Built) (err error) {
	t := b.agent.group()
	if err := b.callsNoTools(t, built); err != nil {
		return err
	}

	var all []*Built
	defer func() {
		for _, w := range all {
			if err != nil {
				w.Close()
			}
		}
	}()
	var workers []team.Worker
	for i, w := range t.Workers {
		one, err := b.worker(ctx, w, i)
		if err != nil {
			return err
		}
		all = append(all, one)
		if err := w.hasTools(one, index(t.path(), i)); err != nil {
			return err
		}
		workers = append(workers, team.Worker{Agent: one.Agent, Description: w.Description, Tools: w.Tools})
	}

	if err := b.lead(ctx, built, workers); err != nil {
		return err
	}
	built.adopt(all)
	return nil
}

// callsNoTools returns the finding for a lead that has tools of its own under a manager that lets
// it call none.
func (b *builder) callsNoTools(t *Team, built *Built) error {
	if t.Manager == "network" || t.Manager == handoffs {
		return nil
	}
	path := ""
	switch {
	case len(built.Tools) > 0:
		path = "tools"
	case b.agent.Choice != nil:
		path = "tool_choice"
	default:
		return nil
	}
	return finding(CodeConflict, path, "give them to a worker, or lead with manager: network",
		"the lead of such a team calls no tools of its own")
}

// worker builds the i-th worker of a team.
func (b *builder) worker(ctx context.Context, w Worker, i int) (*Built, error) {
	if w.of == nil {
		path := index(b.agent.group().path(), i)
		return nil, finding(CodeUnknownWorker, path, "Load reads files with teams", "worker %d was not read", i+1)
	}
	o := b.opts
	o.Tools = nil
	o.Bare = false
	o.Approve = o.Inner
	o.flow = stricter(b.agent.flowMode(), o.flow)
	one, err := w.of.Build(ctx, &o)
	if err != nil {
		return nil, err
	}
	one.Agent.Name = w.Name
	return one, nil
}

// hasTools returns the finding for a tool that direct steps may name and that the worker, which
// was built, does not have.
func (w Worker) hasTools(built *Built, path string) error {
	var known []string
	for _, t := range built.Tools {
		known = append(known, t.Name)
	}
	for k, name := range w.Tools {
		if !slices.Contains(known, name) {
			return finding(CodeUnknownTool, index(path+".tools", k), nearest.Hint(name, known),
				"%s has no tool %q", w.Name, cut(name))
		}
	}
	return nil
}

// lead replaces the agent of built by an agent that leads workers.
func (b *builder) lead(ctx context.Context, built *Built, workers []team.Worker) (err error) {
	a := b.agent
	t := a.group()
	if t.Manager == handoffs {
		o := &team.HandoffOptions{WithoutCalls: a.HandoffPass == "texts"}
		built.Agent, err = team.Handoff(built.Agent, o, workers...)
	} else {
		built.Agent, err = t.make(built.Agent, workers)
	}
	if err == nil {
		built.Tools, err = pawl.Toolsets(built.Agent.Tools).Tools(ctx)
		built.Tools = slices.DeleteFunc(built.Tools, func(t *pawl.Tool) bool { return t.Name == "result_read" })
	}
	if err != nil {
		text := strings.TrimPrefix(err.Error(), fmt.Sprintf("team %s: ", a.Name))
		return finding(CodeDuplicateName, t.path(), "", "%s", text)
	}
	return nil
}

// adopt makes the workers part of b: they are closed with it, and their tools and secrets count.
func (b *Built) adopt(workers []*Built) {
	own := b.Close
	b.Close = func() {
		for _, w := range workers {
			w.Close()
		}
		own()
	}
	for _, w := range workers {
		b.Hidden = append(b.Hidden, w.Hidden...)
		b.ForCallers = append(b.ForCallers, w.ForCallers...)
		b.Within = append(append(b.Within, w.Tools...), w.Within...)
	}
}

// make makes the team.
func (t *Team) make(lead *pawl.Agent, workers []team.Worker) (*pawl.Agent, error) {
	o := &team.Options{Prompt: t.Prompt, Tries: value(t.Tries), MaxPhases: value(t.MaxPhases)}
	switch t.OnFailure {
	case "retry":
		o.OnFailure = team.Retry
	case "replan":
		o.OnFailure = team.Replan
	}
	switch t.Manager {
	case "", "strategic":
		return team.Strategic(lead, o, workers...)
	case "script":
		return team.Script(lead, o, workers...)
	case "network":
		return team.Network(lead, workers...)
	case "router":
		rules := make([]team.Rule, len(t.Rules))
		for i, r := range t.Rules {
			rules[i] = team.Rule(r)
		}
		return team.Router(lead, &team.RouterOptions{Rules: rules, Default: t.Default, Prompt: t.Prompt}, workers...)
	}
	return nil, errors.New("there is no manager " + t.Manager)
}
