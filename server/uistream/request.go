package uistream

// request.go: the requests of the AI SDK.

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// Request is the body of a POST of useChat. Other members are ignored.
type Request struct {
	// ID is the ID of the conversation.
	ID string `json:"id"`
	// Agent is the name of the agent. "" means the agent of the address.
	Agent string `json:"agent"`
	// Messages are the conversation so far.
	Messages []Message `json:"messages"`
	// Trigger is submit-message or regenerate-message.
	Trigger string `json:"trigger"`
	// Tools are the tools that the page executes. Nil means none.
	Tools PageTools `json:"tools"`
	// System is what the page adds to the instructions of the agent. "" means nothing.
	System string `json:"system"`
	// Pawl has what pages of this project add: arguments that a person has changed, by approval ID.
	Pawl struct {
		Edits map[string]json.RawMessage `json:"edits"`
	} `json:"pawl"`
}

// PageTool is a tool that the page executes.
type PageTool struct {
	// Name is the name of the tool.
	Name string `json:"name"`
	// Description says what the tool does.
	Description string `json:"description,omitzero"`
	// Parameters is the JSON Schema of the arguments. Empty means any object.
	Parameters json.RawMessage `json:"parameters,omitzero"`
}

// PageTools are the tools of a page. Their JSON is a list in OpenAI's form, or an object with the
// name of each tool and its description and parameters, as assistant-ui sends it.
type PageTools []PageTool

// UnmarshalJSON reads either form. The tools of an object are in the order of their names, so that
// equal requests have equal tools.
func (t *PageTools) UnmarshalJSON(b []byte) error {
	*t = nil
	var named map[string]PageTool
	if json.Unmarshal(b, &named) == nil {
		for _, name := range slices.Sorted(maps.Keys(named)) {
			tool := named[name]
			tool.Name = name
			*t = append(*t, tool)
		}
		return nil
	}

	var list []struct {
		Function PageTool `json:"function"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return errors.New("tools are neither a list in OpenAI's form nor an object of names and tools")
	}
	for _, entry := range list {
		*t = append(*t, entry.Function)
	}
	return nil
}

// Message is a UIMessage.
type Message struct {
	// ID is the ID of the message; of an assistant's, the ID of its run.
	ID string `json:"id"`
	// Role is user, assistant or system.
	Role string `json:"role"`
	// Parts are the texts, files and calls of the message.
	Parts []Part `json:"parts"`
	// Metadata is what the stream said of the message. Nil means nothing.
	Metadata any `json:"metadata,omitzero"`
}

// Part is a part of a UIMessage, with the members that the server reads.
type Part struct {
	// Type is text, file, tool-NAME, dynamic-tool, or another, which is ignored.
	Type string `json:"type"`
	// Text is the text of a part of the type text.
	Text string `json:"text"`
	// URL is where a file is. It may be a data URL.
	URL string `json:"url"`
	// MediaType is the MIME type of a file. "" means the type of its data URL.
	MediaType string `json:"mediaType"`
	// ToolCallID is the key of a call. "" means that the part is no call.
	ToolCallID string `json:"toolCallId"`
	// State says how far the call is in the client.
	State string `json:"state"`
	// Output is the result of a call that the client has executed.
	Output json.RawMessage `json:"output"`
	// ErrorText says why such a call failed.
	ErrorText string `json:"errorText"`
	// Approval is the answer of a person to the question of a call.
	Approval struct {
		ID       string `json:"id"`
		Approved bool   `json:"approved"`
		Reason   string `json:"reason"`
	} `json:"approval"`
}

// LLM returns the texts and files of m, without its calls, with the labels of a client's message
// (llm.FromClient).
func (m *Message) LLM() (llm.Message, error) {
	roles := map[string]llm.Role{"user": llm.RoleUser, "assistant": llm.RoleAssistant, "system": llm.RoleSystem}
	out := llm.Message{Role: roles[m.Role]}
	if out.Role == "" {
		return out, fmt.Errorf("a message has the role %q; user, assistant and system are right", m.Role)
	}
	for _, p := range m.Parts {
		switch {
		case p.Type == "text":
			out.Parts = append(out.Parts, llm.Text{Text: p.Text})
		case p.Type == "file":
			media, err := Media(p.URL, p.MediaType)
			if err != nil {
				return out, err
			}
			out.Parts = append(out.Parts, media)
		}
	}
	return llm.FromClient(out)[0], nil
}

// Media returns the media at a URL, which may be a data URL.
func Media(url, mime string) (llm.Media, error) {
	data, ok := strings.CutPrefix(url, "data:")
	if !ok {
		if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
			return llm.Media{}, fmt.Errorf("a file has the URL %.40q; data, http and https are right", url)
		}
		return llm.Media{URL: url, MIME: mime}, nil
	}
	kind, text, ok := strings.Cut(data, ";base64,")
	b, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		return llm.Media{}, fmt.Errorf("the data of a file is not base64")
	}
	if mime == "" {
		mime = kind
	}
	return llm.Media{MIME: mime, Data: b}, nil
}

// Answers returns the answers in the last message: approvals, and results of tools of the page. It
// sets After and Open of o for the stream that follows. Of several answers to a call the first
// counts.
func (r *Request) Answers(o *Options) (ds []llm.Decision) {
	o.Open = map[llm.Key]bool{}
	answered := map[llm.Key]bool{}
	for _, p := range r.Messages[len(r.Messages)-1].Parts {
		key := llm.Key(p.ToolCallID)
		if key == "" || answered[key] {
			continue
		}
		o.After = max(o.After, stepOf(key))

		switch p.State {
		case "approval-requested", "input-available", "input-streaming":
			o.Open[key] = p.Approval.ID != ""
		case "approval-responded":
			o.Open[key] = true
			answered[key] = true
			ds = append(ds, r.verdict(&p))
		case "output-available", "output-error":
			answered[key] = true
			res := p.result()
			ds = append(ds, llm.Decision{Key: key, Result: &res})
		}
	}
	return ds
}

// result returns the result of a call that the page has executed.
func (p *Part) result() llm.ToolResult {
	if p.State == "output-error" {
		return llm.ErrorResult(p.ErrorText)
	}
	return ResultOf(p.Output)
}

// verdict returns the answer of a person to the question of a call.
func (r *Request) verdict(p *Part) llm.Decision {
	key, digest := ParseApprovalID(p.Approval.ID)
	d := llm.Decision{Key: key, Digest: digest, Approve: p.Approval.Approved}
	if d.Approve {
		d.Args = r.Pawl.Edits[p.Approval.ID]
	} else {
		d.Reason = p.Approval.Reason
	}
	return d
}

// ResultOf returns the result of a tool of the page: a text, or another JSON value.
func ResultOf(raw json.RawMessage) llm.ToolResult {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return llm.TextResult(text)
	}
	res := llm.TextResult(string(raw))
	res.Data = raw
	return res
}

// stepOf returns the step in a key, or in what RunOf returns of the ID of a message.
func stepOf(key llm.Key) int {
	parts := strings.FieldsFunc(string(key)+"/0/0", func(r rune) bool { return r == '/' || r == '.' })
	n, _ := strconv.Atoi(parts[1]) // a key of a client may be anything
	return n
}
