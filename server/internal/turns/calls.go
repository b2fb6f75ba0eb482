package turns

// calls.go: calls for the client to execute.

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
)

// ClientCall is a call for the client to execute.
type ClientCall struct {
	llm.ToolCall
	Namespace string // of the tool; "" means none
	Freeform  bool   // the input is text
}

// ToClient returns a call in the terms of the client.
func ToClient(x *runs.Extras, call llm.ToolCall) ClientCall {
	out := ClientCall{ToolCall: call}
	t := x.Tool(call.Name)
	if t == nil {
		return out
	}
	out.Freeform = t.Freeform
	if t.Namespace != "" {
		out.Namespace = t.Namespace
		out.Name = t.Known
	}
	return out
}

// Input returns the arguments of a call as the client gets them: JSON, or the text of a custom
// tool.
func (c *ClientCall) Input() string {
	var args struct {
		Input *string `json:"input"`
	}
	if c.Freeform && json.Unmarshal(c.Args, &args) == nil && args.Input != nil {
		return *args.Input
	}
	return string(c.Args)
}
