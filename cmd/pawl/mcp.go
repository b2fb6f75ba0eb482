package main

import (
	"github.com/pawl-go/pawl/cmd/pawl/internal/serve"
)

// mcpCmd is about MCP servers, and about being one.
type mcpCmd struct {
	Serve  serve.MCPCmd `cmd:"" help:"Offer tools and agents to MCP clients."`
	List   mcpListCmd   `cmd:"" help:"List a server's tools, with what became of each."`
	Lock   mcpLockCmd   `cmd:"" help:"Write down what servers say of their tools."`
	Diff   mcpDiffCmd   `cmd:"" help:"@mcp_diff"`
	Accept mcpAcceptCmd `cmd:"" help:"Take what a server says now into the lock."`
}
