package hostile

import (
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

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
