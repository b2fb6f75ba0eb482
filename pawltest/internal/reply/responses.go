package reply

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/seal"
	"github.com/pawl-go/pawl/pawltest/internal/summaries"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// responsesBody writes a response object.
func (r *Reply) responsesBody(resp *llm.Response) []byte {
	r.figure = resp.Usage
	var output []wire.Object
	for i, p := range resp.Message.Parts {
		output = append(output, r.outputItem(i, p, partText(p), "completed"))
	}
	return wire.Marshal(r.response(resp.Finish, output))
}

// response returns the response object with output. status follows from finish; "" means in
// progress.
func (r *Reply) response(finish llm.FinishReason, output []wire.Object) wire.Object {
	if output == nil {
		output = []wire.Object{}
	}
	o := wire.Object{"id": "resp_" + r.ID, "object": "response", "created_at": created, "model": r.Request.Model, "status": "completed",
		"error": nil, "incomplete_details": nil, "output": output, "parallel_tool_calls": true, "store": false, "usage": nil}
	if r.Background {
		o["background"] = true
	}
	switch finish {
	case "":
		o["status"] = "in_progress"
		if r.Background {
			o["status"] = "queued"
		}
		return o
	case llm.FinishReasonLength:
		o["status"] = "incomplete"
		o["incomplete_details"] = wire.Object{"reason": "max_output_tokens"}
	case llm.FinishReasonContentFilter:
		o["status"] = "incomplete"
		o["incomplete_details"] = wire.Object{"reason": "content_filter"}
	case llm.FinishReasonError:
		o["status"] = "failed"
		o["error"] = wire.Object{"code": "server_error", "message": "The model failed."}
	}
	u := r.figure
	o["usage"] = wire.Object{"input_tokens": u.Input, "input_tokens_details": wire.Object{"cached_tokens": u.CacheRead},
		"output_tokens": u.Output, "output_tokens_details": wire.Object{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Input + u.Output}
	return o
}

func (r *Reply) itemID(kind string, index int) string {
	return fmt.Sprintf("%s_%s_%d", kind, r.ID, index)
}

// outputItem writes part number index with its text so far.
func (r *Reply) outputItem(index int, part llm.Part, text, status string) wire.Object {
	switch p := part.(type) {
	case llm.ToolCall:
		return wire.Object{"type": "function_call", "id": r.itemID("fc", index), "call_id": p.ID, "name": p.Name, "arguments": text,
			"status": status}
	case llm.Reasoning:
		if _, ok := summaries.Content(p); ok {
			var item wire.Object
			json.Unmarshal(p.Opaque.Data, &item)
			return item
		}
		item := wire.Object{"type": "reasoning", "id": r.itemID("rs", index), "summary": []wire.Object{}}
		if status == "completed" {
			item["encrypted_content"] = seal.Text(text)
			if text != "" {
				item["summary"] = []wire.Object{{"type": "summary_text", "text": text}}
			}
		}
		return item
	}
	content := []wire.Object{}
	if status == "completed" {
		content = append(content, outputText(text))
	}
	return wire.Object{"type": "message", "id": r.itemID("msg", index), "role": "assistant", "status": status, "content": content}
}

func outputText(text string) wire.Object {
	return wire.Object{"type": "output_text", "text": text, "annotations": []wire.Object{}, "logprobs": []wire.Object{}}
}

// responsesEvents writes the events of a fragment.
func (r *Reply) responsesEvents(d llm.Delta) []Event {
	var out []Event
	emit := func(name string, fields wire.Object) {
		fields["type"] = name
		fields["sequence_number"] = r.seq
		r.seq++
		out = append(out, Event{Name: name, Data: string(wire.Marshal(fields))})
	}
	if !r.began {
		r.began = true
		emit("response.created", wire.Object{"response": r.response("", nil)})
		if r.Background {
			emit("response.queued", wire.Object{"response": r.response("", nil)})
		}
		emit("response.in_progress", wire.Object{"response": r.response("", nil)})
	}
	if d.Part != nil {
		p, fragment, begins := r.part(d)
		at := func(fields wire.Object) wire.Object {
			fields["output_index"] = d.Index
			return fields
		}
		if begins {
			emit("response.output_item.added", at(wire.Object{"item": r.outputItem(d.Index, d.Part, "", "in_progress")}))
		}
		switch p.part.(type) {
		case llm.Text:
			id := r.itemID("msg", d.Index)
			if begins {
				emit("response.content_part.added", at(wire.Object{"item_id": id, "content_index": 0, "part": outputText("")}))
			}
			emit("response.output_text.delta", at(wire.Object{"item_id": id, "content_index": 0, "delta": fragment, "logprobs": []wire.Object{}}))
		case llm.Reasoning:
			id := r.itemID("rs", d.Index)
			if fragment == "" {
				break // encrypted only: no summary
			}
			if p.buf.Len() == len(fragment) {
				emit("response.reasoning_summary_part.added", at(wire.Object{"item_id": id, "summary_index": 0,
					"part": wire.Object{"type": "summary_text", "text": ""}}))
			}
			emit("response.reasoning_summary_text.delta", at(wire.Object{"item_id": id, "summary_index": 0, "delta": fragment}))
		case llm.ToolCall:
			if fragment != "" {
				emit("response.function_call_arguments.delta", at(wire.Object{"item_id": r.itemID("fc", d.Index), "delta": fragment}))
			}
		}
	}
	if d.Done && d.Index < len(r.parts) {
		r.close(d.Index, emit)
	}
	if d.Finish == "" {
		return out
	}
	output := []wire.Object{}
	for i, p := range r.parts {
		if p == nil {
			continue // a model that skips parts: the reader must detect its mistake
		}
		r.close(i, emit)
		output = append(output, r.outputItem(i, p.part, p.buf.String(), "completed"))
	}
	name := "response.completed"
	switch d.Finish {
	case llm.FinishReasonLength, llm.FinishReasonContentFilter:
		name = "response.incomplete"
	case llm.FinishReasonError:
		name = "response.failed"
	}
	emit(name, wire.Object{"response": r.response(d.Finish, output)})
	return out
}

// close writes the events that end part i, once.
func (r *Reply) close(i int, emit func(string, wire.Object)) {
	p := r.parts[i]
	if p.done {
		return
	}
	p.done = true
	text := p.buf.String()
	switch c := p.part.(type) {
	case llm.Text:
		id := r.itemID("msg", i)
		emit("response.output_text.done", wire.Object{"item_id": id, "output_index": i, "content_index": 0, "text": text, "logprobs": []wire.Object{}})
		emit("response.content_part.done", wire.Object{"item_id": id, "output_index": i, "content_index": 0, "part": outputText(text)})
	case llm.Reasoning:
		id := r.itemID("rs", i)
		if text != "" {
			emit("response.reasoning_summary_text.done", wire.Object{"item_id": id, "output_index": i, "summary_index": 0, "text": text})
			emit("response.reasoning_summary_part.done", wire.Object{"item_id": id, "output_index": i, "summary_index": 0,
				"part": wire.Object{"type": "summary_text", "text": text}})
		}
	case llm.ToolCall:
		emit("response.function_call_arguments.done", wire.Object{"item_id": r.itemID("fc", i), "output_index": i, "name": c.Name, "arguments": text})
	}
	emit("response.output_item.done", wire.Object{"output_index": i, "item": r.outputItem(i, p.part, text, "completed")})
}

// responsesFailed writes the end of a broken stream.
func (r *Reply) responsesFailed(e *wire.Error) []Event {
	o := r.response("", nil)
	o["status"], o["error"] = "failed", wire.Object{"code": cmp.Or(e.Code, e.Reason, "server_error"), "message": e.Message}
	n := r.seq
	r.seq++
	return []Event{{Name: "response.failed", Data: string(wire.Marshal(wire.Object{"type": "response.failed", "sequence_number": n, "response": o}))}}
}
