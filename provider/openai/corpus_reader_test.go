package openai_test

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// reading is what the independent reader finds in a recorded answer. The reader follows the API documents' paths with
// encoding/json and its own structs, joins streams itself, and shares nothing with the adapter: where the two differ,
// one of them is wrong.
type reading struct {
	text   string
	finish string // in the neutral words
	usage  figures
	calls  []string // "name arguments"
	err    string   // the answer is an error: what it says; "": it is a reply
	broken bool     // the answer has no end that can be trusted
}

// figures are what a reader can check of a pawl.Usage.
type figures struct{ Input, Output, Reasoning, CacheRead int }

// wireUsage is the usage of both APIs.
type wireUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	InputTokens      int `json:"input_tokens"`
	OutputTokens     int `json:"output_tokens"`
	TotalTokens      int `json:"total_tokens"`
	CacheHit         int `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptDetails    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *wireUsage) figures() (f figures) {
	if u == nil {
		return
	}
	f.Input = u.PromptTokens + u.InputTokens // one of the two is there
	f.Output = u.CompletionTokens + u.OutputTokens
	f.Reasoning = u.CompletionDetails.Reasoning + u.OutputDetails.Reasoning
	f.CacheRead = u.PromptDetails.Cached + u.InputDetails.Cached
	if f.CacheRead == 0 {
		f.CacheRead = u.CacheHit
	}
	if u.TotalTokens == f.Input+f.Output+f.Reasoning {
		f.Output += f.Reasoning // xAI counts reasoning beside the output; the neutral form counts it in
	}
	return f
}

// dataOf returns the data of each event of a stream, by the rules of server-sent events.
func dataOf(body string) []string {
	body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
	var all, lines []string
	for _, line := range strings.Split(body, "\n") {
		switch {
		case line == "":
			if lines != nil {
				all = append(all, strings.Join(lines, "\n"))
			}
			lines = nil
		case strings.HasPrefix(line, "data:"):
			lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " "))
		}
	}
	if lines != nil {
		all = append(all, strings.Join(lines, "\n"))
	}
	return all
}

type chatMessage struct {
	Content   json.RawMessage `json:"content"`
	Refusal   string          `json:"refusal"`
	ToolCalls []struct {
		Index    *int    `json:"index"`
		ID       string  `json:"id"`
		Function *called `json:"function"`
	} `json:"tool_calls"`
	FunctionCall *called `json:"function_call"`
}

type called struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// args is the text of arguments: inside a string, or the value itself.
func (c *called) args() string {
	var s string
	if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
		return ""
	}
	if json.Unmarshal(c.Arguments, &s) == nil {
		return s
	}
	return string(c.Arguments)
}

type chatBody struct {
	Choices []struct {
		Index   int          `json:"index"`
		Message *chatMessage `json:"message"`
		Delta   *chatMessage `json:"delta"`
		Finish  *string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *wireUsage `json:"usage"`
	Groq  struct {
		Usage *wireUsage `json:"usage"`
	} `json:"x_groq"`
	Error json.RawMessage `json:"error"`
}

// contentText is the text in content: a string, or a list of parts of which those of type text count.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct{ Type, Text string }
	json.Unmarshal(raw, &parts)
	for _, p := range parts {
		if p.Type == "text" {
			s += p.Text
		}
	}
	return s
}

// errorText is what an error body says, in any of the shapes that are seen.
func errorText(body []byte) string {
	var e struct {
		Error     json.RawMessage
		Message   string
		Detail    json.RawMessage
		ErrorType string `json:"error_type"`
	}
	if json.Unmarshal(body, &e) != nil {
		return strings.TrimSpace(string(body))
	}
	var inner struct{ Message string }
	if json.Unmarshal(e.Error, &inner) == nil && inner.Message != "" {
		return inner.Message
	}
	for _, raw := range []json.RawMessage{e.Error, e.Detail} {
		var s string
		if json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
	}
	return e.Message
}

// readChatAnswer reads an answer of Chat Completions.
func readChatAnswer(streaming bool, body string) (reading, error) {
	var r reading
	docs := []string{body}
	if streaming {
		docs = dataOf(body)
	}
	type call struct {
		key        int
		name, args string
	}
	var calls []*call
	reason, refused, done := "", false, !streaming
	add := func(key int, id string, f *called, whole bool) {
		if f == nil || f.Name == "" && f.args() == "" {
			return
		}
		var c *call
		if n := len(calls); n > 0 && !whole && f.Name == "" {
			for _, o := range calls {
				if o.key == key {
					c = o
				}
			}
		}
		if c == nil {
			c = &call{key: key}
			calls = append(calls, c)
		}
		if c.name == "" {
			c.name = f.Name
		}
		c.args += f.args()
	}
	for i, doc := range docs {
		if doc == "[DONE]" {
			done = true
			continue
		}
		var b chatBody
		if err := json.Unmarshal([]byte(doc), &b); err != nil {
			return r, fmt.Errorf("document %d: %w", i, err)
		}
		if len(b.Error) > 0 && string(b.Error) != "null" {
			r.err = errorText([]byte(doc))
			return r, nil
		}
		switch {
		case b.Usage != nil:
			r.usage = b.Usage.figures()
		case b.Groq.Usage != nil:
			r.usage = b.Groq.Usage.figures()
		}
		for _, c := range b.Choices {
			if c.Index != 0 {
				continue
			}
			m := c.Delta
			if m == nil || !streaming {
				m = c.Message
			}
			if m != nil {
				r.text += contentText(m.Content) + m.Refusal
				refused = refused || m.Refusal != ""
				for j, tc := range m.ToolCalls {
					key := 0
					if tc.Index != nil {
						key = *tc.Index
					}
					if !streaming {
						key = j
					}
					add(key, tc.ID, tc.Function, !streaming)
				}
				add(-1, "", m.FunctionCall, !streaming)
			}
			if c.Finish != nil && *c.Finish != "" {
				reason = *c.Finish
			}
		}
	}
	for _, c := range calls {
		r.calls = append(r.calls, c.name+" "+c.args)
	}
	r.broken = reason == "" && !done
	switch reason {
	case "stop", "eos", "tool_calls", "function_call":
		r.finish = "stop"
		if refused {
			r.finish = "content_filter"
		}
	case "length", "content_filter":
		r.finish = reason
	default:
		r.finish = "other"
	}
	if len(calls) > 0 && (r.finish == "stop" || r.finish == "other") {
		r.finish = "tool_calls"
	}
	return r, nil
}

type outputItem struct {
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     string          `json:"input"`
	Action    json.RawMessage `json:"action"`    // of local_shell_call and shell_call
	Operation json.RawMessage `json:"operation"` // of apply_patch_call
	Content   []struct {
		Type, Text, Refusal string
	} `json:"content"`
}

type responseBody struct {
	Object     string          `json:"object"`
	Status     string          `json:"status"`
	Output     []outputItem    `json:"output"`
	Usage      *wireUsage      `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// readResponsesAnswer reads an answer of Responses.
func readResponsesAnswer(streaming bool, body string) (reading, error) {
	var r reading
	if !streaming {
		var b responseBody
		if err := json.Unmarshal([]byte(body), &b); err != nil {
			return r, err
		}
		r.response(b)
		for _, item := range b.Output {
			r.item(item)
		}
		r.decide(b)
		return r, nil
	}
	// Joined from the fragments alone; the response object at the end gives usage and status.
	type piece struct {
		output, content int
		text            string
	}
	texts := map[[2]int]*piece{}
	args, items := map[int]string{}, map[int]outputItem{}
	r.broken = true
	var last responseBody
	for i, doc := range dataOf(body) {
		if doc == "[DONE]" {
			continue
		}
		var e struct {
			Type     string       `json:"type"`
			Output   int          `json:"output_index"`
			Content  int          `json:"content_index"`
			Delta    any          `json:"delta"`
			Item     outputItem   `json:"item"`
			Response responseBody `json:"response"`
		}
		err := json.Unmarshal([]byte(doc), &e)
		if err != nil {
			err = json.Unmarshal([]byte(doc+"}"), &e) // one recording has lost the last brace of its events
		}
		if err != nil {
			return r, fmt.Errorf("event %d: %w", i, err)
		}
		delta, _ := e.Delta.(string)
		switch e.Type {
		case "response.output_text.delta", "response.refusal.delta":
			p := texts[[2]int{e.Output, e.Content}]
			if p == nil {
				p = &piece{output: e.Output, content: e.Content}
				texts[[2]int{e.Output, e.Content}] = p
			}
			p.text += delta
		case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
			args[e.Output] += delta
		case "response.output_item.added":
			items[e.Output] = e.Item
		case "response.output_item.done":
			e.Item.Content = nil
			items[e.Output] = e.Item
		case "error":
			r.err = errorText([]byte(doc))
			return r, nil
		case "response.completed", "response.incomplete", "response.failed":
			r.broken = false
			r.response(e.Response)
			if r.err != "" {
				return r, nil
			}
			last = e.Response
		}
	}
	var pieces []*piece
	for _, p := range texts {
		pieces = append(pieces, p)
	}
	sort.Slice(pieces, func(i, j int) bool {
		a, b := pieces[i], pieces[j]
		return a.output < b.output || a.output == b.output && a.content < b.content
	})
	for _, p := range pieces {
		r.text += p.text
	}
	var order []int
	for i := range items {
		order = append(order, i)
	}
	sort.Ints(order)
	for _, i := range order {
		item := items[i]
		if a, ok := args[i]; ok && item.Type == "function_call" {
			item.Arguments, _ = json.Marshal(a)
		}
		r.item(item)
	}
	r.decide(last)
	return r, nil
}

// response reads what a response says of itself.
func (r *reading) response(b responseBody) {
	r.usage = b.Usage.figures()
	if len(b.Error) > 0 && string(b.Error) != "null" {
		r.err = errorText([]byte(`{"error":` + string(b.Error) + `}`))
	}
	if b.Status == "queued" || b.Status == "in_progress" {
		r.broken = true
	}
}

// item reads text and calls of an output item.
func (r *reading) item(item outputItem) {
	switch item.Type {
	case "message":
		for _, c := range item.Content {
			r.text += c.Text + c.Refusal
			if c.Refusal != "" {
				r.finish = "content_filter"
			}
		}
	case "function_call":
		c := called{item.Name, item.Arguments}
		r.calls = append(r.calls, item.Name+" "+c.args())
	case "custom_tool_call":
		r.calls = append(r.calls, item.Name+" "+item.Input)
	case "local_shell_call", "shell_call":
		r.calls = append(r.calls, item.Type+" "+string(item.Action))
	case "apply_patch_call":
		r.calls = append(r.calls, item.Type+" "+string(item.Operation))
	}
}

// decide gives the finish in the neutral words.
func (r *reading) decide(b responseBody) {
	switch {
	case b.Incomplete != nil && b.Incomplete.Reason == "max_output_tokens":
		r.finish = "length"
	case b.Incomplete != nil && b.Incomplete.Reason == "content_filter":
		r.finish = "content_filter"
	case b.Status == "incomplete":
		r.finish = "other"
	case r.finish == "":
		r.finish = "stop"
	}
	if len(r.calls) > 0 && r.finish == "stop" {
		r.finish = "tool_calls"
	}
}
