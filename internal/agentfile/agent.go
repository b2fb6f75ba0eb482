package agentfile

// agent.go: the keys of an agent's file, each as a field of a struct. A new key is a field here and
// a line in keys.txt; build.go and its neighbours use it.

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
	Name          string                      `yaml:"agent" required:"true"`
	Title         string                      `yaml:"title"`
	Description   string                      `yaml:"description"`
	Model         Models                      `yaml:"model"`
	Instructions  string                      `yaml:"instructions"`
	Tools         []Tool                      `yaml:"tools"`
	ToolFiles     []string                    `yaml:"tool_files"`
	Terminal      []string                    `yaml:"terminal_tools"`
	Driver        string                      `yaml:"driver" enum:"native,react,auto"`
	React         *React                      `yaml:"react"`
	Leaks         string                      `yaml:"leaked_calls" enum:"auto,on,off"`
	Choice        Choice                      `yaml:"tool_choice"`
	Limits        Limits                      `yaml:"limits"`
	Approve       Approve                     `yaml:"approve"`
	Flow          string                      `yaml:"flow" enum:"on,ask,log,off"`
	FlowLabels    map[string]string           `yaml:"flow_labels"`
	Output        *Output                     `yaml:"output"`
	Settings      Settings                    `yaml:"settings"`
	History       *History                    `yaml:"history"`
	Memory        *Memory                     `yaml:"memory"`
	Root          string                      `yaml:"root"`
	Protect       []string                    `yaml:"protect"`
	HTTPAllow     []string                    `yaml:"http_allow"`
	Sandbox       string                      `yaml:"sandbox" enum:"strict,standard,none"`
	SandboxHosts  []string                    `yaml:"sandbox_hosts"`
	SandboxPath   []string                    `yaml:"sandbox_path"`
	SandboxRead   []string                    `yaml:"sandbox_read"`
	SandboxEnv    []string                    `yaml:"sandbox_env"`
	SandboxLimits SandboxLimits               `yaml:"sandbox_limits"`
	Toolchains    []string                    `yaml:"toolchains" enum:"go,node,python"`
	Checkpoints   bool                        `yaml:"checkpoints"`
	AgentsMD      bool                        `yaml:"agents_md"`
	Code          string                      `yaml:"code" enum:"python,embedded"`
	DataFlow      bool                        `yaml:"data_flow"`
	Store         Store                       `yaml:"store"`
	Skills        []string                    `yaml:"skills"`
	Zone          string                      `yaml:"zone"`
	Embed         Embed                       `yaml:"embed"`
	Catalog       string                      `yaml:"catalog"`
	Timeouts      map[string]outside.Duration `yaml:"timeouts"`
	Rates         []Rate                      `yaml:"rates"`
	Breaker       *Breaker                    `yaml:"breaker"`
	Cache         *Cache                      `yaml:"cache"`
	Guards        []Guard                     `yaml:"guards"`
	Servers       map[string]mcp.Server       `yaml:"mcp_servers"`
	Lock          string                      `yaml:"tools_lock"`
	Search        string                      `yaml:"tool_search" enum:"auto,on,off"`
	Team          *Team                       `yaml:"team"`
	Handoffs      []Worker                    `yaml:"handoffs"`
	HandoffPass   string                      `yaml:"handoff_pass" enum:"all,texts"`
	Schedules     []Schedule                  `yaml:"schedules"`
	Disconnect    string                      `yaml:"on_disconnect" enum:"continue,cancel"`
	Side          *Model                      `yaml:"side_model"`
	Resources     []string                    `yaml:"resources"`
	Prompts       []mcp.Prompt                `yaml:"prompts"`

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
	Name    string `yaml:"name" required:"true"`
	BaseURL string `yaml:"base_url" form:"address"`
	KeyEnv  string `yaml:"key_env"`

	Background bool `yaml:"background"`

	made llm.Model // the model of a planner without a provider; nil means that Name is opened
}

// Tool is an entry of a list of tools: one of its fields is set.
type Tool struct {
	Set     string           `yaml:"-"`
	Command *outside.Command `yaml:"command"`
	HTTP    *outside.HTTP    `yaml:"http"`
	OpenAPI *outside.OpenAPI `yaml:"openapi"`
	A2A     *outside.A2A     `yaml:"a2a"`
	MCP     string           `yaml:"mcp"`
}

// React tunes driver react.
type React struct {
	Format   string `yaml:"format" enum:"json,text,xml,plain"`
	Parallel bool   `yaml:"parallel"`
	Lenient  bool   `yaml:"lenient"`
	Retries  *int   `yaml:"retries" min:"0"`
}

// Choice is a tool choice as written: a word, or the names of tools.
type Choice []string

// Limits bound a run.
type Limits struct {
	Rounds       *int              `yaml:"rounds" min:"0"`
	Calls        *int              `yaml:"calls" min:"1"`
	CallsPerStep *int              `yaml:"calls_per_step" min:"1"`
	Parallel     *int              `yaml:"parallel" min:"1"`
	Tokens       *int              `yaml:"tokens" min:"1"`
	Cost         *float64          `yaml:"cost" above:"0"`
	Time         *outside.Duration `yaml:"time" above:"0"`
	Corrections  *int              `yaml:"corrections" min:"0"`
	Repeats      *int              `yaml:"repeats" min:"1" max:"50"`
	AtLimit      string            `yaml:"at_limit" enum:"answer,return"`
}

// SandboxLimits bound each shell command. Sizes are in MiB.
type SandboxLimits struct {
	Time      *outside.Duration `yaml:"time" above:"0"`
	Memory    *int              `yaml:"memory" min:"1"`
	Processes *int              `yaml:"processes" min:"1"`
}

// Approve says which calls may run.
type Approve struct {
	Deny   []string          `yaml:"deny"`
	Ask    []string          `yaml:"ask"`
	Allow  []string          `yaml:"allow"`
	Else   string            `yaml:"else" enum:"allow,ask,deny"`
	Within *outside.Duration `yaml:"within"`
}

// Output is what an answer must fit.
type Output struct {
	File   string
	Schema json.RawMessage
}

// Settings tune a request.
type Settings struct {
	MaxTokens   *int                    `yaml:"max_tokens" min:"1"`
	Temperature *float64                `yaml:"temperature" min:"0"`
	TopP        *float64                `yaml:"top_p" min:"0" max:"1"`
	Stop        []string                `yaml:"stop"`
	Effort      string                  `yaml:"effort"`
	Parallel    *bool                   `yaml:"parallel_calls"`
	Options     map[string]outside.JSON `yaml:"options"`
}

// History chooses the part of a conversation that is sent. One of its fields is set.
type History struct {
	Word    string  `yaml:"-"`
	Turns   *int    `yaml:"turns" min:"1"`
	Tokens  *int    `yaml:"tokens" min:"1"`
	Summary *int    `yaml:"summary" min:"1"`
	Window  *Window `yaml:"window"`
}

// Window keeps requests within the context window.
type Window struct {
	Tokens int     `yaml:"tokens" min:"1000"`
	High   float64 `yaml:"high" above:"0" max:"1"`
	Low    float64 `yaml:"low" above:"0" max:"1"`
	Keep   int     `yaml:"keep" min:"1"`
	Notes  bool    `yaml:"notes"`
	Native bool    `yaml:"native"`
}

// Memory sets how memories of the user are recalled and written.
type Memory struct {
	Recall string `yaml:"recall" enum:"auto,off"`
	Write  string `yaml:"write" enum:"tool,end,ask"`
	Scope  string `yaml:"scope" enum:"user,agent"`
}

// Store names the database with the data between runs, and the owner of the data.
type Store struct {
	DB     string `yaml:"db"`
	Tenant string `yaml:"tenant"`
	User   string `yaml:"user"`
	Shared bool   `yaml:"shared"`
}

// Embed names an embedding model.
type Embed struct {
	Model string `yaml:"model"`
	URL   string `yaml:"base_url" form:"address"`
}

// Rate bounds how often calls begin.
type Rate struct {
	Tools []string         `yaml:"tools"`
	Every outside.Duration `yaml:"every" above:"0" required:"true"`
	Burst *int             `yaml:"burst" min:"1"`
	Wait  outside.Duration `yaml:"wait"`
}

// Breaker stops calling a tool that fails.
type Breaker struct {
	Tools    []string         `yaml:"tools"`
	Failures *int             `yaml:"failures" min:"1"`
	Pause    outside.Duration `yaml:"pause"`
}

// Cache stores results of pure tools.
type Cache struct {
	Tools []string         `yaml:"tools"`
	Bytes *int             `yaml:"bytes" min:"1"`
	Age   outside.Duration `yaml:"age"`
}

// Guard checks texts, by a model or by a moderation endpoint.
type Guard struct {
	Name       string   `yaml:"name"`
	Check      []string `yaml:"check" enum:"input,output,result"`
	Model      *Model   `yaml:"model"`
	Rules      string   `yaml:"rules"`
	Moderation *Model   `yaml:"moderation"`
	OnError    string   `yaml:"on_error" enum:"stop,allow"`
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
