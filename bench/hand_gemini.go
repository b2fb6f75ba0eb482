package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/pawl-go/pawl/internal/test/speed"
)

// The conversation in generateContent.

type geminiPart struct {
	Text string `json:"text,omitempty"`
	Call *struct {
		ID   string          `json:"id,omitempty"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args,omitempty"`
	} `json:"functionCall,omitempty"`
	Result *geminiResult `json:"functionResponse,omitempty"`
}

type geminiResult struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

type geminiTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parametersJsonSchema"`
}

type geminiTools struct {
	Declarations []geminiTool `json:"functionDeclarations"`
}

type geminiRequest struct {
	System   geminiContent   `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []geminiTools   `json:"tools"`
}

type geminiReply struct {
	Candidates []struct {
		Content geminiContent `json:"content"`
	} `json:"candidates"`
}

// gemini is a conversation in generateContent.
type gemini struct {
	url     string
	request geminiRequest
	reply   geminiContent // of a stream
}

func openGemini(h *hand) func(*hand) conversation {
	var tools geminiTools
	for _, t := range h.tools {
		tool := geminiTool{t.Name, t.Description, json.RawMessage(speed.Schema)}
		tools.Declarations = append(tools.Declarations, tool)
	}
	before := h.history()
	method := ":generateContent"
	if h.task.Stream {
		method = ":streamGenerateContent?alt=sse"
	}
	return func(h *hand) conversation {
		var contents []geminiContent
		for _, m := range before {
			role := m[0]
			if role == "assistant" {
				role = "model"
			}
			contents = append(contents, geminiContent{role, []geminiPart{{Text: m[1]}}})
		}
		return &gemini{
			url: h.task.URL + "/models/" + h.task.Job.Model() + method,
			request: geminiRequest{System: geminiContent{Parts: []geminiPart{{Text: speed.Instructions}}},
				Contents: contents, Tools: []geminiTools{tools}},
		}
	}
}

func (c *gemini) post() (string, []string) { return c.url, []string{"X-Goog-Api-Key", "load"} }
func (c *gemini) body() any                { return c.request }

func (c *gemini) whole(body io.Reader) ([]handCall, string, error) {
	var r geminiReply
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		return nil, "", err
	}
	if len(r.Candidates) == 0 {
		return nil, "", errors.New("the reply has no candidate")
	}
	calls, text := c.add(r.Candidates[0].Content)
	return calls, text, nil
}

func (c *gemini) event(data []byte) error {
	var r geminiReply
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	for _, candidate := range r.Candidates {
		c.reply.Parts = append(c.reply.Parts, candidate.Content.Parts...)
	}
	return nil
}

func (c *gemini) finish() ([]handCall, string, error) {
	calls, text := c.add(c.reply)
	c.reply = geminiContent{}
	return calls, text, nil
}

// add appends a reply.
func (c *gemini) add(r geminiContent) (calls []handCall, text string) {
	r.Role = "model"
	c.request.Contents = append(c.request.Contents, r)
	for _, p := range r.Parts {
		if p.Call != nil {
			calls = append(calls, handCall{p.Call.ID, p.Call.Name, p.Call.Args})
		}
		text += p.Text
	}
	return calls, text
}

func (c *gemini) results(calls []handCall, results []string) {
	m := geminiContent{Role: "user"}
	for i, call := range calls {
		result := &geminiResult{call.id, call.name, map[string]string{"output": results[i]}}
		m.Parts = append(m.Parts, geminiPart{Result: result})
	}
	c.request.Contents = append(c.request.Contents, m)
}
