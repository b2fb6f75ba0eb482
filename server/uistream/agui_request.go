package uistream

// agui_request.go: the requests of AG-UI.

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// RunInput is the body of a POST of an AG-UI client (RunAgentInput). Other members are ignored.
type RunInput struct {
	// ThreadID is the client's ID of the conversation.
	ThreadID string
	// RunID is the client's ID of the request.
	RunID string
	// ProtocolVersion is the version of the client. "" means a client before AG-UI 1.0.
	ProtocolVersion string
	// Messages are the conversation so far.
	Messages []RunMessage
	// Context is what the application states. Empty means nothing.
	Context []struct{ Description, Value string }
	// Tools are the tools that the client executes.
	Tools []struct {
		Name, Description string
		Parameters        json.RawMessage
	}
	// Resume has the answers to interrupts. Status is resolved or cancelled.
	Resume []struct {
		InterruptID, Status string
		Payload             json.RawMessage
	}
}

// RunMessage is a message of AG-UI.
type RunMessage struct {
	// ID is the client's ID, or the ID that a stream gave to the message.
	ID string
	// Role is user, assistant, system, developer, tool, reasoning or activity.
	Role string
	// ToolCallID is the call whose result a message of the role tool is.
	ToolCallID string
	// Error says why that call failed. "" means that it did not fail.
	Error string
	// Content is text, or a list of parts.
	Content json.RawMessage
	// ToolCalls are the calls of the assistant.
	ToolCalls []struct{ ID string }

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

// LLM returns the texts and files of m, without its calls, with the labels of a client's message
// (llm.FromClient). A message without parts has no meaning for a model.
func (m *RunMessage) LLM() (out llm.Message, err error) {
	if m.Role == "activity" || m.Role == "reasoning" || m.Role == "tool" {
		return out, nil
	}
	out, err = (&Message{Role: strings.Replace(m.Role, "developer", "system", 1)}).LLM()
	if err == nil && string(m.Content) != `""` {
		out.Parts, err = Content(m.Content)
	}
	return llm.FromClient(out)[0], err
}

// Content parses the content of a message of AG-UI or of OpenAI's APIs: text, or a list of parts.
func Content(raw json.RawMessage) (parts []llm.Part, err error) {
	var text string
	var list []contentPart
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case json.Unmarshal(raw, &text) == nil:
		return []llm.Part{llm.Text{Text: text}}, nil
	case json.Unmarshal(raw, &list) != nil:
		return nil, errors.New("content must be text or a list of parts")
	}

	for _, p := range list {
		part, err := p.llm()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// contentPart is a part of the content of a message, in the forms of AG-UI and of OpenAI's APIs.
type contentPart struct {
	Type     string
	Text     string
	Refusal  string
	ImageURL json.RawMessage `json:"image_url"` // the URL, alone or in an object
	Source   struct{ Type, Value, MIMEType string }
	File     *filePart // of Chat Completions
	filePart           // of Responses
}

// filePart is a file in the form of OpenAI's APIs.
type filePart struct {
	Data string `json:"file_data"` // a data URL, or base64
	URL  string `json:"file_url"`
	ID   string `json:"file_id"`
	Name string `json:"filename"`
}

// llm converts the file. Its type is in its data URL, the end of its name or its content.
func (f *filePart) llm() (llm.Part, error) {
	named, _, _ := strings.Cut(mime.TypeByExtension(path.Ext(cmp.Or(f.Name, f.URL))), ";")
	switch {
	case strings.HasPrefix(f.Data, "data:"):
		return mediaPart(f.Data, "")
	case f.Data != "":
		media, err := Media("data:;base64,"+f.Data, named)
		if media.MIME == "" {
			media.MIME = http.DetectContentType(media.Data)
		}
		return media, err
	case f.URL != "":
		return mediaPart(f.URL, named)
	case f.ID != "":
		return nil, errors.New("a file has a file_id, and no files are stored here: send its file_data or file_url")
	}
	return nil, errors.New("a file has neither file_data nor file_url")
}

// llm converts the part.
func (p *contentPart) llm() (llm.Part, error) {
	switch p.Type {
	case "text", "input_text", "output_text", "refusal":
		return llm.Text{Text: p.Text + p.Refusal}, nil

	case "image_url", "input_image":
		var at struct{ URL string }
		alone := json.Unmarshal(p.ImageURL, &at.URL) == nil
		known := alone || json.Unmarshal(p.ImageURL, &at) == nil
		if !known || at.URL == "" {
			return nil, errors.New("an image has no URL")
		}
		return mediaPart(at.URL, p.Source.MIMEType)

	case "input_file":
		return p.filePart.llm()
	case "file":
		if p.File == nil {
			return nil, errors.New("a part of the type file has no file")
		}
		return p.File.llm()

	case "image", "audio", "video", "document":
		url := p.Source.Value
		if p.Source.Type == "data" {
			url = "data:;base64," + url
		}
		return mediaPart(url, p.Source.MIMEType)
	}
	return nil, errors.New("content of the type " + p.Type + " is not taken: text, images and files are")
}

// mediaPart returns the media at a URL as a part.
func mediaPart(url, mime string) (llm.Part, error) {
	media, err := Media(url, mime)
	if err != nil {
		return nil, err
	}
	return media, nil
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
	ds, last := r.results(run, o)
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
		ds = append(ds, resumed(key, digest, a.Status, a.Payload)...)
	}
	o.After = cmp.Or(o.After, last)
	maps.DeleteFunc(o.Open, func(key llm.Key, _ bool) bool { return stepOf(key) != o.After })
	return ds
}

// results returns the results of tools of the client in the messages, and the last step of the run
// in them. It sets Open of o to the calls that have no result. Clients repeat a result under
// another message ID; the first result of a call counts.
func (r *RunInput) results(run string, o *Options) (ds []llm.Decision, last int) {
	o.Open = map[llm.Key]bool{}
	answered := map[llm.Key]bool{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			if of, key := RunOf(c.ID); of == run {
				o.Open[key] = false
				last = max(last, stepOf(key))
			}
		}

		of, key := RunOf(m.ToolCallID)
		if of != run || m.Role != "tool" || answered[key] {
			continue
		}
		answered[key] = true
		delete(o.Open, key)
		res := ResultOf(m.Content)
		if m.Error != "" {
			res = llm.ErrorResult(m.Error)
		}
		ds = append(ds, llm.Decision{Key: key, Result: &res})
	}
	return ds, last
}

// resumed returns the answer to an interrupt as a decision and as a result, of which one fits the
// call.
func resumed(key llm.Key, digest, status string, payload json.RawMessage) []llm.Decision {
	var verdict struct {
		Approved *bool
		Reason   string
		Args     json.RawMessage
	}
	known := json.Unmarshal(payload, &verdict) == nil && verdict.Approved != nil
	d := llm.Decision{Key: key, Digest: digest}
	res := ResultOf(payload)

	switch {
	case status == "cancelled":
		d.Reason = cmp.Or(verdict.Reason, "cancelled")
		res = llm.ErrorResult("The user cancelled the call.")
	case known && *verdict.Approved:
		d.Approve = true
		d.Args = verdict.Args
	case known:
		d.Reason = verdict.Reason
	default:
		d.Key = "" // the question is asked again
	}
	return []llm.Decision{d, {Key: key, Result: &res}}
}
