// Package agentframework reads files of kind agent.framework/v2, the YAML form of a Python
// framework, and translates them into the native form of package config.
//
//	agent.framework/v2 ──▶ Document ──Translate──▶ native YAML nodes ──▶ package config
//	                       strict                  each with the place
//	                                               it comes from
//
// Package config stays the only place that turns a file into agents: it reads the native nodes as
// it reads any other file. The strict reading of a Document is its work as well, through a Reader,
// so that both forms have the same findings with the same places. docs/agent-framework.md lists
// every key.
package agentframework

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/llm"
)

// Document is a document of the form. Its tags define how it is read; the JSON Schema of the form
// is made from them.
type Document struct {
	// The version of the form.
	APIVersion string `yaml:"apiVersion" required:"true" enum:"agent.framework/v2"`

	// Agent, or ManagerAgent.
	Kind string `yaml:"kind" required:"true" enum:"Agent,ManagerAgent"`

	// What it is called.
	Metadata metadata `yaml:"metadata" required:"true"`

	// Gateways, tools and subscribers by name.
	Resources resources `yaml:"resources"`

	// What it does.
	Spec spec `yaml:"spec" required:"true"`
}

type metadata struct {
	// The agent's name.
	Name string `yaml:"name" required:"true"`

	// For people.
	Description string `yaml:"description"`

	// For people.
	Version string `yaml:"version"`
}

type resources struct {
	// Models.
	Gateways []resource `yaml:"inference_gateways"`

	// Tools.
	Tools []resource `yaml:"tools"`

	// Who hears events: reported, and without effect.
	Subscribers []resource `yaml:"subscribers"`
}

// resource has a name, a type, and the settings of its type.
type resource struct {
	// Its name.
	Name string `yaml:"name" required:"true"`

	// Its type.
	Type string `yaml:"type" required:"true"`

	// Settings of its type.
	Config Node `yaml:"config"`
}

type spec struct {
	// A preset, and what differs from it.
	Policies policies `yaml:"policies"`

	// What decides.
	Planner typed `yaml:"planner" required:"true"`

	// Reported, and without effect.
	Memory memory `yaml:"memory"`

	// Names of resources.
	Tools []string `yaml:"tools"`

	// Of a ManagerAgent.
	Workers []worker `yaml:"workers"`

	// Names of resources.
	Subscribers []string `yaml:"subscribers"`
}

type typed struct {
	// Its type.
	Type string `yaml:"type" required:"true"`

	// Settings of its type.
	Config Node `yaml:"config"`
}

type worker struct {
	// What the manager calls it.
	Name string `yaml:"name" required:"true"`

	// Its file, relative to this one.
	ConfigPath string `yaml:"config_path" required:"true"`
}

type memory struct {
	// A preset.
	Preset string `yaml:"$preset" enum:"standalone,worker,manager"`

	// Whom it is shared with.
	Namespace string `yaml:"namespace"`

	// Whose it is.
	AgentKey string `yaml:"agent_key"`

	// A type.
	Type string `yaml:"type" enum:"InMemory,SharedInMemory,HierarchicalShared,MessageStoreMemory"`

	// Settings of its type.
	Config Node `yaml:"config"`
}

type policies struct {
	// A preset.
	Preset string `yaml:"$preset" enum:"simple,manager_with_followups,with_hitl,with_checkpoints"`

	// Reported, and without effect.
	Completion *typed `yaml:"completion"`

	// When a run ends.
	Termination *typed `yaml:"termination"`

	// When a model turns in a circle.
	LoopPrevention *typed `yaml:"loop_prevention"`

	// Which calls wait for a person.
	HITL *typed `yaml:"hitl"`

	// Reported, and without effect.
	Checkpoint *typed `yaml:"checkpoint"`

	// Of a ManagerAgent.
	FollowUp *typed `yaml:"follow_up"`
}

// Reader is the strict reader of package config. All fields are required.
type Reader struct {
	// Read reads a node into the value that a pointer points to, and reports whether it had no
	// findings.
	Read func(n *yaml.Node, into any, path string) bool

	// Report adds a finding. A nil node means the place of the path.
	Report func(n *yaml.Node, code, path, hint, message string)

	// Place returns where a path, or the nearest path above it, stands in the file.
	Place func(path string) (line, column int)
}

// The codes of findings, as package config has them.
const (
	codeConflict        = "conflict"
	codeDuplicateName   = "duplicate_name"
	codeMissingKey      = "missing_key"
	codeRefused         = "refused"
	codeReported        = "reported"
	codeUnknownKey      = "unknown_key"
	codeUnknownResource = "unknown_resource"
	codeUnknownTool     = "unknown_tool"
	codeUnknownType     = "unknown_type"
	codeUnknownWorker   = "unknown_worker"
	codeWrongType       = "wrong_type"
)

// Native is a document in the native form.
type Native struct {
	// Agent is the native document. Nil means that the document has no name.
	Agent *yaml.Node

	// Model answers in place of a provider. Nil means that Agent names the model.
	Model llm.Model

	// ModelName is the name of Model. Empty means that there is none.
	ModelName string

	// Workers are the files of the workers of a team.
	Workers []WorkerFile
}

// WorkerFile is the file of a worker.
type WorkerFile struct {
	File string // relative to the document
	Path string // where the document names it

	// Index is the index of the worker in team.workers of the native document. -1 means that its
	// file is only checked.
	Index int
}

// Is reports whether a document is of this form.
func Is(root *yaml.Node) bool {
	is := false
	for key := range pairs(root) {
		is = is || key.Value == "apiVersion" || key.Value == "kind"
	}
	return is
}

// Translate reads a document and returns it in the native form. References between its parts are
// checked only if the document itself has no findings.
func Translate(root *yaml.Node, r *Reader) *Native {
	d := &document{Reader: r, native: new(Native)}
	ok := r.Read(root, &d.Document, "")
	if d.Metadata.Name == "" {
		return d.native
	}
	d.native.Agent = d.mapping("")
	d.set("agent", "metadata.name", d.Metadata.Name)
	if !ok {
		return d.native
	}

	d.reportedIf(d.Metadata.Description != "" || d.Metadata.Version != "", "metadata",
		"description and version are for people, and not sent")
	d.names("resources.inference_gateways", d.Resources.Gateways)
	d.names("resources.tools", d.Resources.Tools)
	d.names("resources.subscribers", d.Resources.Subscribers)

	d.subscribers()
	d.memory()
	d.policies()
	d.planner()
	return d.native
}

// document is a Document that is being translated.
type document struct {
	Document
	*Reader
	native *Native
}

// placed reports a finding at the place of a path.
func (d *document) placed(code, path, hint, format string, args ...any) {
	d.Report(nil, code, path, hint, fmt.Sprintf(format, args...))
}

// reportedIf warns of a key as reported does, if the condition holds.
func (d *document) reportedIf(condition bool, path, message string) {
	if condition {
		d.reported(path, message)
	}
}

// reported warns of a key that has no effect, or another effect than it says.
func (d *document) reported(path, message string) { d.placed(codeReported, path, "", "%s", message) }

// names reports resources of the same name.
func (d *document) names(path string, list []resource) {
	seen := map[string]bool{}
	for i, one := range list {
		if seen[one.Name] {
			d.placed(codeDuplicateName, index(path, i)+".name", "rename one of them", "two resources are named %s", one.Name)
		}
		seen[one.Name] = true
	}
}

func (d *document) subscribers() {
	for i, name := range d.Spec.Subscribers {
		d.resource(d.Resources.Subscribers, name, index("spec.subscribers", i), "subscriber")
	}
	d.reportedIf(len(d.Resources.Subscribers) > 0, "resources.subscribers",
		"subscribers have no effect: pawl run --json prints every event")
}

func (d *document) memory() {
	m := d.Spec.Memory
	if m.Preset != "" && m.Type != "" {
		d.placed(codeConflict, "spec.memory", "remove one of them", "a preset and a type")
	}
	d.reportedIf(m != (memory{}), "spec.memory",
		"memory has no effect: a run has its conversation, --save keeps it, and the set remember keeps what was said")
}

// resource returns the index of the resource of this name.
func (d *document) resource(list []resource, name, path, what string) (int, bool) {
	var all []string
	for i, one := range list {
		if one.Name == name {
			return i, true
		}
		all = append(all, one.Name)
	}
	d.placed(codeUnknownResource, path, nearest.Hint(name, all), "no %s is named %q", what, cut(name))
	return 0, false
}
