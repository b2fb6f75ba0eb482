package hostile

import (

)

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
