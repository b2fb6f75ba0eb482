package openai_test

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/pawl-go/pawl/internal/test/wiretest"
)

// wireUsage is the usage of both APIs.
type wireUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	InputTokens      int `json:"input_tokens"`
	OutputTokens     int `json:"output_tokens"`
	TotalTokens      int `json:"total_tokens"`
	CacheHit         int `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptDetails    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	InputDetails struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *wireUsage) figures() (f wiretest.Figures) {
	if u == nil {
		return
	}
	f.Input = u.PromptTokens + u.InputTokens // one of the two is present
	f.Output = u.CompletionTokens + u.OutputTokens
	f.Reasoning = u.CompletionDetails.Reasoning + u.OutputDetails.Reasoning
	f.CacheRead = u.PromptDetails.Cached + u.InputDetails.Cached
	f.CacheWrite = u.PromptDetails.Written + u.InputDetails.Written
	if f.CacheRead == 0 {
		f.CacheRead = u.CacheHit
	}
	if u.TotalTokens == f.Input+f.Output+f.Reasoning {
		// xAI does not count reasoning as output, but llm.Usage does
		f.Output += f.Reasoning
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

// args returns the text of arguments: the content of a string, or the value itself.
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

// contentText returns the text in content: a string, or a list of parts, of which only parts of
// type text count.
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

// errorText returns the text of an error body, in any of the known shapes.
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
func readChatAnswer(streaming bool, body string) (wiretest.Reading, error) {
	var r wiretest.Reading
	docs := []string{body}
	if streaming {
		docs = dataOf(body)
	}
	type call struct {
		key            int
		id, name, args string
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
		if c.id == "" {
			c.id = id
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
			r.Err = errorText([]byte(doc))
			return r, nil
		}
		switch {
		case b.Usage != nil:
			r.Usage = b.Usage.figures()
		case b.Groq.Usage != nil:
			r.Usage = b.Groq.Usage.figures()
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
				r.Text += contentText(m.Content) + m.Refusal
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
		r.Calls = append(r.Calls, ofWire(c.id)+" "+c.name+" "+c.args)
	}
	r.Broken = reason == "" && !done
	switch reason {
	case "stop", "eos", "tool_calls", "function_call":
		r.Finish = "stop"
		if refused {
			r.Finish = "content_filter"
		}
	case "length", "content_filter":
		r.Finish = reason
	default:
		r.Finish = "other"
	}
	if len(calls) > 0 && (r.Finish == "stop" || r.Finish == "other") {
		r.Finish = "tool_calls"
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
func readResponsesAnswer(streaming bool, body string) (wiretest.Reading, error) {
	var r wiretest.Reading
	if !streaming {
		var b responseBody
		if err := json.Unmarshal([]byte(body), &b); err != nil {
			return r, err
		}
		readResponse(&r, b)
		for _, item := range b.Output {
			readItem(&r, item)
		}
		decide(&r, b)
		return r, nil
	}
	// Joined from the fragments alone; the response object at the end gives usage and status.
	type piece struct {
		output, content int
		text            string
	}
	texts := map[[2]int]*piece{}
	args, items := map[int]string{}, map[int]outputItem{}
	r.Broken = true
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
			// one recording lacks the last brace of its events
			err = json.Unmarshal([]byte(doc+"}"), &e)
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
			r.Err = errorText([]byte(doc))
			return r, nil
		case "response.completed", "response.incomplete", "response.failed":
			r.Broken = false
			readResponse(&r, e.Response)
			if r.Err != "" {
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
		r.Text += p.text
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
		readItem(&r, item)
	}
	decide(&r, last)
	return r, nil
}

// readResponse reads the status and the usage of a response.
func readResponse(r *wiretest.Reading, b responseBody) {
	r.Usage = b.Usage.figures()
	if len(b.Error) > 0 && string(b.Error) != "null" {
		r.Err = errorText([]byte(`{"error":` + string(b.Error) + `}`))
	}
	if b.Status == "queued" || b.Status == "in_progress" {
		r.Broken = true
	}
}

// readItem reads text and calls of an output item.
func readItem(r *wiretest.Reading, item outputItem) {
	switch item.Type {
	case "message":
		for _, c := range item.Content {
			r.Text += c.Text + c.Refusal
			if c.Refusal != "" {
				r.Finish = "content_filter"
			}
		}
	case "function_call":
		c := called{item.Name, item.Arguments}
		r.Calls = append(r.Calls, ofWire(item.CallID)+" "+item.Name+" "+c.args())
	case "custom_tool_call":
		r.Calls = append(r.Calls, ofWire(item.CallID)+" "+item.Name+" "+item.Input)
	case "local_shell_call", "shell_call":
		r.Calls = append(r.Calls, ofWire(item.CallID)+" "+spaceless(item.Type, string(item.Action)))
	case "apply_patch_call":
		r.Calls = append(r.Calls, ofWire(item.CallID)+" "+spaceless(item.Type, string(item.Operation)))
	}
}

// decide returns the finish in neutral words.
func decide(r *wiretest.Reading, b responseBody) {
	switch {
	case b.Incomplete != nil && b.Incomplete.Reason == "max_output_tokens":
		r.Finish = "length"
	case b.Incomplete != nil && b.Incomplete.Reason == "content_filter":
		r.Finish = "content_filter"
	case b.Status == "incomplete":
		r.Finish = "other"
	case r.Finish == "":
		r.Finish = "stop"
	}
	if len(r.Calls) > 0 && r.Finish == "stop" {
		r.Finish = "tool_calls"
	}
}
