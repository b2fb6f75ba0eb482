package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

var (
	anthropicID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anthropicName = wire.NameForm{Pattern: anthropicID, Longest: 128}
)

// messagesChecker follows the messages of an Anthropic request.
type messagesChecker struct {
	*checker
	tools       []string
	ids         map[string]string // tool_use id to its place, over the whole history
	calls       []openCall        // of the previous reply
	code        map[string]bool   // ids of the calls of the provider's own tools
	breakpoints int               // blocks with cache_control
}

// anthropic checks the body of a Messages request.
func (c *checker) anthropic(root map[string]any) {
	m := &messagesChecker{checker: c, ids: map[string]string{}, code: map[string]bool{}}
	for _, other := range []string{"input", "contents"} {
		if _, ok := root[other]; ok {
			c.add("/"+other, "this API takes messages, not %s", other)
		}
	}
	if n, ok := root["max_tokens"].(float64); !ok || n < 1 {
		c.add("/max_tokens", "want a number of at least 1: this API has no default")
	}
	m.checkTools(root)
	m.checkSystem(root["system"])
	m.checkThinking(root)
	m.checkMessages(root)
	if m.breakpoints > 4 {
		c.add("", "%d blocks have cache_control; at most 4 may", m.breakpoints)
	}
}

// cached counts the breakpoints.
func (m *messagesChecker) cached(block map[string]any) {
	if block["cache_control"] != nil {
		m.breakpoints++
	}
}

func (m *messagesChecker) checkTools(root map[string]any) {
	list, ok := root["tools"].([]any)
	if root["tools"] != nil && !ok {
		m.add("/tools", "want a list, got %s", kindOf(root["tools"]))
	}
	for i, v := range list {
		place := fmt.Sprintf("/tools/%d", i)
		tool, ok := v.(map[string]any)
		if !ok {
			m.add(place, "want an object, got %s", kindOf(v))
			continue
		}
		m.cached(tool)
		name := text(tool["name"])
		if kind := text(tool["type"]); kind != "" && kind != "custom" {
			if kind == "function" {
				m.add(place+"/type", "this API wants the definition flat, with input_schema and without a type")
			}
			m.tools = append(m.tools, name) // the provider's own: computer, web_search
			continue
		}
		switch {
		case !anthropicName.Fits(name):
			m.add(place+"/name", "want 1 to 128 of a-z, A-Z, 0-9, _ and -, got %q", name)
		case slices.Contains(m.tools, name):
			m.add(place, "another tool is named %q", name)
		}
		m.tools = append(m.tools, name)
		schema, ok := tool["input_schema"].(map[string]any)
		if !ok {
			m.add(place+"/input_schema", "want a JSON Schema object, got %s", kindOf(tool["input_schema"]))
		} else if schema["type"] != "object" {
			m.add(place+"/input_schema/type", "want object, got %v", schema["type"])
		}
	}
	v, ok := root["tool_choice"]
	if !ok {
		return
	}
	choice, ok := v.(map[string]any)
	if !ok {
		m.add("/tool_choice", "want an object, got %s", kindOf(v))
		return
	}
	if len(list) == 0 {
		m.add("/tool_choice", "a tool choice without tools")
		return
	}
	switch kind := text(choice["type"]); kind {
	case "auto", "any", "none":
	case "tool":
		if name := text(choice["name"]); !slices.Contains(m.tools, name) {
			m.add("/tool_choice", "the tool %q is not among the tools", name)
		}
	default:
		m.add("/tool_choice/type", "unknown choice %q", kind)
	}
}

func (m *messagesChecker) checkSystem(v any) {
	switch v := v.(type) {
	case nil, string:
	case []any:
		for i, b := range v {
			block, _ := b.(map[string]any)
			m.cached(block)
			if block["type"] != "text" || text(block["text"]) == "" {
				m.add(fmt.Sprintf("/system/%d", i), "want a text block that is not empty")
			}
		}
	default:
		m.add("/system", "want a string or a list of text blocks, got %s", kindOf(v))
	}
}

// checkThinking checks the settings that thinking excludes.
func (m *messagesChecker) checkThinking(root map[string]any) {
	thinking, _ := root["thinking"].(map[string]any)
	if kind := text(thinking["type"]); kind != "enabled" {
		return
	}
	budget, ok := thinking["budget_tokens"].(float64)
	if !ok || budget < 1024 {
		m.add("/thinking/budget_tokens", "want a number of at least 1024")
	}
	if limit, ok := root["max_tokens"].(float64); ok && limit <= budget && root["tools"] == nil {
		m.add("/max_tokens", "must be greater than thinking.budget_tokens")
	}
	choice, _ := root["tool_choice"].(map[string]any)
	if kind := text(choice["type"]); kind == "any" || kind == "tool" {
		m.add("/tool_choice", "thinking may not be enabled when the tool choice forces a call")
	}
	if t, ok := root["temperature"].(float64); ok && t != 1 {
		m.add("/temperature", "may only be 1 when thinking is enabled")
	}
}

func (m *messagesChecker) checkMessages(root map[string]any) {
	messages, ok := root["messages"].([]any)
	if !ok || len(messages) == 0 {
		m.add("/messages", "want a list of at least one message")
		return
	}
	before := ""
	for i, v := range messages {
		place := fmt.Sprintf("/messages/%d", i)
		msg, ok := v.(map[string]any)
		if !ok {
			m.add(place, "want an object, got %s", kindOf(v))
			continue
		}
		role := text(msg["role"])
		blocks := m.blocks(msg["content"], place, role == "assistant" && i == len(messages)-1)
		switch role {
		case "user", "assistant":
			if role == before {
				m.add(place, "two %s messages in a row; put them together", role)
			}
			summary := len(blocks) > 0 && text(blocks[0]["type"]) == "compaction"
			if i == 0 && role == "assistant" && !summary {
				m.add(place, "the first message must be the user's")
			}
		case "system": // instructions within the conversation, on newer models
			if len(m.calls) > 0 {
				m.unanswered(nil, "a system message")
			}
			before = role
			continue
		default:
			m.add(place+"/role", "want user or assistant, got %q", role)
			continue
		}
		before = role
		if role == "user" {
			if i == len(messages)-1 {
				m.waitingCode(root, blocks, place)
			}
			m.user(blocks, place)
		} else {
			m.assistant(blocks, place, i == len(messages)-1)
		}
	}
	m.unanswered(nil, "the end")
	if thinking, _ := root["thinking"].(map[string]any); text(thinking["type"]) == "enabled" {
		m.thinkingKept(messages)
	}
}

// blocks returns the content as blocks. Only the last reply may be empty.
func (m *messagesChecker) blocks(content any, place string, last bool) []map[string]any {
	switch content := content.(type) {
	case string:
		if content == "" && !last {
			m.add(place+"/content", "the content is empty")
		}
		return []map[string]any{{"type": "text", "text": content}}
	case []any:
		if len(content) == 0 && !last {
			m.add(place+"/content", "the content is empty")
		}
		var blocks []map[string]any
		for i, v := range content {
			at := fmt.Sprintf("%s/content/%d", place, i)
			block, _ := v.(map[string]any)
			blocks = append(blocks, block)
			m.cached(block)
			switch text(block["type"]) {
			case "":
				m.add(at, "a block needs a type")
			case "text":
				if strings.TrimSpace(text(block["text"])) == "" {
					m.add(at+"/text", "a text block must not be empty")
				}
			case "image", "document":
				m.source(block, at)
			case "image_url", "input_text", "tool_call":
				m.add(at+"/type", "this API has no blocks of type %q", block["type"])
			}
		}
		return blocks
	default:
		m.add(place+"/content", "want a string or a list of blocks, got %s", kindOf(content))
	}
	return nil
}

// source checks the location of an image or a document.
func (m *messagesChecker) source(block map[string]any, place string) {
	source, _ := block["source"].(map[string]any)
	kind := text(source["type"])
	switch kind {
	case "base64":
		if text(source["media_type"]) == "" || text(source["data"]) == "" {
			m.add(place+"/source", "base64 wants media_type and data")
		} else if strings.HasPrefix(text(source["data"]), "data:") {
			m.add(place+"/source/data", "want base64, got a data URL")
		}
	case "url":
		if !strings.HasPrefix(text(source["url"]), "http") {
			m.add(place+"/source/url", "want the address of a web page, got %q", text(source["url"]))
		}
	case "file", "text", "content":
	default:
		m.add(place+"/source/type", "unknown source %q", kind)
	}
}

// waitingCode checks the results for code that waits for them in the server's container.
func (m *messagesChecker) waitingCode(root map[string]any, blocks []map[string]any, place string) {
	if !slices.ContainsFunc(m.calls, func(c openCall) bool { return c.code != "" }) {
		return
	}
	if container, _ := root["container"].(string); container == "" {
		m.add("/container", "code waits for results, so the request must name its container")
	}
	for i, block := range blocks {
		if kind := text(block["type"]); kind != "tool_result" {
			m.add(fmt.Sprintf("%s/content/%d", place, i), "code waits for results, so the message may hold nothing else, got %s", kind)
		}
	}
}

// user checks a user message: first the results, then the rest.
func (m *messagesChecker) user(blocks []map[string]any, place string) {
	other := false
	answered := map[string]bool{}
	for i, block := range blocks {
		at := fmt.Sprintf("%s/content/%d", place, i)
		switch kind := text(block["type"]); kind {
		case "tool_result":
			if other && len(m.calls) > 0 {
				m.add(at, "results must come first in the message, before anything else")
			}
			m.toolResult(block, at, answered)
		case "tool_use", "thinking", "redacted_thinking":
			m.add(at, "a user message cannot hold %s", kind)
		default:
			other = true
		}
	}
	m.unanswered(answered, "the end of the user message after it")
}

func (m *messagesChecker) toolResult(block map[string]any, at string, answered map[string]bool) {
	id := text(block["tool_use_id"])
	switch {
	case id == "":
		m.add(at+"/tool_use_id", "a result needs the id of its call")
	case answered[id]:
		m.add(at, "the call %q is answered a second time", id)
	case !slices.ContainsFunc(m.calls, func(c openCall) bool { return c.id == id }):
		m.add(at, "a result for %q, but the message before has no call with that id", id)
	}
	answered[id] = true
	failed, isBool := block["is_error"].(bool)
	if v := block["is_error"]; v != nil && !isBool {
		m.add(at+"/is_error", "want a boolean, got %s", kindOf(v))
	}
	switch content := block["content"].(type) {
	case nil, string:
	case []any:
		for i, v := range content {
			inner, _ := v.(map[string]any)
			m.cached(inner)
			p := fmt.Sprintf("%s/content/%d", at, i)
			switch kind := text(inner["type"]); kind {
			case "text":
				if text(inner["text"]) == "" {
					m.add(p+"/text", "a text block must not be empty")
				}
			case "image", "document":
				m.source(inner, p)
				if failed {
					m.add(p, "a result that is an error may hold text only")
				}
			case "search_result", "tool_reference":
			default:
				m.add(p+"/type", "a result cannot hold %q", kind)
			}
		}
	default:
		m.add(at+"/content", "want a string or a list of blocks, got %s", kindOf(content))
	}
}

// unanswered reports the calls of the previous reply without a result, and clears them.
func (m *messagesChecker) unanswered(answered map[string]bool, next string) {
	for _, call := range m.calls {
		if !answered[call.id] {
			m.add(call.place, "the call %q has no result before %s", call.id, next)
		}
	}
	m.calls = nil
}

// assistant checks a reply and records its calls.
func (m *messagesChecker) assistant(blocks []map[string]any, place string, last bool) {
	m.unanswered(nil, "the next reply")
	for i, block := range blocks {
		at := fmt.Sprintf("%s/content/%d", place, i)
		kind := text(block["type"])
		switch kind {
		case "tool_use":
			m.toolUse(block, at)
		case "server_tool_use":
			m.code[text(block["id"])] = true
		case "thinking":
			if _, ok := block["thinking"].(string); !ok {
				m.add(at+"/thinking", "want a string, got %s", kindOf(block["thinking"]))
			}
			if text(block["signature"]) == "" {
				m.add(at+"/signature", "a thinking block needs its signature")
			}
		case "redacted_thinking":
			if text(block["data"]) == "" {
				m.add(at+"/data", "a redacted block needs its data")
			}
		case "tool_result", "image", "document":
			m.add(at, "a reply cannot hold %s", kind)
		}
		thinks := kind == "thinking" || kind == "redacted_thinking"
		if thinks && block["cache_control"] != nil {
			m.add(at+"/cache_control", "a thinking block cannot be a cache breakpoint")
		}
		if thinks && i == len(blocks)-1 {
			m.add(at, "the final block of a reply cannot be %s", kind)
		}
	}
	if n := len(blocks); last && n > 0 && len(m.calls) == 0 {
		if s := text(blocks[n-1]["text"]); s != strings.TrimRight(s, " \n\t") {
			m.add(place, "a reply at the end must not end in white space")
		}
	}
}

func (m *messagesChecker) toolUse(block map[string]any, at string) {
	id := text(block["id"])
	if !anthropicID.MatchString(id) {
		m.add(at+"/id", "want an id of a-z, A-Z, 0-9, _ and -, got %q", id)
	} else if first, ok := m.ids[id]; ok {
		m.add(at, "the id %q is the id of %s, too", id, first)
	} else {
		m.ids[id] = at
	}
	if !anthropicName.Fits(text(block["name"])) {
		m.add(at+"/name", "want 1 to 128 of a-z, A-Z, 0-9, _ and -, got %q", text(block["name"]))
	}
	if _, ok := block["input"].(map[string]any); !ok {
		m.add(at+"/input", "want an object, got %s", kindOf(block["input"]))
	}
	call := openCall{id: id, place: at}
	caller, _ := block["caller"].(map[string]any)
	if kind := text(caller["type"]); kind != "" && kind != "direct" {
		call.code = text(caller["tool_id"])
		if !m.code[call.code] {
			m.add(at+"/caller/tool_id", "no code with the id %q is in the conversation", call.code)
		}
	}
	m.calls = append(m.calls, call)
}

// thinkingKept checks that the reply whose results end the request still begins with the thinking
// before its calls.
func (m *messagesChecker) thinkingKept(messages []any) {
	n := len(messages)
	if n < 2 {
		return
	}
	reply, _ := messages[n-2].(map[string]any)
	blocks, _ := reply["content"].([]any)
	if reply["role"] != "assistant" || len(blocks) == 0 || !m.holds(blocks, "tool_use") {
		return
	}
	first, _ := blocks[0].(map[string]any)
	if kind := text(first["type"]); kind != "thinking" && kind != "redacted_thinking" {
		// Within one turn only the first of several replies needs thinking.
		if n >= 4 {
			before, _ := messages[n-3].(map[string]any)
			content, _ := before["content"].([]any)
			if m.holds(content, "tool_result") {
				return
			}
		}
		m.add(fmt.Sprintf("/messages/%d/content/0", n-2),
			"thinking is enabled, so the last reply must begin with a thinking block, got %s", kind)
	}
}

func (m *messagesChecker) holds(blocks []any, kind string) bool {
	return slices.ContainsFunc(blocks, func(v any) bool {
		b, _ := v.(map[string]any)
		return text(b["type"]) == kind
	})
}
