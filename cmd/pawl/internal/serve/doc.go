// Package serve holds the commands that wait for others: serve (agents over HTTP), worker (runs of
// a Temporal cluster), mcp serve (tools over MCP) and hostile (models that behave badly).
package serve
