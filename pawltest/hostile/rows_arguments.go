package hostile

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// names: calls of tools that do not exist, or of misspelt tools.
func names() []Behaviour {
	unknown := shown(says("weather"))
	either := shown(ran(inOslo).or("weather"))
	named := func(name string) []Turn { return turns(call(name, oslo)) }
	return []Behaviour{
		{
			ID:    "unknown-tool",
			Title: "calls a tool that does not exist",
			Meets: meets("T1.0-1 D2 IA-T35 OA-D10"),
			Turns: named("forecast"),
			Want:  unknown,
		},
		{
			ID:    "unknown-then-right",
			Title: "calls a tool that does not exist, then corrects it",
			Meets: meets("D2 IA-T46"),
			Turns: turns(calls("forecast {}"), calls(inOslo)),
			Want:  shown(says("weather"), ran(inOslo)),
		},
		{
			ID:    "unknown-beside-right",
			Title: "calls a tool that does not exist and a tool that does",
			Meets: meets("T1.0-1 OA-D11 D20"),
			Turns: turns(calls("forecast {}", inOslo)),
			Want:  shown(says("weather"), ran(inOslo)),
		},
		{
			ID:    "unknown-forever",
			Title: "calls the same tool that does not exist again and again",
			Meets: meets("D2 D8 OA-D10"),
			Turns: turns(calls("forecast {}").again()),
			Want:  Want{Loose: true, Stop: "stalled|limit", Requests: [2]int{2, 21}},
		},
		{
			ID:    "near-miss-name",
			Title: "misspells the tool's name",
			Meets: meets("D2 OA-D10"),
			Turns: named("wether"),
			Want:  unknown,
		},
		{
			ID:    "name-case",
			Title: "writes the tool's name in another case",
			Meets: meets("D2"),
			Turns: named("Weather"),
			Want:  either,
		},
		{
			ID:    "name-functions-prefix",
			Title: "puts functions. before the tool's name",
			Meets: meets("D2 IA-T12"),
			Turns: named("functions.weather"),
			Want:  either,
		},
		{
			ID:    "name-default-api-prefix",
			Title: "puts default_api: before the tool's name",
			Meets: meets("D2"),
			Turns: named("default_api:weather"),
			Want:  either,
		},
		{
			ID:    "name-channel-suffix",
			Title: "leaves marks of its chat template in the tool's name",
			Meets: meets("D2 D30"),
			Turns: named("weather<|channel|>commentary"),
			Want:  either,
		},
		{
			ID:    "name-blank",
			Title: "puts white space around the tool's name",
			Meets: meets("D2"),
			Turns: named(" weather\n"),
			Want:  either,
		},
		{
			ID:    "name-empty",
			Title: "calls a tool without a name",
			Meets: meets("D2 D6"),
			Turns: named(""),
			Want:  unknown,
		},
		{
			ID:    "name-huge",
			Title: "calls a tool whose name is 10,000 letters long",
			Meets: meets("D2 IA-T33"),
			Turns: named(strings.Repeat("weather", 1429)),
			Want:  shown(Shown{Says: []string{"weather"}, Most: 2 << 10}),
		},
		{
			ID:    "name-invalid-utf8",
			Title: "calls a tool whose name is no text",
			Meets: meets("D2 IA-T12"),
			Turns: named("wea\xff\xfether"),
			Want:  unknown,
		},
		{
			ID:    "name-of-hosted-tool",
			Title: "calls a tool that its provider has and this run has not",
			Meets: meets("D2"),
			Turns: turns(call("multi_tool_use.parallel", `{"tool_uses":[{"recipient_name":"functions.weather","parameters":{"city":"Oslo"}}]}`)),
			Want:  either,
		},
		{
			ID:    "name-dotted-tool",
			Title: "calls a tool whose name its provider does not take",
			Meets: meets("IA-T12 OA-D34"),
			Tools: []string{"city.weather-now"},
			Turns: turns(decided("calls the tool by the name that it was offered under", func(req *llm.Request) Turn { return call(req.Tools[0].Name, oslo) })),
			Want:  shown(ran("city.weather-now " + oslo)),
		},
	}
}

// arguments: calls whose arguments do not fit.
func arguments() []Behaviour {
	row := func(id, title, ids, text string, want ...Shown) Behaviour {
		tool, _, _ := strings.Cut(text, " ")
		return Behaviour{ID: id, Title: title, Meets: meets(ids), Tools: []string{tool}, Turns: turns(calls(text)),
			Want: shown(want...)}
	}
	manyFaults := `{"id":1,"tags":[` + strings.Repeat("{},", 9_999) + "{}]}"
	deep := `{"city":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}"
	oneMB := `{"id":1,"note":"` + strings.Repeat("x", 1<<20) + `"}`
	tenMB := `{"id":1,"note":"` + strings.Repeat("x", 10<<20) + `"}`
	all := []Behaviour{
		row("args-empty-allowed", "sends no arguments to a tool that needs none", "D3 IA-T68", "ping ", ran("ping {}")),
		row("args-empty-needed", "sends no arguments to a tool that needs some", "D3 IA-T36", "weather ", says("city")),
		row("args-empty-object", "sends {} to a tool that needs more", "T1.0-5 IA-T31", "weather {}", says("city")),
		row("args-null", "sends null as the arguments", "D3 IA-T31 OA-D8", "weather null", says("object|city")),
		row("args-null-ping", "sends null to a tool that needs no arguments", "D3", "ping null", ran("ping {}").or("object")),
		row("args-list", "sends a list as the arguments", "D3 IA-T37", `weather ["Oslo"]`, says("object|city")),
		row("args-list-of-object", "puts the arguments into a list", "D3 IA-T37", `weather [{"city":"Oslo"}]`,
			ran(inOslo).or("object|city"),
		),
		row("args-string", "sends a bare string as the arguments", "D3", `weather "Oslo"`, says("object|city|JSON")),
		row("args-number", "sends a bare number as the arguments", "D3", "weather 42", says("object|city")),
		row("args-missing-required", "leaves out a required field", "T1.0-5 D3 IA-T33 IA-T36 OA-D9",
			`weather {"unit":"celsius"}`,
			says("city"),
		),
		row("args-enum", "sends a value that is not of the list", "T1.0-4 D3 IA-T33 OA-D9",
			`weather {"city":"Oslo","unit":"kelvin"}`,
			says("unit", "celsius"),
		),
		row("args-extra-key", "sends a field that does not exist", "D3 OA-D9",
			`weather {"city":"Oslo","mood":"good"}`,
			says("mood"),
		),
		row("args-proto-key", "sends a field named __proto__", "D3",
			`weather {"city":"Oslo","__proto__":{"admin":true}}`,
			says("__proto__"),
		),
		row("args-wrong-type", "sends words where a number is wanted", "D3 IA-T33 IA-T34",
			`weather {"city":"Oslo","days":"soon"}`,
			says("days", "integer|number"),
		),
		row("args-wrong-nested", "sends a wrong value deep inside", "D3 IA-T33",
			`order {"id":1,"address":{"street":"Storgata 1","zip":{"code":1}}}`,
			says("zip", "string"),
		),
		row("args-missing-nested", "leaves out a required field deep inside", "D3 IA-T33",
			`order {"id":1,"address":{"zip":"0155"}}`,
			says("street"),
		),
		row("args-out-of-range", "sends a number out of range", "D3", `weather {"city":"Oslo","days":1000}`,
			says("days", "14"),
		),
		row("args-fraction", "sends a fraction where a whole number is wanted", "D3",
			`weather {"city":"Oslo","days":2.5}`,
			says("days", "integer"),
		),
		row("args-whole-float", "writes a whole number as 3.0", "D3", `weather {"city":"Oslo","days":3.0}`,
			ran(`weather {"city":"Oslo","days":3}`),
		),
		row("args-many-faults", "sends 10,000 wrong values at once", "D3 IA-T33", "order "+manyFaults, says("tags")),
		row("args-secret", "sends a secret together with a value that does not fit", "IA-T40 D3",
			`order {"id":"seven","note":"hunter2"}`,
			Shown{Says: []string{"id"}, Hides: []string{"hunter2"}},
		),
		row("args-echo-schema", "sends the schema in place of values", "D3",
			`weather {"type":"object","properties":{"city":"Oslo"},"required":["city"]}`,
			says("city"),
		),
		row("args-wrapped", "wraps the arguments in a call", "D3 IA-T38",
			`weather {"name":"weather","arguments":{"city":"Oslo"}}`,
			ran(inOslo).or("city"),
		),
		row("args-big-integer", "sends a whole number that no float64 holds", "IA-T39",
			`order {"id":9007199254740993}`,
			ran(`order {"id":9007199254740993}`),
		),
		row("args-huge-integer", "sends a whole number of 30 digits", "IA-T39",
			`order {"id":123456789012345678901234567890}`,
			ran(`order {"id":123456789012345678901234567890}`).or("id"),
		),
		row("args-unicode-escapes", "writes letters as escapes", "D3", `weather {"city":"Troms\u00f8"}`,
			ran(`weather {"city":"Tromsø"}`),
		),
		row("args-lone-surrogate", "sends half a character", "D3", `weather {"city":"Oslo\ud83d"}`,
			Shown{Ran: `weather {"city":"Oslo` + "\uFFFD" + `"}`, Or: []string{"JSON|city"}},
		),
		row("args-nul", "sends a NUL in a string", "D3", `weather {"city":"Os\u0000lo"}`,
			ran(`weather {"city":"Os\u0000lo"}`),
		),
		row("args-deep", "nests 10,000 lists", "D3", "weather "+deep, says("city|deep|nest|JSON")),
		row("args-1mb", "sends 1 MB of arguments", "D3 IA-T64", "order "+oneMB, ran("order "+oneMB)),
		row("args-10mb", "sends 10 MB of arguments", "D3 IA-T64", "order "+tenMB, ran("order "+tenMB)),
	}
	// Two rows stand for eight.
	all[len(all)-1].Only = []string{chat + "/stream", anthropic + "/whole"}
	return all
}

// repairs: calls whose arguments are not JSON, or have a form with only one meaning. Each is
// repaired to that meaning or rejected; no other call may run.
func repairs() []Behaviour {
	row := func(id, title, args string) Behaviour {
		return Behaviour{ID: id, Title: title, Meets: meets("D3 OA-D8 IA-T31"), Turns: turns(call("weather", args)),
			Want: shown(ran(inOslo).or("JSON|city|object|argument"))}
	}
	order := func(id, title, args, want string, words ...string) Behaviour {
		w := shown(ran("order " + want).or(words...))
		if want == "" {
			w = shown(says(words...))
		}
		return Behaviour{ID: id, Title: title, Meets: meets("D3 OA-D8 OA-D9"), Tools: []string{"order"}, Turns: turns(call("order", args)), Want: w}
	}
	cut := func(id, title, ids, args string, f llm.FinishReason) Behaviour {
		return Behaviour{ID: id, Title: title, Meets: meets(ids), Turns: turns(call("weather", args).ending(f)),
			Want: shown(says("JSON|cut|argument|object|weather"))}
	}
	return []Behaviour{
		row("args-double-encoded", "sends the arguments as a string with JSON in it", `"{\"city\":\"Oslo\"}"`),
		row("args-trailing-comma", "leaves a comma at the end", `{"city":"Oslo",}`),
		row("args-missing-brace", "leaves out the brace at the start", `"city":"Oslo"}`),
		row("args-single-quotes", "writes single quotes", `{'city':'Oslo'}`),
		row("args-unquoted-key", "writes a field's name without quotes", `{city:"Oslo"}`),
		row("args-comment", "writes a comment", `{"city":"Oslo" /* the capital */}`),
		row("args-fence", "puts the arguments into a code fence", "```json\n{\"city\":\"Oslo\"}\n```"),
		row("args-prose", "writes words around the arguments", `Sure, here it is: {"city":"Oslo"}. Is that right?`),
		row("args-key-case", "writes a field's name in another case", `{"City":"Oslo"}`),
		row("args-bom", "begins the arguments with a byte order mark", "\ufeff"+`{"city":"Oslo"}`),
		{
			ID:    "args-invalid-utf8",
			Title: "sends arguments that are no text",
			Meets: meets("D3"),
			Turns: turns(call("weather", "{\"city\":\"Osl\xf8\"}")),
			Want:  shown(Shown{Ran: `weather {"city":"Osl` + "\uFFFD" + `"}`, Or: []string{"JSON|city"}}),
		},
		{
			ID:    "args-two-objects",
			Title: "sends two objects, one after the other",
			Meets: meets("D3 D14"),
			Turns: turns(call("weather", `{"city":"Oslo"}{"city":"Bergen"}`)),
			Want:  shown(says("JSON|city|object|argument")),
		},
		{
			ID:    "args-duplicate-keys",
			Title: "sends a field twice, with two values",
			Meets: meets("D3"),
			Turns: turns(call("weather", `{"city":"Oslo","city":"Bergen"}`)),
			Want:  shown(Shown{Ran: `weather {"city":"Bergen"}`, Or: []string{"city"}}),
		},
		order("args-python-literals", "writes True and None as Python does", `{"id":7,"gift":True}`,
			`{"gift":true,"id":7}`,
			"JSON|gift",
		),
		order("args-nan", "sends NaN as a number", `{"id":7,"amount":NaN}`, "", "JSON|amount"),
		order("args-infinity", "sends Infinity as a number", `{"id":7,"amount":Infinity}`, "", "JSON|amount"),
		order("args-number-as-string", "sends a number as a string", `{"id":"7"}`, `{"id":7}`, "id"),
		order("args-string-as-number", "sends a string as a number", `{"id":7,"note":42}`, `{"id":7,"note":"42"}`, "note"),
		order("args-bool-as-string", "sends a truth value as a string", `{"id":7,"gift":"true"}`,
			`{"gift":true,"id":7}`,
			"gift",
		),
		order("args-scalar-for-list", "sends a lone value where a list is wanted", `{"id":7,"tags":"red"}`,
			`{"id":7,"tags":["red"]}`,
			"tags",
		),
		order("args-object-as-string", "sends an object as a string with JSON in it",
			`{"id":7,"address":"{\"street\":\"Storgata 1\"}"}`,
			`{"address":{"street":"Storgata 1"},"id":7}`,
			"address",
		),
		order("args-null-optional", "sends null for a field that may be left out", `{"id":7,"note":null}`,
			`{"id":7}`,
			"note",
		),
		{
			ID:    "args-enum-near",
			Title: "writes a value of the list in another case",
			Meets: meets("D3"),
			Turns: turns(call("weather", `{"city":"Oslo","unit":"Celsius"}`)),
			Want:  shown(ran(`weather {"city":"Oslo","unit":"celsius"}`).or("unit", "celsius")),
		},
		cut("args-cut", "stops in the middle of the arguments, and says that it is done", "T1.0-6 D15 IA-T32 OA-D8",
			`{"city":"par`,
			"",
		),
		cut("args-cut-length", "stops in the middle of the arguments because its length is used up",
			"T1.0-6 D15 IA-T32",
			`{"city":"par`,
			llm.FinishReasonLength,
		),
		cut("args-cut-after-value", "stops after a value, and says that it is done", "D15 IA-T32",
			`{"city":"Oslo","unit":`,
			"",
		),
		cut("args-cut-before-brace", "stops before the last brace because its length is used up", "D15 IA-T32",
			`{"city":"Oslo"`,
			llm.FinishReasonLength,
		),
	}
}
