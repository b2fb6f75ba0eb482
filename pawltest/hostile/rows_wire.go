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

const (
	chat      = pawltest.Chat
	responses = pawltest.Responses
	anthropic = pawltest.Anthropic
	gemini    = pawltest.Gemini
)

// bergen and both are a second call, and two in one reply.
const inBergen = `weather {"city":"Bergen"}`

func both() []Shown { return []Shown{ran(inOslo), ran(inBergen)} }

// finishes: replies whose finish reason contradicts their content.
func finishes() []Behaviour {
	cut := shown(says("cut|not run|length|filter|again"))
	// setFinish writes another reason in the words of each API. nil removes it.
	setFinish := func(says string, word any) Wire {
		return objects(says, func(a *answer, o map[string]any, _ bool) { finishAs(a.api, o, word) })
	}
	announced := objects("the finish reason announces calls, if the wire has such a reason", func(a *answer,
		o map[string]any, _ bool) {
		switch a.api {
		case pawltest.Chat:
			finishAs(a.api, o, "tool_calls")
		case pawltest.Anthropic:
			finishAs(a.api, o, "tool_use")
		}
	})
	emptied := objects("choices, output, content or candidates are an empty list", func(_ *answer, o map[string]any, _ bool) {
		for _, key := range []string{"choices", "output", "content", "candidates"} {
			if _, ok := o[key]; ok {
				o[key] = []any{}
			}
		}
	})
	return []Behaviour{
		{
			ID:    "finish-stop-with-calls",
			Title: "calls a tool, and says that it is done",
			Meets: meets("IA-T15 IA-T16 IA-T17"),
			Turns: turns(calls(inOslo).ending(llm.FinishReasonStop)),
			Want:  shown(ran(inOslo)),
		},
		{
			ID:    "finish-calls-without",
			Title: "says that it calls tools, and calls none",
			Meets: meets("IA-T16"),
			Turns: turns(say("It rains.").ending(llm.FinishReasonToolCalls).with(announced)),
			Want:  Want{Loose: true, Stop: "answer|failed", Requests: [2]int{1, 4}},
		},
		{
			ID:    "finish-length-valid",
			Title: "is cut by its length in a call whose arguments are JSON all the same",
			Meets: meets("T1.0-7 D15 IA-T32"),
			Turns: turns(calls(inOslo).ending(llm.FinishReasonLength)),
			Want:  cut,
		},
		{
			ID:    "finish-length-two",
			Title: "is cut by its length after one call and in another",
			Meets: meets("T1.0-7 D15"),
			Turns: turns(calls(inOslo, `weather {"city":"Ber"}`).ending(llm.FinishReasonLength)),
			Want:  shown(says("cut|not run|length"), says("cut|not run|length")),
		},
		{
			ID:    "finish-filter-with-calls",
			Title: "is cut by a content filter after a call",
			Meets: meets("T1.0-7 D15 IA-T16"),
			Turns: turns(calls(inOslo).ending(llm.FinishReasonContentFilter)),
			Want:  cut,
		},
		{
			ID:    "finish-refusal",
			Title: "refuses to answer",
			Meets: meets("IA-T18"),
			Turns: turns(say("I cannot help with that.").ending(llm.FinishReasonContentFilter)),
			Want:  shown().stops("failed").after(1, 1),
		},
		{
			ID:    "finish-unknown",
			Title: "ends a call with an unknown reason",
			Meets: meets("IA-T16 IA-T18"),
			Turns: turns(calls(inOslo).with(setFinish("the finish reason is \"banana\"", "banana"))),
			Only:  []string{chat},
			Want:  shown(ran(inOslo)),
		},
		// Chat Completions is the API of many servers, which have words of their own. The others
		// have one vendor, whose new word may say that the reply is not whole.
		{
			ID:    "finish-unknown-vendor",
			Title: "ends a call with a reason that its vendor does not document",
			Meets: meets("IA-T16 IA-T18"),
			Turns: turns(calls(inOslo).with(setFinish("the finish reason is \"banana\"", "banana"))),
			Only:  []string{anthropic, gemini},
			Want:  cut,
		},
		{
			ID:    "finish-null",
			Title: "calls a tool, and never says why it ended",
			Meets: meets("IA-T16 D14"),
			Turns: turns(calls(inOslo).with(setFinish("there is no finish reason", nil))),
			Only:  []string{"openai-chat/whole"},
			Want:  shown(ran(inOslo)),
		},
		{
			ID:    "finish-null-vendor",
			Title: "calls a tool without the reason that its vendor always gives",
			Meets: meets("IA-T16 D14"),
			Turns: turns(calls(inOslo).with(setFinish("there is no finish reason", nil))),
			Only:  []string{"anthropic-messages/whole"},
			Want:  cut,
		},
		{
			ID:    "finish-window-full",
			Title: "is cut in a call because its context window is full",
			Meets: meets("IA-T18 D15"),
			Only:  []string{anthropic},
			Turns: turns(calls(inOslo).with(setFinish("the stop reason is model_context_window_exceeded", "model_context_window_exceeded"))),
			Want:  cut,
		},
		{
			ID:    "finish-malformed-call",
			Title: "says that its call was malformed, and shows none",
			Meets: meets("T1.0-7 D3"),
			Only:  []string{gemini},
			Turns: turns(say("").ending("MALFORMED_FUNCTION_CALL").with(Wire{})),
			Want:  Want{Loose: true, Stop: "answer|failed", Requests: [2]int{1, 4}},
		},
		{
			ID:    "empty-reply",
			Title: "says nothing at all",
			Meets: meets("OA-D58"),
			Turns: turns(say("")),
			Want:  shown().stops("answer|failed").after(1, 2),
		},
		{
			ID:    "empty-after-results",
			Title: "says nothing after it got its results",
			Meets: meets("OA-D58"),
			Turns: turns(calls(inOslo), say("")),
			Want:  shown(ran(inOslo)).stops("answer|failed").after(2, 3),
		},
		{
			ID:    "empty-choices",
			Title: "sends a reply without choices",
			Meets: meets("D14"),
			Turns: turns(calls(inOslo).with(emptied)),
			Only:  []string{"openai-chat/whole", "gemini/whole"},
			Want:  Want{Loose: true, Stop: "failed", Requests: [2]int{1, 4}},
		},
		{
			ID:    "empty-output",
			Title: "sends a reply with nothing in it, and says that it calls",
			Meets: meets("D14 OA-D58 IA-T16"),
			Turns: turns(calls(inOslo).with(emptied)),
			Only:  []string{"openai-responses/whole", "anthropic-messages/whole"},
			Want:  Want{Loose: true, Stop: "answer|failed", Requests: [2]int{1, 4}},
		},
	}
}

// finishAs writes word as the finish reason in what ends a reply.
func finishAs(api string, o map[string]any, word any) {
	set := func(o map[string]any, key string) {
		if old, ok := o[key]; ok && old != nil {
			o[key] = word
		}
	}
	object := func(v any) map[string]any { m, _ := v.(map[string]any); return m }
	switch api {
	case chat, gemini:
		for _, list := range []string{"choices", "candidates"} {
			choices, _ := o[list].([]any)
			for _, c := range choices {
				set(object(c), "finish_reason")
				set(object(c), "finishReason")
			}
		}
	case anthropic:
		set(o, "stop_reason")
		set(object(o["delta"]), "stop_reason")
	}
}

// ids: calls with wrong ids or wrong places.
func ids() []Behaviour {
	two := calls(inOslo, inBergen)
	setID := func(says string, id func(n int, old string) any) Wire {
		return Wire{Says: says, fault: func(at place) *pawltest.Fault {
			n := -1
			seen := map[string]int{}
			w := callObjects(says, func(a *answer, c map[string]any, first bool) {
				key := idKey(a.api)
				old, has := c[key].(string)
				if !has {
					return
				}
				if _, ok := seen[old]; !ok {
					n++
					seen[old] = n
				}
				if v := id(seen[old], old); v == nil {
					delete(c, key)
				} else {
					c[key] = v
				}
			})
			return w.fault(at)
		}}
	}
	chatChunks := func(says string, f func(n int, call map[string]any, first bool)) Wire {
		return Wire{Says: says, fault: func(at place) *pawltest.Fault {
			n := -1
			return callObjects(says, func(a *answer, c map[string]any, first bool) {
				if first {
					n++
				}
				f(n, c, first)
			}).fault(at)
		}}
	}
	row := func(id, title, ids string, w Wire, only ...string) Behaviour {
		return Behaviour{ID: id, Title: title, Meets: meets(ids), Turns: turns(two.with(w)), Only: only,
			Want: shown(both()...)}
	}
	named := func(id string) Turn {
		return Turn{Calls: []Call{{ID: id, Name: "weather", Args: oslo}}}
	}
	stream := "openai-chat/stream"
	return []Behaviour{
		row("id-missing", "gives its calls no ids", "D14 D16 IA-T69", setID("calls have no id", func(int, string) any { return nil })),
		row("id-empty", "gives its calls empty ids", "D16 IA-T69", setID("calls have the id \"\"", func(int, string) any { return "" })),
		row("id-null", "gives its calls null as ids", "D16", edited("calls have null as their id", func(a *answer) {
			o := func(m map[string]any) {
				eachCall(a.api, m, func(c map[string]any, _ bool) {
					if _, ok := c[idKey(a.api)]; ok {
						c[idKey(a.api)] = nil
					}
				})
			}
			if m, ok := a.body.(map[string]any); ok {
				o(m)
			}
			for _, e := range a.events {
				o(e.object)
			}
		})),
		{
			ID:    "id-duplicate",
			Title: "gives two calls the same id",
			Meets: meets("D16 IA-T69 D20"),
			Turns: turns(two.with(setID("both calls have the id \"call\"", func(int, string) any { return "call" }))),
			Only:  []string{chat, responses, anthropic, gemini},
			Want:  Want{Results: both(), Loose: true, Stop: "answer|failed", Requests: [2]int{1, 4}},
		},
		row("id-long", "gives its calls ids of 1,000 letters", "D16", setID("ids are 1,000 letters long, and differ at the end", func(n int, _ string) any { return strings.Repeat("x", 1000) + fmt.Sprint(n) })),
		row("id-odd", "gives its calls ids with odd characters", "D16", setID("ids are \"call:1/é 0\" and so on", func(n int, _ string) any { return fmt.Sprintf("call:1/é %d", n) })),
		row("id-number", "gives its calls numbers as ids", "D16", setID("ids are numbers", func(n int, _ string) any { return n }), "openai-chat"),
		row("id-is-name", "gives its calls the tool's name as their id", "D16 IA-T69", setID("both calls have the id \"weather\"", func(int, string) any { return "weather" })),
		{
			ID:    "id-repeated-turns",
			Title: "gives a call of each turn the same id",
			Meets: meets("D16 OA-D3"),
			Turns: turns(named("call_1"), named("call_1"), named("call_1")),
			Want: Want{Results: []Shown{ran(inOslo), ran(inOslo), {
				Ran:  inOslo,
				Or:   []string{"weather|before|again"},
				Mute: true,
			}}},
		},
		row("id-late", "gives the ids only with the last fragment", "D14", chatLate(), stream),
		row("id-every-chunk", "repeats the id with every fragment", "D14 IA-T69", chatRepeat("the id is repeated", "id"), stream),
		row("name-every-chunk", "repeats the name with every fragment", "D14 IA-T67", chatRepeat("the name is repeated", "name"), stream),
		row("id-new-every-chunk", "gives a new id with every fragment", "D14", chatFresh(), stream),
		row("index-missing", "leaves out which call a fragment belongs to", "D14 IA-T69", chatChunks("fragments have no index", func(_ int, c map[string]any, _ bool) { delete(c, "index") }), stream),
		row("index-same", "gives both calls the same place", "D14 IA-T69", chatChunks("both calls have the index 0", func(_ int, c map[string]any, _ bool) { c["index"] = 0 }), stream),
		row("index-huge", "counts its calls from 1,000,000", "D14", chatChunks("indexes begin at 1,000,000", func(n int, c map[string]any, _ bool) { c["index"] = 1_000_000 + n }), stream),
		row("index-reversed", "counts its calls backwards", "D14", chatChunks("the first call has the index 1, the second 0", func(n int, c map[string]any, _ bool) { c["index"] = 1 - n }), stream),
		row("calls-interleaved", "writes two calls at the same time, a fragment of each in turn", "D14 IA-T69", edited("fragments of the two calls come in turn", interleave), stream),
		{
			ID:    "args-whole-then-again",
			Title: "writes all arguments, and then all of them again",
			Meets: meets("D14"),
			Turns: turns(two.with(chatAgain())),
			Only:  []string{stream},
			Want:  Want{Loose: true, Results: both(), Stop: "answer|failed", Requests: [2]int{1, 4}},
		},
		row("args-as-object", "sends the arguments as an object in place of a string", "D14", callObjects("arguments are an object", func(_ *answer, c map[string]any, _ bool) {
			if f, ok := c["function"].(map[string]any); ok {
				f["arguments"] = json.RawMessage(fmt.Sprint(f["arguments"]))
			}
		}), "openai-chat/whole"),
	}
}

// chatRepeat repeats the id or the name of a call in all of its fragments.
func chatRepeat(says, what string) Wire {
	return edited(says, func(a *answer) {
		ids := map[string]any{}
		names := map[string]any{}
		for _, e := range a.events {
			eachCall(a.api, e.object, func(c map[string]any, first bool) {
				at := fmt.Sprint(c["index"])
				f, _ := c["function"].(map[string]any)
				if first {
					ids[at] = c["id"]
					names[at] = f["name"]
				}
				if what == "id" {
					c["id"] = ids[at]
				} else {
					f["name"] = names[at]
				}
			})
		}
	})
}

// chatFresh gives each fragment an id of its own.
func chatFresh() Wire {
	return edited("every fragment has another id", func(a *answer) {
		n := 0
		for _, e := range a.events {
			eachCall(a.api, e.object, func(c map[string]any, _ bool) {
				c["id"] = fmt.Sprintf("chunk_%d", n)
				n++
			})
		}
	})
}

// chatLate moves the id of a call to its last fragment.
func chatLate() Wire {
	return edited("the id comes with the last fragment", func(a *answer) {
		ids := map[string]any{}
		last := map[string]map[string]any{}
		for _, e := range a.events {
			eachCall(a.api, e.object, func(c map[string]any, first bool) {
				at := fmt.Sprint(c["index"])
				if first {
					ids[at] = c["id"]
					delete(c, "id")
				}
				last[at] = c
			})
		}
		for at, c := range last {
			c["id"] = ids[at]
		}
	})
}

// chatAgain sends the whole of a call again after its fragments, as some servers do at the end.
func chatAgain() Wire {
	return edited("the last fragment of a call repeats all of it", func(a *answer) {
		args := map[string]string{}
		heads := map[string]map[string]any{}
		var out []sent
		var order []string
		for _, e := range a.events {
			has := false
			eachCall(a.api, e.object, func(c map[string]any, first bool) {
				has = true
				at := fmt.Sprint(c["index"])
				f := c["function"].(map[string]any)
				if first {
					order = append(order, at)
					heads[at] = map[string]any{"index": c["index"], "id": c["id"], "type": "function", "function": map[string]any{"name": f["name"]}}
				}
				s, _ := f["arguments"].(string)
				args[at] += s
			})
			if !has && len(order) > 0 && e.object != nil { // the end
				for _, at := range order {
					heads[at]["function"].(map[string]any)["arguments"] = args[at]
					out = append(out, sent{object: map[string]any{"id": "chatcmpl-again", "object": "chat.completion.chunk", "created": 1, "model": "m",
						"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"tool_calls": []any{heads[at]}}, "finish_reason": nil}}}})
				}
				order = nil
			}
			out = append(out, e)
		}
		a.events = out
	})
}

// interleave sorts the fragments of two calls so that they alternate.
func interleave(a *answer) {
	var head, tail []sent
	lanes := map[string][]sent{}
	var order []string
	for _, e := range a.events {
		at := ""
		eachCall(a.api, e.object, func(c map[string]any, _ bool) { at = fmt.Sprint(c["index"]) })
		switch {
		case at != "":
			if lanes[at] == nil {
				order = append(order, at)
			}
			lanes[at] = append(lanes[at], e)
		case len(order) == 0:
			head = append(head, e)
		default:
			tail = append(tail, e)
		}
	}
	for more := true; more; {
		more = false
		for _, at := range order {
			if l := lanes[at]; len(l) > 0 {
				head, lanes[at], more = append(head, l[0]), l[1:], true
			}
		}
	}
	a.events = append(head, tail...)
}

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
		row("stream-cut-in-call", "loses the connection in the middle of a call", "D15 IA-T70 OA-D54", cutAt("the connection breaks at 70 %", 0.7), broken),
		row("stream-cut-before-end", "loses the connection after the call, before the end", "D15 D18 IA-T70", Wire{Says: "the connection breaks before the end of the reply", fault: func(at place) *pawltest.Fault {
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
		}}, broken),
		row("stream-cut-at-start", "loses the connection before a word was said", "OA-D54 IA-T70", cutAt("the connection breaks at once", 0.00001).times(1), repaired, "stream", "whole"),
		row("body-cut", "loses the connection in the middle of a whole reply", "D15 IA-T70",
			cutAt("the connection breaks at 70 %", 0.7).times(1), Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "failed|answer", Requests: [2]int{1, 3}}, "whole"),
		row("stream-error-inside", "sends an error in the middle of a stream", "D15 IA-T70", Wire{Says: "an error event ends the stream", fault: func(at place) *pawltest.Fault {
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
		}}, broken),
		row("error-in-200", "answers an error with status 200", "OA-D54", wire("status 200, and an error in the body", pawltest.Fault{Body: []byte(`{"type":"error","error":{"message":"quota exceeded","type":"insufficient_quota","code":"insufficient_quota"}}`), ContentType: "application/json"}), broken, "stream", "whole"),
		row("stream-event-twice", "sends an event twice", "D14 IA-T67", Wire{Says: "the fourth event comes twice", fault: func(place) *pawltest.Fault { return &pawltest.Fault{Repeat: 4} }},
			Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "answer|failed", Requests: [2]int{1, 4}}),
		row("stream-events-swapped", "sends two events in the wrong order", "D14", Wire{Says: "the fourth and the fifth event change places", fault: func(place) *pawltest.Fault { return &pawltest.Fault{Swap: 4} }},
			Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "answer|failed", Requests: [2]int{1, 4}}),
		row("stream-noise-lines", "writes lines between its events that mean nothing", "D14 IA-T66", between("\"retry: 10\" and \"x-noise: 1\" stand between events", noise("retry: 10\nx-noise: 1\nid: 7\n\n")), ok),
		row("stream-comments", "writes comments and pings between its events", "IA-T65 IA-T66", between("\": OPENROUTER PROCESSING\" stands between events", ": OPENROUTER PROCESSING\n\n: ping\n\n"), ok),
		row("stream-no-json", "sends an event that is no JSON", "D14", between("\"data: oops\" stands between events", "data: oops\n\n"), Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "answer|failed", Requests: [2]int{1, 4}}),
		row("stream-crlf", "ends its lines with CR and LF", "IA-T66", bytewise("lines end in CR LF", func(_ place, b []byte) []byte {
			return []byte(strings.ReplaceAll(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n", "\r\n"))
		}), ok),
		row("stream-cr", "ends its lines with CR alone", "IA-T66", bytewise("lines end in CR", func(_ place, b []byte) []byte {
			return []byte(strings.ReplaceAll(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n", "\r"))
		}), ok),
		row("stream-bom", "begins with a byte order mark", "IA-T66", bytewise("a byte order mark comes first", func(_ place, b []byte) []byte { return append([]byte("\ufeff"), b...) }), ok, "stream", "whole"),
		row("stream-no-space", "writes no space after the colon of its fields", "IA-T66", bytewise("\"data:{\" in place of \"data: {\"", func(_ place, b []byte) []byte {
			return []byte(strings.ReplaceAll(strings.ReplaceAll(string(b), "data: ", "data:"), "event: ", "event:"))
		}), ok),
		row("stream-no-names", "leaves out the names of its events", "IA-T66", bytewise("there are no \"event:\" lines", func(_ place, b []byte) []byte {
			var out []string
			for line := range strings.SplitSeq(string(b), "\n") {
				if !strings.HasPrefix(line, "event:") {
					out = append(out, line)
				}
			}
			return []byte(strings.Join(out, "\n"))
		}), ok, "openai-responses/stream", "anthropic-messages/stream"),
		row("stream-no-done", "does not say [DONE] at the end", "D14",
			bytewise("there is no [DONE]", func(_ place, b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "data: [DONE]\n\n", "")) }), ok, "openai-chat/stream"),
		row("stream-no-last-newline", "ends its stream without an empty line", "IA-T66", bytewise("the last empty line is missing", func(_ place, b []byte) []byte { return []byte(strings.TrimRight(string(b), "\r\n")) }), ok),
		row("stream-single-bytes", "sends its answer byte by byte", "D14 IA-T66", wire("every byte comes alone", pawltest.Fault{Chunk: 1}), ok, "stream", "whole"),
		row("stream-empty-deltas", "sends fragments with nothing in them", "D14 IA-T69", edited("empty fragments stand between the others", emptyDeltas), ok, "openai-chat/stream", "anthropic-messages/stream"),
		row("stream-null-fields", "sends null in every field that it does not use", "D14", objects("content, role, function_call and usage are null", func(_ *answer, o map[string]any, _ bool) {
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
		}), ok, "openai-chat/stream"),
		row("stream-unknown-events", "sends events of unknown types", "D14", between("events of unknown kinds stand between the others", "event: vendor.sparkle\ndata: {\"type\":\"vendor.sparkle\",\"choices\":[],\"glitter\":1}\n\n"), ok),
		row("stream-silence", "falls silent in the middle of its reply", "D19 IA-T65", silent("it is silent after the first event", 0, false), broken, "stream").silence(500 * time.Millisecond),
		row("silence", "never answers", "D19 IA-T65", silent("it is silent from the start", 0, true).times(3), broken, "stream", "whole").silence(500 * time.Millisecond),
		row("slow-first-byte", "takes its time before the first byte", "IA-T65", silent("it is silent for 400 ms", 400*time.Millisecond, true), ok, "stream", "whole"),
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

type endlessModel struct{ part llm.Part }

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
