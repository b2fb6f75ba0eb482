package config

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/tools/outside"
)

// Agent is what is written of an agent: plain data, with the keys of the native form. The zero value of each field stands for its default. Fill it in, or let Load
// read it; Build makes a pawl.Agent of it. It may be used concurrently once it is set up.
type Agent struct {
	Name         string                      `yaml:"agent" doc:"Its name, for events and records. Letters, digits, _ and -." required:"true"`
	Model        Models                      `yaml:"model" doc:"The model, PROVIDER:NAME, such as openai:gpt-5-mini, anthropic:claude-sonnet-4-5 or ollama:qwen3:4b; script:FILE plays written turns. A list has those that answer where the one before cannot."`
	Instructions string                      `yaml:"instructions" doc:"Put in front of the conversation. Default: none."`
	Tools        []Tool                      `yaml:"tools" doc:"What the model may call: names of built-in sets, and definitions of command, http and openapi tools, and {mcp: NAME} for those of an MCP server. Default: none."`
	ToolFiles    []string                    `yaml:"tool_files" doc:"Files with more definitions, as docs/outside.md has them."`
	Terminal     []string                    `yaml:"terminal_tools" doc:"Tools whose good result ends the run: the call is carried out, then the run stops."`
	Driver       string                      `yaml:"driver" enum:"native,react,auto" doc:"How the model calls tools: native (its own function calling), react (decisions written as text, for models without it), or auto: by what the catalogue says of the model. Default: native."`
	React        *React                      `yaml:"react" doc:"The finer points of driver react."`
	Leaks        string                      `yaml:"leaked_calls" enum:"auto,on,off" doc:"Whether calls that a model with native calling wrote as text become calls. Default: auto, unless the model is openai:, anthropic: or gemini:."`
	Choice       Choice                      `yaml:"tool_choice" doc:"For the first request: auto, none, required, the name of a tool, or a list of names. Default: OPENAI_TOOL_CHOICE, then auto."`
	Limits       Limits                      `yaml:"limits" doc:"What bounds a run."`
	Approve      Approve                     `yaml:"approve" doc:"Which calls run, which wait for a person, and which never run. Each list has names of tools, patterns (file_*) and effects (effect:write); a denial wins, then a question."`
	Output       *Output                     `yaml:"output" doc:"A JSON Schema that the answer must fit, or the name of a file with one. Default: free text."`
	Settings     Settings                    `yaml:"settings" doc:"Sent with each request."`
	History      *History                    `yaml:"history" doc:"What is sent of a long conversation: all, current_trace, {turns: N}, {tokens: N} or {summary: N}. Default: all."`
	Root         string                      `yaml:"root" doc:"The directory that the file tools see, and that shell commands may write. Default: the current directory."`
	HTTPAllow    []string                    `yaml:"http_allow" doc:"What the http and search tools may reach beside public addresses: localhost:8080, *.example.com, 10.1.0.0/16."`
	Sandbox      string                      `yaml:"sandbox" enum:"strict,standard,none" doc:"How shell commands, programs in python and command tools are held; docs/security.md says what each level stops. Default: strict."`
	SandboxHosts []string                    `yaml:"sandbox_hosts" doc:"What shell commands, and command tools with network: true, may reach from the sandbox over HTTP and HTTPS, which takes strict: api.example.com:443, *.example.org. Default: nothing."`
	Code         string                      `yaml:"code" enum:"python,embedded" doc:"With the set code: what runs the programs, python3 in the sandbox or the embedded interpreter, which needs nothing; docs/code.md compares them. Default: python."`
	DataFlow     bool                        `yaml:"data_flow" doc:"With the set plan: steps can take values from steps before them; docs/plans.md says how. Default: false."`
	Store        Store                       `yaml:"store" doc:"Where what is kept between runs is, and whose it is."`
	Skills       []string                    `yaml:"skills" doc:"Folders of skills for the set skill, each skill in a folder of its own with a SKILL.md. Models read them and cannot change them."`
	Zone         string                      `yaml:"zone" doc:"The zone of schedules that name none, such as Europe/Oslo. Default: this machine's."`
	Embed        Embed                       `yaml:"embed" doc:"The model that makes vectors, to search by meaning too. Default: none, words only."`
	Catalog      string                      `yaml:"catalog" doc:"A file with a catalogue of models of your own, in the form of pawl models list --json. Default: the one inside."`
	Timeouts     map[string]outside.Duration `yaml:"timeouts" doc:"How long one attempt of a call may take, by tool, pattern or effect. Default: 60s, or what the tool says."`
	Rates        []Rate                      `yaml:"rates" doc:"How often calls may begin."`
	Breaker      *Breaker                    `yaml:"breaker" doc:"Stop calling a tool whose infrastructure is down. {} takes the defaults."`
	Cache        *Cache                      `yaml:"cache" doc:"Answer calls of pure tools with what an equal call gave. {} takes the defaults."`
	Servers      map[string]mcp.Server       `yaml:"mcp_servers" doc:"MCP servers by name; {mcp: NAME} among tools takes the tools of one. docs/mcp.md says what becomes of what they say."`
	Lock         string                      `yaml:"tools_lock" doc:"What was accepted of MCP servers (pawl mcp lock); a tool that differs is left out. Default: tools.lock, where there is one beside this file."`
	Search       string                      `yaml:"tool_search" enum:"auto,on,off" doc:"Whether the model finds the tools of MCP servers by tool_search instead of being told of all: on, off, or auto: from 20 on. Default: auto."`
	Team         *Team                       `yaml:"team" doc:"Whom it leads."`
	Schedules    []Schedule                  `yaml:"schedules" doc:"What is to be done at which times, by pawl schedules run FILE and pawl serve FILE, which keep it in the store as AGENT/NAME; what stands here no more is removed there."`

	file     string // where it was read; "": nowhere
	dir      string // what relative names are relative to; "": the current directory
	at       places // where each path was said
	warnings Findings
	secrets  []secret // values of variables that no output may show
	linked   bool     // the agents of its team are known already
}

// Models are models, the first of which is asked; the others answer where those before cannot.
type Models []Model

// Model names a model.
type Model struct {
	Name    string `yaml:"name" doc:"PROVIDER:NAME." required:"true"`
	BaseURL string `yaml:"base_url" doc:"Where the provider's API is. Default: the provider's variable (OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GEMINI_BASE_URL), then its own address."`
	KeyEnv  string `yaml:"key_env" doc:"The environment variable that holds the API key; the key itself has no place in a file. Default: the provider's own variable."`

	made pawl.Model // what a planner is that asks no provider; nil: Name is opened
}

// Tool is an entry of a list of tools: one of its fields is set.
type Tool struct {
	Set     string           `yaml:"-"`
	Command *outside.Command `yaml:"command" doc:"A program: arguments as JSON on standard input, the result on standard output."`
	HTTP    *outside.HTTP    `yaml:"http" doc:"A request template."`
	OpenAPI *outside.OpenAPI `yaml:"openapi" doc:"The operations of an OpenAPI document."`
	MCP     string           `yaml:"mcp" doc:"The tools of the server of this name in mcp_servers."`
}

// React tunes driver react.
type React struct {
	Format   string `yaml:"format" enum:"json,text,xml,plain" doc:"How decisions are written. Default: json."`
	Parallel bool   `yaml:"parallel" doc:"One decision may have several calls."`
	Lenient  bool   `yaml:"lenient" doc:"Unknown tools and wrong arguments are calls with an error for a result; without it they are asked for again."`
	Retries  *int   `yaml:"retries" min:"0" doc:"How often the model is asked again after a bad decision. Default: 2."`
}

// Choice is a tool choice as it is written: a word, or the names of tools.
type Choice []string

// Limits bound a run.
type Limits struct {
	Rounds       *int              `yaml:"rounds" min:"0" doc:"Rounds of calls at most; 0 runs no call and hands them back. Default: 20."`
	Calls        *int              `yaml:"calls" min:"1" doc:"Calls that are carried out at most; what comes after them is refused, and the model asked for an answer."`
	CallsPerStep *int              `yaml:"calls_per_step" min:"1" doc:"Calls of one reply that are carried out; the model is told of the rest."`
	Parallel     *int              `yaml:"parallel" min:"1" doc:"Calls that run at once. Default: 10."`
	Tokens       *int              `yaml:"tokens" min:"1" doc:"Tokens that all requests and replies may take together, about."`
	Cost         *float64          `yaml:"cost" above:"0" doc:"US dollars that the run may cost, about. For models whose price the catalogue has."`
	Time         *outside.Duration `yaml:"time" above:"0" doc:"How long the run may take, such as 90s or 10m."`
	Corrections  *int              `yaml:"corrections" min:"0" doc:"Answers that do not fit the output and are sent back. Default: 2."`
	Repeats      *int              `yaml:"repeats" min:"1" max:"50" doc:"How often the model may turn in a circle before it is told so. Default: 3."`
	AtLimit      string            `yaml:"at_limit" enum:"answer,return" doc:"What the last request is: answer (asked for an answer) or return (its calls are handed back). Default: answer."`
}

// Approve says which calls may run.
type Approve struct {
	Deny   []string          `yaml:"deny" doc:"These never run; the model is told."`
	Ask    []string          `yaml:"ask" doc:"These wait for a decision."`
	Allow  []string          `yaml:"allow" doc:"These run."`
	Else   string            `yaml:"else" enum:"allow,ask,deny" doc:"What no list is about. Default: calls that may change the world wait, others run."`
	Within *outside.Duration `yaml:"within" doc:"How long a yes is good for; 0s: for ever. Default: 30m."`
}

// Output is what an answer must fit.
type Output struct {
	File   string
	Schema json.RawMessage
}

// Settings tune a request.
type Settings struct {
	MaxTokens   *int                    `yaml:"max_tokens" min:"1" doc:"Bound on a reply. Default: the provider's."`
	Temperature *float64                `yaml:"temperature" min:"0" doc:"Default: the provider's."`
	TopP        *float64                `yaml:"top_p" min:"0" max:"1" doc:"Default: the provider's."`
	Stop        []string                `yaml:"stop" doc:"Sequences that end a reply."`
	Effort      string                  `yaml:"effort" doc:"Reasoning effort, in the provider's words. Default: the provider's."`
	Parallel    *bool                   `yaml:"parallel_calls" doc:"Whether one reply may have several calls. Default: the provider's."`
	Options     map[string]outside.JSON `yaml:"options" doc:"By provider (openai, openai-chat, anthropic, gemini, or a server's name): an object that is merged into the body of each request."`
}

// History chooses what is sent of a conversation; one of its fields is set.
type History struct {
	Word    string `yaml:"-"`
	Turns   *int   `yaml:"turns" min:"1" doc:"The last turns."`
	Tokens  *int   `yaml:"tokens" min:"1" doc:"The last turns that fit so many tokens, as estimated."`
	Summary *int   `yaml:"summary" min:"1" doc:"As tokens, and in place of the rest a summary that the model writes."`
}

// Store says where what is kept between runs is, and whose it is.
type Store struct {
	DB     string `yaml:"db" doc:"The database: a file, or postgres://USER@HOST/DATABASE, whose password belongs in PGPASSWORD. Default: pawl/pawl.db where the user's data is (XDG_DATA_HOME, else ~/.local/share)."`
	Tenant string `yaml:"tenant" doc:"Whose it is: the tenant. Default: none."`
	User   string `yaml:"user" doc:"Whose it is: the user. Default: none."`
	Shared bool   `yaml:"shared" doc:"Search the documents that the tenant shares, too."`
}

// Embed names an embedding model.
type Embed struct {
	Model string `yaml:"model" doc:"PROVIDER:MODEL, such as openai:text-embedding-3-small or ollama:nomic-embed-text. The same for adding and searching."`
	URL   string `yaml:"base_url" doc:"Where its API is. Default: its provider's own."`
}

// Rate bounds how often calls begin.
type Rate struct {
	Tools []string         `yaml:"tools" doc:"Names of tools, patterns and effects. Default: every tool."`
	Every outside.Duration `yaml:"every" above:"0" required:"true" doc:"One call each, such as 1s."`
	Burst *int             `yaml:"burst" min:"1" doc:"Calls that may begin at once. Default: 1."`
	Wait  outside.Duration `yaml:"wait" doc:"The longest wait for a turn; what would wait longer is blocked. Default: none."`
}

// Breaker stops calling a tool that fails.
type Breaker struct {
	Tools    []string         `yaml:"tools" doc:"Default: every tool, each by itself."`
	Failures *int             `yaml:"failures" min:"1" doc:"Failures in a row. Default: 5."`
	Pause    outside.Duration `yaml:"pause" doc:"How long it is left alone. Default: 30s."`
}

// Cache keeps results of pure tools.
type Cache struct {
	Tools []string         `yaml:"tools" doc:"Default: every pure tool."`
	Bytes *int             `yaml:"bytes" min:"1" doc:"How much is kept. Default: 64 MiB."`
	Age   outside.Duration `yaml:"age" doc:"How long a result is good for. Default: as long as it is kept."`
}

// place is where something was said.
type place struct{ line, column int }

// Override says that what stands at path, and below it, comes from elsewhere now: a flag. A finding about it then has no place in the file.
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

// Warnings returns what reading a found worth saying: what is written and has no effect, or another than it says.
func (a *Agent) Warnings() Findings { return slices.Clone(a.warnings) }

// found gives f its place: that of its path, or of the nearest path above it that was written.
func (a *Agent) found(f *Finding) *Finding {
	if a.file == "" || f.Line > 0 {
		return f
	}
	f.File = a.file
	if p, ok := a.said(f.Path); ok {
		if f.Line, f.Column = p.line, p.column; p.line == 0 {
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
