package config

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"go.yaml.in/yaml/v3"
)

type seedManager struct {
	Gateway        string           `yaml:"inference_gateway"`
	Keys           []string         `yaml:"worker_keys"`
	Rules          []Rule           `yaml:"rules"`
	Default        string           `yaml:"default_worker"`
	SystemPrompt   string           `yaml:"system_prompt"`
	PlanningPrompt string           `yaml:"planning_prompt"`
	LogDetails     *bool            `yaml:"log_details"`
	Specs          []seedWorkerSpec `yaml:"worker_specs"`
	ManagerKey     string           `yaml:"manager_worker_key"`
	HistoryFilter  string           `yaml:"history_filter" enum:"default,manager,orchestrator"`
}

// seedWorkerSpec is what a manager's script is told of a worker.
type seedWorkerSpec struct {
	Worker      string   `yaml:"worker" required:"true"`
	Description string   `yaml:"description"`
	Tools       []string `yaml:"tools"`
}

// managers are the planners that lead workers: what they are here, and the keys that each has beside inference_gateway.
var managers = map[string]struct {
	manager string
	keys    []string
}{
	"WorkerRouterPlanner":        {"router", []string{"worker_keys", "rules", "default_worker", "system_prompt", "log_details"}},
	"StrategicPlanner":           {"strategic", []string{"worker_keys", "planning_prompt", "history_filter"}},
	"StrategicDecomposerPlanner": {"strategic", []string{"worker_keys", "default_worker", "planning_prompt", "manager_worker_key", "history_filter"}},
	"ManagerScriptPlanner":       {"script", []string{"worker_specs", "default_worker", "planning_prompt", "manager_worker_key"}},
}

// manager reads a planner that leads workers.
func (s *seedReading) manager() {
	planner := s.doc.Spec.Planner.Type
	var c seedManager
	node := s.doc.Spec.Planner.Config.node
	known := append([]string{"inference_gateway"}, managers[planner].keys...)
	if node != nil {
		for key := range s.pairs(node, plannerConfig) {
			if key.Kind == yaml.ScalarNode && fieldNamed(fieldsOf(reflect.TypeFor[seedManager]()), key.Value) >= 0 && !slices.Contains(known, key.Value) {
				s.unknown(key, join(plannerConfig, key.Value), known)
			}
		}
	}
	s.doc.Spec.Planner.Config.as(s.reading, &c, plannerConfig)
	switch {
	case c.Gateway != "":
		s.gateway(c.Gateway, plannerConfig+".inference_gateway")
	case len(c.Rules) == 0:
		s.placed(CodeMissingKey, "spec.planner", "inference_gateway: NAME", "the key inference_gateway is missing")
	default:
		s.a.Model = Models{{Name: "none", made: noModel{}}} // rules choose without one, and what no rule is about goes to the default
	}
	if c.LogDetails != nil {
		s.reported(plannerConfig+".log_details", "logging has no switch here: pawl run tells each step")
	}
	if c.ManagerKey != "" {
		s.reported(plannerConfig+".manager_worker_key", "a manager has one name, metadata.name")
	}
	if c.HistoryFilter != "" {
		s.reported(plannerConfig+".history_filter", "a manager is told the end of the conversation before a task, whatever this says")
	}
	if c.Default != "" && planner != "WorkerRouterPlanner" {
		s.reported(plannerConfig+".default_worker", "no default is needed: each phase and step names a worker, or is sent back")
	}
	t := s.team()
	t.Manager, t.Rules, t.Prompt = managers[planner].manager, c.Rules, cmp.Or(c.SystemPrompt, c.PlanningPrompt)
	if t.Manager == "router" {
		t.Default = c.Default
	}
	s.workers(t, c)
	for i, k := range c.Keys {
		s.worker(k, index(plannerConfig+".worker_keys", i))
	}
	for i, rule := range c.Rules {
		s.worker(rule.Worker, index(plannerConfig+".rules", i)+".worker")
	}
	for i, spec := range c.Specs {
		s.worker(spec.Worker, index(plannerConfig+".worker_specs", i)+".worker")
	}
	if c.Default != "" {
		s.worker(c.Default, plannerConfig+".default_worker")
	}
}

// team returns what is said of the agent as one that leads.
func (s *seedReading) team() *Team {
	if s.a.Team == nil && s.doc.Kind == "ManagerAgent" {
		s.a.Team = new(Team)
	}
	if s.a.Team == nil {
		return new(Team)
	}
	return s.a.Team
}

// worker finds a name that no worker has.
func (s *seedReading) worker(name, path string) {
	var all []string
	for _, w := range s.doc.Spec.Workers {
		if w.Name == name {
			return
		}
		all = append(all, w.Name)
	}
	s.placed(CodeUnknownWorker, path, among(name, all), "no worker is named %q", cut(name))
}

// workers reads the files of the workers, each relative to this one. Those that the planner does not choose from, where it says so, are read and checked, and do not work;
// the one of default_worker and those of rules are chosen, too.
func (s *seedReading) workers(t *Team, c seedManager) {
	if len(s.doc.Spec.Workers) == 0 {
		s.placed(CodeMissingKey, "spec", "workers: [{name: NAME, config_path: FILE.yaml}]", "a ManagerAgent has workers")
	}
	seen := map[string]bool{}
	for i, w := range s.doc.Spec.Workers {
		path := index("spec.workers", i)
		if seen[w.Name] {
			s.placed(CodeDuplicateName, path+".name", "rename one of them", "two workers are named %s", w.Name)
		}
		seen[w.Name] = true
		a := s.workerFile(w.ConfigPath, "", path+".config_path")
		chosen := c.Keys == nil || slices.Contains(c.Keys, w.Name) || w.Name == t.Default || slices.ContainsFunc(t.Rules, func(r Rule) bool { return r.Worker == w.Name })
		if a == nil || !chosen {
			continue
		}
		one := Worker{Name: w.Name, File: w.ConfigPath, of: a}
		at := index("team.workers", len(t.Workers))
		s.moved(at, path)
		for k, spec := range c.Specs {
			if spec.Worker == w.Name {
				one.Description, one.Tools = spec.Description, spec.Tools
				for n := range spec.Tools {
					s.moved(index(at+".tools", n), index(index(plannerConfig+".worker_specs", k)+".tools", n))
				}
			}
		}
		t.Workers = append(t.Workers, one)
	}
	s.moved("team.workers", "spec.workers")
	s.moved("team", "spec.planner")
}

// noModel stands where nobody is asked.
type noModel struct{}

// Stream fails.
func (noModel) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		yield(llm.Delta{}, errors.New("no inference_gateway is named, and no rule is about this task"))
	}
}
