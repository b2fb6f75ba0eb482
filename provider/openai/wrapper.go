package openai

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// wrapped reports whether a call is the pseudo tool with which some models wrap several calls. An
// offered tool of that name is a normal tool.
func wrapped(tools *wire.Toolset, name string) bool {
	return (name == "parallel" || name == "multi_tool_use.parallel") && (!tools.Known() || !tools.Offered(tools.ToWire(name)))
}

// unwrap emits the calls in a wrapped call, each with an id of its own. It emits the call itself
// if it has another form.
func unwrap(out *wire.Emitter, call llm.ToolCall) error {
	calls := unwrapped(out.Tools, call)
	if len(calls) == 0 {
		return out.Part(call)
	}
	for _, inner := range calls {
		if err := out.Part(inner); err != nil {
			return err
		}
	}
	return nil
}

func unwrapped(tools *wire.Toolset, call llm.ToolCall) (calls []llm.ToolCall) {
	if !jsonscan.IsObject(call.Args) {
		return nil
	}
	c := jsonscan.New(wire.Member(call.Args, "tool_uses"))
	for c.Array(); c.More(); {
		var inner llm.ToolCall
		// Each inner call gets a result of its own, for which it needs an id of its own.
		if call.ID != "" {
			inner.ID = call.ID + "_" + strconv.Itoa(len(calls))
		}
		var name string
		var args []byte
		c.Fields("recipient_name", &name, "parameters", &args)
		inner.Name, inner.Args = tools.FromWire(strings.TrimPrefix(name, "functions.")), bytes.Clone(args)
		if inner.Name != "" {
			calls = append(calls, inner)
		}
	}
	return calls
}
