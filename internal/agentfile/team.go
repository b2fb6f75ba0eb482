package agentfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/team"
)

// Team describes an agent that leads others. Package team has the managers.
type Team struct {
	// How work is delegated: strategic (the lead plans phases, workers execute them, the lead sums
	// up), router (one worker gets the task), script (the lead writes steps for the workers) or
	// network (the lead calls workers as it calls tools). Default: strategic.
	Manager string `yaml:"manager" enum:"strategic,router,script,network"`

	// The workers: names of other agents of this file, or objects.
	Workers []Worker `yaml:"workers" required:"true"`

	// For a router: rules that are tried in order, before the lead is asked.
	Rules []Rule `yaml:"rules"`

	// For a router: the worker if the lead chose none. Default: the answer says that none fits.
	Default string `yaml:"default"`

	// For strategic and script: the reaction to a failed phase or step. Default: stop.
	OnFailure string `yaml:"on_failure" enum:"stop,retry,replan"`

	// The number of further tries, with retry and replan. Default: 1 and 2.
	Tries *int `yaml:"tries" min:"1" max:"10"`

	// Maximum number of phases of a plan. Default: 12.
	MaxPhases *int `yaml:"max_phases" min:"1" max:"12"`

	// Replaces the lead's instructions for planning, choosing or writing scripts. The workers are
	// listed after it.
	Prompt string `yaml:"prompt"`
}

// Worker is an agent that is given work.
type Worker struct {
	// Its name, also for the lead: of an agent in this file or, with file, in that file. Default,
	// with file: the only agent there.
	Name string `yaml:"agent"`

	// Its file, in the same folder or below.
	File string `yaml:"file"`

	// Its purpose, for the choice of a worker. Default: the beginning of its instructions.
	Description string `yaml:"description"`

	// For a script: its tools that direct steps may name. Default: all of them.
	Tools []string `yaml:"tools"`

	of *Agent
}

// Agent is who works; nil before the file was read whole.
func (w Worker) Agent() *Agent { return w.of }

// Rule sends a task to a worker by its words.
type Rule struct {
	// The worker that gets the task.
	Worker string `yaml:"worker" required:"true"`

	// Words, one of which must be in the task, in any case. Default: any task.
	Include []string `yaml:"include"`

	// Words, none of which may be in the task.
	Exclude []string `yaml:"exclude"`
}

var _ form = (*Worker)(nil)

func (w *Worker) wanted() string {
	return "the name of an agent, or an object with agent, file, description and tools"
}

func (*Worker) schema() object {
	one := schemaOfStruct(reflect.TypeFor[Worker]())
	one["anyOf"] = []object{{"required": []string{"agent"}}, {"required": []string{"file"}}}
	return object{"anyOf": []object{{"type": "string"}, one}}
}

func (w *Worker) read(r *reading, n *yaml.Node, path string) {
	r.wordOr(n, &w.Name, w, path)
	if n.Kind == yaml.MappingNode && w.Name == "" && w.File == "" {
		r.at(CodeMissingKey, n, path, "agent: NAME", "a worker has a name, a file or both")
	}
}

// mostNested bounds how many managers stand above one another.
const mostNested = 8

// workerFile reads the agent of another file, in the same folder or below. A file that is being
// read already is an error.
func (r *reading) workerFile(file, name, path string) *Agent {
	if filepath.IsAbs(file) || outward(file) {
		r.placed(CodeBadFile, path, "a file in the same folder or below", "%s leads out of the folder of this file", cut(file))
		return nil
	}
	full := filepath.Join(r.dir, filepath.FromSlash(file))
	if slices.Contains(r.chain, full) || full == filepath.Clean(r.file) || len(r.chain) > mostNested {
		r.placed(CodeBadFile, path, "an agent cannot be its own worker", "%s is read already, or managers are nested too deep", cut(file))
		return nil
	}
	text, err := readBounded(full)
	if err != nil {
		r.placed(CodeBadFile, path, "", "%s: %s", file, cause(err))
		return nil
	}
	inner := &reading{file: full, dir: filepath.Dir(full), env: r.env, expanded: map[*yaml.Node]*expanded{},
		chain: append(slices.Clip(r.chain), filepath.Clean(r.file))}
	f := inner.parsed(text)
	for _, one := range inner.findings {
		if len(r.findings) < mostFindings {
			r.findings = append(r.findings, one)
		}
	}
	if len(f.Agents) == 0 {
		return nil
	}
	a, err := f.Agent(name)
	if err != nil {
		one := FindingsOf(err)[0]
		r.placed(one.Code, path, one.Hint, "%s: %s", file, one.Message)
		return nil
	}
	return a
}

// handoffs is the manager of the agents in the key handoffs, which is not a name of a manager.
const handoffs = "handoffs"

// group returns the team of a, or the agents that it hands over to. It has no workers if there is
// neither.
func (a *Agent) group() *Team {
	switch {
	case a.Team != nil:
		return a.Team
	case len(a.Handoffs) > 0:
		return &Team{Manager: handoffs, Workers: a.Handoffs}
	}
	return new(Team)
}

// path returns the path of the workers in the file.
func (t *Team) path() string {
	if t.Manager == handoffs {
		return handoffs
	}
	return "team.workers"
}

// teams links the workers that agents of a file name, and reports unknown workers and cycles.
func (r *reading) teams(f *File) {
	for _, a := range f.Agents {
		t := a.group()
		if a.Team == nil && a.Handoffs == nil || a.linked {
			continue
		}
		r.places = a.at
		if a.Team != nil && a.Handoffs != nil {
			r.placed(CodeConflict, handoffs, "remove one of the two", "an agent leads a team, or hands over")
			continue
		}
		seen := map[string]bool{}
		for i := range t.Workers {
			w, path := &t.Workers[i], index(t.path(), i)
			if w.File != "" {
				w.of = r.workerFile(w.File, w.Name, path+".file")
			} else {
				w.of = r.workerHere(f, a, w.Name, path)
			}
			if w.of == nil {
				continue
			}
			w.of.leaders = append(w.of.leaders, a)
			w.Name = w.of.Name
			if seen[w.Name] {
				r.placed(CodeDuplicateName, path, "remove one of them", "two workers are named %s", w.Name)
			}
			seen[w.Name] = true
		}
		if a.Team != nil {
			r.teamNames(a.Team)
		}
	}
	for _, a := range f.Agents {
		if t := a.group(); a.leads(a, 0) {
			r.places = a.at
			hint := "an agent cannot be its own worker, or the worker of its workers"
			if t.Manager == handoffs {
				hint = "list all agents in the handoffs of the first: each of them can hand over to the others, and back"
			}
			r.placed(CodeConflict, t.path(), hint, "%s is its own worker, or managers are nested too deep", a.Name)
			for i := range t.Workers {
				t.Workers[i].of = nil
			}
		}
	}
}

func (r *reading) workerHere(f *File, lead *Agent, name, path string) *Agent {
	var others []string
	for _, b := range f.Agents {
		if b.Name == name {
			return b
		}
		if b != lead && b.Name != "" {
			others = append(others, b.Name)
		}
	}
	if name != "" {
		r.placed(CodeUnknownWorker, path, nearest.Hint(name, others), "no agent of this file is named %q", cut(name))
	}
	return nil
}

// teamNames reports unknown names of workers.
func (r *reading) teamNames(t *Team) {
	var all []string
	for _, w := range t.Workers {
		if w.Name != "" && !slices.Contains(all, w.Name) {
			all = append(all, w.Name)
		}
	}
	check := func(name, path string) {
		if name != "" && !slices.Contains(all, name) {
			r.placed(CodeUnknownWorker, path, nearest.Hint(name, all), "no worker is named %q", cut(name))
		}
	}
	for i, rule := range t.Rules {
		check(rule.Worker, index("team.rules", i)+".worker")
	}
	check(t.Default, "team.default")
	if len(t.Workers) == 0 {
		r.placed(CodeMissingKey, "team", "workers: [NAME]", "a team has workers")
	}
	for _, k := range []struct {
		key   string
		there bool
		of    []string
	}{{"rules", t.Rules != nil, []string{"router"}}, {"default", t.Default != "", []string{"router"}}, {"on_failure", t.OnFailure != "", []string{"", "strategic", "script"}},
		{"tries", t.Tries != nil, []string{"", "strategic", "script"}}, {"max_phases", t.MaxPhases != nil, []string{"", "strategic"}}, {"prompt", t.Prompt != "", []string{"", "strategic", "router", "script"}}} {
		if k.there && !slices.Contains(k.of, t.Manager) {
			r.placed(CodeConflict, "team."+k.key, "manager: "+strings.TrimLeft(strings.Join(k.of, " or "), " or"), "%s has no meaning for the manager %s", k.key, cmp.Or(t.Manager, "strategic"))
		}
	}
	if t.Tries != nil && (t.OnFailure == "" || t.OnFailure == "stop") && t.Rules == nil {
		r.placed(CodeConflict, "team.tries", "on_failure: retry", "tries counts only with retry and replan")
	}
}

// leads reports whether a team leads back to one of its agents, or stands too deep.
func (a *Agent) leads(to *Agent, deep int) bool {
	for _, w := range a.group().Workers {
		if w.of == to || deep > mostNested || w.of != nil && w.of != a && w.of.leads(to, deep+1) {
			return true
		}
	}
	return false
}

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

// outward reports whether a path of a worker leads out of the folder.
func outward(path string) bool {
	return slices.Contains(strings.Split(strings.ReplaceAll(path, `\`, "/"), "/"), "..")
}
