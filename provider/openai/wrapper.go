package openai

import (
	"encoding/json"
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
	c := jsonscan.New(call.Args)
	if !jsonscan.IsObject(call.Args) || !c.Object() {
		return nil
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		if string(k) != "tool_uses" {
			continue
		}
		for c.Array(); c.More(); {
			var inner llm.ToolCall
			if call.ID != "" {
				inner.ID = call.ID + "_" + strconv.Itoa(len(calls))
			}
			for k := range c.Members() {
				switch string(k) {
				case "recipient_name":
					inner.Name = tools.FromWire(strings.TrimPrefix(c.String(), "functions."))
				case "parameters":
					inner.Args = append(json.RawMessage(nil), c.Raw()...)
				}
			}
			if inner.Name != "" {
				calls = append(calls, inner)
			}
		}
	}
	return calls
}
