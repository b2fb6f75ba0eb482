package llm

// json_request.go: the JSON forms of requests and replies.

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/schema"
)

type (
	requestJSON struct {
		Model    string             `json:"model"`
		Messages []Message          `json:"messages"`
		Tools    []toolJSON         `json:"tools"`
		Choice   ToolChoice         `json:"choice"`
		Output   stdjson.RawMessage `json:"output,omitzero"`
		Settings Settings           `json:"settings,omitzero"`
	}
	toolJSON struct {
		Name        string             `json:"name"`
		Description string             `json:"description"`
		Input       stdjson.RawMessage `json:"input"`
		Output      stdjson.RawMessage `json:"output,omitzero"`
	}
	responseJSON struct {
		Message Message      `json:"message"`
		Finish  FinishReason `json:"finish"`
		Usage   Usage        `json:"usage"`
		Model   string       `json:"model"`
		ID      string       `json:"id"`

		Requests int `json:"requests,omitzero"`
	}
)

// MarshalJSON writes {"model","messages","tools","choice","output"?,"settings"?}. Key, Whole,
// Turn, Edited, Summarize and Background are not part of the form.
func (r Request) MarshalJSON() ([]byte, error) {
	w := requestJSON{Model: r.Model, Messages: r.Messages, Choice: r.Choice, Output: r.Output, Settings: r.Settings}
	for _, t := range r.Tools {
		j := toolJSON{t.Name, t.Description, t.Input, t.Output}
		if j.Input == nil {
			j.Input = stdjson.RawMessage(schema.EmptyObject)
		}
		w.Tools = append(w.Tools, j)
	}
	return json.Marshal(w, jsonform.Lenient)
}

// UnmarshalJSON reads what MarshalJSON writes. The tools have no Source.
func (r *Request) UnmarshalJSON(b []byte) error {
	var w requestJSON
	if err := jsonform.Read(b, &w); err != nil {
		return err
	}
	*r = Request{Model: w.Model, Messages: w.Messages, Choice: w.Choice, Output: w.Output, Settings: w.Settings}
	for _, t := range w.Tools {
		r.Tools = append(r.Tools, &ToolSpec{Name: t.Name, Description: t.Description, Input: t.Input, Output: t.Output})
	}
	return nil
}

// MarshalJSON writes {"message","finish","usage","model","id","requests"?}.
func (r Response) MarshalJSON() ([]byte, error) {
	return json.Marshal(responseJSON{r.Message, r.Finish, r.Usage, r.Model, r.ID, r.Requests}, jsonform.Lenient)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Response) UnmarshalJSON(b []byte) error {
	var w responseJSON
	if err := jsonform.Read(b, &w); err != nil {
		return err
	}
	switch w.Finish {
	case FinishReasonStop, FinishReasonLength, FinishReasonToolCalls, FinishReasonContentFilter, FinishReasonError,
		FinishReasonOther, "": // "" is a reply that broke off
	default:
		return fmt.Errorf("unknown finish %q; known: stop, length, tool_calls, content_filter, error, other", w.Finish)
	}
	if w.Message.Role != RoleAssistant {
		return fmt.Errorf("a reply has the role %q, want assistant", w.Message.Role)
	}
	*r = Response{Message: w.Message, Finish: w.Finish, Usage: w.Usage, Model: w.Model, ID: w.ID, Requests: w.Requests}
	return nil
}
