package check

import (
	"fmt"
)

// chat checks the body of a Chat Completions request.
func (c *checker) chat(root map[string]any) {
	c.choice(root, c.tools(root, true), true)
	if _, ok := root["input"]; ok {
		c.add("/input", "this API takes messages, not input")
	}
	messages, ok := root["messages"].([]any)
	if !ok || len(messages) == 0 {
		c.add("/messages", "want a list of at least one message")
		return
	}
	for i, v := range messages {
		place := fmt.Sprintf("/messages/%d", i)
		m, ok := v.(map[string]any)
		if !ok {
			c.add(place, "want an object, got %s", kindOf(v))
			continue
		}
		role, _ := m["role"].(string)
		switch role {
		case "tool":
			c.chatResult(m, place)
		case "function": // of the API's first form, where calls have no id
			c.result("function "+text(m["name"]), place)
		case "assistant":
			c.settle("the next reply")
			c.chatCalls(m, place)
		case "system", "developer", "user":
			c.settle("the next " + role + " message")
		default:
			c.add(place+"/role", "unknown role %q", role)
		}
	}
	c.settle("the end")
}

// chatResult checks a message of role tool.
func (c *checker) chatResult(m map[string]any, place string) {
	if len(c.open) == 0 {
		c.add(place, "a result that follows no reply with calls")
		return
	}
	switch m["content"].(type) {
	case string, []any:
	default:
		c.add(place+"/content", "want a string or a list, got %s", kindOf(m["content"]))
	}
	id := text(m["tool_call_id"])
	if id == "" {
		c.add(place+"/tool_call_id", "a result needs the id of its call")
		return
	}
	c.result(id, place)
}

// chatCalls checks the calls of a reply.
func (c *checker) chatCalls(m map[string]any, place string) {
	if f, ok := m["function_call"].(map[string]any); ok {
		c.call("function "+text(f["name"]), place+"/function_call")
	}
	v, ok := m["tool_calls"]
	if !ok || v == nil {
		return
	}
	calls, ok := v.([]any)
	if !ok || len(calls) == 0 {
		c.add(place+"/tool_calls", "want a list of at least one call; leave it out when there is none")
		return
	}
	for j, v := range calls {
		place := fmt.Sprintf("%s/tool_calls/%d", place, j)
		call, ok := v.(map[string]any)
		if !ok {
			c.add(place, "want an object, got %s", kindOf(v))
			continue
		}
		kind, _ := call["type"].(string)
		if kind != "function" && kind != "custom" {
			c.add(place+"/type", "want function, got %q", kind)
		} else if def := c.nesting(call, kind, place, true); def != nil {
			if text(def["name"]) == "" {
				c.add(place+"/"+kind+"/name", "a call needs a name")
			}
			field := map[string]string{"function": "arguments", "custom": "input"}[kind]
			if _, ok := def[field].(string); !ok {
				c.add(place+"/"+kind+"/"+field, "want a string, got %s", kindOf(def[field]))
			}
		}
		id := text(call["id"])
		if id == "" {
			c.add(place+"/id", "a call needs an id")
			continue
		}
		c.call(id, place)
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
