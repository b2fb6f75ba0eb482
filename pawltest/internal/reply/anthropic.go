package reply

import (
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/seal"
	"github.com/pawl-go/pawl/pawltest/internal/summaries"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// anthropicBody writes a message. A call whose arguments are not an object has the input {},
// because this API has no other form. A stream shows the text of the model.
func (r *Reply) anthropicBody(resp *llm.Response) []byte {
	r.figure = resp.Usage
	return wire.Marshal(r.anthropicWhole(resp))
}

// anthropicWhole returns the whole message.
func (r *Reply) anthropicWhole(resp *llm.Response) wire.Object {
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
func (r *Reply) contains(p llm.Part) bool {
	var own struct{ Type, Container string }
	if t, ok := p.(llm.Reasoning); !ok || t.Opaque == nil || t.Opaque.Provider != "anthropic" ||
		json.Unmarshal(t.Opaque.Data, &own) != nil || own.Type != "" || own.Container == "" {
		return false
	}
	r.container = own.Container
	r.Contained(own.Container)
	return true
}

func (r *Reply) containerObject() wire.Object {
	return wire.Object{"id": r.container, "expires_at": "2030-01-01T00:00:00Z"}
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
func (r *Reply) finishedStart(d llm.Delta) []Event {
	if err := r.ahead.Add(d); err != nil || d.Finish == "" {
		return nil
	}
	r.runsCode = false
	for _, p := range r.ahead.Message.Parts {
		if callerOf(p) == nil && !r.contains(p) {
			var out []Event
			for d := range r.ahead.Deltas() {
				out = append(out, r.anthropicEvents(d)...)
			}
			return out
		}
	}
	return []Event{{Name: "message_start", Data: string(wire.Marshal(wire.Object{"type": "message_start", "message": r.anthropicWhole(&r.ahead)}))},
		{Name: "message_stop", Data: `{"type":"message_stop"}`}}
}

func (r *Reply) anthropicMessage(content []any) wire.Object {
	return wire.Object{"id": "msg_" + r.ID, "type": "message", "role": "assistant", "model": r.Request.Model, "content": content,
		"stop_reason": nil, "stop_sequence": nil, "usage": r.anthropicUsage()}
}

// anthropicBlock writes a part whose text is text.
func (r *Reply) anthropicBlock(part llm.Part, text string) any {
	switch p := part.(type) {
	case llm.ToolCall:
		input := json.RawMessage("{}")
		if wire.IsObject(text) {
			input = json.RawMessage(text)
		} else if r.opts.Loose && text != "" {
			input = looseArgs(text)
		}
		return withCaller(p, wire.Object{"type": "tool_use", "id": p.ID, "name": p.Name, "input": input})
	case llm.Reasoning:
		if own := verbatim(p, "anthropic"); own != nil {
			return own
		}
		if text == "" {
			return wire.Object{"type": "redacted_thinking", "data": seal.Sign("")}
		}
		return wire.Object{"type": "thinking", "thinking": text, "signature": seal.Sign(text + r.Prefix)}
	}
	return wire.Object{"type": "text", "text": text}
}

// withCaller adds the caller of a call to its block.
func withCaller(c llm.ToolCall, block wire.Object) wire.Object {
	if caller := callerOf(c); caller != nil {
		block["caller"] = caller
	}
	return block
}

// anthropicEvents writes the events of a fragment. One block is open at a time, so a part ends
// where the next begins.
func (r *Reply) anthropicEvents(d llm.Delta) []Event {
	if r.runsCode {
		return r.finishedStart(d)
	}
	var out []Event
	emit := func(name string, fields wire.Object) {
		fields["type"] = name
		out = append(out, Event{Name: name, Data: string(wire.Marshal(fields))})
	}
	if !r.began {
		r.began = true
		emit("message_start", wire.Object{"message": r.anthropicMessage([]any{})})
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
				block = withCaller(part, wire.Object{"type": "tool_use", "id": part.ID, "name": part.Name, "input": wire.Object{}})
			case llm.Reasoning:
				block = wire.Object{"type": "thinking", "thinking": "", "signature": ""}
				if own := verbatim(part, "anthropic"); own != nil {
					block = own
				} else if fragment == "" {
					block = r.anthropicBlock(part, "")
				}
			default:
				block = wire.Object{"type": "text", "text": ""}
			}
			summary, summarizes := summaries.Content(d.Part)
			summarizes = summarizes && !summaries.Signed(d.Part) // a signed one arrives whole
			if summarizes {
				block = wire.Object{"type": "compaction", "content": nil}
			}
			emit("content_block_start", wire.Object{"index": p.call, "content_block": block})
			if summarizes {
				emit("content_block_delta", wire.Object{"index": p.call, "delta": wire.Object{"type": "compaction_delta", "content": summary}})
			}
			if p.call == 0 {
				emit("ping", wire.Object{})
			}
		}
		var delta wire.Object
		switch p.part.(type) {
		case llm.Text:
			delta = wire.Object{"type": "text_delta", "text": fragment}
		case llm.Reasoning:
			if fragment != "" {
				delta = wire.Object{"type": "thinking_delta", "thinking": fragment}
			}
		case llm.ToolCall:
			delta = wire.Object{"type": "input_json_delta", "partial_json": fragment}
		}
		if delta != nil {
			emit("content_block_delta", wire.Object{"index": p.call, "delta": delta})
		}
		if d.Done {
			r.anthropicClose(nil, emit)
		}
	}
	if d.Finish != "" {
		r.anthropicClose(nil, emit)
		if d.Finish == llm.FinishReasonError {
			return append(out, r.anthropicFailed(&wire.Error{Status: 500, Message: "The model failed."})...)
		}
		end := wire.Object{"stop_reason": anthropicStop(d.Finish), "stop_sequence": nil}
		if r.container != "" {
			end["container"] = r.containerObject()
		}
		last := wire.Object{"delta": end, "usage": r.anthropicUsage()}
		r.managedMember(last)
		emit("message_delta", last)
		emit("message_stop", wire.Object{})
	}
	return out
}

// anthropicClose ends the open blocks, except the block of next.
func (r *Reply) anthropicClose(next *partOut, emit func(string, wire.Object)) {
	for _, p := range r.parts {
		if p == nil || p.done || p == next {
			continue
		}
		p.done = true
		if text := p.buf.String(); text != "" {
			if _, ok := p.part.(llm.Reasoning); ok {
				emit("content_block_delta", wire.Object{"index": p.call,
					"delta": wire.Object{"type": "signature_delta", "signature": seal.Sign(text + r.Prefix)}})
			}
		}
		emit("content_block_stop", wire.Object{"index": p.call})
	}
}

// anthropicFailed is the error event that ends a stream.
func (r *Reply) anthropicFailed(e *wire.Error) []Event {
	return []Event{{Name: "error", Data: string(e.Body(wire.Anthropic))}}
}

// anthropicUsage writes the usage. The input excludes tokens that were read from or written to a
// cache.
func (r *Reply) anthropicUsage() wire.Object {
	u := r.figure
	usage := wire.Object{"input_tokens": u.Input - u.CacheRead - u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite, "output_tokens": u.Output,
		"output_tokens_details": wire.Object{"thinking_tokens": u.Reasoning}}
	if r.Managed.OnDemand > 0 {
		usage["iterations"] = []wire.Object{{"type": "compaction", "input_tokens": r.Managed.OnDemand, "output_tokens": 100}}
	}
	if r.Managed.Compacted > 0 && u.Output > 0 {
		usage["iterations"] = []wire.Object{{"type": "compaction", "input_tokens": r.Managed.Compacted, "output_tokens": 100},
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

// managedMember adds to o what the server says of the results that it cleared.
func (r *Reply) managedMember(o wire.Object) {
	if r.Managed.Cleared > 0 {
		o["context_management"] = wire.Object{"applied_edits": []wire.Object{{"type": "clear_tool_uses_20250919",
			"cleared_tool_uses": r.Managed.Cleared, "cleared_input_tokens": r.Managed.ClearedTokens}}}
	}
}
