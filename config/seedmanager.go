package config

import (
	"cmp"
	"path/filepath"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Manager is what is written of an agent that leads others, kind ManagerAgent. It is read and checked; what makes it work is package team's.
type Manager struct {
	Planner string   // its type: WorkerRouterPlanner, StrategicPlanner, StrategicDecomposerPlanner or ManagerScriptPlanner
	Workers []Worker // in their order
	Keys    []string // those that the planner chooses from; nil: all of them
	Default string   // the worker where none was chosen; "": none
	Rules   []Rule   // of a WorkerRouterPlanner: tried in order, before the model is asked
	Specs   []Spec   // of a ManagerScriptPlanner: what is said of workers
	Prompt  string   // put before the planner's own words

	followUp seedFollowUp
}

// Worker is an agent that a manager leads.
type Worker struct {
	Name  string // what the manager calls it
	Agent *Agent
}

// Rule sends a task to a worker by its words.
type Rule struct {
	Worker  string   `yaml:"worker" required:"true"`
	Include []string `yaml:"include"` // one of these is in it
	Exclude []string `yaml:"exclude"` // none of these is
}

// Spec is what a manager's script is told of a worker.
type Spec struct {
	Worker      string   `yaml:"worker" required:"true"`
	Description string   `yaml:"description"`
	Tools       []string `yaml:"tools"`
}

// MaxPhases is how many phases follow another at most; 0: it is not said.
func (m *Manager) MaxPhases() int { return value(m.followUp.MaxPhases) }

// Manager returns what is written of a as a manager; nil: it leads nobody.
func (a *Agent) Manager() *Manager { return a.manager }

type seedManager struct {
	Gateway        string   `yaml:"inference_gateway"`
	Keys           []string `yaml:"worker_keys"`
	Rules          []Rule   `yaml:"rules"`
	Default        string   `yaml:"default_worker"`
	SystemPrompt   string   `yaml:"system_prompt"`
	PlanningPrompt string   `yaml:"planning_prompt"`
	LogDetails     *bool    `yaml:"log_details"`
	Specs          []Spec   `yaml:"worker_specs"`
	ManagerKey     string   `yaml:"manager_worker_key"`
	HistoryFilter  string   `yaml:"history_filter" enum:"default,manager,orchestrator"`
}

// managerKeys are the keys that each planner has beside inference_gateway.
var managerKeys = map[string][]string{
	"WorkerRouterPlanner":        {"worker_keys", "rules", "default_worker", "system_prompt", "log_details"},
	"StrategicPlanner":           {"worker_keys", "planning_prompt", "history_filter"},
	"StrategicDecomposerPlanner": {"worker_keys", "default_worker", "planning_prompt", "manager_worker_key", "history_filter"},
	"ManagerScriptPlanner":       {"worker_specs", "default_worker", "planning_prompt", "manager_worker_key"},
}

// manager reads a planner that leads workers.
func (s *seedReading) manager() {
	m := s.manages()
	var c seedManager
	node := s.doc.Spec.Planner.Config.node
	known := append([]string{"inference_gateway"}, managerKeys[m.Planner]...)
	if node != nil {
		for key := range s.pairs(node, plannerConfig) {
			if key.Kind == yaml.ScalarNode && fieldNamed(fieldsOf(reflect.TypeFor[seedManager]()), key.Value) >= 0 && !slices.Contains(known, key.Value) {
				s.unknown(key, join(plannerConfig, key.Value), known)
			}
		}
	}
	s.doc.Spec.Planner.Config.as(s.reading, &c, plannerConfig)
	if c.Gateway != "" {
		s.gateway(c.Gateway, plannerConfig+".inference_gateway")
	} else if len(c.Rules) == 0 {
		s.placed(CodeMissingKey, "spec.planner", "inference_gateway: NAME", "the key inference_gateway is missing")
	}
	if c.LogDetails != nil {
		s.reported(plannerConfig+".log_details", "logging has no switch here: pawl run tells each step")
	}
	if c.ManagerKey != "" {
		s.reported(plannerConfig+".manager_worker_key", "a manager has one name, metadata.name")
	}
	m.Keys, m.Default, m.Rules, m.Specs, m.Prompt = c.Keys, c.Default, c.Rules, c.Specs, cmp.Or(c.SystemPrompt, c.PlanningPrompt)
	s.workers(m)
	for i, k := range c.Keys {
		s.worker(m, k, index(plannerConfig+".worker_keys", i))
	}
	for i, rule := range c.Rules {
		s.worker(m, rule.Worker, index(plannerConfig+".rules", i)+".worker")
	}
	for i, spec := range c.Specs {
		s.worker(m, spec.Worker, index(plannerConfig+".worker_specs", i)+".worker")
	}
	if c.Default != "" {
		s.worker(m, c.Default, plannerConfig+".default_worker")
	}
}

// worker finds a name that no worker has.
func (s *seedReading) worker(m *Manager, name, path string) {
	var all []string
	for _, w := range s.doc.Spec.Workers {
		if w.Name == name {
			return
		}
		all = append(all, w.Name)
	}
	s.placed(CodeUnknownWorker, path, among(name, all), "no worker is named %q", cut(name))
}

// mostNested bounds how many managers stand above one another.
const mostNested = 8

// workers reads the files of the workers, each relative to this one. None may lead out of the folder of this file, nor back to one that is being read.
func (s *seedReading) workers(m *Manager) {
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
		if filepath.IsAbs(w.ConfigPath) || outward(w.ConfigPath) {
			s.placed(CodeBadFile, path+".config_path", "a file beside or below this one", "%s leads out of the folder of this file", cut(w.ConfigPath))
			continue
		}
		name := filepath.Join(s.dir, filepath.FromSlash(w.ConfigPath))
		if slices.Contains(s.chain, name) || name == filepath.Clean(s.file) || len(s.chain) > mostNested {
			s.placed(CodeBadFile, path+".config_path", "an agent cannot be its own worker", "%s is read already, or managers stand too deep", cut(w.ConfigPath))
			continue
		}
		text, err := readBounded(name)
		if err != nil {
			s.placed(CodeBadFile, path+".config_path", "", "%s: %s", w.ConfigPath, cause(err))
			continue
		}
		inner := &reading{file: name, dir: filepath.Dir(name), env: s.env, expanded: map[*yaml.Node]*expanded{}, chain: append(slices.Clip(s.chain), filepath.Clean(s.file))}
		docs := inner.documents(text)
		if len(docs) > 1 {
			inner.at(CodeConflict, docs[1], "", "one agent a file", "a worker's file has one agent")
		}
		if len(docs) > 0 {
			m.Workers = append(m.Workers, Worker{w.Name, inner.agent(docs[0])})
		}
		for _, f := range inner.findings {
			if len(s.findings) < mostFindings {
				s.findings = append(s.findings, f)
			}
		}
	}
}
