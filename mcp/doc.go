// Package mcp connects pawl with the Model Context Protocol: a server is a toolset, and toolsets
// are offered as a server.
//
//	server := mcp.Server{Name: "files", Command: "mcp-server-filesystem", Args: []string{"."}}
//	files, err := mcp.New(server, nil)
//	defer files.Close()
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{files}}
//
// A server is a foreign program, and its output is not trusted:
//
//	tools/list ──▶ parsed one by one ──▶ inspected ──▶ compared with tools.lock ──▶ pawl.Tool
//	               (a malformed tool     (hidden text,  (a drifted tool is refused
//	               is quarantined)       instructions)  until it is accepted)
//
// Its annotations count only if the server is trusted; otherwise every tool has the effect
// EffectUnstated. Its questions are passed to a person under its name (Options.Ask). Its requests
// for the model are refused by default (Options.Sample). Its standard error is used for error texts
// only. A server that dies is restarted at the next call. An interrupted call is not repeated
// unless its effect permits that, and its result says that it may have had an effect. docs/mcp.md
// lists the verdicts, one row for each attack.
//
// In the other direction, a Service offers toolsets and agents to any MCP client, over standard
// input and output or HTTP. A call that needs approval requests it through the client, and is
// refused if the client cannot ask a person.
//
// The newest protocol of the official SDK (2026-07-28) is used if the other side supports it,
// otherwise an older one, back to 2024-11-05.
package mcp
