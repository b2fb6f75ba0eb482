package pawltest

import (
	"github.com/pawl-go/pawl/llm"
)

// created is the time in every reply: a simulator has no clock.
const created = 1700000000

// chatBody writes a chat.completion.
func (r *reply) chatBody(resp *llm.Response) []byte {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	var calls []object
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
			calls = append(calls, object{"id": p.ID, "type": "function",
				"function": object{"name": p.Name, "arguments": string(p.Args)}})
		}
	}
	if calls != nil {
		message["tool_calls"] = calls
	} else if message["content"] == nil {
		message["content"] = ""
	}
	return marshal(object{"id": "chatcmpl-" + r.id, "object": "chat.completion", "created": created, "model": r.req.Model,
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": chatFinish(resp.Finish)}},
		"usage":   chatUsage(resp.Usage), "system_fingerprint": nil})
}

// chatEvents writes chat.completion.chunks.
func (r *reply) chatEvents(d llm.Delta) []event {
	var out []event
	if !r.began {
		r.began = true
		out = append(out, r.chunk(object{"role": "assistant", "content": "", "refusal": nil}, nil))
	}
	if d.Part != nil {
		p, fragment, begins := r.part(d)
		switch part := d.Part.(type) {
		case llm.Text:
			out = append(out, r.chunk(object{"content": fragment}, nil))
		case llm.Reasoning:
			out = append(out, r.chunk(object{"reasoning_content": fragment}, nil))
		case llm.ToolCall:
			call := object{"function": object{"arguments": fragment}}
			if begins {
				p.call = r.calls
				r.calls++
				call["id"] = part.ID
				call["type"] = "function"
				call["function"] = object{"name": part.Name, "arguments": fragment}
			}
			call["index"] = p.call
			out = append(out, r.chunk(object{"tool_calls": []object{call}}, nil))
		}
	}
	if d.Finish != "" {
		out = append(out, r.chunk(object{}, chatFinish(d.Finish)))
		if r.usage {
			last := r.envelope()
			last["choices"], last["usage"] = []object{}, chatUsage(r.figure)
			out = append(out, event{data: string(marshal(last))})
		}
		out = append(out, event{data: "[DONE]"})
	}
	return out
}

func (r *reply) envelope() object {
	return object{"id": "chatcmpl-" + r.id, "object": "chat.completion.chunk", "created": created, "model": r.req.Model,
		"system_fingerprint": nil}
}

func (r *reply) chunk(delta object, finish any) event {
	c := r.envelope()
	c["choices"] = []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
	if r.usage {
		c["usage"] = nil
	}
	return event{data: string(marshal(c))}
}

func chatUsage(u llm.Usage) object {
	return object{"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     object{"cached_tokens": u.CacheRead, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning, "audio_tokens": 0}}
}

func chatFinish(f llm.FinishReason) string {
	switch f {
	case llm.FinishReasonStop, llm.FinishReasonLength, llm.FinishReasonToolCalls,
		llm.FinishReasonContentFilter, llm.FinishReasonError:
		return string(f)
	}
	return "unknown"
}
