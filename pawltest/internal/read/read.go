// Package read reads the bodies of requests to the simulated providers, as a provider would
// understand them. It shares no code with the adapters.
package read

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// Request reads the body of a request to api into the neutral form, as the provider would
// understand it. Package pawltest documents it, at ReadRequest.
func Request(api string, body []byte) (*llm.Request, error) {
	switch api {
	case wire.Chat:
		return readChat(body)
	case wire.Responses:
		return readResponses(body)
	case wire.Anthropic:
		return readAnthropic(body)
	case wire.Gemini:
		return readGemini(body)
	}
	return nil, fmt.Errorf("unknown API %q; known: %s", api, strings.Join(wire.APIs(), ", "))
}

// wireTool is a function, nested or flat.
type wireTool struct {
	Type     string        `json:"type"`
	Function *wireFunction `json:"function"`
	wireFunction
}

type wireFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// readTools reads the functions among tools. Other tools run at the provider.
func readTools(list []wireTool) []*llm.ToolSpec {
	var tools []*llm.ToolSpec
	for _, t := range list {
		f := t.wireFunction
		if t.Function != nil {
			f = *t.Function
		} else if t.Type != "function" {
			continue
		}
		if bytes.Equal(f.Parameters, []byte("null")) {
			f.Parameters = nil
		}
		tools = append(tools, &llm.ToolSpec{Name: f.Name, Description: f.Description, Input: f.Parameters})
	}
	return tools
}

// readChoice reads tool_choice in any of its shapes.
func readChoice(raw json.RawMessage) (llm.ToolChoice, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return llm.ToolChoice{}, nil
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		switch word {
		case "auto":
			return llm.ToolChoice{}, nil
		case "none":
			return llm.ToolChoice{Mode: llm.ToolNone}, nil
		case "required", "any":
			return llm.ToolChoice{Mode: llm.ToolRequired}, nil
		}
		return llm.ToolChoice{}, fmt.Errorf("unknown tool_choice %q", word)
	}
	type allowed struct {
		Mode  string     `json:"mode"`
		Tools []wireTool `json:"tools"`
	}
	var c struct {
		wireTool
		allowed
		Allowed *allowed `json:"allowed_tools"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return llm.ToolChoice{}, fmt.Errorf("tool_choice: %w", err)
	}
	set := c.allowed
	if c.Allowed != nil {
		set = *c.Allowed
	}
	switch {
	case c.Type == "allowed_tools" && set.Mode == "auto":
		return llm.ToolChoice{}, nil
	case c.Type == "allowed_tools":
		var names []string
		for _, t := range readTools(set.Tools) {
			names = append(names, t.Name)
		}
		return llm.Named(names...), nil
	case c.Function != nil:
		return llm.Named(c.Function.Name), nil
	}
	return llm.Named(c.Name), nil
}

// wirePart is a piece of content of either API.
type wirePart struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking []wirePart      `json:"thinking"` // of Mistral's models
	Refusal  string          `json:"refusal"`
	ImageURL json.RawMessage `json:"image_url"` // {"url"} or a string
	FileID   string          `json:"file_id"`   // uploaded before; only the provider has it
	FileURL  string          `json:"file_url"`
	FileData string          `json:"file_data"`
	Audio    struct {
		Data, Format string
	} `json:"input_audio"`
	File struct {
		FileID   string `json:"file_id"`
		FileData string `json:"file_data"`
	} `json:"file"`
}

// readText reads content that is a string or null. ok is false for content of another form.
func readText(raw json.RawMessage) (parts []llm.Part, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil, false
	}
	if s != "" {
		parts = []llm.Part{llm.Text{Text: s}}
	}
	return parts, true
}

// readContent reads a string, a list of parts, or null.
func readContent(raw json.RawMessage) ([]llm.Part, error) {
	if parts, ok := readText(raw); ok {
		return parts, nil
	}
	var list []wirePart
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var parts []llm.Part
	for _, p := range list {
		switch p.Type {
		case "text", "input_text", "output_text":
			parts = append(parts, llm.Text{Text: p.Text})
		case "thinking":
			var thought string
			for _, t := range p.Thinking {
				thought += t.Text
			}
			parts = append(parts,
				llm.Reasoning{Text: thought, Opaque: &llm.Opaque{Provider: wire.Chat, Data: json.RawMessage(`{"field":"thinking"}`)}})
		case "refusal":
			parts = append(parts, llm.Text{Text: p.Refusal})
		case "image_url", "input_image":
			if p.FileID != "" {
				parts = append(parts, llm.Media{MIME: "image/*", URL: p.FileID})
				break
			}
			var url string
			if json.Unmarshal(p.ImageURL, &url) != nil {
				var o struct{ URL string }
				if err := json.Unmarshal(p.ImageURL, &o); err != nil {
					return nil, fmt.Errorf("image_url: %w", err)
				}
				url = o.URL
			}
			parts = append(parts, media(url, ""))
		case "input_audio":
			parts = append(parts, media("data:audio/"+p.Audio.Format+";base64,"+p.Audio.Data, ""))
		case "file", "input_file":
			if id := p.FileID + p.File.FileID; id != "" {
				parts = append(parts, llm.Media{URL: id})
				break
			}
			url := p.FileURL
			if p.FileData != "" {
				url = p.FileData
			} else if p.File.FileData != "" {
				url = p.File.FileData
			}
			parts = append(parts, media(url, "application/pdf"))
		}
	}
	return parts, nil
}

// media reads a URL, including the data of a data URL.
func media(url, mime string) llm.Media {
	if head, data, ok := strings.Cut(url, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		// Some clients write the form for addresses.
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(data, "="))
		if b, err := base64.RawStdEncoding.DecodeString(plain); err == nil {
			return llm.Media{MIME: strings.TrimPrefix(head, "data:"), Data: b}
		}
	}
	return llm.Media{MIME: mime, URL: url}
}

// joiner joins a flat history: replies in one message, results in one message.
type joiner struct{ messages []llm.Message }

func (j *joiner) add(role llm.Role, parts ...llm.Part) {
	if n := len(j.messages); n > 0 && j.messages[n-1].Role == role &&
		(role == llm.RoleAssistant || role == llm.RoleTool) {
		j.messages[n-1].Parts = append(j.messages[n-1].Parts, parts...)
		return
	}
	j.messages = append(j.messages, llm.Message{Role: role, Parts: parts})
}
