package check

import (
	"fmt"
	"strings"
)

// responses checks the body of a Responses request.
func (c *checker) responses(root map[string]any) {
	c.before = root["previous_response_id"] != nil || root["conversation"] != nil
	if _, ok := root["messages"]; ok {
		c.add("/messages", "this API takes input, not messages")
	}
	switch input := root["input"].(type) {
	case string:
	case []any:
		c.items(input)
	case nil:
		if root["prompt"] == nil && !c.before {
			c.add("/input", "want a string or a list of items")
		}
	default:
		c.add("/input", "want a string or a list of items, got %s", kindOf(input))
	}
	c.choice(root, c.tools(root, false), false)
}

// items follows the input. A reply is a sequence of items from a model: reasoning, text, calls.
func (c *checker) items(input []any) {
	reasoning := "" // place of a reasoning item whose item has not followed yet
	for i, v := range input {
		place := fmt.Sprintf("/input/%d", i)
		item, ok := v.(map[string]any)
		if !ok {
			c.add(place, "want an object, got %s", kindOf(v))
			continue
		}

		kind := text(item["type"])
		role := text(item["role"])
		if kind == "" && role != "" {
			kind = "message"
		}
		by := writer(kind, role, text(item["execution"]))
		if reasoning != "" && by != "model" {
			c.add(reasoning, "reasoning was given without the item that must follow it")
		}
		reasoning = ""

		switch {
		case kind == "message":
			c.item(item, role, place)
		case kind == "":
			c.add(place, "an item needs a type or a role")
		case strings.HasSuffix(kind, "_output") && by == "caller":
			c.itemResult(item, kind, place)
			continue
		}

		if by == "model" && c.answered {
			c.settle("the next reply")
		}
		if kind == "reasoning" {
			reasoning = place
		}
		c.itemOfModel(item, kind, place)
	}
	if reasoning != "" {
		c.add(reasoning, "reasoning was given without the item that must follow it")
	}
	c.settle("the end")
}

// itemResult checks the result of a call.
func (c *checker) itemResult(item map[string]any, kind, place string) {
	id := text(item["call_id"])
	if id == "" && kind == "local_shell_call_output" {
		id = text(item["id"])
	}
	if id == "" {
		c.add(place+"/call_id", "a result needs the call_id of its call")
		return
	}

	if kind == "function_call_output" {
		switch item["output"].(type) {
		case string, []any:
		default:
			c.add(place+"/output", "want a string or a list, got %s", kindOf(item["output"]))
		}
	}
	c.result(id, place)
}

// itemOfModel checks an item that a model writes: a call, or tools that it has found.
func (c *checker) itemOfModel(item map[string]any, kind, place string) {
	switch kind {
	case "function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call", "computer_call":
		c.itemCall(item, kind, place)
	case "tool_search_call":
		if text(item["execution"]) == "client" {
			c.itemCall(item, kind, place)
		}
	case "additional_tools":
		if list, ok := item["tools"].([]any); ok && len(list) > 0 {
			c.later = true
		}
	}
}

// writer returns the writer of an item: "model" or "caller". "" means that it does not matter.
func writer(kind, role, execution string) string {
	switch kind {
	case "tool_search_output":
		if execution != "client" {
			return "model"
		}
		return "caller"
	case "message":
		if role == "assistant" {
			return "model"
		}
		return "caller"
	case "function_call_output", "custom_tool_call_output", "shell_call_output", "local_shell_call_output",
		"apply_patch_call_output", "computer_call_output", "mcp_approval_response":
		return "caller"
	case "item_reference":
		return "model"
	case "compaction", "additional_tools":
		return ""
	}
	return "model"
}

// item checks a message.
func (c *checker) item(item map[string]any, role, place string) {
	switch role {
	case "user", "system", "developer":
		c.settle("the next " + role + " message")
	case "assistant":
	case "tool":
		c.add(place+"/role", "this API takes results as function_call_output items")
	default:
		c.add(place+"/role", "unknown role %q", role)
	}
	if item["tool_calls"] != nil {
		c.add(place+"/tool_calls", "this API takes calls as function_call items")
	}
	switch item["content"].(type) {
	case string, []any:
	default:
		c.add(place+"/content", "want a string or a list, got %s", kindOf(item["content"]))
	}
}

// itemCall checks a call that the caller must answer.
func (c *checker) itemCall(item map[string]any, kind, place string) {
	if kind == "function_call" {
		switch {
		case item["function"] != nil:
			c.add(place+"/function", `this API wants the call flat, not under "function"`)
		case text(item["name"]) == "":
			c.add(place+"/name", "a call needs a name")
		}
		if _, ok := item["arguments"].(string); !ok {
			c.add(place+"/arguments", "want a string, got %s", kindOf(item["arguments"]))
		}
	}
	id := text(item["call_id"])
	if kind == "custom_tool_call" && strings.HasPrefix(id, "xs_") {
		return // xAI's own searches are custom calls that are already executed
	}
	if id == "" {
		c.add(place+"/call_id", "a call needs a call_id")
		return
	}
	c.call(id, place)
}
