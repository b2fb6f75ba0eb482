package assemble

import (
	"github.com/pawl-go/pawl/config"
)

// OutsideFlags name files that define tools: programs, requests, OpenAPI documents.
type OutsideFlags struct {
	ToolFile      []string `group:"tools" name:"tool-file" sep:"none" placeholder:"FILE" help:"@outside_toolfile"`
	AllowCommands bool     `group:"tools" name:"allow-commands" help:"@outside_allowcommands"`
}

// Over writes the flags over the agent.
func (f *OutsideFlags) Over(a *config.Agent) {
	if f.ToolFile != nil {
		a.ToolFiles = f.ToolFile
		a.Override("tool_files")
	}
}
