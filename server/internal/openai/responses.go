package openai

// responses.go: Responses.

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/turns"
	"github.com/pawl-go/pawl/server/internal/web"
)

// responsesRequest holds the supported fields of a request to /v1/responses: see chatRequest.
type responsesRequest struct {
	Model        string          `json:"model"`
	Input        json.RawMessage `json:"input"`
	Instructions string          `json:"instructions"`
	Tools        []toolRequest   `json:"tools"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	MaxTokens    int             `json:"max_output_tokens"`
	Previous     string          `json:"previous_response_id"`
	Conversation conversationID  `json:"conversation"`
	Background   bool            `json:"background"`
	Reasoning    struct {
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
	Namespace string          `json:"namespace"` // of the tool of a call
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"` // of a call of a custom tool
	Output    json.RawMessage `json:"output"`
	Tools     []toolRequest   `json:"tools"` // of additional_tools
	ID        string          `json:"id"`    // for an item_reference
}

// convert converts the request. item finds the items that it refers to.
func (r *responsesRequest) convert(item func(id string) (inputItem, error)) (in asked, err error) {
	if r.Background {
		return in, runs.BadRequest("background: not supported", "POST /v1/runs begins a run and does not wait for it")
	}

	in.Prefix = turns.PrefixResponse
	in.Agent = r.Model
	in.Stream = r.Stream
	in.Extras.System = r.Instructions
	in.Extras.Forget = !r.stored()
	in.Previous, _ = runOfResponse(r.Previous)
	if err := r.Conversation.check(r.Previous, r.stored()); err != nil {
		return in, err
	}
	in.Extras.Settings = llm.Settings{
		MaxTokens:   r.MaxTokens,
		Temperature: r.Temperature,
		TopP:        r.TopP,
		Effort:      r.Reasoning.Effort,
		Parallel:    r.Parallel,
	}
	if err := in.tools.add(&in.Extras, "", r.Tools); err != nil {
		return in, err
	}
	in.Extras.Choice, err = choiceOf(r.ToolChoice)
	if err != nil {
		return in, err
	}
	in.Extras.Output, err = outputOf(r.Text.Format.Type, r.Text.Format.Schema)
	if err != nil {
		return in, err
	}
	return in, r.addInput(&in, item)
}

// addInput adds the conversation of the request: a text or items. item finds the items that it
// refers to.
func (r *responsesRequest) addInput(in *asked, item func(id string) (inputItem, error)) error {
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		in.Messages = []llm.Message{llm.User(text)}
		return nil
	}
	var items []inputItem
	if err := json.Unmarshal(r.Input, &items); err != nil {
		return runs.BadRequest("input is neither text nor a list of items", "")
	}

	for _, i := range items {
		if i.isReference() {
			if i.ID == "" {
				return runs.BadRequest("an item has neither type nor role, or refers to nothing", "")
			}
			var err error
			i, err = item(i.ID)
			if err != nil {
				return err
			}
		}
		if err := i.add(in); err != nil {
			return err
		}
	}
	return nil
}

// isReference reports whether the item refers to another one.
func (i *inputItem) isReference() bool {
	return i.Type == "item_reference" || i.Type == "" && i.Role == ""
}

// add adds an item to the conversation. The items of a reply become one message.
func (i *inputItem) add(in *asked) error {
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
		in.Append(llm.RoleAssistant, parts...)
	case "function_call", "custom_tool_call":
		call := llm.ToolCall{ID: i.CallID, Name: in.tools.nameOf(in.Extras.Tools, i.Namespace, i.Name)}
		call.Args = json.RawMessage(i.Arguments)
		if i.Type == "custom_tool_call" {
			call.Args = textArgs(i.Input)
		}
		in.Append(llm.RoleAssistant, call)
	case "function_call_output", "custom_tool_call_output":
		parts, err := contentOf(i.Output)
		if err != nil {
			return err
		}
		in.Append(llm.RoleTool, llm.ToolResult{CallID: i.CallID, Parts: parts})
	case "additional_tools":
		return in.tools.add(&in.Extras, "", i.Tools)
	case "reasoning": // the agent stores its own reasoning
	default:
		return runs.BadRequest("items of the type "+i.Type+" are not taken",
			"message, calls and outputs of functions and custom tools, item_reference and reasoning")
	}
	return nil
}

// toAsked converts a request. In a conversation, a new run follows the newest one.
func (c *call) toAsked(r *responsesRequest) (turns.Asked, error) {
	in, err := r.convert(c.item)
	if err == nil && r.Conversation != "" {
		in.Extras.Thread = string(r.Conversation)
		in.Prefix = r.Conversation.prefix()
		in.Newest = func() (string, error) { return c.newestOf(r.Conversation) }
	}
	return in.Asked, err
}

// responses handles POST /v1/responses.
func (c *call) responses() error {
	var r responsesRequest
	t, leave, err := c.Accept(&r, func() (turns.Asked, error) { return c.toAsked(&r) })
	if err != nil {
		return err
	}
	defer leave()

	v := &response{
		id:           turns.ResponseID(t.ID, t.Skip),
		agent:        runs.BaseName(t.Agent),
		previous:     r.Previous,
		conversation: r.Conversation,
		created:      time.Now(),
		store:        r.stored(),
	}
	if !r.Stream {
		out, err := c.Follow(t, nil, turns.Mute)
		if err != nil {
			return err
		}
		return c.Write(http.StatusOK, v.whole(out))
	}

	v.begin(c)
	c.followResponse(t, v)
	return nil
}

// followResponse sends the events of a response that has begun, to its end.
func (c *call) followResponse(t *turns.Turn, v *response) {
	out, err := c.Follow(t, v.send, turns.Voice{Say: v.word, Withdraw: v.withdraw})
	if err != nil {
		// The status has been sent, so that the error is an event.
		e := runs.ToError(err)
		v.fail(e.Code, c.Secrets.String(e.Message))
		return
	}
	v.finish(out)
}

// response is a response in progress.
type response struct {
	id           string
	previous     string
	conversation conversationID
	agent        string
	created      time.Time
	store        bool

	send   *web.Sender // of a stream
	encode func(any) []byte
	events int    // that were sent
	begun  bool   // the message has begun
	index  int    // of the message, or of the first call: the number of void messages before it
	text   []byte // of the message so far
}

// begin begins the stream.
func (v *response) begin(c *call) {
	v.send = c.StartStream()
	v.encode = c.Encode
	v.event("response.created", object{"response": v.form("in_progress", []any{})})
	v.event("response.in_progress", object{"response": v.form("in_progress", []any{})})
}

// form returns the current state of the response.
func (v *response) form(status string, output []any) object {
	m := object{
		"id":                   v.id,
		"object":               "response",
		"created_at":           v.created.Unix(),
		"status":               status,
		"model":                v.agent,
		"store":                v.store,
		"output":               output,
		"error":                nil,
		"incomplete_details":   nil,
		"instructions":         nil,
		"metadata":             object{},
		"parallel_tool_calls":  true,
		"temperature":          nil,
		"top_p":                nil,
		"tool_choice":          "auto",
		"tools":                []any{},
		"previous_response_id": nil,
	}
	if v.previous != "" {
		m["previous_response_id"] = v.previous
	}
	if v.conversation != "" {
		m["conversation"] = object{"id": v.conversation}
	}
	return m
}

// whole returns the complete response.
func (v *response) whole(out turns.Reply) object {
	items := []any{}
	if out.Text != "" {
		items = append(items, v.message(out.Text, "completed"))
	}
	for _, call := range out.Calls {
		items = append(items, item(call, "completed", call.Input()))
	}

	m := v.form("completed", items)
	switch out.Finish {
	case "length":
		m["status"] = "incomplete"
		m["incomplete_details"] = object{"reason": "max_output_tokens"}
	case "content_filter":
		m["status"] = "incomplete"
		m["incomplete_details"] = object{"reason": "content_filter"}
	}
	m["usage"] = object{
		"input_tokens":          out.Usage.Input,
		"output_tokens":         out.Usage.Output,
		"total_tokens":          out.Usage.Total(),
		"input_tokens_details":  object{"cached_tokens": out.Usage.CacheRead},
		"output_tokens_details": object{"reasoning_tokens": out.Usage.Reasoning},
	}
	return m
}

func (v *response) message(text, status string) object {
	content := []any{}
	if status == "completed" {
		content = append(content, part(text))
	}
	return object{
		"id":      v.messageID(),
		"type":    "message",
		"role":    "assistant",
		"status":  status,
		"content": content,
	}
}

// messageID returns the ID of the message. A message after a void one has a suffix.
func (v *response) messageID() string {
	if v.index == 0 {
		return messageID(v.id)
	}
	return messageID(v.id) + "_" + strconv.Itoa(v.index)
}

func messageID(response string) string { return "msg_" + strings.TrimPrefix(response, "resp_") }

func itemID(call turns.ClientCall) string {
	kind := "fc_"
	if call.Freeform {
		kind = "ctc_"
	}
	return kind + strings.TrimPrefix(call.ID, "call_")
}

func part(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}}
}

// item returns a call as an item, with input so far.
func item(call turns.ClientCall, status, input string) object {
	m := object{
		"id":      itemID(call),
		"type":    "function_call",
		"status":  status,
		"call_id": call.ID,
		"name":    call.Name,
	}
	if call.Namespace != "" {
		m["namespace"] = call.Namespace
	}
	if call.Freeform {
		m["type"] = "custom_tool_call"
		m["input"] = input
	} else {
		m["arguments"] = input
	}
	return m
}

// event sends an event.
func (v *response) event(kind string, m object) {
	m["type"] = kind
	m["sequence_number"] = v.events
	v.events++
	v.send.Event("", kind, v.encode(m))
	v.send.Flush()
}

// withdraw ends a message whose text is void, with the status incomplete. The reply begins again
// with another message, and the response has that one alone.
func (v *response) withdraw() {
	if !v.begun {
		return
	}
	item := v.message("", "incomplete")
	item["content"] = []any{part(string(v.text))}
	v.event("response.output_item.done", object{"output_index": v.index, "item": item})
	v.begun = false
	v.text = nil
	v.index++
}

// word sends a piece of the text.
func (v *response) word(text string) {
	v.text = append(v.text, text...)
	if !v.begun {
		v.begun = true
		v.event("response.output_item.added", object{"output_index": v.index, "item": v.message("", "in_progress")})
		m := v.textEvent("part", part(""))
		delete(m, "logprobs")
		v.event("response.content_part.added", m)
	}
	v.event("response.output_text.delta", v.textEvent("delta", text))
}

// textEvent returns an event about the text.
func (v *response) textEvent(name string, value any) object {
	return object{
		"item_id":       v.messageID(),
		"output_index":  v.index,
		"content_index": 0,
		name:            value,
		"logprobs":      []any{},
	}
}

// finish sends the final events.
func (v *response) finish(out turns.Reply) {
	index := v.index
	if v.begun {
		v.event("response.output_text.done", v.textEvent("text", out.Text))
		v.event("response.content_part.done", v.textEvent("part", part(out.Text)))
		v.event("response.output_item.done", object{"output_index": index, "item": v.message(out.Text, "completed")})
		index++
	}
	for _, call := range out.Calls {
		v.callEvents(index, call)
		index++
	}
	m := v.whole(out)
	v.event("response."+m["status"].(string), object{"response": m})
}

// callEvents sends the events of a call for the client.
func (v *response) callEvents(index int, call turns.ClientCall) {
	id := itemID(call)
	input := call.Input()
	kind := "response.function_call_arguments"
	done := object{
		"item_id":      id,
		"output_index": index,
		"name":         call.Name,
		"arguments":    input,
	}
	if call.Freeform {
		kind = "response.custom_tool_call_input"
		done = object{"item_id": id, "output_index": index, "input": input}
	}

	v.event("response.output_item.added", object{
		"output_index": index,
		"item":         item(call, "in_progress", ""),
	})
	v.event(kind+".delta", object{
		"item_id":      id,
		"output_index": index,
		"delta":        input,
	})
	v.event(kind+".done", done)
	v.event("response.output_item.done", object{
		"output_index": index,
		"item":         item(call, "completed", input),
	})
}

// fail sends the events of a response that failed.
func (v *response) fail(code, message string) {
	e := object{"code": code, "message": message}
	m := v.form("failed", []any{})
	m["error"] = e
	v.event("response.failed", object{"response": m})

	// OpenAI's agents SDK takes a failed response for an empty one and asks again; clients of
	// OpenAI throw an event with the member error.
	v.event("error", object{
		"code":    code,
		"message": message,
		"param":   nil,
		"error":   e,
	})
}
