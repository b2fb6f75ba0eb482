package config

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// seedDoc is a document of the other form that is read: that of a Python framework whose agents are files, too. docs/agent-framework.md lists its keys.
type seedDoc struct {
	APIVersion string        `yaml:"apiVersion" required:"true" enum:"agent.framework/v2" doc:"The version of the form."`
	Kind       string        `yaml:"kind" required:"true" enum:"Agent,ManagerAgent" doc:"Agent, or ManagerAgent."`
	Metadata   seedMetadata  `yaml:"metadata" required:"true" doc:"What it is called."`
	Resources  seedResources `yaml:"resources" doc:"Gateways, tools and subscribers by name."`
	Spec       seedSpec      `yaml:"spec" required:"true" doc:"What it does."`
}

type seedMetadata struct {
	Name        string `yaml:"name" required:"true" doc:"The agent's name."`
	Description string `yaml:"description" doc:"For people."`
	Version     string `yaml:"version" doc:"For people."`
}

type seedResources struct {
	Gateways    []seedResource `yaml:"inference_gateways" doc:"Models."`
	Tools       []seedResource `yaml:"tools" doc:"Tools."`
	Subscribers []seedResource `yaml:"subscribers" doc:"Who hears events: reported, and without effect."`
}

// seedResource is something with a name, a type, and what its type wants.
type seedResource struct {
	Name   string `yaml:"name" required:"true" doc:"Its name."`
	Type   string `yaml:"type" required:"true" doc:"Its type."`
	Config raw    `yaml:"config" doc:"What its type wants."`
}

type seedSpec struct {
	Policies    seedPolicies `yaml:"policies" doc:"A preset, and what differs from it."`
	Planner     seedTyped    `yaml:"planner" required:"true" doc:"What decides."`
	Memory      seedMemory   `yaml:"memory" doc:"Reported, and without effect."`
	Tools       []string     `yaml:"tools" doc:"Names of resources."`
	Workers     []seedWorker `yaml:"workers" doc:"Of a ManagerAgent."`
	Subscribers []string     `yaml:"subscribers" doc:"Names of resources."`
}

type seedTyped struct {
	Type   string `yaml:"type" required:"true" doc:"Its type."`
	Config raw    `yaml:"config" doc:"What its type wants."`
}

type seedWorker struct {
	Name       string `yaml:"name" required:"true" doc:"What the manager calls it."`
	ConfigPath string `yaml:"config_path" required:"true" doc:"Its file, relative to this one."`
}

type seedMemory struct {
	Preset    string `yaml:"$preset" enum:"standalone,worker,manager" doc:"A preset."`
	Namespace string `yaml:"namespace" doc:"Whom it is shared with."`
	AgentKey  string `yaml:"agent_key" doc:"Whose it is."`
	Type      string `yaml:"type" enum:"InMemory,SharedInMemory,HierarchicalShared,MessageStoreMemory" doc:"A type."`
	Config    raw    `yaml:"config" doc:"What its type wants."`
}

type seedPolicies struct {
	Preset         string     `yaml:"$preset" enum:"simple,manager_with_followups,with_hitl,with_checkpoints" doc:"A preset."`
	Completion     *seedTyped `yaml:"completion" doc:"Reported, and without effect."`
	Termination    *seedTyped `yaml:"termination" doc:"When a run ends."`
	LoopPrevention *seedTyped `yaml:"loop_prevention" doc:"When a model turns in a circle."`
	HITL           *seedTyped `yaml:"hitl" doc:"Which calls wait for a person."`
	Checkpoint     *seedTyped `yaml:"checkpoint" doc:"Reported, and without effect."`
	FollowUp       *seedTyped `yaml:"follow_up" doc:"Of a ManagerAgent."`
}

// raw is a value that is read when it is known what it is.
type raw struct{ node *yaml.Node }

func (c *raw) wanted() string                          { return "an object" }
func (c *raw) schema() object                          { return object{"type": "object"} }
func (c *raw) read(_ *reading, n *yaml.Node, _ string) { c.node = n }

// as reads the value into v; a value that was not given leaves v as it is.
func (c *raw) as(r *reading, v any, path string) {
	if c.node != nil {
		r.object(c.node, reflect.ValueOf(v).Elem(), path)
	}
}

// maybe is a number that may be null, which says that nothing is sent.
type maybe struct {
	said  bool
	value *float64
}

func (m *maybe) wanted() string { return "a number or null" }
func (m *maybe) null()          { m.said = true }
func (m *maybe) read(r *reading, n *yaml.Node, path string) {
	m.said, m.value = true, new(float64)
	r.scalar(n, reflect.ValueOf(m.value).Elem(), path)
}

// isSeed reports whether a document is of the other form.
func isSeed(root *yaml.Node) bool {
	n := real(root)
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if k := n.Content[i].Value; k == "apiVersion" || k == "kind" {
			return true
		}
	}
	return false
}

// seedReading is one document of the other form on its way to an agent.
type seedReading struct {
	*reading
	doc seedDoc
	a   *Agent
}

// seed reads a document of the other form. What it says of an agent is said in the agent's own keys; the places are those of the document.
func (r *reading) seed(root *yaml.Node, a *Agent) {
	s := &seedReading{reading: r, a: a}
	a.seed = true
	before := len(r.findings)
	r.object(real(root), reflect.ValueOf(&s.doc).Elem(), "")
	a.Name = s.doc.Metadata.Name
	if len(r.findings) > before {
		return // what refers to something else is looked at when all of it could be read
	}
	s.moved("agent", "metadata.name")
	if !agentName.MatchString(a.Name) {
		r.placed(CodeBadValue, "metadata.name", "letters, digits, _, - and ., 64 at most", "%q is no name of an agent", cut(a.Name))
	}
	if s.doc.Metadata.Description != "" || s.doc.Metadata.Version != "" {
		s.reported("metadata", "description and version are for people, and sent to nobody")
	}
	s.names("resources.inference_gateways", s.doc.Resources.Gateways)
	s.names("resources.tools", s.doc.Resources.Tools)
	s.names("resources.subscribers", s.doc.Resources.Subscribers)
	s.subscribers()
	s.memory()
	s.policies()
	s.planner()
}

// moved gives a path of the agent the place of a path of the document.
func (s *seedReading) moved(path, from string) {
	for p := from; ; p = above(p) {
		if at, ok := s.places[p]; ok {
			s.places[path] = at
			return
		}
		if p == "" {
			return
		}
	}
}

// reported tells of something that has no effect, or another than it says.
func (s *seedReading) reported(path, format string, args ...any) {
	s.placed(CodeReported, path, "", format, args...)
}

// names finds two resources of one name.
func (s *seedReading) names(path string, list []seedResource) {
	seen := map[string]bool{}
	for i, one := range list {
		if seen[one.Name] {
			s.placed(CodeDuplicateName, index(path, i)+".name", "rename one of them", "two resources are named %s", one.Name)
		}
		seen[one.Name] = true
	}
}

func (s *seedReading) subscribers() {
	for i, name := range s.doc.Spec.Subscribers {
		s.resource(s.doc.Resources.Subscribers, name, index("spec.subscribers", i), "subscriber")
	}
	if len(s.doc.Resources.Subscribers) > 0 {
		s.reported("resources.subscribers", "subscribers have no effect: pawl run --json tells every event")
	}
}

func (s *seedReading) memory() {
	m := s.doc.Spec.Memory
	if m.Preset != "" && m.Type != "" {
		s.placed(CodeConflict, "spec.memory", "take one of them out", "a preset and a type")
	}
	if m != (seedMemory{}) {
		s.reported("spec.memory", "memory has no effect: a run has its conversation, --save keeps it, and the set remember keeps what was said")
	}
}

// resource finds what a name stands for.
func (s *seedReading) resource(list []seedResource, name, path, what string) (int, bool) {
	var all []string
	for i, one := range list {
		if one.Name == name {
			return i, true
		}
		all = append(all, one.Name)
	}
	s.placed(CodeUnknownResource, path, among(name, all), "no %s is named %q", what, cut(name))
	return 0, false
}

// seedSchema is the schema of both forms: a document says which it is.
func seedSchema(native object) object {
	other := schemaOfStruct(reflect.TypeFor[seedDoc]())
	out := object{"$schema": native["$schema"], "title": native["title"], "type": "object",
		"if": object{"anyOf": []object{{"required": []string{"apiVersion"}}, {"required": []string{"kind"}}}}, "then": other}
	delete(native, "$schema")
	delete(native, "title")
	out["else"] = native
	return out
}
