package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// streams: malformed streams.
func streams() []Behaviour {
	ok := shown(ran(inOslo))
	broken := Want{Loose: true, Stop: "failed", Requests: [2]int{1, 4}} // nothing runs
	repaired := Want{Results: []Shown{ran(inOslo)}, Requests: [2]int{2, 3}}
	row := func(id, title, ids string, w Wire, want Want, only ...string) Behaviour {
		if only == nil {
			only = []string{"stream"}
		}
		return Behaviour{ID: id, Title: title, Meets: meets(ids), Turns: turns(calls(inOslo).with(w)),
			Only: only, Want: want}
	}
	noise := func(s string) string { return s }
	return []Behaviour{
		row("stream-cut-in-call", "loses the connection in the middle of a call", "D15 IA-T70 OA-D54",
			cutAt("the connection breaks at 70 %", 0.7),
			broken,
		),
		row("stream-cut-before-end", "loses the connection after the call, before the end", "D15 D18 IA-T70",
			Wire{Says: "the connection breaks before the end of the reply", fault: func(at place) *pawltest.Fault {
				return &pawltest.Fault{Rewrite: func(b []byte) []byte {
					a := parseAnswer(at, b)
					n := len(a.events)
					for i, e := range a.events {
						if strings.Contains(e.data, `"finish_reason":"tool_calls"`) || strings.Contains(e.data,
							"response.completed") || strings.Contains(e.data, "message_delta") || strings.Contains(e.data, "finishReason") {
							n = i
							break
						}
					}
					a.events = a.events[:n]
					return a.bytes()
				}}
			}},
			broken,
		),
		row("stream-cut-at-start", "loses the connection before a word was said", "OA-D54 IA-T70",
			cutAt("the connection breaks at once", 0.00001).times(1),
			repaired,
			"stream",
			"whole",
		),
		row("body-cut", "loses the connection in the middle of a whole reply", "D15 IA-T70",
			cutAt("the connection breaks at 70 %", 0.7).times(1),
			Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "failed|answer", Requests: [2]int{1, 3}},
			"whole",
		),
		row("stream-error-inside", "sends an error in the middle of a stream", "D15 IA-T70",
			Wire{Says: "an error event ends the stream", fault: func(at place) *pawltest.Fault {
				text := `data: {"error":{"message":"overloaded","type":"server_error","code":503,"status":"UNAVAILABLE"}}` + "\n\n"
				switch at.api {
				case anthropic:
					text = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
				case responses:
					text = "event: error\ndata: {\"type\":\"error\",\"sequence_number\":5,\"code\":\"server_error\",\"message\":\"overloaded\",\"param\":null}\n\n"
				}
				after := 3
				if at.api == gemini {
					after = 1 // its calls come whole
				}
				return &pawltest.Fault{Raw: text, After: after}
			}},
			broken,
		),
		row("error-in-200", "answers an error with status 200", "OA-D54",
			wire("status 200, and an error in the body", pawltest.Fault{Body: []byte(`{"type":"error","error":{"message":"quota exceeded","type":"insufficient_quota","code":"insufficient_quota"}}`), ContentType: "application/json"}),
			broken,
			"stream",
			"whole",
		),
		row("stream-event-twice", "sends an event twice", "D14 IA-T67",
			Wire{Says: "the fourth event comes twice", fault: func(place) *pawltest.Fault { return &pawltest.Fault{Repeat: 4} }},
			Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "answer|failed", Requests: [2]int{1, 4}},
		),
		row("stream-events-swapped", "sends two events in the wrong order", "D14",
			Wire{Says: "the fourth and the fifth event change places", fault: func(place) *pawltest.Fault { return &pawltest.Fault{Swap: 4} }},
			Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "answer|failed", Requests: [2]int{1, 4}},
		),
		row("stream-noise-lines", "writes lines between its events that mean nothing", "D14 IA-T66",
			between("\"retry: 10\" and \"x-noise: 1\" stand between events", noise("retry: 10\nx-noise: 1\nid: 7\n\n")),
			ok,
		),
		row("stream-comments", "writes comments and pings between its events", "IA-T65 IA-T66",
			between("\": OPENROUTER PROCESSING\" stands between events", ": OPENROUTER PROCESSING\n\n: ping\n\n"),
			ok,
		),
		row("stream-no-json", "sends an event that is no JSON", "D14",
			between("\"data: oops\" stands between events", "data: oops\n\n"),
			Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "answer|failed", Requests: [2]int{1, 4}},
		),
		row("stream-crlf", "ends its lines with CR and LF", "IA-T66",
			bytewise("lines end in CR LF", func(_ place, b []byte) []byte {
				return []byte(strings.ReplaceAll(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n", "\r\n"))
			}),
			ok,
		),
		row("stream-cr", "ends its lines with CR alone", "IA-T66",
			bytewise("lines end in CR", func(_ place, b []byte) []byte {
				return []byte(strings.ReplaceAll(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n", "\r"))
			}),
			ok,
		),
		row("stream-bom", "begins with a byte order mark", "IA-T66",
			bytewise("a byte order mark comes first", func(_ place, b []byte) []byte { return append([]byte("\ufeff"), b...) }),
			ok,
			"stream",
			"whole",
		),
		row("stream-no-space", "writes no space after the colon of its fields", "IA-T66",
			bytewise("\"data:{\" in place of \"data: {\"", func(_ place, b []byte) []byte {
				return []byte(strings.ReplaceAll(strings.ReplaceAll(string(b), "data: ", "data:"), "event: ", "event:"))
			}),
			ok,
		),
		row("stream-no-names", "leaves out the names of its events", "IA-T66",
			bytewise("there are no \"event:\" lines", func(_ place, b []byte) []byte {
				var out []string
				for line := range strings.SplitSeq(string(b), "\n") {
					if !strings.HasPrefix(line, "event:") {
						out = append(out, line)
					}
				}
				return []byte(strings.Join(out, "\n"))
			}),
			ok,
			"openai-responses/stream",
			"anthropic-messages/stream",
		),
		row("stream-no-done", "does not say [DONE] at the end", "D14",
			bytewise("there is no [DONE]", func(_ place, b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "data: [DONE]\n\n", "")) }),
			ok,
			"openai-chat/stream",
		),
		row("stream-no-last-newline", "ends its stream without an empty line", "IA-T66",
			bytewise("the last empty line is missing", func(_ place, b []byte) []byte { return []byte(strings.TrimRight(string(b), "\r\n")) }),
			ok,
		),
		row("stream-single-bytes", "sends its answer byte by byte", "D14 IA-T66",
			wire("every byte comes alone", pawltest.Fault{Chunk: 1}),
			ok,
			"stream",
			"whole",
		),
		row("stream-empty-deltas", "sends fragments with nothing in them", "D14 IA-T69",
			edited("empty fragments stand between the others", emptyDeltas),
			ok,
			"openai-chat/stream",
			"anthropic-messages/stream",
		),
		row("stream-null-fields", "sends null in every field that it does not use", "D14",
			objects("content, role, function_call and usage are null", func(_ *answer, o map[string]any, _ bool) {
				choices, _ := o["choices"].([]any)
				for _, c := range choices {
					if d, ok := c.(map[string]any)["delta"].(map[string]any); ok {
						for _, key := range []string{"content", "role", "function_call", "refusal", "tool_calls", "reasoning_content"} {
							if _, has := d[key]; !has {
								d[key] = nil
							}
						}
					}
				}
			}),
			ok,
			"openai-chat/stream",
		),
		row("stream-unknown-events", "sends events of unknown types", "D14",
			between("events of unknown kinds stand between the others", "event: vendor.sparkle\ndata: {\"type\":\"vendor.sparkle\",\"choices\":[],\"glitter\":1}\n\n"),
			ok,
		),
		row("stream-silence", "falls silent in the middle of its reply", "D19 IA-T65", silent("it is silent after the first event", 0, false), broken, "stream").silence(500 * time.Millisecond),
		row("silence", "never answers", "D19 IA-T65", silent("it is silent from the start", 0, true).times(3), broken, "stream", "whole").silence(500 * time.Millisecond),
		row("slow-first-byte", "takes its time before the first byte", "IA-T65",
			silent("it is silent for 400 ms", 400*time.Millisecond, true),
			ok,
			"stream",
			"whole",
		),
		{
			ID:    "endless-text",
			Title: "never stops talking",
			Meets: meets("D8 D24 IA-T51"),
			Setup: Setup{Time: 15 * time.Second},
			Turns: turns(Turn{Does: "writes text for ever", flow: endless(llm.Text{Text: "and on "})}),
			Want:  Want{Loose: true, Stop: "limit", Requests: [2]int{1, 1}},
		},
		{
			ID:    "endless-arguments",
			Title: "never ends the arguments of a call",
			Meets: meets("D8 D24 IA-T51"),
			Setup: Setup{Time: 15 * time.Second},
			Turns: turns(Turn{Does: "writes arguments for ever",
				flow: endless(llm.ToolCall{ID: "c", Name: "weather", Args: json.RawMessage(`{"city":"O`)})}),
			Want: Want{Loose: true, Stop: "limit", Requests: [2]int{1, 1}},
		},
		{
			ID:    "endless-calls",
			Title: "makes calls for ever in one reply",
			Meets: meets("D8 D24 IA-T51 T1.0-11"),
			Setup: Setup{Time: 15 * time.Second},
			Turns: turns(Turn{Does: "makes calls for ever in one reply", flow: endless(nil)}),
			Want:  Want{Loose: true, Stop: "limit", Requests: [2]int{1, 1}},
		},
	}
}

func (b Behaviour) silence(d time.Duration) Behaviour { b.Setup.Silence = d; return b }

func emptyDeltas(a *answer) {
	var out []sent
	index := any(nil)
	open := false
	for _, e := range a.events {
		out = append(out, e)
		if e.object == nil {
			continue
		}
		switch a.api {
		case chat:
			if _, ok := e.object["choices"]; ok && !strings.Contains(e.data, `"finish_reason":"`) {
				out = append(out,
					sent{object: map[string]any{"id": "x", "object": "chat.completion.chunk", "created": 1,
						"model": "m", "choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": nil}}}},
					sent{object: map[string]any{"id": "x", "object": "chat.completion.chunk", "created": 1,
						"model": "m", "choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": ""}, "finish_reason": nil}}}},
					sent{object: map[string]any{"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []any{}}})
			}
		case anthropic:
			switch e.object["type"] {
			case "content_block_start":
				index = e.object["index"]
				open = true
			case "content_block_stop":
				open = false
			}
			if open {
				out = append(out, sent{name: "content_block_delta", object: map[string]any{"type": "content_block_delta", "index": index, "delta": map[string]any{"type": "input_json_delta", "partial_json": ""}}})
			}
		}
	}
	a.events = out
}

// endless is a model whose first reply never ends: fragments of one part, or (nil) calls.
func endless(part llm.Part) func() llm.Model {
	return func() llm.Model { return endlessModel{part} }
}

func (m endlessModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for n := 0; ; n++ {
			d := llm.Delta{Index: 0, Part: m.part}
			if m.part == nil {
				d = llm.Delta{Index: n, Part: llm.ToolCall{ID: fmt.Sprint("c", n), Name: "weather",
					Args: json.RawMessage(oslo)}, Done: true}
			}
			if n > 0 {
				select {
				case <-ctx.Done():
					yield(llm.Delta{}, ctx.Err())
					return
				case <-time.After(15 * time.Millisecond):
				}
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

type endlessModel struct{ part llm.Part }
