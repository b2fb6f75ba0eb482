package pawltest

import (
	"encoding/json"

	"github.com/pawl-go/pawl/llm"
)

// geminiBody writes a GenerateContentResponse.
func (r *reply) geminiBody(resp *llm.Response) []byte {
	r.figure = resp.Usage
	parts := []any{}
	for i, p := range resp.Message.Parts {
		out, _, _ := r.part(llm.Delta{Index: i, Part: p})
		if part := r.geminiPart(out, partText(p), true); part != nil {
			parts = append(parts, part)
		}
	}
	return marshal(r.geminiResponse(parts, resp.Finish))
}

// geminiPart writes a part of the reply, or a fragment of one. nil means that nothing is written.
// The first call of a reply has a signature, and so does the end of a text after thoughts.
func (r *reply) geminiPart(p *partOut, text string, last bool) any {
	switch part := p.part.(type) {
	case llm.ToolCall:
		args := json.RawMessage(text)
		switch {
		case isObject(text):
		case r.loose && text == "":
			args = nil
		case r.loose:
			args = looseArgs(text)
		default:
			r.malformed = "Malformed function call: " + part.Name + "(" + text + ")"
			return nil
		}
		call := object{"name": part.Name}
		if args != nil {
			call["args"] = args
		}
		if !r.noIDs {
			call["id"] = part.ID
		}
		out := object{"functionCall": call}
		if r.calls == 0 {
			out["thoughtSignature"] = sign("call " + part.Name)
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
		return object{"text": text, "thought": true}
	}
	out := object{"text": text}
	if r.thought && last {
		out["thoughtSignature"] = sign("text")
	}
	return out
}

// geminiEvents writes responses, one a chunk. Calls come whole, unless the request asks for pieces.
func (r *reply) geminiEvents(d llm.Delta) []event {
	var out []event
	write := func(parts []any, finish llm.FinishReason) {
		out = append(out, event{data: string(marshal(r.geminiResponse(parts, finish))), crlf: true})
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
	write([]any{object{"text": ""}}, d.Finish)
	return out
}

// geminiCall writes a call: whole, or, if the request asks for pieces, its head, the pieces of its
// arguments, and an empty call as the end mark.
func (r *reply) geminiCall(p *partOut, write func([]any, llm.FinishReason)) {
	p.done = true
	part, _ := r.geminiPart(p, p.buf.String(), true).(object)
	if part == nil {
		return
	}
	pieces, ok := partialArgs(p.buf.String())
	if !r.pieces || !ok {
		write([]any{part}, "")
		return
	}
	head := part["functionCall"].(object)
	delete(head, "args")
	head["willContinue"] = true
	write([]any{part}, "")
	for _, piece := range pieces {
		write([]any{object{"functionCall": object{"partialArgs": []object{piece}, "willContinue": true}}}, "")
	}
	write([]any{object{"functionCall": object{}}}, "")
}

// geminiResponse returns a response, or a chunk of one. An empty finish means that it continues.
func (r *reply) geminiResponse(parts []any, finish llm.FinishReason) object {
	candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	o := object{"candidates": []any{candidate}, "modelVersion": r.req.Model, "responseId": r.id}
	if finish == "" {
		return o
	}
	candidate["finishReason"] = geminiFinish(finish)
	if r.malformed != "" && !finish.Cut() {
		candidate["finishReason"] = "MALFORMED_FUNCTION_CALL"
		candidate["finishMessage"] = r.malformed
	}
	if len(parts) == 0 {
		candidate["content"] = object{}
	}
	u := r.figure
	o["usageMetadata"] = object{"promptTokenCount": u.Input, "candidatesTokenCount": u.Output - u.Reasoning,
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
