package uistream

// agui_request.go: the requests of AG-UI.

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// RunInput is the body of a POST of an AG-UI client (RunAgentInput). Other members are ignored.
type RunInput struct {
	ThreadID, RunID string
	ProtocolVersion string // "" means a client before AG-UI 1.0
	Messages        []RunMessage
	Context         []struct{ Description, Value string }
	Tools           []struct { // the client executes them
		Name, Description string
		Parameters        json.RawMessage
	}
	Resume []struct {
		InterruptID, Status string // resolved or cancelled
		Payload             json.RawMessage
	}
}

// RunMessage is a message of AG-UI.
type RunMessage struct {
	ID, Role, ToolCallID, Error string
	Content                     json.RawMessage // text, or a list of parts
	ToolCalls                   []struct{ ID string }

	all map[string]any
}

// UnmarshalJSON keeps all members, because a snapshot for the client contains them.
func (m *RunMessage) UnmarshalJSON(b []byte) error {
	type plain RunMessage
	return errors.Join(json.Unmarshal(b, (*plain)(m)), json.Unmarshal(b, &m.all))
}

// Options returns the Options of the stream that answers the request.
func (r *RunInput) Options() Options {
	o := Options{Protocol: AGUI0, Thread: r.ThreadID, Request: r.RunID, Run: r.RunID}
	if r.ProtocolVersion != "" {
		o.Protocol = AGUI1
	}
	for _, m := range r.Messages {
		o.Messages = append(o.Messages, m.all)
	}
	return o
}

// LLM returns the texts and files of m, without its calls. A message without parts has no meaning
// for a model.
func (m *RunMessage) LLM() (out llm.Message, err error) {
	if m.Role == "activity" || m.Role == "reasoning" || m.Role == "tool" {
		return out, nil
	}
	out, err = (&Message{Role: strings.Replace(m.Role, "developer", "system", 1)}).LLM()
	if err == nil && string(m.Content) != `""` {
		out.Parts, err = Content(m.Content)
	}
	return out, err
}

// Content parses the content of a message of AG-UI or of OpenAI's APIs: text, or a list of parts.
func Content(raw json.RawMessage) (parts []llm.Part, err error) {
	var text string
	var list []struct {
		Type, Text, Refusal string
		ImageURL            json.RawMessage `json:"image_url"` // the URL, alone or in an object
		Source              struct{ Type, Value, MIMEType string }
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	} else if json.Unmarshal(raw, &text) == nil {
		return []llm.Part{llm.Text{Text: text}}, nil
	} else if json.Unmarshal(raw, &list) != nil {
		return nil, errors.New("content must be text or a list of parts")
	}
	for _, p := range list {
		var at struct{ URL string }
		switch p.Type {
		case "text", "input_text", "output_text", "refusal":
			parts = append(parts, llm.Text{Text: p.Text + p.Refusal})
			continue
		case "image_url", "input_image":
			if json.Unmarshal(p.ImageURL, &at.URL) != nil && json.Unmarshal(p.ImageURL, &at) != nil || at.URL == "" {
				return nil, errors.New("an image has no URL")
			}
		case "image", "audio", "video", "document":
			at.URL = p.Source.Value
			if p.Source.Type == "data" {
				at.URL = "data:;base64," + p.Source.Value
			}
		default:
			return nil, errors.New("content of the type " + p.Type + " is not taken: text and images are")
		}
		media, err := Media(at.URL, p.Source.MIMEType)
		if err != nil {
			return nil, err
		}
		parts = append(parts, media)
	}
	return parts, nil
}

// RunOf returns the run and the key in the ID of a message or a call of a stream of AG-UI.
func RunOf(id string) (run string, key llm.Key) {
	if i := strings.IndexAny(id, "./"); i >= 0 {
		return id[:i], llm.Key("run" + id[i:])
	}
	return id, ""
}

// Answers returns the answers to calls of a run: results of tools of the client, and to each
// interrupt that was answered a decision and a result, of which one fits the call. It sets After
// and Open of o for the stream that follows.
func (r *RunInput) Answers(run string, o *Options) (ds []llm.Decision) {
	last := 0
	o.Open = map[llm.Key]bool{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			if of, key := RunOf(c.ID); of == run {
				o.Open[key], last = false, max(last, stepOf(key))
			}
		}
		if of, key := RunOf(m.ToolCallID); of == run && m.Role == "tool" {
			delete(o.Open, key)
			res := ResultOf(m.Content)
			if m.Error != "" {
				res = llm.ErrorResult(m.Error)
			}
			ds = append(ds, llm.Decision{Key: key, Result: &res})
		}
	}
	for _, a := range r.Resume {
		id, digest := ParseApprovalID(a.InterruptID)
		of, key := RunOf(string(id))
		if of != run {
			continue
		}
		if _, open := o.Open[key]; open || last == 0 {
			o.Open[key] = true
		}
		o.After = max(o.After, stepOf(key))
		var yes struct {
			Approved *bool
			Reason   string
			Args     json.RawMessage
		}
		known := json.Unmarshal(a.Payload, &yes) == nil && yes.Approved != nil
		d := llm.Decision{Key: key, Digest: digest}
		res := ResultOf(a.Payload)
		switch {
		case a.Status == "cancelled":
			d.Reason, res = cmp.Or(yes.Reason, "cancelled"), llm.ErrorResult("The user cancelled the call.")
		case known && *yes.Approved:
			d.Approve, d.Args = true, yes.Args
		case known:
			d.Reason = yes.Reason
		default:
			d.Key = "" // the question is asked again
		}
		ds = append(ds, d, llm.Decision{Key: key, Result: &res})
	}
	o.After = cmp.Or(o.After, last)
	maps.DeleteFunc(o.Open, func(key llm.Key, _ bool) bool { return stepOf(key) != o.After })
	return ds
}
