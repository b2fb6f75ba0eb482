package hostile

import (
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

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
