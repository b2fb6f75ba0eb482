package reply

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/seal"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// geminiBody writes a GenerateContentResponse.
func (r *Reply) geminiBody(resp *llm.Response) []byte {
	r.figure = resp.Usage
	parts := []any{}
	for i, p := range resp.Message.Parts {
		out, _, _ := r.part(llm.Delta{Index: i, Part: p})
		if part := r.geminiPart(out, partText(p), true); part != nil {
			parts = append(parts, part)
		}
	}
	return wire.Marshal(r.geminiResponse(parts, resp.Finish))
}

// geminiPart writes a part of the reply, or a fragment of one. nil means that nothing is written.
// The first call of a reply has a signature, and so does the end of a text after thoughts.
func (r *Reply) geminiPart(p *partOut, text string, last bool) any {
	switch part := p.part.(type) {
	case llm.ToolCall:
		args := json.RawMessage(text)
		switch {
		case wire.IsObject(text):
		case r.opts.Loose && text == "":
			args = nil
		case r.opts.Loose:
			args = looseArgs(text)
		default:
			r.malformed = "Malformed function call: " + part.Name + "(" + text + ")"
			return nil
		}
		call := wire.Object{"name": part.Name}
		if args != nil {
			call["args"] = args
		}
		if !r.opts.NoIDs {
			call["id"] = part.ID
		}
		out := wire.Object{"functionCall": call}
		if r.calls == 0 {
			out["thoughtSignature"] = seal.Sign("call " + part.Name)
		}
		r.calls++
		return out
	case llm.Reasoning:
		if own := verbatim(part, "gemini"); own != nil {
			return own
		}
		r.thought = true
		if text == "" {
			return nil // this API may hide thoughts, and signs the part after them
		}
		return wire.Object{"text": text, "thought": true}
	}
	out := wire.Object{"text": text}
	if r.thought && last {
		out["thoughtSignature"] = seal.Sign("text")
	}
	return out
}

// geminiEvents writes responses, one a chunk. Calls come whole, unless the request asks for pieces.
func (r *Reply) geminiEvents(d llm.Delta) []Event {
	var out []Event
	write := func(parts []any, finish llm.FinishReason) {
		out = append(out, Event{Data: string(wire.Marshal(r.geminiResponse(parts, finish))), CRLF: true})
	}
	if d.Part != nil {
		p, fragment, _ := r.part(d)
		if _, ok := p.part.(llm.ToolCall); ok {
			if d.Done && !p.done {
				r.geminiCall(p, write)
			}
		} else if part := r.geminiPart(p, fragment, d.Done); part != nil {
			write([]any{part}, "")
		}
	}
	if d.Finish == "" {
		return out
	}
	for _, p := range r.parts {
		if p == nil || p.done {
			continue
		}
		if _, ok := p.part.(llm.ToolCall); ok {
			r.geminiCall(p, write)
		}
	}
	write([]any{wire.Object{"text": ""}}, d.Finish)
	return out
}

// geminiCall writes a call: whole, or, if the request asks for pieces, its head, the pieces of its
// arguments, and an empty call as the end mark.
func (r *Reply) geminiCall(p *partOut, write func([]any, llm.FinishReason)) {
	p.done = true
	part, _ := r.geminiPart(p, p.buf.String(), true).(wire.Object)
	if part == nil {
		return
	}
	pieces, ok := partialArgs(p.buf.String())
	if !r.pieces || !ok {
		write([]any{part}, "")
		return
	}
	head := part["functionCall"].(wire.Object)
	delete(head, "args")
	head["willContinue"] = true
	write([]any{part}, "")
	for _, piece := range pieces {
		write([]any{wire.Object{"functionCall": wire.Object{"partialArgs": []wire.Object{piece}, "willContinue": true}}}, "")
	}
	write([]any{wire.Object{"functionCall": wire.Object{}}}, "")
}

// geminiResponse returns a response, or a chunk of one. An empty finish means that it continues.
func (r *Reply) geminiResponse(parts []any, finish llm.FinishReason) wire.Object {
	candidate := wire.Object{"content": wire.Object{"role": "model", "parts": parts}, "index": 0}
	o := wire.Object{"candidates": []any{candidate}, "modelVersion": r.Request.Model, "responseId": r.ID}
	if finish == "" {
		return o
	}
	candidate["finishReason"] = geminiFinish(finish)
	if r.malformed != "" && !finish.Cut() {
		candidate["finishReason"] = "MALFORMED_FUNCTION_CALL"
		candidate["finishMessage"] = r.malformed
	}
	if len(parts) == 0 {
		candidate["content"] = wire.Object{}
	}
	u := r.figure
	o["usageMetadata"] = wire.Object{"promptTokenCount": u.Input, "candidatesTokenCount": u.Output - u.Reasoning,
		"thoughtsTokenCount": u.Reasoning, "cachedContentTokenCount": u.CacheRead, "totalTokenCount": u.Input + u.Output}
	return o
}

// geminiFinish returns the finish reason for f. A reason that pawl does not have is unchanged.
func geminiFinish(f llm.FinishReason) string {
	switch f {
	case llm.FinishReasonStop, llm.FinishReasonToolCalls:
		return "STOP"
	case llm.FinishReasonLength:
		return "MAX_TOKENS"
	case llm.FinishReasonContentFilter:
		return "SAFETY"
	case llm.FinishReasonError:
		return "MALFORMED_FUNCTION_CALL"
	case llm.FinishReasonOther:
		return "OTHER"
	}
	return string(f)
}
