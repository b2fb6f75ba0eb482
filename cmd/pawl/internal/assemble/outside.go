package assemble

import (
	"github.com/pawl-go/pawl/config"
)

// OutsideFlags name files that define tools: programs, requests, OpenAPI documents.
type OutsideFlags struct {
	ToolFile      []string `group:"tools" name:"tool-file" sep:"none" placeholder:"FILE" help:"Tools that are defined in YAML or JSON, see docs/outside.md: programs (command), requests (http), the operations of an API (openapi). May be given again."`
	AllowCommands bool     `group:"tools" name:"allow-commands" help:"Run the programs of command tools with your rights. Default: in the sandbox, as --sandbox and --sandbox-host say."`
}

// Over writes what the flags say over the agent.
func (f *OutsideFlags) Over(a *config.Agent) {
	if f.ToolFile != nil {
		a.ToolFiles = f.ToolFile
		a.Override("tool_files")
	}
}
