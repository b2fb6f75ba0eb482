package pawltest

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
)

// anthropicBody writes a message. A call whose arguments are not an object has the input {},
// because this API has no other form. A stream shows the text of the model.
func (r *reply) anthropicBody(resp *llm.Response) []byte {
	content := []any{}
	for _, p := range resp.Message.Parts {
		content = append(content, r.anthropicBlock(p, partText(p)))
	}
	m := r.anthropicMessage(content)
	m["stop_reason"] = anthropicStop(resp.Finish)
	m["usage"] = anthropicUsage(resp.Usage)
	return marshal(m)
}

func (r *reply) anthropicMessage(content []any) object {
	return object{"id": "msg_" + r.id, "type": "message", "role": "assistant", "model": r.req.Model, "content": content,
		"stop_reason": nil, "stop_sequence": nil, "usage": anthropicUsage(r.figure)}
}

// anthropicBlock writes a part whose text is text.
func (r *reply) anthropicBlock(part llm.Part, text string) any {
	switch p := part.(type) {
	case llm.ToolCall:
		input := json.RawMessage("{}")
		if isObject(text) {
			input = json.RawMessage(text)
		} else if r.loose && text != "" {
			input = looseArgs(text)
		}
		return object{"type": "tool_use", "id": p.ID, "name": p.Name, "input": input}
	case llm.Reasoning:
		if own := verbatim(p, "anthropic"); own != nil {
			return own
		}
		if text == "" {
			return object{"type": "redacted_thinking", "data": sign("")}
		}
		return object{"type": "thinking", "thinking": text, "signature": sign(text)}
	}
	return object{"type": "text", "text": text}
}

// anthropicEvents writes the events of a fragment. One block is open at a time, so a part ends
// where the next begins.
func (r *reply) anthropicEvents(d llm.Delta) []event {
	var out []event
	emit := func(name string, fields object) {
		fields["type"] = name
		out = append(out, event{name: name, data: string(marshal(fields))})
	}
	if !r.began {
		r.began = true
		emit("message_start", object{"message": r.anthropicMessage([]any{})})
	}
	if d.Part != nil {
		p, fragment, begins := r.part(d)
		if begins {
			r.anthropicClose(p, emit)
			p.call = r.calls
			r.calls++
			var block any
			switch part := d.Part.(type) {
			case llm.ToolCall:
				block = object{"type": "tool_use", "id": part.ID, "name": part.Name, "input": object{}}
			case llm.Reasoning:
				block = object{"type": "thinking", "thinking": "", "signature": ""}
				if own := verbatim(part, "anthropic"); own != nil {
					block = own
				} else if fragment == "" {
					block = r.anthropicBlock(part, "")
				}
			default:
				block = object{"type": "text", "text": ""}
			}
			emit("content_block_start", object{"index": p.call, "content_block": block})
			if p.call == 0 {
				emit("ping", object{})
			}
		}
		var delta object
		switch p.part.(type) {
		case llm.Text:
			delta = object{"type": "text_delta", "text": fragment}
		case llm.Reasoning:
			if fragment != "" {
				delta = object{"type": "thinking_delta", "thinking": fragment}
			}
		case llm.ToolCall:
			delta = object{"type": "input_json_delta", "partial_json": fragment}
		}
		if delta != nil {
			emit("content_block_delta", object{"index": p.call, "delta": delta})
		}
		if d.Done {
			r.anthropicClose(nil, emit)
		}
	}
	if d.Finish != "" {
		r.anthropicClose(nil, emit)
		if d.Finish == llm.FinishReasonError {
			return append(out, r.anthropicFailed(&apiError{Status: 500, Message: "The model failed."})...)
		}
		emit("message_delta", object{"delta": object{"stop_reason": anthropicStop(d.Finish), "stop_sequence": nil},
			"usage": anthropicUsage(r.figure)})
		emit("message_stop", object{})
	}
	return out
}

// anthropicClose ends the open blocks, except the block of next.
func (r *reply) anthropicClose(next *partOut, emit func(string, object)) {
	for _, p := range r.parts {
		if p == nil || p.done || p == next {
			continue
		}
		p.done = true
		if text := p.buf.String(); text != "" {
			if _, ok := p.part.(llm.Reasoning); ok {
				emit("content_block_delta", object{"index": p.call, "delta": object{"type": "signature_delta", "signature": sign(text)}})
			}
		}
		emit("content_block_stop", object{"index": p.call})
	}
}

// anthropicFailed is the error event that ends a stream.
func (r *reply) anthropicFailed(e *apiError) []event {
	return []event{{name: "error", data: string(e.body(Anthropic))}}
}

// anthropicUsage writes the usage. The input excludes tokens that were read from or written to a
// cache.
func anthropicUsage(u llm.Usage) object {
	return object{"input_tokens": u.Input - u.CacheRead - u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite, "output_tokens": u.Output,
		"output_tokens_details": object{"thinking_tokens": u.Reasoning}}
}

// anthropicStop returns the stop reason for f. A reason that pawl does not have (pause_turn) is
// unchanged.
func anthropicStop(f llm.FinishReason) string {
	switch f {
	case llm.FinishReasonStop:
		return "end_turn"
	case llm.FinishReasonLength:
		return "max_tokens"
	case llm.FinishReasonToolCalls:
		return "tool_use"
	case llm.FinishReasonContentFilter:
		return "refusal"
	}
	return string(f)
}
