package openai_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
)

// Every recorded request keeps its meaning when it is read and encoded again.
func TestRecordedRequests(t *testing.T) {
	soak.Sequential(t)
	corpora.Path(t, "provider-traffic")
	t.Run(chatWire.API, func(t *testing.T) { wiretest.Requests(t, chatWire, &chatSpelling) })
	t.Run(responsesWire.API, func(t *testing.T) { wiretest.Requests(t, responsesWire, &responsesSpelling) })
}

// list returns v as a list of objects.
func list(v any) (all []map[string]any) {
	l, _ := v.([]any)
	for _, v := range l {
		if o, ok := v.(map[string]any); ok {
			all = append(all, o)
		}
	}
	return all
}

// parts converts content that is a string to a list of parts.
func parts(v any, kind string) any {
	if s, ok := v.(string); ok {
		if s == "" {
			return nil
		}
		return []any{map[string]any{"type": kind, "text": s}}
	}
	return v
}

// joined converts content that is text alone to one string.
func joined(v any) any {
	l, ok := v.([]any)
	if !ok {
		return v
	}
	s := ""
	for _, p := range list(l) {
		t, ok := p["text"].(string)
		for name, more := range p {
			if empty, isList := more.([]any); name != "text" && name != "type" && more != nil && !(isList && len(empty) == 0) {
				return v
			}
		}
		if !ok {
			return v
		}
		s += t
	}
	return s
}

func rename(o map[string]any, from, to string) {
	if v, ok := o[from]; ok && v != nil {
		delete(o, from)
		o[to] = v
	}
}

// plain removes members whose value is the same as their absence.
func plain(body map[string]any) {
	if body["stream"] == false {
		delete(body, "stream")
	}
	if body["tools"] == nil || len(list(body["tools"])) == 0 {
		delete(body, "tool_choice")
	} else if body["tool_choice"] == "auto" {
		delete(body, "tool_choice")
	}
}

var verbatim = []string{"parameters", "schema", "arguments"}

// hosted are the tools that are not functions. The options have them.
func hosted(body, options map[string]any) {
	var all []any
	for _, tool := range list(body["tools"]) {
		if kind, _ := tool["type"].(string); kind != "function" && tool["function"] == nil {
			all = append(all, tool)
		}
	}
	if all != nil {
		options["tools"] = all
	}
}

// wrappedArguments is why arguments change when they are sent back.
const wrappedArguments = "arguments that are no JSON object are wrapped in one"

var chatSpelling = wiretest.Spelling{
	Known: []string{"model", "messages", "tools", "functions", "tool_choice", "response_format", "stream", "max_tokens", "max_completion_tokens",
		"temperature", "top_p", "stop", "reasoning_effort", "parallel_tool_calls"},
	Verbatim: verbatim,
	Dropped: map[string]string{
		"response_format.json_schema.schema*":     "schemas go in the API's dialect; what it cannot say is reported, and held to here (internal/dialect)",
		"tools[].function.parameters*":            "the same",
		"messages[].content[].cache_control*":     "a breakpoint inside a message has no neutral form: caching here is the server's own, or asked for by an option",
		"messages[].content[].type":               "parts that one server alone knows (a video, a document by address) have no neutral form in this API",
		"messages[].content[].file.filename":      "Media have a type and no name; the name that is sent follows from the type",
		"messages[].name":                         "speakers of one role have no names in a transcript",
		"messages[].prefix":                       "Mistral's mark that a reply is to be gone on with; a transcript does not end in an unfinished reply",
		"messages[].tool_calls[].index":           "the place in the list, which says it already",
		"response_format.json_schema.name":        "it is always \"output\"",
		"response_format.json_schema.description": "the schema describes itself",
		"tools[].function.strict":                 "pawl checks the arguments itself, against the tool's own schema; strict is the dialect's matter",
	},
	Refused: map[string]string{
		"takes application/pdf by value only": "one server's own form of a document",
	},
	Otherwise: map[string]string{
		"invalid_arguments": wrappedArguments,
		"media image/png":   "a picture in a result follows the results in a message of the user's: the API takes text there",
	},
	Options: func(body, options map[string]any) {
		hosted(body, options)
		if f, ok := body["response_format"].(map[string]any); ok && f["json_schema"] == nil {
			options["response_format"] = f // JSON of any form, or text
		}
	},
	Spell: func(body map[string]any) {
		rename(body, "max_tokens", "max_completion_tokens")
		if s, ok := body["stop"].(string); ok {
			body["stop"] = []any{s}
		}
		var tools []any
		for _, f := range list(body["functions"]) {
			tools = append(tools, map[string]any{"type": "function", "function": f})
		}
		if tools != nil {
			body["tools"] = tools
			delete(body, "functions")
		}
		plain(body)
		for _, tool := range list(body["tools"]) {
			if f, ok := tool["function"].(map[string]any); ok && f["description"] == "" {
				delete(f, "description")
			}
		}
		for _, m := range list(body["messages"]) {
			if f, ok := m["function_call"].(map[string]any); ok {
				m["tool_calls"] = []any{map[string]any{"type": "function", "function": f}}
				delete(m, "function_call")
			}
			if m["role"] == "assistant" || m["role"] == "tool" {
				m["content"] = joined(m["content"])
			}
			m["content"] = parts(m["content"], "text")
			for _, c := range list(m["tool_calls"]) {
				if f, ok := c["function"].(map[string]any); ok && f["arguments"] == "" {
					f["arguments"] = "{}"
				}
				c["type"] = "function"
			}
		}
	},
}

// lead joins the system messages at the head to the instructions.
func lead(body map[string]any) {
	items, _ := body["input"].([]any)
	var texts []string
	if s, _ := body["instructions"].(string); s != "" {
		texts = append(texts, s)
	}
	for len(items) > 0 {
		m, _ := items[0].(map[string]any)
		text, ok := joined(m["content"]).(string)
		if m["role"] != "system" || !ok {
			break
		}
		texts, items = append(texts, text), items[1:]
	}
	if texts != nil {
		body["instructions"] = strings.Join(texts, "\n\n")
	}
	body["input"] = slices.DeleteFunc(items, func(v any) bool {
		m, _ := v.(map[string]any)
		return m["role"] == "assistant" && m["content"] == ""
	})
	if body["instructions"] == "" {
		delete(body, "instructions")
	}
}

var responsesSpelling = wiretest.Spelling{
	Known: []string{"model", "instructions", "input", "tools", "tool_choice", "text", "reasoning", "stream", "max_output_tokens",
		"temperature", "top_p", "parallel_tool_calls"},
	Verbatim: verbatim,
	Dropped: map[string]string{
		"text.format.schema*":        "schemas go in the API's dialect; what it cannot say is reported, and held to here (internal/dialect)",
		"tools[].parameters*":        "the same",
		"input[].id":                 "the server is asked to keep nothing, so it would not find the item; results name the call_id",
		"input[].status":             "of an item that is over",
		"input[].content[].filename": "Media have a type and no name; the name that is sent follows from the type",
		"text.format.name":           "it is always \"output\"",
		"tools[].strict":             "pawl checks the arguments itself, against the tool's own schema; strict is the dialect's matter",
		"tools[].defer_loading":      "a function that is loaded by searching is offered by the options, with the search",
		"input[].type":               "the same, and references to items that only the server has",
		"input[].role":               "the same",
	},
	Otherwise: map[string]string{
		"audio/mpeg of 768 bytes is not shown": "the API has no form for sound, and refused this request: a note stands in its place",
		"invalid_arguments":                    wrappedArguments,
	},
	Options: func(body, options map[string]any) {
		hosted(body, options)
		if text, ok := body["text"].(map[string]any); ok && (text["format"] == nil || len(text) > 1) {
			options["text"] = text
		}
		if r, ok := body["reasoning"].(map[string]any); ok && (len(r) > 1 || r["effort"] == nil) {
			options["reasoning"] = r
		}
	},
	Spell: func(body map[string]any) {
		plain(body)
		if s, ok := body["input"].(string); ok {
			body["input"] = []any{map[string]any{"type": "message", "role": "user", "content": s}}
		}
		lead(body)
		for _, tool := range list(body["tools"]) {
			if tool["description"] == "" {
				delete(tool, "description")
			}
		}
		if text, ok := body["text"].(map[string]any); ok && len(text) == 1 {
			if f, ok := text["format"].(map[string]any); ok && f["type"] == "text" {
				delete(body, "text")
			}
		}
		for _, item := range list(body["input"]) {
			if item["type"] == nil && item["role"] != nil {
				item["type"] = "message"
			}
			switch item["type"] {
			case "message":
				item["content"] = joined(item["content"])
				kind := "input_text"
				if item["role"] == "assistant" {
					kind = "output_text"
				}
				item["content"] = parts(item["content"], kind)
			case "function_call_output":
				item["output"] = joined(item["output"])
			}
		}
	},
}

func TestRequestsThatLoseAreFound(t *testing.T) {
	const chat = `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"u"},{"type":"image_url","image_url":{"url":"https://x"}}]},
		{"role":"assistant","content":"t","reasoning_content":"hm","tool_calls":[{"id":"call_9","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]},
		{"role":"tool","tool_call_id":"call_9","content":"42"}],"tools":[{"type":"function","function":{"name":"f","description":"Does f.","parameters":{"type":"object","properties":{}}}}],
		"tool_choice":"required","max_tokens":5,"seed":7,"stop":"x"}`
	for _, drop := range []string{`,\{"role":"tool"[^}]*\}`, `,"reasoning_content":"hm"`, `,"seed":7`, `,"tool_choice":"required"`, `call_9`} {
		wiretest.RequestsControl(t, chatWire, &chatSpelling, chat, drop)
	}
	const responses = `{"model":"gpt-4","instructions":"s","input":[{"role":"user","content":"u"},{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"gA="},
		{"type":"function_call","call_id":"call_9","name":"f","arguments":"{}","namespace":"n"},{"type":"function_call_output","call_id":"call_9","output":"42"}],
		"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}},{"type":"web_search"}],"reasoning":{"effort":"low","summary":"auto"}}`
	for _, drop := range []string{`,"encrypted_content":"gA="`, `,"namespace":"n"`, `,\{"type":"web_search"\}`, `,"summary":"auto"`, `"instructions":"s",`} {
		wiretest.RequestsControl(t, responsesWire, &responsesSpelling, responses, drop)
	}
}
