package llm

// json.go: the JSON forms of messages, their parts and tool choices.

import (
	stdjson "encoding/json"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl/internal/jsonform"
)

type (
	messageJSON struct {
		Role  Role             `json:"role"`
		Parts []jsontext.Value `json:"parts"`
	}
	textJSON struct {
		Type   string  `json:"type"`
		Text   string  `json:"text"`
		Opaque *Opaque `json:"opaque,omitzero"`
		Label  *Label  `json:"label,omitzero"`
	}
	mediaJSON struct {
		Type string `json:"type"`
		MIME string `json:"mime,omitzero"`
		URL  string `json:"url,omitzero"`
		Data []byte `json:"data,omitzero"`

		Label *Label `json:"label,omitzero"`
	}
	callJSON struct {
		Type     string             `json:"type"`
		ID       string             `json:"id"`
		Name     string             `json:"name"`
		Args     stdjson.RawMessage `json:"args,omitzero"`
		ArgsText *string            `json:"args_text,omitzero"`
		Opaque   *Opaque            `json:"opaque,omitzero"`
	}
	toolResultJSON struct {
		Type    string             `json:"type"`
		CallID  string             `json:"call_id"`
		Parts   []jsontext.Value   `json:"parts"`
		IsError bool               `json:"is_error,omitzero"`
		Data    stdjson.RawMessage `json:"data,omitzero"`
		Key     Key                `json:"key,omitzero"`
		LeftOut int                `json:"left_out,omitzero"`
		Label   *Label             `json:"label,omitzero"`
	}
	decisionJSON struct {
		Type    string             `json:"type"`
		Key     Key                `json:"key"`
		Digest  string             `json:"digest"`
		Approve bool               `json:"approve"`
		Args    stdjson.RawMessage `json:"args,omitzero"`
		By      string             `json:"by"`
		Reason  string             `json:"reason"`
		Result  *ToolResult        `json:"result,omitzero"`

		Identity string    `json:"identity,omitzero"`
		At       time.Time `json:"at,omitzero"`
	}
)

func partsJSON(parts []Part) ([]jsontext.Value, error) {
	out := make([]jsontext.Value, len(parts))
	for i, p := range parts {
		if p == nil {
			return nil, fmt.Errorf("part %d is nil", i)
		}
		b, err := json.Marshal(p, jsonform.Lenient)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		out[i] = b
	}
	return out, nil
}

func parsePart(b []byte) (Part, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &head, jsonform.Lenient); err != nil {
		return nil, err
	}

	switch head.Type {
	case "text":
		var p textJSON
		err := jsonform.Read(b, &p)
		return Text{p.Text, p.Opaque, shared(p.Label)}, err

	case "reasoning":
		var p textJSON
		err := jsonform.Read(b, &p)
		return Reasoning{p.Text, p.Opaque}, err

	case "media":
		var p mediaJSON
		if err := jsonform.Read(b, &p); err != nil {
			return nil, err
		}
		if (p.URL == "") == (len(p.Data) == 0) {
			return nil, fmt.Errorf("media needs exactly one of url and data")
		}
		return Media{p.MIME, p.URL, p.Data, shared(p.Label)}, nil

	case "tool_call":
		var p ToolCall
		err := p.UnmarshalJSON(b)
		return p, err

	case "tool_result":
		var p ToolResult
		err := p.UnmarshalJSON(b)
		return p, err

	case "decision":
		var p Decision
		err := p.UnmarshalJSON(b)
		return p, err

	case "":
		return nil, fmt.Errorf(`a part needs a "type"`)
	}
	return nil, fmt.Errorf("unknown part type %q; known: text, reasoning, media, tool_call, tool_result, decision", head.Type)
}

// shared returns l as Label.Shared does, for a part that was read.
func shared(l *Label) *Label {
	if l == nil {
		return nil
	}
	return l.Shared()
}

// stated returns l if it says anything, for a part that is stored.
func stated(l *Label) *Label {
	if l == nil {
		return nil
	}

	// A part without a label is a stranger's.
	namesAny := len(l.From) > 0 || len(l.Readers) > 0
	if l.By == Stranger && !namesAny {
		return nil
	}
	return l
}

func parseParts(in []jsontext.Value) ([]Part, error) {
	out := make([]Part, len(in))
	for i, b := range in {
		p, err := parsePart(b)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		out[i] = p
	}
	return out, nil
}

// MarshalJSON writes {"role","parts"}.
func (m Message) MarshalJSON() ([]byte, error) {
	parts, err := partsJSON(m.Parts)
	if err != nil {
		return nil, err
	}
	return json.Marshal(messageJSON{m.Role, parts}, jsonform.Lenient)
}

// UnmarshalJSON reads the form that MarshalJSON writes. Unknown names, roles and part types are
// errors.
func (m *Message) UnmarshalJSON(b []byte) error {
	var w messageJSON
	if err := jsonform.Read(b, &w); err != nil {
		return err
	}
	switch w.Role {
	case RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool:
	default:
		return fmt.Errorf("unknown role %q; known: system, developer, user, assistant, tool", w.Role)
	}
	parts, err := parseParts(w.Parts)
	if err != nil {
		return err
	}
	*m = Message{w.Role, parts}
	return nil
}

// MarshalJSON writes {"type":"text","text","opaque"?,"label"?}.
func (t Text) MarshalJSON() ([]byte, error) {
	return json.Marshal(textJSON{"text", t.Text, t.Opaque, stated(t.Label)}, jsonform.Lenient)
}

// MarshalJSON writes {"type":"reasoning","text","opaque"?}.
func (t Reasoning) MarshalJSON() ([]byte, error) {
	return json.Marshal(textJSON{Type: "reasoning", Text: t.Text, Opaque: t.Opaque}, jsonform.Lenient)
}

// MarshalJSON writes {"type":"media","mime","url"|"data","label"?}; data is base64.
func (m Media) MarshalJSON() ([]byte, error) {
	return json.Marshal(mediaJSON{"media", m.MIME, m.URL, m.Data, stated(m.Label)}, jsonform.Lenient)
}

// MarshalJSON writes {"type":"tool_call","id","name","args","opaque"?}. If the model's bytes are
// not JSON, args_text replaces args.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	w := callJSON{Type: "tool_call", ID: c.ID, Name: c.Name, Opaque: c.Opaque}
	if jsontext.Value(c.Args).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		w.Args = c.Args
	} else {
		s := string(c.Args)
		w.ArgsText = &s
	}
	return json.Marshal(w, jsonform.Lenient)
}

// UnmarshalJSON reads the form that MarshalJSON writes. "type" may be absent.
func (c *ToolCall) UnmarshalJSON(b []byte) error {
	var w callJSON
	if err := jsonform.Read(b, &w); err != nil {
		return err
	}
	switch {
	case w.Type != "" && w.Type != "tool_call":
		return fmt.Errorf("type is %q, want tool_call", w.Type)
	case w.Args != nil && w.ArgsText != nil:
		return fmt.Errorf("tool_call has both args and args_text")
	case w.ArgsText != nil:
		w.Args = stdjson.RawMessage(*w.ArgsText)
	}
	*c = ToolCall{w.ID, w.Name, w.Args, w.Opaque}
	return nil
}

// MarshalJSON writes {"type":"tool_result","call_id","parts","is_error"?,"data"?,"key"?,
// "left_out"?,"label"?}.
func (r ToolResult) MarshalJSON() ([]byte, error) {
	parts, err := partsJSON(r.Parts)
	if err != nil {
		return nil, err
	}
	return json.Marshal(toolResultJSON{
		Type:    "tool_result",
		CallID:  r.CallID,
		Parts:   parts,
		IsError: r.IsError,
		Data:    r.Data,
		Key:     r.Key,
		LeftOut: r.LeftOut,
		Label:   stated(r.Label),
	}, jsonform.Lenient)
}

// UnmarshalJSON reads the form that MarshalJSON writes. "type" may be absent.
func (r *ToolResult) UnmarshalJSON(b []byte) error {
	var w toolResultJSON
	if err := jsonform.Read(b, &w); err != nil {
		return err
	}
	if w.Type != "" && w.Type != "tool_result" {
		return fmt.Errorf("type is %q, want tool_result", w.Type)
	}
	parts, err := parseParts(w.Parts)
	if err != nil {
		return err
	}
	for i, p := range parts {
		switch p.(type) {
		case Text, Media:
		default:
			return fmt.Errorf("part %d: a tool_result holds text and media only", i)
		}
	}
	*r = ToolResult{
		CallID:  w.CallID,
		Parts:   parts,
		IsError: w.IsError,
		Data:    w.Data,
		Key:     w.Key,
		LeftOut: w.LeftOut,
		Label:   shared(w.Label),
	}
	return nil
}

// MarshalJSON writes {"type":"decision","key","digest","approve","args"?,"by","reason","result"?,
// "identity"?,"at"?}.
func (d Decision) MarshalJSON() ([]byte, error) {
	return json.Marshal(decisionJSON{"decision", d.Key, d.Digest, d.Approve, d.Args, d.By, d.Reason, d.Result,
		d.Identity, d.At}, jsonform.Lenient)
}

// UnmarshalJSON reads the form that MarshalJSON writes. "type" may be absent.
func (d *Decision) UnmarshalJSON(b []byte) error {
	var w decisionJSON
	if err := jsonform.Read(b, &w); err != nil {
		return err
	}
	if w.Type != "" && w.Type != "decision" {
		return fmt.Errorf("type is %q, want decision", w.Type)
	}
	*d = Decision{w.Key, w.Digest, w.Approve, w.Args, w.By, w.Reason, w.Result, w.Identity, w.At}
	return nil
}

// MarshalJSON writes "auto", "none", "required" or {"named":[…]}.
func (c ToolChoice) MarshalJSON() ([]byte, error) {
	if c.Mode == ToolNamed {
		return json.Marshal(map[string][]string{"named": c.Names}, jsonform.Lenient)
	}
	return json.Marshal(c.Mode.String())
}

// UnmarshalJSON reads the form that MarshalJSON writes.
func (c *ToolChoice) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		for m := ToolAuto; m < ToolNamed; m++ {
			if m.String() == s {
				*c = ToolChoice{Mode: m}
				return nil
			}
		}
		return fmt.Errorf(`unknown tool choice %q; known: auto, none, required, {"named":[…]}`, s)
	}

	var w struct {
		Named []string `json:"named"`
	}
	if err := jsonform.Read(b, &w); err != nil {
		return fmt.Errorf(`tool choice: %w; want "auto", "none", "required" or {"named":[…]}`, err)
	}
	if len(w.Named) == 0 {
		return fmt.Errorf(`tool choice: "named" needs at least one name`)
	}
	*c = Named(w.Named...)
	return nil
}

// String returns auto, none, required or named.
func (m ToolMode) String() string {
	switch m {
	case ToolAuto:
		return "auto"
	case ToolNone:
		return "none"
	case ToolRequired:
		return "required"
	case ToolNamed:
		return "named"
	}
	return fmt.Sprintf("ToolMode(%d)", int(m))
}
