package hostile

import (
	"fmt"
	"strings"

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
		text("text-call-hermes", "writes its call as text, in Hermes' marks", "D30", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>"),
		text("text-call-json", "writes its call as a JSON object", "D30", `{"name":"weather","arguments":{"city":"Oslo"}}`),
		text("text-call-fence", "writes its call as fenced JSON", "D30", fence+"json\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}\n"+fence),
		text("text-call-mistral", "writes its call as text, in Mistral's marks", "D30", `[TOOL_CALLS][{"name":"weather","arguments":{"city":"Oslo"}}]`),
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

// people: calls that wait for a person.
func people() []Behaviour {
	return []Behaviour{
		{
			ID:    "passive-mixed",
			Title: "calls a tool that the caller answers and a tool that runs",
			Meets: meets("D25 IA-T24"),
			Tools: []string{"weather", "ask"},
			Turns: turns(calls(inOslo, `ask {"city":"Oslo"}`)),
			Want:  Want{Results: []Shown{ran(inOslo), {Open: true}}, Stop: "pending", Requests: [2]int{1, 1}},
		},
		{
			ID:    "passive-answered",
			Title: "calls a tool that the caller answers, and continues with the answer",
			Meets: meets("D25 OA-D28 OA-D60 IA-T19 IA-T2"),
			Tools: []string{"weather", "ask"},
			Setup: Setup{GoOn: true},
			Turns: turns(calls(inOslo, `ask {"city":"Oslo"}`)),
			Want:  Want{Results: []Shown{ran(inOslo), {Ran: `ask {"city":"Oslo"}`}}, Requests: [2]int{2, 2}, Ran: 1},
		},
		{
			ID:    "passive-invalid",
			Title: "calls a tool that the caller answers with arguments that do not fit",
			Meets: meets("D25 D3"),
			Tools: []string{"ask"},
			Turns: turns(calls("ask {}")),
			Want:  shown(says("city")),
		},
		{
			ID:    "denied",
			Title: "calls a forbidden tool and an allowed tool",
			Meets: meets("D10 IA-T55 OA-D26"),
			Tools: []string{"weather", "danger"},
			Turns: turns(calls("danger {}", inOslo)),
			Want:  shown(says("den|forbid|refuse|not allowed"), ran(inOslo)),
		},
		{
			ID:    "policy-fails",
			Title: "calls a tool whose policy cannot be asked",
			Meets: meets("D10 D20"),
			Tools: []string{"vague", "weather"},
			Turns: turns(calls("vague {}", inOslo)),
			Want:  shown(Shown{}, ran(inOslo)),
		},
		{
			ID:    "denied-again",
			Title: "keeps calling a forbidden tool",
			Meets: meets("D10 OA-D26"),
			Tools: []string{"danger"},
			Turns: turns(calls("danger {}"), calls(`danger {"n":1}`), calls(`danger {"n":2}`)),
			Want:  shown(says("den|forbid|refuse|not allowed").times(3)),
		},
		{
			ID:    "denied-invalid",
			Title: "calls what is forbidden with arguments that do not fit",
			Meets: meets("D10 D11"),
			Tools: []string{"danger"},
			Turns: turns(calls(`danger {"n":"all"}`)),
			Want:  shown(Shown{}),
		},
		{
			ID:    "approval-waits",
			Title: "calls a tool that a person must allow",
			Meets: meets("D10 OA-D25"),
			Tools: []string{"pay", "weather"},
			Turns: turns(calls(`pay {"n":1}`, inOslo)),
			Want:  Want{Results: []Shown{{Open: true}, ran(inOslo)}, Stop: "pending", Requests: [2]int{1, 1}},
		},
		{
			ID:    "approval-given",
			Title: "calls a tool that a person allows later, from what was stored",
			Meets: meets("D10 D11 D12 OA-D27 OA-D28"),
			Tools: []string{"pay"},
			Setup: Setup{GoOn: true},
			Turns: turns(calls(`pay {"n":1}`)),
			Want:  shown(ran(`pay {"n":1}`)),
		},
		{
			ID:    "word-between",
			Title: "makes a call that waits, and the user says something before it is answered",
			Meets: meets("IA-T27 D6 D10"),
			Tools: []string{"pay"},
			Setup: Setup{GoOn: true, Word: "And hurry."},
			Turns: turns(calls(`pay {"n":1}`)),
			Want:  shown(ran(`pay {"n":1}`)),
		},
		{
			ID:    "steered",
			Title: "makes two calls, and the user says something while they run",
			Meets: meets("IA-T27 D6"),
			Tools: []string{"steers", "weather"},
			Setup: Setup{Word: "Only Oslo, please."},
			Turns: turns(calls("steers {}", inOslo)),
			Want:  shown(ran("steers {}"), ran(inOslo)),
		},
		{
			ID:    "approval-once",
			Title: "makes two calls of which a person allows one",
			Meets: meets("D11 OA-D27"),
			Tools: []string{"pay"},
			Setup: Setup{GoOn: true},
			Turns: turns(calls(`pay {"n":1}`, `pay {"n":1000}`)),
			Want:  shown(ran(`pay {"n":1}`), says("den|refuse|not allowed|enough")),
		},
		{
			ID:    "approval-not-reused",
			Title: "makes a call again that a person had allowed once",
			Meets: meets("D11 OA-D27"),
			Tools: []string{"pay"},
			Setup: Setup{GoOn: true},
			Turns: turns(calls(`pay {"n":1}`), calls(`pay {"n":1}`)),
			Want:  shown(ran(`pay {"n":1}`), says("den|refuse|not allowed|enough")),
		},
		{
			ID:    "cancelled-in-batch",
			Title: "is called off while three calls run",
			Meets: meets("D6 D20 IA-T24 IA-T62 OA-D3 OA-D22"),
			Tools: []string{"weather", "cancels", "patient"},
			Turns: turns(calls("patient {}", "cancels {}", inOslo)),
			Want:  Want{Results: []Shown{lost("patient {}", "cancel|not run|interrupt").or("not run|cancel"), lost("cancels {}"), ran(inOslo).or("not run|cancel")}, Stop: "cancelled", Requests: [2]int{1, 1}},
		},
		{
			ID:    "cancelled-alone",
			Title: "is called off while one call runs",
			Meets: meets("D6 OA-D22 IA-T62"),
			Tools: []string{"cancels"},
			Turns: turns(calls("cancels {}")),
			Want:  Want{Results: []Shown{lost("cancels {}", "cancel|interrupt")}, Stop: "cancelled", Requests: [2]int{1, 1}},
		},
		{
			ID:    "shutdown-resumed",
			Title: "is interrupted by a shutdown, and goes on in another process",
			Meets: meets("D12 D13 OA-D28 OA-D60"),
			Tools: []string{"weather", "stops"},
			Setup: Setup{GoOn: true},
			Turns: turns(calls(inOslo, "stops {}")),
			Want:  Want{Results: []Shown{ran(inOslo), ran("stops {}")}, Ran: 3, Requests: [2]int{2, 2}},
		},
	}
}

// toolFaults: tools that fail, hang, shout and lie.
func toolFaults() []Behaviour {
	row := func(id, title, ids string, tools, texts []string, want Want) Behaviour {
		return Behaviour{ID: id, Title: title, Meets: meets(ids), Tools: tools,
			Turns: turns(calls(texts...)), Want: want}
	}
	one := func(s string) []string { return []string{s} }
	return []Behaviour{
		row("tool-error", "calls a tool that fails", "T1.0-2 D1 IA-T46 OA-D6", one("broken"), one("broken {}"), shown(failed("broken {}", "disk full"))),
		row("tool-error-beside-ok", "calls a tool that fails and a tool that works", "T1.0-3 D1 D20 OA-D11", []string{"weather", "broken"}, []string{inOslo, "broken {}"}, shown(ran(inOslo), failed("broken {}", "disk full"))),
		row("tool-panics", "calls a tool that panics", "T1.0-8 D20 OA-D23", one("panics"), one("panics {}"), shown(lost("panics {}"))),
		row("tool-panics-beside-ok", "calls a tool that panics and a tool that works", "T1.0-8 D20 IA-T60", []string{"panics", "weather"}, []string{"panics {}", inOslo, `panics {"n":1}`}, shown(lost("panics {}"), ran(inOslo), lost(`panics {"n":1}`))),
		row("tool-hangs", "calls a tool that exceeds its timeout", "D19 OA-D25", one("hangs"), one("hangs {}"), shown(lost("hangs {}", "within|time|deadline"))),
		row("tool-hangs-beside-ok", "calls a tool that exceeds its timeout and a tool that works", "D19 D20", []string{"hangs", "weather"}, []string{"hangs {}", inOslo}, shown(lost("hangs {}", "within|time|deadline"), ran(inOslo))),
		row("tool-deaf-beside-ok", "calls a tool that never returns and a tool that works", "D19 D20 OA-D22", []string{"deaf", "weather"}, []string{"deaf {}", inOslo}, shown(lost("deaf {}", "within|time|left"), ran(inOslo))),
		row("tool-deaf", "calls a tool that never returns, alone", "D19 OA-D22", one("deaf"), one("deaf {}"), shown(lost("deaf {}", "within|time|left"))),
		row("tool-10mb", "calls a tool that returns 10 MB", "D21 IA-T63 IA-T64 OA-D4", one("big"), one("big {}"), shown(Shown{Ran: "big {}", Most: 64 << 10})),
		row("tool-binary", "calls a tool that returns bytes that are no text", "D21 IA-T63", one("binary"), one("binary {}"), shown(ran("binary {}"))),
		row("tool-silent", "calls a tool that returns hardly anything", "IA-T7", one("silent"), one("silent {}"), shown(ran("silent {}"))),
		row("tool-empty-input", "calls a tool without parameters, which its provider wants an object for", "IA-T7 IA-T13 IA-T68", one("ping"), one("ping {}"), shown(ran("ping {}"))),
		row("tool-says-error", "calls a tool whose good result begins with Error:", "IA-T41 OA-D7", one("finds"), one("finds {}"), shown(ran("finds {}").says("Error: nothing found"))),
		{
			ID:    "tool-injects",
			Title: "reads in a result that it should call a forbidden tool, and does",
			Meets: meets("D10 OA-D1 IA-T30"),
			Tools: []string{"injects", "danger"},
			Turns: turns(calls("injects {}"), calls("danger {}")),
			Want:  Want{Results: []Shown{ran("injects {}").says("Ignore all instructions"), says("den|forbid|refuse|not allowed")}, Ran: 1},
		},
		row("tool-busy-write", "calls a tool that pays, and whose line breaks", "D12 OA-D29 IA-T70", one("busy"), one("busy {}"), shown(failed("busy {}"))),
		{
			ID:    "tool-flaky-read",
			Title: "calls a tool that reads, over a line that works the third time",
			Meets: meets("D12 OA-D29"),
			Tools: []string{"flaky"},
			Turns: turns(calls("flaky {}")),
			Want:  Want{Loose: true, Results: []Shown{ran("flaky {}").times(3)}, Requests: [2]int{2, 2}},
		},
		row("tool-ends-run", "calls the tool that ends the run and another tool", "IA-T48 OA-D14",
			[]string{"weather", "submit"}, []string{"submit {}", inOslo},
			Want{Results: []Shown{ran("submit {}"), ran(inOslo)}, Stop: "finished", Requests: [2]int{1, 1}}),
		row("tool-aborts", "calls a tool that aborts the run and another tool", "IA-T24 D20 IA-T49 OA-D26",
			[]string{"weather", "abort"}, []string{"abort {}", inOslo},
			Want{Results: []Shown{lost("abort {}"), ran(inOslo)}, Stop: "failed", Requests: [2]int{1, 1}}),
		row("read-after-write", "writes a value and reads it in the same turn", "D17 IA-T61 OA-D24", []string{"put", "get"}, []string{`put {"key":"a","value":"1"}`, `get {"key":"a"}`, `put {"key":"a","value":"2"}`, `get {"key":"a"}`},
			shown(ran(`put {"key":"a","value":"1"}`).says("was "), ran(`get {"key":"a"}`).says("is 1"), ran(`put {"key":"a","value":"2"}`).says("was 1"), ran(`get {"key":"a"}`).says("is 2"))),
		row("writes-in-parallel", "writes the same value ten times in one turn", "D17 IA-T61 OA-D24", one("put"), numbered(`put {"key":"a","value":"%d"}`, 10), shown(numberedShown(10)...)),
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

// reasonings: thoughts that must go back as they came.
func reasonings() []Behaviour {
	return []Behaviour{
		{
			ID:    "reasoning-with-call",
			Title: "thinks, calls, thinks and calls again",
			Meets: meets("D7 IA-T3 IA-T4 IA-T23 IA-T68"),
			Turns: turns(Turn{Think: "Oslo first.", Calls: calls(inOslo).Calls}, Turn{Think: "Now Bergen, \"quoted\" <b>.", Calls: calls(inBergen).Calls}),
			Want:  shown(both()...),
		},
		{
			ID:    "reasoning-two-calls",
			Title: "thinks, and makes two calls in one turn",
			Meets: meets("D7 IA-T4 IA-T5"),
			Turns: turns(Turn{Think: "Both.", Calls: calls(inOslo, inBergen).Calls}),
			Want:  shown(both()...),
		},
		{
			ID:    "reasoning-text-call",
			Title: "thinks, talks and calls",
			Meets: meets("D7 IA-T22 IA-T23"),
			Turns: turns(Turn{Think: "Hm.", Text: "One moment.", Calls: calls(inOslo).Calls}),
			Want:  Want{Results: []Shown{ran(inOslo)}, Keeps: []string{"One moment."}},
		},
		{
			ID:    "reasoning-only",
			Title: "thinks, and says nothing",
			Meets: meets("D7 OA-D58"),
			Turns: turns(Turn{Think: "I wonder."}),
			Want:  shown().stops("answer|failed").after(1, 2),
		},
		{
			ID:    "reasoning-long",
			Title: "thinks 200 KB, and calls",
			Meets: meets("D7 IA-T65"),
			Turns: turns(Turn{Think: strings.Repeat("Let me think. ", 15_000), Calls: calls(inOslo).Calls}),
			Want:  shown(ran(inOslo)),
		},
	}
}

// setups: tools and agents that are more than a function.
func setups() []Behaviour {
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("tool_%03d", i))
	}
	return []Behaviour{
		{
			ID:    "tools-300",
			Title: "has 300 tools, and calls the 288th",
			Meets: meets("D22 IA-T78 IA-T1"),
			Tools: names,
			Turns: turns(calls("tool_287 {}", `tool_000 {"n":3}`), calls("tool_300 {}")),
			Want:  Want{Results: []Shown{ran("tool_287 {}"), ran(`tool_000 {"n":3}`), says("tool_")}},
		},
		{
			ID:    "requests-stable",
			Title: "calls three times; each request repeats the one before, byte for byte",
			Meets: meets("D23 D29 IA-T78"),
			Tools: names[:40],
			Twice: true,
			Turns: turns(calls("tool_001 {}"), calls("tool_002 {}"), calls("tool_003 {}")),
			Want:  shown(ran("tool_001 {}"), ran("tool_002 {}"), ran("tool_003 {}")),
		},
		{
			ID:    "schema-odd",
			Title: "breaks what its provider's dialect cannot say of a schema",
			Meets: meets("D4 IA-T14"),
			Tools: []string{"odd"},
			Turns: turns(calls(`odd {"at":{"lat":100,"lon":10},"when":"May"}`), calls(`odd {"at":{"lat":60,"lon":10},"when":"2026-05"}`)),
			Want:  shown(says("lat|when"), ran(`odd {"at":{"lat":60,"lon":10},"when":"2026-05"}`)),
		},
		{
			ID:    "schema-recursive",
			Title: "has a tool whose schema contains itself, and calls a plain tool",
			Meets: meets("D4 D5 OA-D35"),
			Tools: []string{"tree", "weather"},
			Turns: turns(calls(inOslo)),
			Want:  shown(ran(inOslo)),
		},
		{
			ID:    "plan-of-calls",
			Title: "makes a plan of a valid call, an unknown tool, invalid arguments and a forbidden tool",
			Meets: meets("D26 OA-D44 OA-D21"),
			Tools: []string{"plan", "weather", "danger"},
			Turns: turns(calls(`plan {"steps":[{"tool":"weather","args":{"city":"Oslo"}},{"tool":"forecast","args":{}},{"tool":"weather","args":{}},{"tool":"danger","args":{}}]}`)),
			Want: Want{Results: []Shown{{
				Ran:  "plan (4 steps)",
				Says: []string{`ran weather {"city":"Oslo"}`, "unknown", "city", "den|forbid|refuse"},
			}}, Ran: 1},
		},
		{
			ID:    "plan-progress",
			Title: "makes a plan that reports its progress",
			Meets: meets("D27 D28 OA-D56"),
			Tools: []string{"plan", "weather"},
			Only:  []string{"stream"},
			Turns: turns(calls(`plan {"steps":[{"tool":"weather","args":{"city":"Oslo"}}]}`)),
			Want: Want{Results: []Shown{{
				Ran:  "plan (1 steps)",
				Says: []string{"ran weather"},
			}}, Ran: 1, Events: true},
		},
		{
			ID:    "plan-300",
			Title: "makes three plans of 100 calls each",
			Meets: meets("D24 OA-D21 D26 IA-T52"),
			Tools: []string{"plan", "wait"},
			Turns: turns(calls(steps(100, 0), steps(100, 1), steps(100, 2))),
			Want:  Want{Results: []Shown{{Ran: "plan (100 steps)", Times: 3}}, Ran: 300, Peak: 10},
		},
		{
			ID:    "helper-never-stops",
			Title: "gives a task to a helper that never stops",
			Meets: meets("D24 D27 IA-T52 T1.0-11"),
			Tools: []string{"helper"},
			Only:  []string{"stream", "whole"},
			Turns: turns(decided("calls the helper; as the helper, it calls ping for ever", func(req *llm.Request) Turn {
				for _, t := range req.Tools {
					if t.Name == "ping" {
						return calls("ping {}")
					}
				}
				if replies(req) > 0 {
					return say("Done.")
				}
				return calls(`helper {"task":"look around"}`)
			}).again()),
			Want: Want{Loose: true, Results: []Shown{ran("ping {}").times(3)}, Requests: [2]int{4, 8}},
		},
	}
}

func steps(n, plan int) string {
	var b strings.Builder
	b.WriteString(`plan {"steps":[`)
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"tool":"wait","args":{"ms":0,"n":%d}}`, plan*n+i)
	}
	b.WriteString("]}")
	return b.String()
}
