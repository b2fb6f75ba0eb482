package agentfile

// agent.go: the keys of an agent's file, each as a field of a struct; the structs of keys with keys
// of their own are in keys_*.go. The comment of a field is the meaning of its key in docs/yaml.md,
// in the JSON Schema and in keys.txt, which make docs writes.

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/notify"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/tools/outside"
)

// Agent describes an agent: plain data with the keys of the native form. The zero value of each
// field means its default. Fill it in or let Load read it; Build makes a pawl.Agent of it. It may
// be used concurrently once it is set up.
type Agent struct {
	// The agent's name, for events and records. Letters, digits, _, - and ., and a version after
	// @: of clerk@1 and clerk@2, pawl serve gives new runs of clerk the newest.
	Name string `yaml:"agent" required:"true"`

	// The agent's name for people, in lists of chat programs and MCP clients. Default: the agent's
	// name.
	Title string `yaml:"title"`

	// What the agent is for: clients of pawl serve read it to choose an agent.
	Description string `yaml:"description"`

	// The model, PROVIDER:NAME, such as openai:gpt-6.1-terra, anthropic:claude-sonnet-5-5 or
	// ollama:qwen3:4b; script:FILE plays a script. In a list, the others are fallbacks of the
	// first.
	Model Models `yaml:"model"`

	// Instructions at the start of the conversation. Default: none.
	Instructions string `yaml:"instructions"`

	// The environment variables whose values may stand in texts that models read, such as
	// instructions, descriptions and prompts, as ${NAME}. Other variables are refused there.
	// Default: none.
	Variables []string `yaml:"variables"`

	// The tools that the model may call: names of built-in sets, definitions of command, http,
	// openapi and a2a tools, and {mcp: NAME} for the tools of an MCP server. Default: none.
	Tools []Tool `yaml:"tools"`

	// Files with more definitions; docs/outside.md describes them.
	ToolFiles []string `yaml:"tool_files"`

	// Tools whose successful call ends the run: the call is executed, then the run stops.
	Terminal []string `yaml:"terminal_tools"`

	// How the model calls tools: native (its own function calling), react (decisions written as
	// text, for models without it), or auto (the catalogue decides). Default: native.
	Driver string `yaml:"driver" enum:"native,react,auto"`

	// Settings of driver react.
	React *React `yaml:"react"`

	// Whether calls that a model with native calling wrote as text become calls. Default: auto,
	// unless the model is openai:, anthropic: or gemini:.
	Leaks string `yaml:"leaked_calls" enum:"auto,on,off"`

	// For the first request: auto, none, required, the name of a tool, or a list of names.
	// Default: OPENAI_TOOL_CHOICE, then auto.
	Choice Choice `yaml:"tool_choice"`

	// Limits of a run.
	Limits Limits `yaml:"limits"`

	// Which calls run, which wait for a person, and which never run. Each list has names of tools,
	// patterns (file_*), effects (effect:write) and MCP servers (mcp:NAME); deny takes precedence,
	// then ask.
	Approve Approve `yaml:"approve"`

	// Decides by the origin of arguments (docs/flow.md): on (a call with values of untrusted text
	// waits for a person), strict (as on, and records name no recipient), ask (as on, without
	// refusals), log (a progress event says what on would do) or off. Default: on with MCP servers
	// or the sets http and search, otherwise log.
	Flow string `yaml:"flow" enum:"on,strict,ask,log,off"`

	// By tool, pattern or effect: the words trusted, private, sealed, final and out of
	// docs/flow.md, where the defaults are wrong.
	FlowLabels map[string]string `yaml:"flow_labels"`

	// A JSON Schema that the answer must fit, or the name of a file with one. Default: free text.
	Output *Output `yaml:"output"`

	// Settings of each request to the model.
	Settings Settings `yaml:"settings"`

	// What is sent of a long conversation: window (old results are put away when the model's
	// context window fills, also within a turn; the tool result_read reads them again), all,
	// current_trace, {turns: N}, {tokens: N} or {summary: N}. Default: window.
	History *History `yaml:"history"`

	// Memories of the user between conversations (docs/guide/memory.md): brings the set remember.
	// {} means the defaults. Default: none.
	Memory *Memory `yaml:"memory"`

	// The directory that the file tools use, and that shell commands may write to. Default: the
	// current directory.
	Root string `yaml:"root"`

	// Places that the file tools and shell commands do not change, in addition to the default ones
	// and to the files of the agent: names and paths that count at any depth (conf/keys). -NAME
	// removes a default place (-.git), and -* removes all. docs/security.md lists them.
	Protect []string `yaml:"protect"`

	// Addresses that the http and search tools may reach in addition to public ones:
	// localhost:8080, *.example.com, 10.1.0.0/16.
	HTTPAllow []string `yaml:"http_allow"`

	// The sandbox of shell commands, programs in python and command tools; docs/security.md lists
	// what each level stops. Default: strict.
	Sandbox string `yaml:"sandbox" enum:"strict,standard,none"`

	// Hosts that shell commands, and command tools with network: true, may reach from the sandbox
	// over HTTP and HTTPS: api.example.com:443, *.example.org. Requires strict. Default: none.
	SandboxHosts []string `yaml:"sandbox_hosts"`

	// Folders of programs for shell commands, in front of the system's and of the toolchains'.
	// Commands can read them.
	SandboxPath []string `yaml:"sandbox_path"`

	// Folders and files that shell commands can read in addition to the root.
	SandboxRead []string `yaml:"sandbox_read"`

	// Variables of shell commands, NAME=value, in addition to PATH, HOME, TMPDIR, LANG and the
	// variables of the toolchains.
	SandboxEnv []string `yaml:"sandbox_env"`

	// Limits of each shell command.
	SandboxLimits SandboxLimits `yaml:"sandbox_limits"`

	// Toolchains for shell commands: go, node and python, as installed on this machine, with the
	// packages that were downloaded before, and without a network. Each workspace has its own
	// build cache. Default: none.
	Toolchains []string `yaml:"toolchains" enum:"go,node,python"`

	// Copy each file before the sets file and data change it, so that pawl undo restores it. What
	// shell commands change is not copied. Default: false.
	Checkpoints bool `yaml:"checkpoints"`

	// Add AGENTS.md of the root to the instructions, and protect it from the agent. Its author
	// then instructs the agent. Default: false.
	AgentsMD bool `yaml:"agents_md"`

	// With the set code: the interpreter of programs, python3 in the sandbox or the embedded one,
	// which needs no installation; docs/code.md compares them. Default: python.
	Code string `yaml:"code" enum:"python,embedded"`

	// With the set plan: steps can use values from earlier steps; see docs/plans.md. Default:
	// false.
	DataFlow bool `yaml:"data_flow"`

	// The database for data between runs, and the owner of the data.
	Store Store `yaml:"store"`

	// Folders of skills for the set skill, each skill in a folder of its own with a SKILL.md.
	// Models read them and cannot change them.
	Skills []string `yaml:"skills"`

	// The zone of schedules without a zone, such as Europe/Oslo. Default: this machine's.
	Zone string `yaml:"zone"`

	// The embedding model, to search by meaning. Default: none, which searches by words only.
	Embed Embed `yaml:"embed"`

	// A file with a catalogue of models, in the form of pawl models list --json. Default: the
	// built-in one.
	Catalog string `yaml:"catalog"`

	// The time limit of one attempt of a call, by tool, pattern or effect. Default: 60s, or the
	// tool's own.
	Timeouts map[string]outside.Duration `yaml:"timeouts"`

	// How often calls may begin.
	Rates []Rate `yaml:"rates"`

	// Stop calling a tool whose infrastructure is down. {} means the defaults.
	Breaker *Breaker `yaml:"breaker"`

	// Answer calls of pure tools with the result of an equal call. {} means the defaults.
	Cache *Cache `yaml:"cache"`

	// Checks of the user's messages, of replies and of results; see docs/approvals.md. Default:
	// none.
	Guards []Guard `yaml:"guards"`

	// MCP servers by name; {mcp: NAME} in tools adds the tools of one. docs/mcp.md describes how
	// far servers are trusted.
	Servers map[string]mcp.Server `yaml:"mcp_servers"`

	// The accepted tools of MCP servers (pawl mcp lock); a tool that differs is left out. Default:
	// tools.lock next to this file, if it exists.
	Lock string `yaml:"tools_lock"`

	// Whether the model finds the tools of MCP servers with tool_search instead of receiving all:
	// on, off, or auto (on from 20 tools). Default: auto.
	Search string `yaml:"tool_search" enum:"auto,on,off"`

	// The team that this agent leads.
	Team *Team `yaml:"team"`

	// Agents to which this agent, and each of them, can give the conversation. They answer from
	// then on.
	Handoffs []Worker `yaml:"handoffs"`

	// What the next agent sees of the conversation before a handoff: all, or texts (no calls and
	// results). Default: all.
	HandoffPass string `yaml:"handoff_pass" enum:"all,texts"`

	// Tasks at given times, for pawl schedules run FILE and pawl serve FILE, which store them as
	// AGENT/NAME and remove stored ones that are no longer listed.
	Schedules []Schedule `yaml:"schedules"`

	// Who is notified when a run of pawl serve waits for an answer, has failed or has ended;
	// docs/notify.md describes the ways.
	Notify []notify.Setting `yaml:"notify"`

	// What happens to a run of pawl serve whose client has disconnected: it continues, or begins no
	// more calls and is cancelled, unless the client returns within 5 s, as a page does that is
	// reloaded. Default: cancel.
	Disconnect string `yaml:"on_disconnect" enum:"continue,cancel"`

	// Requests of chat programs for titles, tags and follow-up questions, which run without the
	// agent's tools, instructions and output. Default: they get an empty answer.
	Side *Side `yaml:"side"`

	// Files of root that MCP clients can read: names and patterns, such as README.md and
	// docs/*.md. Names that begin with a dot count only if written so. Default: none.
	Resources []string `yaml:"resources"`

	// Prompts for people at MCP clients. Skills of folders are prompts, too.
	Prompts []mcp.Prompt `yaml:"prompts"`

	file     string // the file it was read from; empty means none
	dir      string // the base of relative names; empty means the current directory
	at       places // where each path was said
	warnings Findings
	secrets  []secret // values of variables that no output may show
	leaders  []*Agent // the agents that lead it
	linked   bool     // the agents of its team are known already
}

// Tool is an entry of a list of tools: one of its fields is set.
type Tool struct {
	Set string `yaml:"-"`

	// A program: arguments as JSON on standard input, the result on standard output.
	Command *outside.Command `yaml:"command"`

	// A request template.
	HTTP *outside.HTTP `yaml:"http"`

	// The operations of an OpenAPI document.
	OpenAPI *outside.OpenAPI `yaml:"openapi"`

	// An agent of another server, reached by the A2A protocol.
	A2A *outside.A2A `yaml:"a2a"`

	// The tools of the server of this name in mcp_servers.
	MCP string `yaml:"mcp"`
}

// Override records that the value at a path, and all below it, now comes from a flag. Findings
// about it have no place in the file.
func (a *Agent) Override(path string) {
	for p := range a.at {
		if p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[") {
			delete(a.at, p)
		}
	}
	if a.at != nil {
		a.at[path] = place{} // and not its parent's place
	}
}

// File returns the file that a was read from; "" for none.
func (a *Agent) File() string { return a.file }

// Warnings returns the warnings of reading a: keys without an effect, or with another effect than
// they say.
func (a *Agent) Warnings() Findings { return slices.Clone(a.warnings) }

// found gives f the place of its path, or of the nearest path above it that the file has.
func (a *Agent) found(f *Finding) *Finding {
	if a.file == "" || f.Line > 0 {
		return f
	}
	f.File = a.file
	if p, ok := a.said(f.Path); ok {
		f.Line = p.line
		f.Column = p.column
		if p.line == 0 {
			f.File = ""
		}
	}
	return f
}

// said returns the place of a path. Line 0 means that the value comes from elsewhere than the file.
func (a *Agent) said(path string) (place, bool) { return a.at.lookup(path) }

// hide replaces secret values by ${NAME}.
func (a *Agent) hide(b []byte) []byte {
	for _, s := range a.secrets {
		if s.value != "" {
			b = bytes.ReplaceAll(b, []byte(s.value), []byte("${"+s.name+"}"))
		}
	}
	return b
}

// hidden returns the secret values of variables.
func (a *Agent) hidden() []string {
	var values []string
	for _, s := range a.secrets {
		values = append(values, s.value)
	}
	return values
}

// relative returns the path of a file that is named at path. Names in the agent's file are relative
// to that file, names in flags to the current directory.
func (a *Agent) relative(path, name string) string {
	if name == "" || filepath.IsAbs(name) || a.dir == "" {
		return name
	}
	if p, ok := a.said(path); ok && p.line == 0 { // a flag
		return name
	}
	return filepath.Join(a.dir, name)
}
