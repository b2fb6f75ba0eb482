package reply

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// created is the time in every reply: a simulator has no clock.
const created = 1700000000

// asksForUsage reports whether a Chat request asks for a chunk with the usage.
func asksForUsage(body []byte) bool {
	var w struct {
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	return json.Unmarshal(body, &w) == nil && w.StreamOptions.IncludeUsage
}

// chatBody writes a chat.completion.
func (r *Reply) chatBody(resp *llm.Response) []byte {
	message := wire.Object{"role": "assistant", "content": nil, "refusal": nil}
	var calls []wire.Object
	text := ""
	thought := ""
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case llm.Text:
			text += p.Text
			message["content"] = text
		case llm.Reasoning:
			thought += p.Text
			message["reasoning_content"] = thought
		case llm.ToolCall:
			calls = append(calls, wire.Object{"id": p.ID, "type": "function",
				"function": wire.Object{"name": p.Name, "arguments": string(p.Args)}})
		}
	}
	if calls != nil {
		message["tool_calls"] = calls
	} else if message["content"] == nil {
		message["content"] = ""
	}
	return wire.Marshal(wire.Object{"id": "chatcmpl-" + r.ID, "object": "chat.completion", "created": created, "model": r.Request.Model,
		"choices": []wire.Object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": chatFinish(resp.Finish)}},
		"usage":   chatUsage(resp.Usage), "system_fingerprint": nil})
}

// chatEvents writes chat.completion.chunks.
func (r *Reply) chatEvents(d llm.Delta) []Event {
	var out []Event
	if !r.began {
		r.began = true
		out = append(out, r.chunk(wire.Object{"role": "assistant", "content": "", "refusal": nil}, nil))
	}
	if d.Part != nil {
		p, fragment, begins := r.part(d)
		switch part := d.Part.(type) {
		case llm.Text:
			out = append(out, r.chunk(wire.Object{"content": fragment}, nil))
		case llm.Reasoning:
			out = append(out, r.chunk(wire.Object{"reasoning_content": fragment}, nil))
		case llm.ToolCall:
			call := wire.Object{"function": wire.Object{"arguments": fragment}}
			if begins {
				p.call = r.calls
				r.calls++
				call["id"] = part.ID
				call["type"] = "function"
				call["function"] = wire.Object{"name": part.Name, "arguments": fragment}
			}
			call["index"] = p.call
			out = append(out, r.chunk(wire.Object{"tool_calls": []wire.Object{call}}, nil))
		}
	}
	if d.Finish != "" {
		out = append(out, r.chunk(wire.Object{}, chatFinish(d.Finish)))
		if r.usage {
			last := r.envelope()
			last["choices"], last["usage"] = []wire.Object{}, chatUsage(r.figure)
			out = append(out, Event{Data: string(wire.Marshal(last))})
		}
		out = append(out, Event{Data: "[DONE]"})
	}
	return out
}

func (r *Reply) envelope() wire.Object {
	return wire.Object{"id": "chatcmpl-" + r.ID, "object": "chat.completion.chunk", "created": created, "model": r.Request.Model,
		"system_fingerprint": nil}
}

func (r *Reply) chunk(delta wire.Object, finish any) Event {
	c := r.envelope()
	c["choices"] = []wire.Object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
	if r.usage {
		c["usage"] = nil
	}
	return Event{Data: string(wire.Marshal(c))}
}

func chatUsage(u llm.Usage) wire.Object {
	return wire.Object{"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     wire.Object{"cached_tokens": u.CacheRead, "audio_tokens": 0},
		"completion_tokens_details": wire.Object{"reasoning_tokens": u.Reasoning, "audio_tokens": 0}}
}

func chatFinish(f llm.FinishReason) string {
	switch f {
	case llm.FinishReasonStop, llm.FinishReasonLength, llm.FinishReasonToolCalls,
		llm.FinishReasonContentFilter, llm.FinishReasonError:
		return string(f)
	}
	return "unknown"
}
