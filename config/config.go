// Package config builds agents from a YAML file.
//
//	agent: analyst
//	model: openai:gpt-6.1-terra
//	instructions: Answer from the files here, and name the file.
//	tools: [file, data]
//	approve: {deny: [file_delete]}
//
//	file, err := config.Load("analyst.yaml", nil)
//	built, err := file.Build(ctx, "analyst")
//	defer built.Close()
//	res, err := built.Agent.Run(ctx, llm.User("…"))
//
// Load reports every fault of a file at once: an unknown key, a value of another type and an
// unknown name are each a Finding with file, line, column and a hint. No key is ignored silently.
// Variables such as ${HOME} are expanded in values after the file is parsed, so a variable cannot
// add a key or a list, and no Finding repeats its value.
//
// The author of a file is trusted like the author of a program: the file decides which programs,
// addresses and folders its tools use. docs/yaml.md describes every key. Files of kind
// agent.framework/v2 are accepted, too: docs/agent-framework.md.
package config

import (
	"context"
	"net/http"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/policy"
)

// Finding is a fault in a file. It is an error. Its Code is one word, such as "unknown_key".
type Finding = agentfile.Finding

// Findings are all faults of a file, in the order of their lines. It is an error, and errors.As
// finds each Finding in it.
type Findings = agentfile.Findings

// Schema returns the JSON Schema of files, for editors that complete and check them.
func Schema() []byte { return agentfile.Schema() }

// Options configure Load and Parse, and the agents that are built from the file. Nil and the zero
// value are for a program that runs the agents.
type Options struct {
	// Getenv returns the value of a variable, and empty for a variable that is not set. Nil means
	// os.Getenv.
	Getenv func(name string) string

	// Dir is the folder of relative names in the text of Parse. Empty means the folder of its name.
	Dir string

	// Tools are offered after the tools of the file. Nil means no further tools.
	Tools []pawl.Toolset

	// ForAll is for agents that serve several users: their tools act for the scope in the context
	// of each call (store.WithScope). False means the scope that the file states under store.
	ForAll bool

	// HTTP sends the requests to providers. Nil means a default transport.
	HTTP http.RoundTripper

	// Notice receives remarks about an agent while it is built, such as the selected driver or a
	// tool that was left out. Nil means that remarks are dropped.
	Notice func(text string)

	// Ask asks a person a question of an MCP server. Nil means that every question is declined.
	Ask func(context.Context, mcp.Question) (mcp.Answer, error)

	// Approve returns the middleware that approves calls by the rules of the file. Nil means that
	// a call which needs a person ends the run as pending.
	Approve func(rules policy.Rules) pawl.Middleware
}

// File is a file that was read. It may be used concurrently.
type File struct {
	file    *agentfile.File
	options agentfile.Options
}

// Load reads the file of this name. The error is Findings with all faults, and the File is nil
// then. Nil options mean the defaults.
func Load(name string, o *Options) (*File, error) {
	return open(o, func(l *agentfile.LoadOptions) (*agentfile.File, error) { return agentfile.Load(name, l) })
}

// Parse reads the text of a file. Findings contain the name. The results are as of Load.
func Parse(name string, text []byte, o *Options) (*File, error) {
	return open(o, func(l *agentfile.LoadOptions) (*agentfile.File, error) { return agentfile.Parse(name, text, l) })
}

// open returns the file that read reads.
func open(o *Options, read func(*agentfile.LoadOptions) (*agentfile.File, error)) (*File, error) {
	if o == nil {
		o = &Options{}
	}
	file, err := read(o.load())
	if err != nil {
		return nil, err
	}
	return &File{file: file, options: o.build()}, nil
}

func (o *Options) load() *agentfile.LoadOptions {
	return &agentfile.LoadOptions{Getenv: o.Getenv, Dir: o.Dir}
}

func (o *Options) build() agentfile.Options {
	return agentfile.Options{
		Getenv:  o.Getenv,
		Tools:   o.Tools,
		ForAll:  o.ForAll,
		HTTP:    o.HTTP,
		Notice:  o.Notice,
		Ask:     o.Ask,
		Approve: o.Approve,
	}
}

// Agents returns the names of the agents, in the order of the file.
func (f *File) Agents() []string {
	names := make([]string, len(f.file.Agents))
	for i, a := range f.file.Agents {
		names[i] = a.Name
	}
	return names
}

// Warnings returns the keys of all agents that have no effect, or another effect than they say. A
// file with warnings works. Nil means none.
func (f *File) Warnings() (all Findings) {
	for _, a := range f.file.Agents {
		all = append(all, a.Warnings()...)
	}
	return all
}

// YAML returns an agent as the file states it, with all its settings in the native keys. The name
// is the name in Build.
func (f *File) YAML(name string) ([]byte, error) {
	a, err := f.file.Agent(name)
	if err != nil {
		return nil, err
	}
	return a.YAML(), nil
}

// Check returns the faults of all agents that can be found without a request to a model, such as
// rules for tools that do not exist. Something that is missing on this machine is not a fault of
// the file. The error is Findings, or nil.
func (f *File) Check(ctx context.Context) error {
	var all Findings
	for _, a := range f.file.Agents {
		options := f.options
		all = append(all, a.Check(ctx, &options)...)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Side is the key side of a file.
type Side struct {
	// Model answers the requests. Nil means no model: an agent without one, such as a team.
	Model llm.Model

	// Allow is none, known or any.
	Allow string
}

// Built is an agent that is ready to run.
type Built struct {
	// Agent runs the agent of the file. It may be changed before its first run.
	Agent *pawl.Agent

	// Tools are the tools that the agent offers. A team has its own tools and its workers here.
	Tools []*pawl.Tool

	// Hidden are values that no output may show: keys, and variables in headers. Package redact
	// replaces them.
	Hidden []string

	// Side answers requests of chat programs for titles and the like: server.About.Side is
	// server.Side(built.Side).
	Side Side

	// Window is the context window of the model in tokens. 0 means that it is unknown.
	Window int

	// Close releases what the agent opened: databases, MCP servers, folders. Call it after the last
	// run.
	Close func()
}

// Build makes the agent of this name, and connects it with its MCP servers and its database. An
// empty name means the only agent, or the only agent that is not a worker of another. The error is
// a *Finding or Findings.
func (f *File) Build(ctx context.Context, name string) (*Built, error) {
	a, err := f.file.Agent(name)
	if err != nil {
		return nil, err
	}
	options := f.options
	built, err := a.Build(ctx, &options)
	if err != nil {
		return nil, err
	}

	return &Built{
		Agent:  built.Agent,
		Tools:  built.Tools,
		Hidden: built.Hidden,
		Side:   Side{Model: built.Side, Allow: a.AllowsSide()},
		Window: built.Window,
		Close:  built.Close,
	}, nil
}
