package hostile

import (
	"fmt"

	"github.com/pawl-go/pawl/llm"
)

// many: too many calls, and calls without end.
func many() []Behaviour {
	hundreds := Turn{}
	for i := range 300 {
		hundreds.Calls = append(hundreds.Calls, Call{Name: "wait", Args: fmt.Sprintf(`{"ms":1,"n":%d}`, i)})
	}
	var all []Shown
	for i := range 300 {
		all = append(all, ran(fmt.Sprintf(`wait {"ms":1,"n":%d}`, i)))
	}
	capped := append([]Shown{}, all[:5]...)
	capped = append(capped, says("not run|limit|at most").times(295))
	counting := decided("calls with another city each time", func(req *llm.Request) Turn {
		return calls(fmt.Sprintf(`weather {"city":"Town %d"}`, replies(req)))
	}).again()
	shuffled := decided("makes the same call, written another way each time", func(req *llm.Request) Turn {
		return calls([]string{`weather {"city":"Oslo","days":2}`, `weather {"days":2,"city":"Oslo"}`, "weather { \"city\" : \"Oslo\",\n\"days\":2.0 }"}[replies(req)%3])
	}).again()
	endless := func(least, most int, stop string, may ...string) Want {
		w := Want{Loose: true, Stop: stop, Requests: [2]int{least, most}}
		for _, call := range may {
			w.Results = append(w.Results, ran(call).times(-1))
		}
		return w
	}
	return []Behaviour{
		{
			ID:    "calls-300",
			Title: "makes 300 calls in one turn",
			Meets: meets("T1.0-9 D17 IA-T60 OA-D21 IA-T6"),
			Tools: []string{"wait"},
			Turns: turns(hundreds),
			Want:  Want{Results: all, Peak: 10},
		},
		{
			ID:    "calls-300-capped",
			Title: "makes 300 calls in one turn where five are allowed",
			Meets: meets("T1.0-9 OA-D5 D24"),
			Tools: []string{"wait"},
			Setup: Setup{CallsPerStep: 5},
			Turns: turns(hundreds),
			Want:  Want{Results: capped},
		},
		{
			ID:    "calls-order",
			Title: "makes three calls of which the first takes longest",
			Meets: meets("T1.0-10 D17 IA-T22 OA-D2"),
			Tools: []string{"wait"},
			Turns: turns(calls(`wait {"ms":60}`, `wait {"ms":30}`, `wait {"ms":1}`)),
			Want:  shown(ran(`wait {"ms":60}`), ran(`wait {"ms":30}`), ran(`wait {"ms":1}`)),
		},
		{
			ID:    "calls-twice-in-reply",
			Title: "makes the same call twice in one turn",
			Meets: meets("D16 IA-T69"),
			Turns: turns(calls(inOslo, inOslo)),
			Want:  shown(ran(inOslo).times(2)),
		},
		{
			ID:    "calls-six-times-in-reply",
			Title: "makes the same call six times in one turn",
			Meets: meets("D16 D8"),
			Turns: turns(calls(inOslo, inOslo, inOslo, inOslo, inOslo, inOslo)),
			Want:  shown(ran(inOslo).times(6)),
		},
		{
			ID:    "calls-with-text",
			Title: "talks before, and then calls",
			Meets: meets("IA-T22"),
			Turns: turns(calls(inOslo, inBergen).saying("Let me look at both cities first.")),
			Want:  Want{Results: both(), Keeps: []string{"Let me look at both cities first."}},
		},
		{
			ID:    "call-for-ever",
			Title: "makes the same call for ever",
			Meets: meets("T1.0-11 D8 IA-T45 OA-D17"),
			Turns: turns(calls(inOslo).again()),
			Want:  endless(3, 21, "stalled|limit", inOslo),
		},
		{
			ID:    "call-for-ever-shuffled",
			Title: "makes the same call for ever, written another way each time",
			Meets: meets("D8 OA-D17"),
			Turns: turns(shuffled),
			Want:  endless(3, 12, "stalled", `weather {"city":"Oslo","days":2}`),
		},
		{
			ID:    "call-ping-pong",
			Title: "calls two tools in turn for ever",
			Meets: meets("D8 OA-D17 IA-T58"),
			Tools: []string{"weather", "ping"},
			Turns: turns(calls(inOslo).again(), calls("ping {}")),
			Want:  endless(4, 21, "stalled|limit", inOslo, "ping {}"),
		},
		{
			ID:    "call-never-stops",
			Title: "calls with other arguments each time, for ever",
			Meets: meets("T1.0-11 D8 IA-T44 IA-T45 OA-D13"),
			Turns: turns(counting),
			Want:  endless(5, 26, "limit", "weather *"),
		},
		{
			ID:    "call-failing-varied",
			Title: "calls a tool that fails, with other arguments each time, for ever",
			Meets: meets("D8"),
			Tools: []string{"broken"},
			Turns: turns(decided("calls with another number each time", func(req *llm.Request) Turn {
				return calls(fmt.Sprintf(`broken {"n":%d}`, replies(req)))
			}).again()),
			Want: endless(3, 26, "limit|stalled", "broken *"),
		},
		{
			ID:    "call-polling",
			Title: "asks again and again, and gets another answer each time",
			Meets: meets("IA-T58 OA-D17"),
			Tools: []string{"poll"},
			Turns: turns(calls("poll {}"), calls("poll {}"), calls("poll {}"), calls("poll {}"), calls("poll {}"), calls("poll {}"), calls("poll {}"), calls("poll {}")),
			Want:  shown(ran("poll {}").says("% done").times(8)),
		},
		{
			ID:    "rounds-none",
			Title: "calls where no call may run",
			Meets: meets("IA-T42 IA-T44 OA-D13"),
			Setup: Setup{Rounds: -1},
			Turns: turns(calls(inOslo).again()),
			Want:  Want{Loose: true, Stop: "limit", Requests: [2]int{1, 2}},
		},
		{
			ID:    "rounds-two",
			Title: "goes on calling when the rounds are used up",
			Meets: meets("IA-T43 IA-T44 IA-T8 OA-D13 OA-D58 D8"),
			Setup: Setup{Rounds: 2},
			Turns: turns(counting),
			Want:  Want{Results: []Shown{ran(`weather {"city":"Town 0"}`), ran(`weather {"city":"Town 1"}`), says("not run|limit|round")}, Stop: "limit", Requests: [2]int{3, 3}, Last: "none"},
		},
		{
			ID:    "calls-limit",
			Title: "makes more calls than the run may have",
			Meets: meets("D24 OA-D18 IA-T44"),
			Setup: Setup{Calls: 2},
			Turns: turns(calls(inOslo, inBergen, `weather {"city":"Tromsø"}`)),
			Want:  Want{Loose: true, Ran: 2, Stop: "limit", Requests: [2]int{1, 2}},
		},
		{
			ID:    "tokens-limit",
			Title: "uses more tokens than the run may have",
			Meets: meets("D24 OA-D18 IA-T44 IA-T50"),
			Setup: Setup{Tokens: 1000},
			Turns: turns(calls(inOslo).using(llm.Usage{Input: 900, Output: 200}).again()),
			Want:  Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "limit", Requests: [2]int{1, 2}},
		},
		{
			ID:    "usage-cumulative",
			Title: "says cumulative figures in several events",
			Meets: meets("IA-T75 IA-T73"),
			Setup: Setup{Tokens: 8000},
			Turns: turns(calls(inOslo).using(llm.Usage{Input: 1500, Output: 900, CacheRead: 1000, Reasoning: 800}),
				calls(inBergen).using(llm.Usage{Input: 1500, Output: 900, CacheRead: 1000, Reasoning: 800})),
			Want: Want{Results: both(), Requests: [2]int{3, 3}},
		},
	}
}

// choices: calls that contradict the tool choice, and texts that look like calls.
func choices() []Behaviour {
	forced := decided("obeys a forced choice, else it answers", func(req *llm.Request) Turn {
		if req.Choice.Mode == llm.ToolNamed || req.Choice.Mode == llm.ToolRequired {
			return calls(inOslo)
		}
		return say("Done.")
	}).again()
	text := func(id, title, ids, say string) Behaviour {
		return Behaviour{ID: id, Title: title, Meets: meets(ids), Setup: Setup{FromText: true},
			Turns: turns(Turn{Text: say}), Want: Want{Results: []Shown{ran(inOslo)}, Requests: [2]int{2, 2}}}
	}
	fence := "```"
	return []Behaviour{
		{
			ID:    "choice-forced",
			Title: "calls while the choice forces it",
			Meets: meets("D9 IA-T11 OA-D16"),
			Setup: Setup{Choice: "weather"},
			Turns: turns(forced),
			Want:  Want{Results: []Shown{ran(inOslo)}, Requests: [2]int{2, 2}, Last: "auto"},
		},
		{
			ID:    "choice-forced-thinking",
			Title: "is forced to call while it thinks",
			Meets: meets("D9 IA-T10"),
			Only:  []string{chat, responses, gemini},
			Setup: Setup{Choice: "weather", Effort: "high"},
			Turns: turns(Turn{Think: "Hm.", Calls: calls(inOslo).Calls}),
			Want:  Want{Results: []Shown{ran(inOslo)}, Last: "auto"},
		},
		{
			ID:    "choice-forced-thinking-clash",
			Title: "is forced to call while it thinks, where the API refuses that",
			Meets: meets("D9 IA-T10"),
			Only:  []string{anthropic},
			Setup: Setup{Choice: "weather", Effort: "high"},
			Turns: turns(Turn{Think: "Hm.", Calls: calls(inOslo).Calls}),
			Want:  Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "answer|failed", Requests: [2]int{0, 2}},
		},
		{
			ID:    "choice-required",
			Title: "calls as long as a call is required",
			Meets: meets("D9 IA-T11 OA-D16 OA-D15"),
			Setup: Setup{Choice: "required"},
			Turns: turns(forced),
			Want:  Want{Results: []Shown{ran(inOslo)}, Requests: [2]int{2, 2}, Last: "auto"},
		},
		{
			ID:    "choice-forced-ignored",
			Title: "answers where a call is forced",
			Meets: meets("D9"),
			Setup: Setup{Choice: "weather"},
			Turns: turns(say("It rains.")),
			Want:  shown().after(1, 1),
		},
		{
			ID:    "choice-forced-other",
			Title: "calls another tool than the forced tool",
			Meets: meets("D9"),
			Setup: Setup{Choice: "weather"},
			Tools: []string{"weather", "ping"},
			Turns: turns(calls("ping {}")),
			Want:  shown(ran("ping {}").or("weather")),
		},
		{
			ID:    "choice-none-calls",
			Title: "calls although it must not",
			Meets: meets("IA-T9 IA-T8 OA-D15"),
			Setup: Setup{Choice: "none"},
			Turns: turns(calls(inOslo)),
			Want:  Want{Results: []Shown{says("not run|none|no tool")}, Requests: [2]int{2, 2}, Last: "none"},
		},
		{
			ID:    "choice-none-text",
			Title: "answers where it must not call",
			Meets: meets("IA-T9 IA-T8"),
			Setup: Setup{Choice: "none"},
			Turns: turns(say("It rains.")),
			Want:  Want{Requests: [2]int{1, 1}, Last: "none"},
		},
		{
			ID:    "args-echoed",
			Title: "writes the arguments of its call as text, too",
			Meets: meets("IA-T38"),
			Turns: turns(calls(inOslo).saying(oslo)),
			Want:  Want{Results: []Shown{ran(inOslo)}, Lacks: []string{"Oslo"}},
		},
		{
			ID:    "args-echoed-wrapped",
			Title: "writes its call as JSON text, too",
			Meets: meets("IA-T38"),
			Turns: turns(calls(inOslo).saying(fence + "json\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}\n" + fence)),
			Want:  Want{Results: []Shown{ran(inOslo)}, Lacks: []string{"Oslo"}},
		},
		{
			ID:    "args-mentioned",
			Title: "mentions the arguments of its call in a sentence",
			Meets: meets("IA-T38"),
			Turns: turns(calls(inOslo).saying(`I call weather with {"city":"Oslo"} now.`)),
			Want:  Want{Results: []Shown{ran(inOslo)}, Keeps: []string{`I call weather with {"city":"Oslo"} now.`}},
		},
		text("text-call-hermes", "writes its call as text, in Hermes' marks", "D30",
			"<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
		),
		text("text-call-json", "writes its call as a JSON object", "D30", `{"name":"weather","arguments":{"city":"Oslo"}}`),
		text("text-call-fence", "writes its call as fenced JSON", "D30",
			fence+"json\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}\n"+fence,
		),
		text("text-call-mistral", "writes its call as text, in Mistral's marks", "D30",
			`[TOOL_CALLS][{"name":"weather","arguments":{"city":"Oslo"}}]`,
		),
		{
			ID:    "text-call-broken",
			Title: "writes a call as text, and breaks off",
			Meets: meets("D30 OA-D19 D15"),
			Setup: Setup{FromText: true},
			Turns: turns(say("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Os")),
			Want:  Want{Requests: [2]int{1, 1}, Keeps: []string{"<tool_call>"}},
		},
		{
			ID:    "text-call-unknown",
			Title: "writes JSON as text that is no call",
			Meets: meets("D30"),
			Setup: Setup{FromText: true},
			Turns: turns(say(`{"name":"Oslo","population":700000}`)),
			Want:  Want{Requests: [2]int{1, 1}, Keeps: []string{`{"name":"Oslo","population":700000}`}},
		},
		{
			ID:    "text-call-quoted",
			Title: "explains in a sentence how it would call",
			Meets: meets("D30 OA-D12"),
			Turns: turns(say(`Success: you could call weather with {"city":"Oslo"}; done.`)),
			Want:  Want{Requests: [2]int{1, 1}, Keeps: []string{"you could call weather"}},
		},
		{
			ID:    "done-word",
			Title: "says that all is done, and calls",
			Meets: meets("OA-D12"),
			Turns: turns(calls(inOslo).saying("Success. FINAL ANSWER: done."), calls(inBergen)),
			Want:  shown(both()...),
		},
	}
}

func numbered(format string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

func numberedShown(n int) []Shown {
	var all []Shown
	for i := range n {
		was := "was "
		if i > 0 {
			was += fmt.Sprint(i - 1)
		}
		all = append(all, ran(fmt.Sprintf(`put {"key":"a","value":"%d"}`, i)).says(was))
	}
	return all
}
