package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/gemini"
)

var reader = &wiretest.Reader{Read: func(_ bool, body string) (wiretest.Reading, error) {
	r,
		err := readAnswer(body)
	return r.Reading, err
}, Error: errorText, Back: goesBack,
	Call: func(c llm.ToolCall) string {
		id := c.ID
		if strings.HasPrefix(id, "call_") && len(id) < 9 {
			id = "" // made by Response.Add
		}
		return id + " " + c.Name + " " + wiretest.Canonical(c.Args)
	},
	Noted: func(c pawltest.RecordedCall) string { return c.ID + " " + c.Name + " " + recordedArgs(c.Args) },
	Kept:  signature}

// signature returns the signature that a part keeps.
func signature(p llm.Part) []string {
	var o *llm.Opaque
	switch p := p.(type) {
	case llm.Text:
		o = p.Opaque
	case llm.Reasoning:
		o = p.Opaque
	case llm.ToolCall:
		o = p.Opaque
	}
	if o == nil {
		return nil
	}
	var kept struct {
		Signature string `json:"thoughtSignature"`
		Media     struct {
			Signature string `json:"thoughtSignature"`
		} `json:"ofMedia"`
	}
	if err := json.Unmarshal(o.Data, &kept); err != nil || o.Provider != "gemini" {
		return []string{"no object of gemini's: " + string(o.Data)}
	}
	if s := kept.Signature + kept.Media.Signature; s != "" {
		return []string{s}
	}
	return nil
}

// Every recorded reply decodes to the result of an independent reader, and is sent back unchanged.
func TestRecordedAnswers(t *testing.T) {
	soak.Sequential(t)
	wiretest.Answers(t, generateWire, reader, 400, nil)
}

// recordedArgs are the recorder's arguments: an object, nothing, or paths if they came in pieces.
func recordedArgs(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return "{}"
	}
	var flat map[string]json.RawMessage
	if json.Unmarshal(raw, &flat) != nil {
		return wiretest.Canonical(raw)
	}
	for path := range flat {
		if !strings.HasPrefix(path, "$.") {
			return wiretest.Canonical(raw)
		}
	}
	root := map[string]any{}
	for path, value := range flat {
		var text string
		if json.Unmarshal(value, &text) == nil {
			set(root, path, text)
		} else {
			set(root, path, json.Number(value))
		}
	}
	b, _ := json.Marshal(root)
	return wiretest.Canonical(b)
}

// goesBack describes how the parts of a whole reply differ when they are sent back; "" means that
// they do not. Texts that are empty and alone are left out, and missing arguments are an empty
// object.
func goesBack(body []byte, resp *llm.Response) string {
	want, err := readAnswer(string(body))
	if err != nil || want.parts == nil {
		return ""
	}
	var kept []string
	for _, p := range want.parts {
		if p == `{"text":""}` || p == `{}` {
			continue
		}
		kept = append(kept, p)
	}
	b, err := gemini.EncodeGenerate(&llm.Request{Model: "gemini-2.5-flash", Messages: []llm.Message{resp.Message, llm.User("go on")}})
	if err != nil {
		return "it cannot be sent back: " + err.Error()
	}
	var sent struct {
		Contents []struct {
			Role  string
			Parts []json.RawMessage
		}
	}
	if err := json.Unmarshal(b, &sent); err != nil {
		return err.Error()
	}
	var got []string
	if sent.Contents[0].Role == "model" {
		for _, p := range sent.Contents[0].Parts {
			got = append(got, wiretest.Canonical(p))
		}
	}
	if g, w := strings.Join(got, "\n"), strings.Join(kept, "\n"); g != w {
		return "sent back as\n" + g + "\nwant\n" + w
	}
	return ""
}

// The negative control: the comparison detects wrong readings.
func TestComparisonFindsDifferences(t *testing.T) {
	signed := &llm.Opaque{Provider: "gemini", Data: []byte(`{"thoughtSignature":"c2ln"}`)}
	wiretest.AnswersControl(t, generateWire, reader, `{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look."},
		{"functionCall":{"id":"a","name":"look","args":{"at": 1}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}],
		"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2,"cachedContentTokenCount":4}}`,
		pawltest.RecordedCall{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}, map[string]func(*llm.Response){
			"thought": func(r *llm.Response) { r.Message.Parts[0] = llm.Reasoning{Text: "h"} },
			"signature": func(r *llm.Response) {
				r.Message.Parts[2] = llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}
			},
			"a signature on another part": func(r *llm.Response) {
				r.Message.Parts[1], r.Message.Parts[2] = llm.Text{Text: "I look.", Opaque: signed},
					llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}
			},
		})
}
