package server_test

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/contract"
)

// visitMessages is a client of Anthropic's Messages.
func visitMessages(t *testing.T, s *contract.Scene, stream bool) contract.Visit {
	c := &modelAPI{v: scene(t, s), path: "/v1/messages", read: readMessage}
	var messages []any
	send := func() contract.Shown {
		body := object{"model": s.Name, "max_tokens": 4096, "messages": messages}
		if stream {
			body["stream"] = true
		}
		return c.send(body, 0)
	}
	var last contract.Shown
	return contract.Visit{
		Say: func(text string) contract.Shown {
			if len(messages) > 0 {
				messages = append(messages, object{"role": "assistant", "content": last.Text})
			}
			messages = append(messages, object{"role": "user", "content": text})
			last = send()
			return last
		},
		Reply: func(answers []contract.Answer) contract.Shown {
			if answers[0].Result == "" {
				return c.decided(answers)
			}
			q := answers[0].Question
			messages = append(messages,
				object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": q.Key,
					"name": q.Tool, "input": json.RawMessage(q.Args)}}},
				object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": q.Key,
					"content": answers[0].Result}}})
			return send()
		},
	}
}

// messageBlock is a block of a message of Anthropic's API.
type messageBlock struct {
	Type, Text, ID, Name string
	Input                json.RawMessage
}

// messageForm is a message of Anthropic's API, or an event of its stream.
type messageForm struct {
	Type    string
	Stop    string `json:"stop_reason"`
	Content []messageBlock
	Block   messageBlock `json:"content_block"`
	Delta   struct {
		Text string
		Args string `json:"partial_json"`
		Stop string `json:"stop_reason"`
	}
	Usage struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Read   int `json:"cache_read_input_tokens"`
		Wrote  int `json:"cache_creation_input_tokens"`
	}
	Error *struct{ Code, Message string }
}

// readMessage returns what a reply shows.
func readMessage(_ int, reply string) (shown contract.Shown) {
	var blocks []messageBlock
	for _, data := range frames(reply) {
		var part messageForm
		if json.Unmarshal([]byte(data), &part) != nil {
			continue
		}
		if part.Error != nil {
			return modelError(part.Error.Code, part.Error.Message)
		}
		blocks = append(blocks, part.Content...)
		switch part.Type {
		case "content_block_start":
			part.Block.Input = nil // it follows
			blocks = append(blocks, part.Block)
		case "content_block_delta":
			last := &blocks[len(blocks)-1]
			last.Text += part.Delta.Text
			last.Input = append(last.Input, part.Delta.Args...)
		}
		u := part.Usage
		shown.Tokens = cmp.Or(u.Input+u.Output+u.Read+u.Wrote, shown.Tokens)
		shown.End = cmp.Or(endOfMessage(cmp.Or(part.Stop, part.Delta.Stop)), shown.End)
	}

	for _, b := range blocks {
		shown.Text += b.Text
		if b.Type == "tool_use" {
			shown.Questions = append(shown.Questions, contract.Question{Key: b.ID, Tool: b.Name, Args: string(b.Input)})
			shown.Calls = append(shown.Calls, b.Name+" "+string(b.Input))
		}
	}
	shown.Output = outputOf(shown.Text)
	return shown
}

// endOfMessage returns the class of a stop reason.
func endOfMessage(reason string) pawl.StopClass {
	return map[string]pawl.StopClass{"end_turn": pawl.ClassAnswered, "max_tokens": pawl.ClassLimited,
		"tool_use": pawl.ClassWaiting, "refusal": pawl.ClassFailed}[reason]
}
