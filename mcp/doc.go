// Package mcp joins pawl and the Model Context Protocol: servers are toolsets, and toolsets are a server.
//
//	files, err := mcp.New(mcp.Server{Name: "files", Command: "mcp-server-filesystem", Args: []string{"."}}, nil)
//	defer files.Close()
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files}}
//
// A server is somebody else's program, and what it says is not believed:
//
//	tools/list ──▶ read one by one ──▶ inspected ──▶ compared with tools.lock ──▶ pawl.Tool
//	               (a bad one is       (hidden text,   (a drift is refused until
//	               quarantined alone)  instructions)   somebody accepts it)
//
// Its annotations count where the server is trusted, else every tool may write. Its questions go to a person under its name (Options.Ask), its
// requests for the model are off (Options.Sample), and what it writes on standard error is kept for errors and shown to nobody else. A server that
// dies is started again at the next call; a call that was at work is not repeated unless its effect allows that, and its result says that it may
// have happened. docs/mcp.md has the verdicts, a row for each attack.
//
// The other way round, a Service offers toolsets and agents to any MCP client, over standard input and output or HTTP. A call that needs a person's yes asks
// for it through the client, and is refused where the client cannot ask.
//
// The newest protocol of the official SDK (2026-07-28) is spoken where the other side speaks it, older ones back to 2024-11-05 elsewhere.
package mcp
