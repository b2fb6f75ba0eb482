package main

import "github.com/pawl-go/pawl/config"

// outsideFlags name files that define tools: programs, requests, OpenAPI documents.
type outsideFlags struct {
	ToolFile      []string `name:"tool-file" sep:"none" placeholder:"FILE" help:"Tools that are defined in YAML or JSON, see docs/outside.md: programs (command), requests (http), the operations of an API (openapi). May be given again."`
	AllowCommands bool     `name:"allow-commands" help:"Let the command tools of --tool-file run their programs, with your rights; those of an agent's file, which run in the sandbox without it, too."`
}

// over writes what the flags say over the agent.
func (f *outsideFlags) over(a *config.Agent) {
	if f.ToolFile != nil {
		a.ToolFiles = f.ToolFile
		a.Override("tool_files")
	}
}
