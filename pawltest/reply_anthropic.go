package pawltest

import (
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/summaries"
)

// anthropicBody writes a message. A call whose arguments are not an object has the input {},
// because this API has no other form. A stream shows the text of the model.
func (r *reply) anthropicBody(resp *llm.Response) []byte {
	r.figure = resp.Usage
	return marshal(r.anthropicWhole(resp))
}

// anthropicWhole returns the whole message.
func (r *reply) anthropicWhole(resp *llm.Response) object {
	content := []any{}
	for _, p := range resp.Message.Parts {
		if !r.contains(p) {
			content = append(content, r.anthropicBlock(p, partText(p)))
		}
	}
	m := r.anthropicMessage(content)
	m["stop_reason"] = anthropicStop(resp.Finish)
	r.managedMember(m)
	if r.container != "" {
		m["container"] = r.containerObject()
	}
	return m
}

// contains reports whether p is no block, but names the container in which the server runs code.
func (r *reply) contains(p llm.Part) bool {
	var own struct{ Type, Container string }
	if t, ok := p.(llm.Reasoning); !ok || t.Opaque == nil || t.Opaque.Provider != "anthropic" ||
		json.Unmarshal(t.Opaque.Data, &own) != nil || own.Type != "" || own.Container == "" {
		return false
	}
	r.container = own.Container
	r.contained(own.Container)
	return true
}

func (r *reply) containerObject() object {
	return object{"id": r.container, "expires_at": "2030-01-01T00:00:00Z"}
}

// callerOf returns the code that made a call. nil means the model itself.
func callerOf(p llm.Part) json.RawMessage {
	var own struct{ Caller json.RawMessage }
	if c, ok := p.(llm.ToolCall); !ok || c.Opaque == nil || c.Opaque.Provider != "anthropic" ||
		json.Unmarshal(c.Opaque.Data, &own) != nil {
		return nil
	}
	return own.Caller
}

// ranCode reports whether code in the server's container waits for the results that end req.
func ranCode(req *llm.Request) bool {
	n := len(req.Messages)
	if n < 2 || req.Messages[n-1].Role != llm.RoleTool {
		return false
	}
	return slices.ContainsFunc(req.Messages[n-2].Parts, func(p llm.Part) bool { return callerOf(p) != nil })
}

// finishedStart returns the events of a reply that has nothing but calls of the code that waits.
// The model writes nothing then, and the first event has the whole message. Other replies have the
// usual events.
func (r *reply) finishedStart(d llm.Delta) []event {
	if err := r.ahead.Add(d); err != nil || d.Finish == "" {
		return nil
	}
	r.runsCode = false
	for _, p := range r.ahead.Message.Parts {
		if callerOf(p) == nil && !r.contains(p) {
			var out []event
			for d := range r.ahead.Deltas() {
				out = append(out, r.anthropicEvents(d)...)
			}
			return out
		}
	}
	return []event{{name: "message_start", data: string(marshal(object{"type": "message_start", "message": r.anthropicWhole(&r.ahead)}))},
		{name: "message_stop", data: `{"type":"message_stop"}`}}
}

func (r *reply) anthropicMessage(content []any) object {
	return object{"id": "msg_" + r.id, "type": "message", "role": "assistant", "model": r.req.Model, "content": content,
		"stop_reason": nil, "stop_sequence": nil, "usage": r.anthropicUsage()}
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
		return withCaller(p, object{"type": "tool_use", "id": p.ID, "name": p.Name, "input": input})
	case llm.Reasoning:
		if own := verbatim(p, "anthropic"); own != nil {
			return own
		}
		if text == "" {
			return object{"type": "redacted_thinking", "data": sign("")}
		}
		return object{"type": "thinking", "thinking": text, "signature": sign(text + r.prefix)}
	}
	return object{"type": "text", "text": text}
}

// withCaller adds the caller of a call to its block.
func withCaller(c llm.ToolCall, block object) object {
	if caller := callerOf(c); caller != nil {
		block["caller"] = caller
	}
	return block
}

// anthropicEvents writes the events of a fragment. One block is open at a time, so a part ends
// where the next begins.
func (r *reply) anthropicEvents(d llm.Delta) []event {
	if r.runsCode {
		return r.finishedStart(d)
	}
	var out []event
	emit := func(name string, fields object) {
		fields["type"] = name
		out = append(out, event{name: name, data: string(marshal(fields))})
	}
	if !r.began {
		r.began = true
		emit("message_start", object{"message": r.anthropicMessage([]any{})})
	}
	if d.Part != nil && !r.contains(d.Part) {
		p, fragment, begins := r.part(d)
		if begins {
			r.anthropicClose(p, emit)
			p.call = r.calls
			r.calls++
			var block any
			switch part := d.Part.(type) {
			case llm.ToolCall:
				block = withCaller(part, object{"type": "tool_use", "id": part.ID, "name": part.Name, "input": object{}})
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
			summary, summarizes := compaction(d.Part)
			summarizes = summarizes && !summaries.Signed(d.Part) // a signed one arrives whole
			if summarizes {
				block = object{"type": "compaction", "content": nil}
			}
			emit("content_block_start", object{"index": p.call, "content_block": block})
			if summarizes {
				emit("content_block_delta", object{"index": p.call, "delta": object{"type": "compaction_delta", "content": summary}})
			}
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
		end := object{"stop_reason": anthropicStop(d.Finish), "stop_sequence": nil}
		if r.container != "" {
			end["container"] = r.containerObject()
		}
		last := object{"delta": end, "usage": r.anthropicUsage()}
		r.managedMember(last)
		emit("message_delta", last)
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
				emit("content_block_delta", object{"index": p.call, "delta": object{"type": "signature_delta", "signature": sign(text + r.prefix)}})
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
func (r *reply) anthropicUsage() object {
	u := r.figure
	usage := object{"input_tokens": u.Input - u.CacheRead - u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite, "output_tokens": u.Output,
		"output_tokens_details": object{"thinking_tokens": u.Reasoning}}
	if r.onDemand > 0 {
		usage["iterations"] = []object{{"type": "compaction", "input_tokens": r.onDemand, "output_tokens": 100}}
	}
	if r.compacted > 0 && u.Output > 0 {
		usage["iterations"] = []object{{"type": "compaction", "input_tokens": r.compacted, "output_tokens": 100},
			{"type": "message", "input_tokens": u.Input, "output_tokens": u.Output}}
	}
	return usage
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
