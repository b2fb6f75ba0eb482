package api

// tools.go: the forms of agents, tools and calls.

import (
	"encoding/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Agents lists the served agents.
type Agents struct {
	// The agents, in the order of the server.
	Agents []AgentInfo `json:"agents"`
}

// AgentInfo describes a served agent.
type AgentInfo struct {
	// Name of the agent.
	Name string `json:"name"`
	// Names of its tools.
	Tools []string `json:"tools"`
}

// Tools lists the tools that agents may call.
type Tools struct {
	// The tools, by agent.
	Tools []ToolInfo `json:"tools"`
}

// ToolInfo describes a tool.
type ToolInfo struct {
	// Name of the agent that has the tool.
	Agent string `json:"agent"`
	// Name of the tool.
	Name string `json:"name"`
	// What the tool does, as a model reads it.
	Description string `json:"description"`
	// JSON Schema of its arguments.
	Input json.RawMessage `json:"input"`
	// JSON Schema of its result. Absent means text.
	Output json.RawMessage `json:"output,omitzero"`
	// What its calls change.
	Effect pawl.Effect `json:"effect"`
	// The client executes it, so that it cannot be called here.
	Passive bool `json:"passive,omitzero"`
}

// ToolStart is a client's request to call a tool.
type ToolStart struct {
	// ID of the call. A repeated request with the same ID is the same call. Default: a generated
	// ID.
	ID string `json:"id,omitzero"`
	// Agent that has the tool. Default: the only agent.
	Agent string `json:"agent,omitzero"`
	// Default: {}.
	Args json.RawMessage `json:"args,omitzero"`
}

// ToolCalled is the outcome of the call. The call is its own run, and durable like any other.
type ToolCalled struct {
	// The run of the call. If it is pending, decide there.
	Run string `json:"run"`
	// How the call ended, or that it is pending.
	Outcome pawl.Outcome `json:"outcome"`
	// The result, of a call that has ended.
	Result *llm.ToolResult `json:"result,omitzero"`
	// The call, if it waits for a decision.
	Pending []pawl.PendingCall `json:"pending,omitzero"`
}
