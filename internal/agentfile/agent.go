package agentfile

// agent.go: the keys of an agent's file, each as a field of a struct. The comment of a field is the
// meaning of its key in docs/yaml.md, in the JSON Schema and in keys.txt, which make docs writes.

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
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
	// waits for a person), ask (as on, without refusals), log (a progress event says what on would
	// do) or off. Default: on with MCP servers or the sets http and search, otherwise log.
	Flow string `yaml:"flow" enum:"on,ask,log,off"`

	// By tool, pattern or effect: the words trusted, private, final and out of docs/flow.md, where
	// the defaults are wrong.
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

	// What happens to a run of pawl serve whose client has disconnected: continue, or cancel,
	// unless the client repeats its request within 5 s. Default: cancel for OpenAI's endpoints,
	// and continue for web front ends.
	Disconnect string `yaml:"on_disconnect" enum:"continue,cancel"`

	// The model for requests of chat programs (Open WebUI, LibreChat, LobeChat) for titles, tags
	// and follow-up questions, which run without tools and instructions; none gives empty answers.
	// Default: the agent's model.
	Side *Model `yaml:"side_model"`

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

// Models are models in order: the first is asked, and the others are its fallbacks.
type Models []Model

// Model names a model.
type Model struct {
	// PROVIDER:NAME.
	Name string `yaml:"name" required:"true"`

	// The address of the provider's API. Default: the provider's variable (OPENAI_BASE_URL,
	// ANTHROPIC_BASE_URL, GEMINI_BASE_URL), then its own address.
	BaseURL string `yaml:"base_url" form:"address"`

	// The environment variable that holds the API key; the key itself has no place in a file.
	// Default: the provider's own variable.
	KeyEnv string `yaml:"key_env"`

	// The server computes replies in the background, and the request survives a broken connection
	// and a restart (only for openai:). Default: false.
	Background bool `yaml:"background"`

	// Settings of the provider's prompt cache (openai: and anthropic:); docs/providers.md lists
	// what each API has. Default: the provider's own.
	Cache PromptCache `yaml:"cache"`

	made llm.Model // the model of a planner without a provider; nil means that Name is opened
}

// PromptCache has settings of a provider's prompt cache.
type PromptCache struct {
	// The lifetime of entries: 5m or 1h at Anthropic; 30m, 12h or 24h at OpenAI. Default: the
	// provider's own.
	TTL outside.Duration `yaml:"ttl"`

	// Groups requests with a common beginning (openai: and openai-chat:). Default: none.
	Key string `yaml:"key"`
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

// React tunes driver react.
type React struct {
	// The format of decisions. Default: json.
	Format string `yaml:"format" enum:"json,text,xml,plain"`

	// One decision may have several calls.
	Parallel bool `yaml:"parallel"`

	// Unknown tools and wrong arguments give calls whose result is an error; without it, the model
	// is asked again.
	Lenient bool `yaml:"lenient"`

	// How often the model is asked again after a bad decision. Default: 2.
	Retries *int `yaml:"retries" min:"0"`
}

// Choice is a tool choice as written: a word, or the names of tools.
type Choice []string

// Limits bound a run. The comments of the keys of pawl.LimitInfos are their texts there.
type Limits struct {
	// Maximum number of rounds of calls; 0 executes no call and returns the calls. Default: 20.
	Rounds *int `yaml:"rounds" min:"0"`

	// Maximum number of executed calls; later calls are rejected, and the model is asked for an
	// answer.
	Calls *int `yaml:"calls" min:"1"`

	// Maximum number of executed calls in one reply; later calls are rejected with a result that
	// says so.
	CallsPerStep *int `yaml:"calls_per_step" min:"1"`

	// Maximum number of concurrent calls. Default: 10.
	Parallel *int `yaml:"parallel" min:"1"`

	// Maximum number of tokens of all requests and replies, approximately: a request that could
	// exceed it is the last.
	Tokens *int `yaml:"tokens" min:"1"`

	// Maximum cost of the run in US dollars, approximately: a request that could exceed it is the
	// last. Only for models with a price in the catalogue.
	Cost *float64 `yaml:"cost" above:"0"`

	// Maximum time of the run, such as 90s or 10m. It cancels requests and calls in progress.
	Time *outside.Duration `yaml:"time" above:"0"`

	// Maximum number of replies that are sent back: answers that do not fit the output, and calls
	// that the provider could not read. Default: 2.
	Corrections *int `yaml:"corrections" min:"0"`

	// The number of identical calls with identical results before the model is warned. Default: 3.
	Repeats *int `yaml:"repeats" min:"1" max:"50"`

	// The last request at a limit: answer (the model is asked for an answer) or return (its calls
	// are returned). Default: answer.
	AtLimit string `yaml:"at_limit" enum:"answer,return"`
}

// SandboxLimits bound each shell command. Sizes are in MiB.
type SandboxLimits struct {
	// Maximum time of a command whose call names none, at most 5m. Default: 30s, with toolchains
	// 5m.
	Time *outside.Duration `yaml:"time" above:"0"`

	// MiB of memory of all processes together. Default: 2048, with toolchains 4096.
	Memory *int `yaml:"memory" min:"1"`

	// Maximum number of processes and threads. Default: 64, with toolchains 1024.
	Processes *int `yaml:"processes" min:"1"`
}

// Approve says which calls may run.
type Approve struct {
	// These never run; the model receives a denial.
	Deny []string `yaml:"deny"`

	// These wait for a decision.
	Ask []string `yaml:"ask"`

	// These run.
	Allow []string `yaml:"allow"`

	// The decision on all other calls. Default: calls that may change the world wait, others run.
	Else string `yaml:"else" enum:"allow,ask,deny"`

	// The time from an approval to the start of the call; after it the question is asked again. 0s
	// means no limit. Default: 0s.
	Within *outside.Duration `yaml:"within"`
}

// Output is what an answer must fit.
type Output struct {
	File   string
	Schema json.RawMessage
}

// Settings tune a request.
type Settings struct {
	// Maximum number of tokens of a reply. Default: the provider's.
	MaxTokens *int `yaml:"max_tokens" min:"1"`

	// Default: the provider's.
	Temperature *float64 `yaml:"temperature" min:"0"`

	// Default: the provider's.
	TopP *float64 `yaml:"top_p" min:"0" max:"1"`

	// Sequences that end a reply.
	Stop []string `yaml:"stop"`

	// Reasoning effort, in the provider's words. Default: the provider's.
	Effort string `yaml:"effort"`

	// Whether one reply may have several calls. Default: the provider's.
	Parallel *bool `yaml:"parallel_calls"`

	// By provider (openai, openai-chat, anthropic, gemini, or a server's name): an object that is
	// merged into the body of each request.
	Options map[string]outside.JSON `yaml:"options"`
}

// History chooses the part of a conversation that is sent. One of its fields is set.
type History struct {
	Word string `yaml:"-"`

	// The last turns.
	Turns *int `yaml:"turns" min:"1"`

	// As window, with this number of tokens as the bound.
	Tokens *int `yaml:"tokens" min:"1"`

	// The same, with notes by the model.
	Summary *int `yaml:"summary" min:"1"`

	// Settings of window. {} means the defaults.
	Window *Window `yaml:"window"`
}

// Window keeps requests within the context window.
type Window struct {
	// The context window in tokens. Default: what the catalogue says of the model; if it does not
	// know it, the first refusal teaches it.
	Tokens int `yaml:"tokens" min:"1000"`

	// The share of the room (the window without a reserve for the reply) above which old results
	// are put away. Default: 0.8.
	High float64 `yaml:"high" above:"0" max:"1"`

	// The share of the room down to which they are. Default: 0.4.
	Low float64 `yaml:"low" above:"0" max:"1"`

	// Rounds at the end that stay whole if they fit. Default: 3.
	Keep int `yaml:"keep" min:"1"`

	// The model writes notes of steps before they leave its sight. Each time costs a request.
	// Default: false.
	Notes bool `yaml:"notes"`

	// The provider shortens the conversation itself, if it can (OpenAI's Responses, Claude): a
	// summary costs about what its request costs. Default: false.
	Native bool `yaml:"native"`
}

// Memory sets how memories of the user are recalled and written.
type Memory struct {
	// Whether the memories that fit a message of the user are recalled before the model is asked.
	// Default: auto.
	Recall string `yaml:"recall" enum:"auto,off"`

	// Who writes: the tool remember (tool), in addition a request after each answer (end), or the
	// same, and a person confirms every memory (ask). Default: tool.
	Write string `yaml:"write" enum:"tool,end,ask"`

	// Who sees what this agent stores: all agents of the user (user), or this agent alone, by its
	// name (agent). Default: user.
	Scope string `yaml:"scope" enum:"user,agent"`
}

// Store names the database with the data between runs, and the owner of the data.
type Store struct {
	// The database: a file, or postgres://USER@HOST/DATABASE, whose password belongs in
	// PGPASSWORD. Default: pawl/pawl.db in the folder for user data (XDG_DATA_HOME, else
	// ~/.local/share).
	DB string `yaml:"db"`

	// The tenant that owns the data. Default: none.
	Tenant string `yaml:"tenant"`

	// The user who owns the data. Default: none.
	User string `yaml:"user"`

	// Search the documents that the tenant shares, too.
	Shared bool `yaml:"shared"`
}

// Embed names an embedding model.
type Embed struct {
	// PROVIDER:MODEL, such as openai:text-embedding-3-small or ollama:nomic-embed-text. Use the
	// same model for adding and searching.
	Model string `yaml:"model"`

	// The address of the model's API. Default: the provider's own.
	URL string `yaml:"base_url" form:"address"`
}

// Rate bounds how often calls begin.
type Rate struct {
	// Names of tools, patterns and effects. Default: every tool.
	Tools []string `yaml:"tools"`

	// One call each, such as 1s.
	Every outside.Duration `yaml:"every" above:"0" required:"true"`

	// Calls that may begin at once. Default: 1.
	Burst *int `yaml:"burst" min:"1"`

	// The longest wait for a turn; a call that would wait longer is blocked. Default: none.
	Wait outside.Duration `yaml:"wait"`
}

// Breaker stops calling a tool that fails.
type Breaker struct {
	// Default: every tool, each by itself.
	Tools []string `yaml:"tools"`

	// Failures in a row. Default: 5.
	Failures *int `yaml:"failures" min:"1"`

	// How long the tool is not called. Default: 30s.
	Pause outside.Duration `yaml:"pause"`
}

// Cache stores results of pure tools.
type Cache struct {
	// Default: every pure tool.
	Tools []string `yaml:"tools"`

	// The size of the stored results. Default: 64 MiB.
	Bytes *int `yaml:"bytes" min:"1"`

	// The validity of a result. Default: no limit of its own.
	Age outside.Duration `yaml:"age"`
}

// Guard checks texts, by a model or by a moderation endpoint.
type Guard struct {
	// Its name, in events and errors. Default: guard.
	Name string `yaml:"name"`

	// What it checks: input (the user's messages), output (replies, which then do not stream) and
	// result (of tools). Default: all.
	Check []string `yaml:"check" enum:"input,output,result"`

	// The model that rules on each text, by rules.
	Model *Model `yaml:"model"`

	// The rules, in plain language: what to stop, and what to replace.
	Rules string `yaml:"rules"`

	// The moderation model in place of model and rules, such as openai:omni-moderation-latest. A
	// flagged text is stopped.
	Moderation *Model `yaml:"moderation"`

	// A text whose check fails: stop, or allow. Default: stop, and a result is withheld.
	OnError string `yaml:"on_error" enum:"stop,allow"`
}

// place is where something was said.
type place struct{ line, column int }

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
func (a *Agent) said(path string) (place, bool) { return a.at.of(path) }

// places are the places of paths in a file.
type places map[string]place

// of returns the place of a path, or of the nearest path above it that has one.
func (p places) of(path string) (place, bool) {
	for {
		if at, ok := p[path]; ok || path == "" {
			return at, ok
		}
		path = above(path)
	}
}

// above returns the path of what path is part of.
func above(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
