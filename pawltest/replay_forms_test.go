package pawltest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/pawltest"
)

// raw is an object whose members keep their bytes.
type raw = map[string]json.RawMessage

// inForm returns a recorded exchange whose reply is a stream, or a whole body, without Bedrock's
// framing, which no adapter reads. Errors have one form, and so have compactions, which are no
// replies.
func inForm(e pawltest.Exchange, stream bool) (pawltest.Exchange, error) {
	body, err := e.Body()
	compaction := bytes.Contains(body, []byte(`"object":"response.compaction"`))
	if err != nil || e.Response.Status != 200 || compaction {
		return e, err
	}
	kind := e.Response.Headers["content-type"]
	framed := strings.Contains(kind, "vnd.amazon.eventstream")
	if framed {
		body, err = unframe(body)
		if err != nil {
			return e, fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	if e.Streaming != stream {
		body, err = convert(e.API, body, stream)
		if err != nil {
			return e, fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	if framed || e.Streaming != stream {
		kind = "application/json"
		if stream {
			kind = "text/event-stream"
		}
	}

	e.Response.Body = string(body)
	e.Response.BodyB64 = ""
	e.Response.Headers = maps.Clone(e.Response.Headers)
	e.Response.Headers["content-type"] = kind
	return e, nil
}

// unframe returns a stream of the events in Bedrock's frames. A frame has its length, the length of
// its headers and a checksum, then the headers, the payload and a checksum.
func unframe(frames []byte) ([]byte, error) {
	const prelude, checksum = 12, 4
	var out bytes.Buffer
	for len(frames) > 0 {
		if len(frames) < prelude+checksum {
			return nil, fmt.Errorf("a frame has %d bytes", len(frames))
		}
		size := int(binary.BigEndian.Uint32(frames))
		headers := int(binary.BigEndian.Uint32(frames[4:]))
		if size > len(frames) || prelude+headers+checksum > size {
			return nil, fmt.Errorf("a frame of %d bytes has %d", len(frames), size)
		}
		var payload struct{ Bytes string }
		if err := json.Unmarshal(frames[prelude+headers:size-checksum], &payload); err != nil {
			return nil, err
		}
		event, err := base64.StdEncoding.DecodeString(payload.Bytes)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "data: %s\n\n", event)
		frames = frames[size:]
	}
	return out.Bytes(), nil
}

// convert writes a whole body as a stream, or a stream as a whole body. It works on the JSON alone,
// so that it shares nothing with the adapters.
func convert(api string, body []byte, stream bool) ([]byte, error) {
	if stream {
		var whole raw
		if err := json.Unmarshal(body, &whole); err != nil {
			return nil, err
		}
		events := map[string]func(raw) []any{
			pawltest.Chat:      chatEvents,
			pawltest.Responses: responsesEvents,
			pawltest.Anthropic: anthropicEvents,
			pawltest.Gemini:    geminiEvents,
		}[api](whole)
		var out bytes.Buffer
		for _, e := range events {
			fmt.Fprintf(&out, "data: %s\n\n", marshaled(e))
		}
		if api == pawltest.Chat {
			out.WriteString("data: [DONE]\n\n")
		}
		return out.Bytes(), nil
	}

	events, err := eventsOf(body)
	if err != nil {
		return nil, err
	}
	whole := map[string]func([]raw) raw{
		pawltest.Chat:      chatWhole,
		pawltest.Responses: responsesWhole,
		pawltest.Anthropic: anthropicWhole,
		pawltest.Gemini:    geminiWhole,
	}[api](events)
	return marshaled(whole), nil
}

// eventsOf returns the data of a stream of events, or the elements of a stream that is an array.
func eventsOf(body []byte) (events []raw, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		return events, json.Unmarshal(body, &events)
	}
	for line := range strings.Lines(string(body)) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if data = strings.TrimSpace(data); !ok || data == "" || data == "[DONE]" {
			continue
		}
		var e raw
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func marshaled(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test has made v
	}
	return b
}

func objectOf(data json.RawMessage) (o raw) {
	json.Unmarshal(data, &o) // nil for another value
	return o
}

func objectsOf(data json.RawMessage) (l []raw) {
	json.Unmarshal(data, &l)
	return l
}

func textOf(data json.RawMessage) (s string) {
	json.Unmarshal(data, &s)
	return s
}

// with returns a copy of o with other members. A nil value removes the member.
func with(o raw, members raw) raw {
	c := maps.Clone(o)
	for name, v := range members {
		c[name] = v
		if v == nil {
			delete(c, name)
		}
	}
	return c
}

// chatEvents writes the message as one delta with numbered calls, then the reason, then the usage.
func chatEvents(whole raw) []any {
	choice := objectsOf(whole["choices"])[0]
	message := objectOf(choice["message"])
	if calls := objectsOf(message["tool_calls"]); len(calls) > 0 {
		for i := range calls {
			calls[i]["index"] = marshaled(i)
		}
		message["tool_calls"] = marshaled(calls)
	}
	chunk := func(delta raw, reason json.RawMessage) any {
		return with(whole, raw{"usage": nil, "choices": marshaled([]any{
			raw{"index": json.RawMessage("0"), "delta": marshaled(delta), "finish_reason": reason}})})
	}
	return []any{
		chunk(message, json.RawMessage("null")),
		chunk(raw{}, choice["finish_reason"]),
		with(whole, raw{"choices": json.RawMessage("[]")}),
	}
}

// chatWhole joins the deltas. A piece of a call begins another call if it has a new id.
func chatWhole(events []raw) raw {
	whole := raw{}
	message := raw{"role": json.RawMessage(`"assistant"`), "content": json.RawMessage("null")}
	var calls []raw
	var details []json.RawMessage
	var reason json.RawMessage
	texts := map[string]string{}
	for _, e := range events {
		for name, v := range e {
			if name == "choices" || string(v) == "null" {
				continue
			}
			whole[name] = v
		}
		for _, choice := range objectsOf(e["choices"]) {
			if i := string(choice["index"]); i != "0" && i != "" {
				continue
			}
			delta := objectOf(choice["delta"])
			for _, name := range []string{"content", "reasoning_content", "reasoning", "refusal"} {
				texts[name] += textOf(delta[name])
			}
			var more []json.RawMessage
			json.Unmarshal(delta["reasoning_details"], &more)
			details = append(details, more...)
			for _, piece := range objectsOf(delta["tool_calls"]) {
				calls = addPiece(calls, piece)
			}
			if r := choice["finish_reason"]; textOf(r) != "" {
				reason = r
			}
		}
	}

	for name, s := range texts {
		if s != "" {
			message[name] = marshaled(s)
		}
	}
	if details != nil {
		message["reasoning_details"] = marshaled(details)
	}
	if calls != nil {
		message["tool_calls"] = marshaled(calls)
	}
	whole["choices"] = marshaled([]any{raw{"index": json.RawMessage("0"), "message": marshaled(message), "finish_reason": reason}})
	return whole
}

// addPiece adds a piece of a call to the calls so far.
func addPiece(calls []raw, piece raw) []raw {
	function := objectOf(piece["function"])
	i := slices.IndexFunc(calls, func(c raw) bool {
		sameIndex := bytes.Equal(c["index"], piece["index"])
		id := textOf(piece["id"])
		return sameIndex && (id == "" || id == textOf(c["id"]))
	})
	if i < 0 {
		return append(calls, with(piece, raw{"function": marshaled(function)}))
	}
	before := objectOf(calls[i]["function"])
	before["arguments"] = marshaled(textOf(before["arguments"]) + textOf(function["arguments"]))
	calls[i]["function"] = marshaled(before)
	return calls
}

// responsesEvents writes each item when it is done, then the response.
func responsesEvents(whole raw) []any {
	var out []any
	var items []json.RawMessage
	json.Unmarshal(whole["output"], &items)
	for i, item := range items {
		out = append(out, raw{
			"type":         json.RawMessage(`"response.output_item.done"`),
			"output_index": marshaled(i),
			"item":         item,
		})
	}
	last := "response." + textOf(whole["status"])
	return append(out, raw{"type": marshaled(last), "response": marshaled(whole)})
}

// responsesWhole returns the response of the last event. Some servers leave its items out there.
func responsesWhole(events []raw) raw {
	var items []json.RawMessage
	var whole raw
	for _, e := range events {
		if textOf(e["type"]) == "response.output_item.done" {
			items = append(items, e["item"])
		}
		if e["response"] != nil {
			whole = objectOf(e["response"])
		}
	}
	if len(objectsOf(whole["output"])) == 0 {
		whole["output"] = marshaled(items)
	}
	return whole
}

// anthropicPieces are the members of a block that a stream sends in pieces, and the type of these.
var anthropicPieces = []struct{ member, kind, piece string }{
	{"text", "text_delta", "text"},
	{"thinking", "thinking_delta", "thinking"},
	{"signature", "signature_delta", "signature"},
}

// anthropicEvents writes the events of each block, with its texts and its input in one piece.
func anthropicEvents(whole raw) []any {
	message := with(whole, raw{"content": json.RawMessage("[]"), "stop_reason": json.RawMessage("null")})
	out := []any{raw{"type": json.RawMessage(`"message_start"`), "message": marshaled(message)}}
	for i, block := range objectsOf(whole["content"]) {
		begin := maps.Clone(block)
		var deltas []raw
		for _, p := range anthropicPieces {
			if s := textOf(block[p.member]); s != "" {
				begin[p.member] = json.RawMessage(`""`)
				deltas = append(deltas, raw{"type": marshaled(p.kind), p.piece: block[p.member]})
			}
		}
		if block["input"] != nil {
			begin["input"] = json.RawMessage("{}")
			deltas = append(deltas, raw{"type": json.RawMessage(`"input_json_delta"`), "partial_json": marshaled(string(block["input"]))})
		}

		index := marshaled(i)
		out = append(out, raw{"type": json.RawMessage(`"content_block_start"`), "index": index, "content_block": marshaled(begin)})
		for _, d := range deltas {
			out = append(out, raw{"type": json.RawMessage(`"content_block_delta"`), "index": index, "delta": marshaled(d)})
		}
		out = append(out, raw{"type": json.RawMessage(`"content_block_stop"`), "index": index})
	}

	end := raw{"type": json.RawMessage(`"message_delta"`), "usage": whole["usage"]}
	end["delta"] = marshaled(raw{
		"stop_reason":   whole["stop_reason"],
		"stop_sequence": whole["stop_sequence"],
		"container":     whole["container"],
	})
	return append(out, end, raw{"type": json.RawMessage(`"message_stop"`)})
}

// anthropicWhole joins the blocks.
func anthropicWhole(events []raw) raw {
	var whole raw
	var blocks []raw
	inputs := map[int]string{}
	for _, e := range events {
		i, _ := strconv.Atoi(string(e["index"]))
		delta := objectOf(e["delta"])
		switch textOf(e["type"]) {
		case "message_start":
			whole = objectOf(e["message"])
		case "content_block_start":
			blocks = append(blocks, objectOf(e["content_block"]))
		case "content_block_delta":
			for _, p := range anthropicPieces {
				if textOf(delta["type"]) == p.kind {
					blocks[i][p.member] = marshaled(textOf(blocks[i][p.member]) + textOf(delta[p.piece]))
				}
			}
			inputs[i] += textOf(delta["partial_json"])
		case "message_delta":
			maps.Copy(whole, delta)
			usage := objectOf(whole["usage"])
			maps.Copy(usage, objectOf(e["usage"]))
			whole["usage"] = marshaled(usage)
		}
	}
	for i, input := range inputs {
		if input != "" {
			blocks[i]["input"] = json.RawMessage(input)
		}
	}
	whole["content"] = marshaled(blocks)
	return whole
}

// geminiEvents writes an event for each part, the last one with the reason.
func geminiEvents(whole raw) []any {
	candidates := objectsOf(whole["candidates"])
	if len(candidates) == 0 {
		return []any{whole}
	}
	var parts []json.RawMessage
	json.Unmarshal(objectOf(candidates[0]["content"])["parts"], &parts)
	if len(parts) < 2 {
		return []any{whole}
	}
	var out []any
	for i, part := range parts {
		content := raw{"role": json.RawMessage(`"model"`), "parts": marshaled([]any{part})}
		candidate := raw{"content": marshaled(content)}
		if i == len(parts)-1 {
			candidate = with(candidates[0], candidate)
		}
		out = append(out, with(whole, raw{"candidates": marshaled([]any{candidate})}))
	}
	return out
}

// geminiWhole puts the parts of all events together.
func geminiWhole(events []raw) raw {
	whole := raw{}
	candidate := raw{}
	var parts []json.RawMessage
	for _, e := range events {
		maps.Copy(whole, e)
		for _, c := range objectsOf(e["candidates"]) {
			maps.Copy(candidate, c)
			var more []json.RawMessage
			json.Unmarshal(objectOf(c["content"])["parts"], &more)
			parts = append(parts, more...)
		}
	}
	candidate["content"] = marshaled(raw{"role": json.RawMessage(`"model"`), "parts": marshaled(parts)})
	whole["candidates"] = marshaled([]any{candidate})
	return whole
}
