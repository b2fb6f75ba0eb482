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

// asks are the tools by which each manager asks its lead.
var asks = map[string][]string{"": {"make_plan", "sum_up"}, "strategic": {"make_plan", "sum_up"}, "router": {"choose_worker", "sum_up"}, "script": {"write_script", "sum_up"}}

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
		names = nil
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
	a := b.agent
	t := b.agent.group()
	if t.Manager != "network" && t.Manager != handoffs {
		for _, k := range []struct {
			path  string
			there bool
		}{{"tools", len(built.Tools) > 0}, {"tool_choice", a.Choice != nil}} {
			if k.there {
				return finding(CodeConflict, k.path, "give them to a worker, or lead with manager: network", "the lead of such a team calls no tools of its own")
			}
		}
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
		path := index(t.path(), i)
		if w.of == nil {
			return finding(CodeUnknownWorker, path, "Load reads files with teams", "worker %d was not read", i+1)
		}
		o := b.opts
		o.Tools = nil
		o.Bare = false
		o.Approve = o.Inner
		one, err := w.of.Build(ctx, &o)
		if err != nil {
			return err
		}
		all = append(all, one)
		one.Agent.Name = w.Name
		for k, name := range w.Tools {
			var known []string
			for _, t := range one.Tools {
				known = append(known, t.Name)
			}
			if !slices.Contains(known, name) {
				return finding(CodeUnknownTool, index(path+".tools", k), nearest.Hint(name, known), "%s has no tool %q", w.Name, cut(name))
			}
		}
		workers = append(workers, team.Worker{Agent: one.Agent, Description: w.Description, Tools: w.Tools})
	}
	if t.Manager == handoffs {
		built.Agent, err = team.Handoff(built.Agent, &team.HandoffOptions{WithoutCalls: a.HandoffPass == "texts"}, workers...)
	} else {
		built.Agent, err = t.make(built.Agent, workers)
	}
	if err == nil {
		built.Tools, err = pawl.Toolsets(built.Agent.Tools).Tools(ctx)
		built.Tools = slices.DeleteFunc(built.Tools, func(t *pawl.Tool) bool { return t.Name == "result_read" })
	}
	if err != nil {
		return finding(CodeDuplicateName, t.path(), "", "%s", strings.TrimPrefix(err.Error(), fmt.Sprintf("team %s: ", a.Name)))
	}
	own := built.Close
	built.Close = func() {
		for _, w := range all {
			w.Close()
		}
		own()
	}
	for _, w := range all {
		built.Hidden = append(built.Hidden, w.Hidden...)
		built.Within = append(append(built.Within, w.Tools...), w.Within...)
	}
	return nil
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
