package pawltest

import (
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// responsesBody writes a response object.
func (r *reply) responsesBody(resp *llm.Response) []byte {
	r.figure = resp.Usage
	var output []object
	for i, p := range resp.Message.Parts {
		output = append(output, r.outputItem(i, p, partText(p), "completed"))
	}
	return marshal(r.response(resp.Finish, output))
}

// response returns the response object with output. status follows from finish; "" means in
// progress.
func (r *reply) response(finish llm.FinishReason, output []object) object {
	if output == nil {
		output = []object{}
	}
	o := object{"id": "resp_" + r.id, "object": "response", "created_at": created, "model": r.req.Model, "status": "completed",
		"error": nil, "incomplete_details": nil, "output": output, "parallel_tool_calls": true, "store": false, "usage": nil}
	if r.background {
		o["background"] = true
	}
	switch finish {
	case "":
		o["status"] = "in_progress"
		if r.background {
			o["status"] = "queued"
		}
		return o
	case llm.FinishReasonLength:
		o["status"] = "incomplete"
		o["incomplete_details"] = object{"reason": "max_output_tokens"}
	case llm.FinishReasonContentFilter:
		o["status"] = "incomplete"
		o["incomplete_details"] = object{"reason": "content_filter"}
	case llm.FinishReasonError:
		o["status"] = "failed"
		o["error"] = object{"code": "server_error", "message": "The model failed."}
	}
	u := r.figure
	o["usage"] = object{"input_tokens": u.Input, "input_tokens_details": object{"cached_tokens": u.CacheRead},
		"output_tokens": u.Output, "output_tokens_details": object{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Input + u.Output}
	return o
}

func partText(p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return p.Text
	case llm.Reasoning:
		return p.Text
	case llm.ToolCall:
		return string(p.Args)
	}
	return ""
}

func (r *reply) itemID(kind string, index int) string {
	return fmt.Sprintf("%s_%s_%d", kind, r.id, index)
}

// outputItem writes part number index with its text so far.
func (r *reply) outputItem(index int, part llm.Part, text, status string) object {
	switch p := part.(type) {
	case llm.ToolCall:
		return object{"type": "function_call", "id": r.itemID("fc", index), "call_id": p.ID, "name": p.Name, "arguments": text,
			"status": status}
	case llm.Reasoning:
		if _, ok := compaction(p); ok {
			var item object
			json.Unmarshal(p.Opaque.Data, &item)
			return item
		}
		item := object{"type": "reasoning", "id": r.itemID("rs", index), "summary": []object{}}
		if status == "completed" {
			item["encrypted_content"] = seal(text)
			if text != "" {
				item["summary"] = []object{{"type": "summary_text", "text": text}}
			}
		}
		return item
	}
	content := []object{}
	if status == "completed" {
		content = append(content, outputText(text))
	}
	return object{"type": "message", "id": r.itemID("msg", index), "role": "assistant", "status": status, "content": content}
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []object{}, "logprobs": []object{}}
}

// responsesEvents writes the events of a fragment.
func (r *reply) responsesEvents(d llm.Delta) []event {
	var out []event
	emit := func(name string, fields object) {
		fields["type"] = name
		fields["sequence_number"] = r.seq
		r.seq++
		out = append(out, event{name: name, data: string(marshal(fields))})
	}
	if !r.began {
		r.began = true
		emit("response.created", object{"response": r.response("", nil)})
		if r.background {
			emit("response.queued", object{"response": r.response("", nil)})
		}
		emit("response.in_progress", object{"response": r.response("", nil)})
	}
	if d.Part != nil {
		p, fragment, begins := r.part(d)
		at := func(fields object) object {
			fields["output_index"] = d.Index
			return fields
		}
		if begins {
			emit("response.output_item.added", at(object{"item": r.outputItem(d.Index, d.Part, "", "in_progress")}))
		}
		switch p.part.(type) {
		case llm.Text:
			id := r.itemID("msg", d.Index)
			if begins {
				emit("response.content_part.added", at(object{"item_id": id, "content_index": 0, "part": outputText("")}))
			}
			emit("response.output_text.delta", at(object{"item_id": id, "content_index": 0, "delta": fragment, "logprobs": []object{}}))
		case llm.Reasoning:
			id := r.itemID("rs", d.Index)
			if fragment == "" {
				break // encrypted only: no summary
			}
			if p.buf.Len() == len(fragment) {
				emit("response.reasoning_summary_part.added", at(object{"item_id": id, "summary_index": 0,
					"part": object{"type": "summary_text", "text": ""}}))
			}
			emit("response.reasoning_summary_text.delta", at(object{"item_id": id, "summary_index": 0, "delta": fragment}))
		case llm.ToolCall:
			if fragment != "" {
				emit("response.function_call_arguments.delta", at(object{"item_id": r.itemID("fc", d.Index), "delta": fragment}))
			}
		}
	}
	if d.Done && d.Index < len(r.parts) {
		r.close(d.Index, emit)
	}
	if d.Finish == "" {
		return out
	}
	output := []object{}
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
	emit(name, object{"response": r.response(d.Finish, output)})
	return out
}

// close writes the events that end part i, once.
func (r *reply) close(i int, emit func(string, object)) {
	p := r.parts[i]
	if p.done {
		return
	}
	p.done = true
	text := p.buf.String()
	switch c := p.part.(type) {
	case llm.Text:
		id := r.itemID("msg", i)
		emit("response.output_text.done", object{"item_id": id, "output_index": i, "content_index": 0, "text": text, "logprobs": []object{}})
		emit("response.content_part.done", object{"item_id": id, "output_index": i, "content_index": 0, "part": outputText(text)})
	case llm.Reasoning:
		id := r.itemID("rs", i)
		if text != "" {
			emit("response.reasoning_summary_text.done", object{"item_id": id, "output_index": i, "summary_index": 0, "text": text})
			emit("response.reasoning_summary_part.done", object{"item_id": id, "output_index": i, "summary_index": 0,
				"part": object{"type": "summary_text", "text": text}})
		}
	case llm.ToolCall:
		emit("response.function_call_arguments.done", object{"item_id": r.itemID("fc", i), "output_index": i, "name": c.Name, "arguments": text})
	}
	emit("response.output_item.done", object{"output_index": i, "item": r.outputItem(i, p.part, text, "completed")})
}

// responsesFailed writes the end of a broken stream.
func (r *reply) responsesFailed(e *apiError) []event {
	o := r.response("", nil)
	o["status"], o["error"] = "failed", object{"code": or(e.Code, e.Reason, "server_error"), "message": e.Message}
	n := r.seq
	r.seq++
	return []event{{name: "response.failed", data: string(marshal(object{"type": "response.failed", "sequence_number": n, "response": o}))}}
}
