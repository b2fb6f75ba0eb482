package agentframework

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/llm"
)

type manager struct {
	Gateway        string       `yaml:"inference_gateway"`
	Keys           []string     `yaml:"worker_keys"`
	Rules          []rule       `yaml:"rules"`
	Default        string       `yaml:"default_worker"`
	SystemPrompt   string       `yaml:"system_prompt"`
	PlanningPrompt string       `yaml:"planning_prompt"`
	LogDetails     *bool        `yaml:"log_details"`
	Specs          []workerSpec `yaml:"worker_specs"`
	ManagerKey     string       `yaml:"manager_worker_key"`
	HistoryFilter  string       `yaml:"history_filter" enum:"default,manager,orchestrator"`
}

type rule struct {
	Worker  string   `yaml:"worker" required:"true"`
	Include []string `yaml:"include"`
	Exclude []string `yaml:"exclude"`
}

// workerSpec is what a manager's script knows of a worker.
type workerSpec struct {
	Worker      string   `yaml:"worker" required:"true"`
	Description string   `yaml:"description"`
	Tools       []string `yaml:"tools"`
}

// managers are the planners that lead workers, each with its native manager and the keys that it
// has besides inference_gateway.
var managers = map[string]struct {
	manager string
	keys    []string
}{
	"WorkerRouterPlanner": {
		"router",
		[]string{"worker_keys", "rules", "default_worker", "system_prompt", "log_details"},
	},
	"StrategicPlanner": {
		"strategic",
		[]string{"worker_keys", "planning_prompt", "history_filter"},
	},
	"StrategicDecomposerPlanner": {
		"strategic",
		[]string{"worker_keys", "default_worker", "planning_prompt", "manager_worker_key", "history_filter"},
	},
	"ManagerScriptPlanner": {
		"script",
		[]string{"worker_specs", "default_worker", "planning_prompt", "manager_worker_key"},
	},
}

// foreignKeys reports keys that other managers have.
func (d *document) foreignKeys(own []string) {
	for key := range pairs(d.Spec.Planner.Config.node) {
		for _, m := range managers {
			if slices.Contains(m.keys, key.Value) && !slices.Contains(own, key.Value) {
				d.Report(key, codeUnknownKey, plannerConfig+"."+key.Value, nearest.Hint(key.Value, own),
					"there is no key \""+key.Value+`"`)
				break
			}
		}
	}
}

// manager reads a planner that leads workers.
func (d *document) manager() {
	d.foreignKeys(append([]string{"inference_gateway"}, managers[d.Spec.Planner.Type].keys...))
	var c manager
	d.config(&c)
	switch {
	case c.Gateway != "":
		d.gateway(c.Gateway, plannerConfig+".inference_gateway")
	case len(c.Rules) == 0:
		d.placed(codeMissingKey, "spec.planner", "inference_gateway: NAME", "the key inference_gateway is missing")
	default: // rules choose without a model, and a task without a rule goes to the default
		d.native.Model = noModel{}
		d.native.ModelName = "none"
	}

	d.withoutEffect(c)
	d.workers(c)
	d.leads(c)
	d.workerNames(c)
}

// withoutEffect reports the keys of a manager that have no effect, or another one.
func (d *document) withoutEffect(c manager) {
	d.logDetails(c.LogDetails)
	d.reportedIf(c.ManagerKey != "", plannerConfig+".manager_worker_key", "a manager has one name, metadata.name")
	d.reportedIf(c.HistoryFilter != "", plannerConfig+".history_filter",
		"a manager receives the end of the conversation before a task, with any value")
	d.reportedIf(c.Default != "" && d.Spec.Planner.Type != "WorkerRouterPlanner", plannerConfig+".default_worker",
		"no default is needed: each phase and step names a worker, or is sent back")
}

// workerNames reports unknown workers in the config of a manager.
func (d *document) workerNames(c manager) {
	for i, k := range c.Keys {
		d.worker(k, index(plannerConfig+".worker_keys", i))
	}
	for i, rule := range c.Rules {
		d.worker(rule.Worker, index(plannerConfig+".rules", i)+".worker")
	}
	for i, spec := range c.Specs {
		d.worker(spec.Worker, index(plannerConfig+".worker_specs", i)+".worker")
	}
	if c.Default != "" {
		d.worker(c.Default, plannerConfig+".default_worker")
	}
}

// team writes a key of the native team. Only a ManagerAgent has one.
func (d *document) team(key, from string, value any) {
	if d.Kind != "ManagerAgent" {
		return
	}
	if !d.has("team") {
		d.set("team", "spec.planner", d.mapping("spec.planner"))
	}
	d.set("team."+key, from, value)
}

// leads writes what the native team says of its manager.
func (d *document) leads(c manager) {
	name := managers[d.Spec.Planner.Type].manager
	d.team("manager", "spec.planner.type", name)
	if c.Rules != nil {
		d.team("rules", plannerConfig+".rules", d.ruleNodes(c.Rules))
	}
	if name == "router" && c.Default != "" {
		d.team("default", plannerConfig+".default_worker", c.Default)
	}
	if prompt := cmp.Or(c.SystemPrompt, c.PlanningPrompt); prompt != "" {
		d.team("prompt", plannerConfig, prompt)
	}
}

// ruleNodes returns the list of native rules.
func (d *document) ruleNodes(all []rule) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i, r := range all {
		at := index(plannerConfig+".rules", i)
		one := d.mapping(at)
		put(one, d.text(at, "worker"), d.text(at+".worker", r.Worker))
		if r.Include != nil {
			put(one, d.text(at, "include"), d.value(at+".include", r.Include))
		}
		if r.Exclude != nil {
			put(one, d.text(at, "exclude"), d.value(at+".exclude", r.Exclude))
		}
		list.Content = append(list.Content, one)
	}
	return list
}

// worker reports a name that no worker has.
func (d *document) worker(name, path string) {
	var all []string
	for _, w := range d.Spec.Workers {
		if w.Name == name {
			return
		}
		all = append(all, w.Name)
	}
	d.placed(codeUnknownWorker, path, nearest.Hint(name, all), "no worker is named %q", cut(name))
}

// workers writes the workers of the native team. A planner with worker_keys chooses among these,
// the default worker and the workers of its rules; the other workers are only checked.
func (d *document) workers(c manager) {
	if len(d.Spec.Workers) == 0 {
		d.placed(codeMissingKey, "spec", "workers: [{name: NAME, config_path: FILE.yaml}]",
			"a ManagerAgent has workers")
	}
	isRouter := managers[d.Spec.Planner.Type].manager == "router"
	seen := map[string]bool{}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i, w := range d.Spec.Workers {
		path := index("spec.workers", i)
		if seen[w.Name] {
			d.placed(codeDuplicateName, path+".name", "rename one of them", "two workers are named %s", w.Name)
		}
		seen[w.Name] = true

		file := WorkerFile{File: w.ConfigPath, Path: path + ".config_path", Index: -1}
		if c.chooses(w.Name) || isRouter && w.Name == c.Default {
			file.Index = len(list.Content)
			list.Content = append(list.Content, d.workerNode(w, path, c.Specs))
		}
		d.native.Workers = append(d.native.Workers, file)
	}
	d.team("workers", "spec.workers", list)
}

// chooses reports whether the manager chooses a worker by its keys or its rules.
func (c manager) chooses(worker string) bool {
	if c.Keys == nil || slices.Contains(c.Keys, worker) {
		return true
	}
	return slices.ContainsFunc(c.Rules, func(r rule) bool { return r.Worker == worker })
}

// workerNode is an entry of the native workers.
func (d *document) workerNode(w worker, path string, specs []workerSpec) *yaml.Node {
	n := d.mapping(path)
	put(n, d.text(path, "agent"), d.text(path+".name", w.Name))
	put(n, d.text(path, "file"), d.text(path+".config_path", w.ConfigPath))
	for k, spec := range specs {
		if spec.Worker != w.Name {
			continue
		}
		at := index(plannerConfig+".worker_specs", k)
		put(n, d.text(at, "description"), d.text(at+".description", spec.Description))
		if spec.Tools != nil {
			put(n, d.text(at, "tools"), d.value(at+".tools", spec.Tools))
		}
	}
	return n
}

// noModel is the model of a manager that asks none.
type noModel struct{}

// Stream fails.
func (noModel) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		yield(llm.Delta{}, errors.New("no inference_gateway is named, and no rule is about this task"))
	}
}
