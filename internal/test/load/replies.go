package load

import (
	"encoding/json"
	"fmt"
	"strings"
)

// quote returns s as JSON.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a form
	}
	return string(b)
}

// cut returns the text in n pieces of about the same length.
func cut(s string, n int) []string {
	pieces := make([]string, 0, n)
	for i := range n {
		pieces = append(pieces, s[i*len(s)/n:(i+1)*len(s)/n])
	}
	return pieces
}

// answerPieces are the pieces in which the answer is streamed, of the size of tokens.
func answerPieces() []string { return cut(Answer, len(Answer)/4) }

// each joins what write returns for each call of a round.
func (j Job) each(write func(call int) string) string {
	all := make([]string, j.Calls)
	for i := range all {
		all[i] = write(i)
	}
	return strings.Join(all, ",")
}

func callID(round, call int) string { return fmt.Sprintf("call_%04d_%04d_of_the_load", round, call) }

// ToolName returns the name of the tool of a call: the calls of a round use ten tools in turn.
func ToolName(call int) string { return fmt.Sprintf("tool_%d", call%10) }

// events are the body of a stream.
type events struct{ strings.Builder }

func (e *events) data(format string, args ...any) {
	e.WriteString("data: ")
	fmt.Fprintf(e, format, args...)
	e.WriteString("\n\n")
}

// named writes an event with its type, as Responses and Messages do.
func (e *events) named(name, format string, args ...any) {
	fmt.Fprintf(e, "event: %s\n", name)
	e.data(`{"type":"%s",`+format+`}`, append([]any{name}, args...)...)
}

const chatUsage = `{"prompt_tokens":120,"completion_tokens":30,"total_tokens":150,` +
	`"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},` +
	`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`

func chatWhole(model string, j Job, round int) []byte {
	message := `"content":` + quote(Answer)
	reason := "stop"
	if round < j.Rounds {
		reason = "tool_calls"
		message = `"content":null,"tool_calls":[` + j.each(func(i int) string {
			return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`,
				callID(round, i), ToolName(i), quote(Args(j.Args)))
		}) + `]`
	}
	return fmt.Appendf(nil, `{"id":"chatcmpl-load","object":"chat.completion","created":1760000000,"model":%q,`+
		`"choices":[{"index":0,"message":{"role":"assistant",%s,"refusal":null,"annotations":[]},`+
		`"logprobs":null,"finish_reason":%q}],"usage":%s,"service_tier":"default","system_fingerprint":"fp_load"}`,
		model, message, reason, chatUsage)
}

func chatStream(model string, j Job, round int, usage bool) []byte {
	var e events
	noUsage := ""
	if usage {
		noUsage = `,"usage":null`
	}
	head := fmt.Sprintf(`{"id":"chatcmpl-load","object":"chat.completion.chunk","created":1760000000,"model":%q,`+
		`"service_tier":"default","system_fingerprint":"fp_load"`, model)
	chunk := func(delta, reason string) {
		e.data(`%s,"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]%s}`, head, delta, reason, noUsage)
	}

	chunk(`{"role":"assistant","content":null,"refusal":null}`, "null")
	reason := `"stop"`
	if round < j.Rounds {
		reason = `"tool_calls"`
		for i := range j.Calls {
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`,
				i, callID(round, i), ToolName(i)), "null")
			for _, piece := range cut(Args(j.Args), j.Deltas) {
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(piece)), "null")
			}
		}
	} else {
		for _, piece := range answerPieces() {
			chunk(`{"content":`+quote(piece)+`}`, "null")
		}
	}
	chunk("{}", reason)
	if usage {
		e.data(`%s,"choices":[],"usage":%s}`, head, chatUsage)
	}
	e.data("[DONE]")
	return []byte(e.String())
}

const responsesUsage = `{"input_tokens":120,"input_tokens_details":{"cached_tokens":0},"output_tokens":30,` +
	`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":150}`

// responsesItem returns an item of a reply: a call, or the answer.
func responsesItem(j Job, round, call int) string {
	if round == j.Rounds {
		return `{"id":"msg_load","type":"message","status":"completed","role":"assistant",` +
			`"content":[{"type":"output_text","annotations":[],"logprobs":[],"text":` + quote(Answer) + `}]}`
	}
	return fmt.Sprintf(`{"id":"fc_%d_%d","type":"function_call","status":"completed","arguments":%s,"call_id":%q,"name":%q}`,
		round, call, quote(Args(j.Args)), callID(round, call), ToolName(call))
}

func responsesObject(model, status, output, usage string) string {
	return fmt.Sprintf(`{"id":"resp_load","object":"response","created_at":1760000000,"status":%q,"background":false,`+
		`"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,`+
		`"model":%q,"output":[%s],"parallel_tool_calls":true,"previous_response_id":null,`+
		`"reasoning":{"effort":null,"summary":null},"service_tier":"default","store":false,"temperature":1.0,`+
		`"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled",`+
		`"usage":%s,"user":null,"metadata":{}}`, status, model, output, usage)
}

func responsesWhole(model string, j Job, round int) []byte {
	items := responsesItem(j, round, 0)
	if round < j.Rounds {
		items = j.each(func(i int) string { return responsesItem(j, round, i) })
	}
	return []byte(responsesObject(model, "completed", items, responsesUsage))
}

func responsesStream(model string, j Job, round int, _ bool) []byte {
	var e events
	number := 0
	event := func(name, format string, args ...any) {
		e.named(name, fmt.Sprintf(`"sequence_number":%d,`, number)+format, args...)
		number++
	}
	begun := responsesObject(model, "in_progress", "", "null")
	event("response.created", `"response":%s`, begun)
	event("response.in_progress", `"response":%s`, begun)

	if round == j.Rounds {
		const part = `"item_id":"msg_load","output_index":0,"content_index":0`
		event("response.output_item.added", `"output_index":0,"item":{"id":"msg_load","type":"message","status":"in_progress","content":[],"role":"assistant"}`)
		event("response.content_part.added", part+`,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
		for _, piece := range answerPieces() {
			event("response.output_text.delta", part+`,"delta":%s,"logprobs":[]`, quote(piece))
		}
		event("response.output_text.done", part+`,"text":%s,"logprobs":[]`, quote(Answer))
		event("response.content_part.done", part+`,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":%s}`, quote(Answer))
		event("response.output_item.done", `"output_index":0,"item":%s`, responsesItem(j, round, 0))
	}
	for i := range j.Calls {
		if round == j.Rounds {
			break
		}
		id := fmt.Sprintf("fc_%d_%d", round, i)
		event("response.output_item.added", `"output_index":%d,"item":{"id":%q,"type":"function_call","status":"in_progress","arguments":"","call_id":%q,"name":%q}`,
			i, id, callID(round, i), ToolName(i))
		for _, piece := range cut(Args(j.Args), j.Deltas) {
			event("response.function_call_arguments.delta", `"item_id":%q,"output_index":%d,"delta":%s`, id, i, quote(piece))
		}
		event("response.function_call_arguments.done", `"item_id":%q,"output_index":%d,"arguments":%s`, id, i, quote(Args(j.Args)))
		event("response.output_item.done", `"output_index":%d,"item":%s`, i, responsesItem(j, round, i))
	}
	event("response.completed", `"response":%s`, responsesWhole(model, j, round))
	return []byte(e.String())
}

func messagesWhole(model string, j Job, round int) []byte {
	content := `{"type":"text","text":` + quote(Answer) + `}`
	reason := "end_turn"
	if round < j.Rounds {
		reason = "tool_use"
		content = j.each(func(i int) string {
			return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, callID(round, i), ToolName(i), Args(j.Args))
		})
	}
	return fmt.Appendf(nil, `{"id":"msg_load","type":"message","role":"assistant","model":%q,"content":[%s],`+
		`"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":0,`+
		`"cache_read_input_tokens":0,"output_tokens":30,"service_tier":"standard"}}`, model, content, reason)
}

func messagesStream(model string, j Job, round int, _ bool) []byte {
	var e events
	e.named("message_start", `"message":{"id":"msg_load","type":"message","role":"assistant","model":%q,"content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":0,`+
		`"cache_read_input_tokens":0,"output_tokens":1,"service_tier":"standard"}}`, model)
	reason := "end_turn"
	if round < j.Rounds {
		reason = "tool_use"
		for i := range j.Calls {
			e.named("content_block_start", `"index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}`,
				i, callID(round, i), ToolName(i))
			for _, piece := range cut(Args(j.Args), j.Deltas) {
				e.named("content_block_delta", `"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i, quote(piece))
			}
			e.named("content_block_stop", `"index":%d`, i)
		}
	} else {
		e.named("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)
		for _, piece := range answerPieces() {
			e.named("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":%s}`, quote(piece))
		}
		e.named("content_block_stop", `"index":0`)
	}
	e.named("message_delta", `"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":30}`, reason)
	e.data(`{"type":"message_stop"}`)
	return []byte(e.String())
}

// geminiCandidate returns a response with the parts. An empty reason means that more follow.
func geminiCandidate(model, parts, reason string) string {
	if reason != "" {
		reason = fmt.Sprintf(`,"finishReason":%q`, reason)
	}
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}],`+
		`"usageMetadata":{"promptTokenCount":120,"candidatesTokenCount":30,"totalTokenCount":150},`+
		`"modelVersion":%q,"responseId":"load"}`, parts, reason, model)
}

func geminiCall(j Job, round, call int) string {
	return fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}}`, callID(round, call), ToolName(call), Args(j.Args))
}

func geminiWhole(model string, j Job, round int) []byte {
	parts := `{"text":` + quote(Answer) + `}`
	if round < j.Rounds {
		parts = j.each(func(i int) string { return geminiCall(j, round, i) })
	}
	return []byte(geminiCandidate(model, parts, "STOP"))
}

// geminiStream streams whole calls, as the API does.
func geminiStream(model string, j Job, round int, _ bool) []byte {
	var parts []string
	for i := range j.Calls {
		parts = append(parts, geminiCall(j, round, i))
	}
	if round == j.Rounds {
		parts = nil
		for _, piece := range answerPieces() {
			parts = append(parts, `{"text":`+quote(piece)+`}`)
		}
	}
	var e events
	for i, part := range parts {
		reason := ""
		if i == len(parts)-1 {
			reason = "STOP"
		}
		e.data("%s", geminiCandidate(model, part, reason))
	}
	return []byte(e.String())
}
