package openai

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
)

// responsesRequest holds the supported fields of a request to /v1/responses: see chatRequest.
type responsesRequest struct {
	Model        string          `json:"model"`
	Input        json.RawMessage `json:"input"`
	Instructions string          `json:"instructions"`
	Tools        []struct {
		Type string `json:"type"`
		runs.ClientTool
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	MaxTokens  int             `json:"max_output_tokens"`
	Previous   string          `json:"previous_response_id"`
	Background bool            `json:"background"`
	Reasoning  struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Text struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
	Stream bool `json:"stream"`
	sampling
}

type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	ID        string          `json:"id"` // for an item_reference
}

// asked converts the request. item finds the items that it refers to.
func (r *responsesRequest) asked(item func(id string) (inputItem, error)) (in runs.Asked, err error) {
	if r.Background {
		return in, runs.BadRequest("background: not supported", "POST /v1/runs begins a run and does not wait for it")
	}
	in.Model, in.Stream, in.Dress.System, in.Dress.Forget = r.Model, r.Stream, r.Instructions, !r.stored()
	in.Previous, _ = runOfResponse(r.Previous)
	in.Dress.Settings = llm.Settings{MaxTokens: r.MaxTokens, Temperature: r.Temperature, TopP: r.TopP,
		Effort: r.Reasoning.Effort, Parallel: r.Parallel}
	for _, t := range r.Tools {
		if t.Type != "function" {
			return in, runs.BadRequest("tools of the type "+t.Type+" are not taken", "functions are")
		}
		in.Dress.Tools = append(in.Dress.Tools, t.ClientTool)
	}
	in.Dress.Choice, err = choiceOf(r.ToolChoice)
	if err != nil {
		return in, err
	}
	in.Dress.Output, err = outputOf(r.Text.Format.Type, r.Text.Format.Schema)
	if err != nil {
		return in, err
	}
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		in.Messages = []llm.Message{llm.User(text)}
		return in, nil
	}
	var items []inputItem
	if err := json.Unmarshal(r.Input, &items); err != nil {
		return in, runs.BadRequest("input is neither text nor a list of items", "")
	}
	for _, i := range items {
		if i.Type == "item_reference" || i.Type == "" && i.Role == "" {
			if i.ID == "" {
				return in, runs.BadRequest("an item has neither type nor role, or refers to nothing", "")
			}
			i, err = item(i.ID)
			if err != nil {
				return in, err
			}
		}
		if err := i.add(&in); err != nil {
			return in, err
		}
	}
	return in, nil
}

// add adds an item to the conversation. The items of a reply become one message.
func (i *inputItem) add(in *runs.Asked) error {
	switch i.Type {
	case "", "message":
		m := chatMessage{Role: i.Role, Content: i.Content}
		if i.Role != "assistant" {
			return m.add(in)
		}
		parts, err := contentOf(i.Content)
		if err != nil {
			return err
		}
		in.Join(llm.RoleAssistant, parts...)
	case "function_call":
		in.Join(llm.RoleAssistant, llm.ToolCall{ID: i.CallID, Name: i.Name, Args: json.RawMessage(i.Arguments)})
	case "function_call_output":
		parts, err := contentOf(i.Output)
		if err != nil {
			return err
		}
		in.Join(llm.RoleTool, llm.ToolResult{CallID: i.CallID, Parts: parts})
	case "reasoning": // the agent stores its own reasoning
	default:
		return runs.BadRequest("items of the type "+i.Type+" are not taken", "message, function_call, function_call_output, item_reference and reasoning")
	}
	return nil
}

// Responses handles POST /v1/responses.
func (c *call) Responses() error {
	var r responsesRequest
	t, leave, err := c.accept("resp", &r, func() (runs.Asked, error) { return r.asked(c.item) })
	if err != nil {
		return err
	}
	defer leave()
	v := &response{id: responseID(t.Id, t.skip), agent: t.Agent, previous: r.Previous, created: time.Now(),
		store: r.stored()}
	if !r.Stream {
		out, err := c.follow(t, nil, func(string) {}, nil)
		if err != nil {
			return err
		}
		return c.Write(http.StatusOK, v.whole(out))
	}
	v.send = c.Events()
	v.json = c.Json
	v.tell("response.created", Object{"response": v.form("in_progress", []any{})})
	v.tell("response.in_progress", Object{"response": v.form("in_progress", []any{})})
	out, err := c.follow(t, v.send, v.word, nil)
	t.failed = err != nil
	if t.failed {
		e := runs.ToError(err)
		m := v.form("failed", []any{})
		m["error"] = Object{"code": e.Code, "message": c.S.O.Secrets.String(e.Message)}
		v.tell("response.failed", Object{"response": m})
		// OpenAI's agents SDK takes a failed response for an empty one and asks again; clients of
		// OpenAI throw an event with the member error
		v.tell("error", Object{"code": e.Code, "message": c.S.O.Secrets.String(e.Message), "param": nil, "error": m["error"]})
		return nil
	}
	v.end(out)
	return nil
}

// response is a response in progress.
type response struct {
	id, previous string
	agent        string
	created      time.Time
	store        bool
	send         *web.Sender
	json         func(any) []byte
	n            int  // number of the next event
	text         bool // the message has begun
}

// form returns the current state of the response.
func (v *response) form(status string, output []any) Object {
	m := Object{"id": v.id, "object": "response", "created_at": v.created.Unix(), "status": status, "model": v.agent, "store": v.store, "output": output, "error": nil, "incomplete_details": nil, "instructions": nil,
		"metadata": Object{}, "parallel_tool_calls": true, "temperature": nil, "top_p": nil, "tool_choice": "auto", "tools": []any{}, "previous_response_id": nil}
	if v.previous != "" {
		m["previous_response_id"] = v.previous
	}
	return m
}

// whole returns the complete response.
func (v *response) whole(out reply) Object {
	items := []any{}
	if out.text != "" {
		items = append(items, v.message(out.text, "completed"))
	}
	for _, call := range out.calls {
		items = append(items, item(call, "completed", string(call.Args)))
	}
	m := v.form("completed", items)
	switch out.finish {
	case "length":
		m["status"] = "incomplete"
		m["incomplete_details"] = Object{"reason": "max_output_tokens"}
	case "content_filter":
		m["status"] = "incomplete"
		m["incomplete_details"] = Object{"reason": "content_filter"}
	}
	m["usage"] = Object{"input_tokens": out.usage.Input, "output_tokens": out.usage.Output, "total_tokens": out.usage.Total(),
		"input_tokens_details": Object{"cached_tokens": out.usage.CacheRead}, "output_tokens_details": Object{"reasoning_tokens": out.usage.Reasoning}}
	return m
}

func (v *response) message(text, status string) Object {
	content := []any{}
	if status == "completed" {
		content = append(content, part(text))
	}
	return Object{"id": v.messageID(), "type": "message", "role": "assistant", "status": status, "content": content}
}

func (v *response) messageID() string { return messageID(v.id) }

func messageID(response string) string { return "msg_" + strings.TrimPrefix(response, "resp_") }

func itemID(call llm.ToolCall) string { return "fc_" + strings.TrimPrefix(call.ID, "call_") }

func part(text string) Object {
	return Object{"type": "output_text", "text": text, "annotations": []any{}}
}

func item(call llm.ToolCall, status, args string) Object {
	return Object{"id": itemID(call), "type": "function_call", "status": status, "call_id": call.ID, "name": call.Name, "arguments": args}
}

// tell sends an event.
func (v *response) tell(kind string, m Object) {
	m["type"] = kind
	m["sequence_number"] = v.n
	v.n++
	v.send.Event("", kind, v.json(m))
	v.send.Flush()
}

// word sends a piece of the text.
func (v *response) word(text string) {
	if !v.text {
		v.text = true
		v.tell("response.output_item.added", Object{"output_index": 0, "item": v.message("", "in_progress")})
		m := v.ofText("part", part(""))
		delete(m, "logprobs")
		v.tell("response.content_part.added", m)
	}
	v.tell("response.output_text.delta", v.ofText("delta", text))
}

// ofText returns an event about the text.
func (v *response) ofText(name string, value any) Object {
	return Object{"item_id": v.messageID(), "output_index": 0, "content_index": 0, name: value, "logprobs": []any{}}
}

// end sends the final events.
func (v *response) end(out reply) {
	index := 0
	if v.text {
		v.tell("response.output_text.done", v.ofText("text", out.text))
		v.tell("response.content_part.done", v.ofText("part", part(out.text)))
		v.tell("response.output_item.done", Object{"output_index": 0, "item": v.message(out.text, "completed")})
		index++
	}
	for _, call := range out.calls {
		id := itemID(call)
		v.tell("response.output_item.added", Object{"output_index": index, "item": item(call, "in_progress", "")})
		v.tell("response.function_call_arguments.delta", Object{"item_id": id, "output_index": index, "delta": string(call.Args)})
		v.tell("response.function_call_arguments.done", Object{"item_id": id, "output_index": index, "name": call.Name, "arguments": string(call.Args)})
		v.tell("response.output_item.done", Object{"output_index": index, "item": item(call, "completed", string(call.Args))})
		index++
	}
	m := v.whole(out)
	v.tell("response."+m["status"].(string), Object{"response": m})
}
