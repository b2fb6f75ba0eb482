package telemetry

// content.go: messages, arguments and results as attributes, with Options.Content.

import (
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// contentMessage is a message in the form of the conventions.
type contentMessage struct {
	Role   string        `json:"role"`
	Parts  []contentPart `json:"parts"`
	Finish string        `json:"finish_reason,omitzero"`
}

type contentPart struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitzero"`
	ID        string          `json:"id,omitzero"`
	Name      string          `json:"name,omitzero"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
	Response  string          `json:"response,omitzero"`
	MIME      string          `json:"mime_type,omitzero"`
}

// content returns the content of a request and its reply without secrets. req and resp may be nil.
func (t *Telemetry) content(req *llm.Request, resp *llm.Response) (set []attribute.KeyValue) {
	var all pawl.Result
	if req != nil {
		all.Messages = append(all.Messages, req.Messages...)
	}
	asked := len(all.Messages)
	if resp != nil {
		all.Messages = append(all.Messages, resp.Message)
	}
	// redacted together, because a secret argument may occur elsewhere
	msgs := t.options.Redactor.Result(&all).Messages
	var system []contentPart
	var in []contentMessage
	for _, m := range msgs[:asked] {
		if m.Role == llm.RoleSystem || m.Role == llm.RoleDeveloper {
			system = append(system, partsOf(m)...)
		} else {
			in = append(in, contentMessage{Role: string(m.Role), Parts: partsOf(m)})
		}
	}
	set = appendJSON(set, semconv.GenAISystemInstructionsKey, system)
	set = appendJSON(set, semconv.GenAIInputMessagesKey, in)
	if resp != nil {
		set = appendJSON(set, semconv.GenAIOutputMessagesKey,
			[]contentMessage{{Role: string(llm.RoleAssistant), Parts: partsOf(msgs[asked]),
				Finish: string(resp.Finish)}})
	}
	return set
}

// callContent returns the arguments and the result of a call without secrets.
func (t *Telemetry) callContent(c llm.ToolCall, res llm.ToolResult) []attribute.KeyValue {
	msgs := t.options.Redactor.Result(&pawl.Result{Messages: []llm.Message{
		{Role: llm.RoleAssistant, Parts: []llm.Part{c}}, {Role: llm.RoleTool, Parts: []llm.Part{res}}}}).Messages
	c, _ = msgs[0].Parts[0].(llm.ToolCall)
	res, _ = msgs[1].Parts[0].(llm.ToolResult)
	return []attribute.KeyValue{semconv.GenAIToolCallArgumentsKey.String(string(c.Args)),
		semconv.GenAIToolCallResultKey.String(res.Text())}
}

func appendJSON[T any](set []attribute.KeyValue, key attribute.Key, v []T) []attribute.KeyValue {
	if len(v) == 0 {
		return set
	}
	b, err := json.Marshal(v)
	if err != nil {
		return set // arguments that are not JSON: they were quoted, so this is not the case
	}
	return append(set, key.String(string(b)))
}

func partsOf(m llm.Message) (parts []contentPart) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			parts = append(parts, contentPart{Type: "text", Content: p.Text})
		case llm.Reasoning:
			if p.Text != "" { // otherwise only its provider, or package history, can read it
				parts = append(parts, contentPart{Type: "reasoning", Content: p.Text})
			}
		case llm.ToolCall:
			args := p.Args
			if !json.Valid(args) {
				args, _ = json.Marshal(string(args)) // the model's text
			}
			parts = append(parts, contentPart{Type: "tool_call", ID: p.ID, Name: p.Name, Arguments: args})
		case llm.ToolResult:
			parts = append(parts, contentPart{Type: "tool_call_response", ID: p.CallID, Response: p.Text()})
		case llm.Media:
			// only its presence; the bytes do not belong into a trace
			parts = append(parts, contentPart{Type: "blob", MIME: p.MIME})
		}
	}
	return parts
}
