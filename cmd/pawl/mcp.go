package main

import (
	"github.com/pawl-go/pawl/cmd/pawl/internal/serve"
)

// mcpCmd serves tools over MCP, and inspects MCP servers.
type mcpCmd struct {
	Serve  serve.MCPCmd `cmd:"" help:"Offer tools and agents to MCP clients."`
	List   mcpListCmd   `cmd:"" help:"List the tools of servers with a verdict on each."`
	Lock   mcpLockCmd   `cmd:"" help:"Store the tools of servers in the lock."`
	Diff   mcpDiffCmd   `cmd:"" help:"@mcp_diff"`
	Accept mcpAcceptCmd `cmd:"" help:"Update the lock with the present tools."`
}
