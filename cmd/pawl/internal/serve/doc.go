// Package serve holds the commands that wait for others: serve (agents over HTTP), worker (runs of
// a Temporal cluster) and mcp serve (tools over MCP).
package serve
