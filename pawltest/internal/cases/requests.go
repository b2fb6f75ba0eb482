// Package cases has what a Model must carry: the requests, replies and errors that the suites of
// pawltest send through it.
package cases

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// odd is a text whose characters are lost where a text is cleaned, or handled as lines.
const odd = "one\r\ntwo\u2028three \u00a0👨\u200d👩\u200d👧 e\u0301\t\x7f"

// Requests are changes to a first question that must arrive: its messages are instructions and a
// question, its tools look and find. An API that cannot express a change leaves out its part.
func Requests() map[string]func(*llm.Request) {
	all := map[string]func(*llm.Request){"model": func(r *llm.Request) { r.Model = "Another-Model" }}
	maps.Copy(all, messageQuestions())
	maps.Copy(all, toolQuestions())
	maps.Copy(all, settingQuestions())
	return all
}

// messageQuestions are about the messages of a request.
func messageQuestions() map[string]func(*llm.Request) {
	say := func(msgs ...llm.Message) func(*llm.Request) {
		return func(r *llm.Request) { r.Messages = append(r.Messages, msgs...) }
	}
	show := func(media llm.Media) func(*llm.Request) {
		return say(llm.Message{Role: llm.RoleUser,
			Parts: []llm.Part{llm.Text{Text: "What is this?"}, media, llm.Text{Text: "And why?"}}})
	}
	called := llm.Assistant(llm.Text{Text: "I look."},
		llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{ "at": "\u00e9", "n": 1.50 }`)},
		llm.ToolCall{ID: "b", Name: "find", Args: []byte(`{}`)})

	text := func(s string) []llm.Part { return []llm.Part{llm.Text{Text: s}} }
	results := func(first, second llm.ToolResult) func(*llm.Request) {
		first.CallID = "a"
		second.CallID = "b"
		return say(called, llm.Results(first, second))
	}

	picture := llm.Media{MIME: "image/png", Data: []byte("\x89PNG\x00\xff")}
	second := llm.Media{MIME: "image/jpeg", Data: []byte("\xff\xd8\xff\x00")}

	return map[string]func(*llm.Request){
		"instructions": func(r *llm.Request) {
			r.Messages[0] = llm.System(" Be brief.\n\nSay \"Grüße\", never {braces}.\n")
		},
		"instructions/several": func(r *llm.Request) {
			r.Messages = append([]llm.Message{llm.System("Answer in English.")}, r.Messages...)
		},
		"instructions/developer": func(r *llm.Request) { r.Messages[0].Role = llm.RoleDeveloper },
		"odd texts":              say(llm.Assistant(llm.Text{Text: "A sky."}), llm.User(odd)),
		"messages": say(llm.Assistant(llm.Text{Text: "A sky. "}), llm.User("\tAnd below?\n"), llm.Assistant(llm.Text{Text: "The sea."}),
			llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "One. "}, llm.Text{Text: "Two."}}}),
		"large messages": say(llm.User(strings.Repeat("Grüße, 世界 🌍 \"quoted\" \\ {braces}\n", 20_000))),
		"media/data":     show(picture),
		"media/several": say(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "And this?"}, picture, second}},
			llm.Assistant(llm.Text{Text: "Two dots."}),
			llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "Like this?"}, picture}}),
		"media/url":      show(llm.Media{URL: "https://example.com/a.png"}),
		"media/document": show(llm.Media{MIME: "application/pdf", Data: []byte("%PDF-1.7\x00")}),
		"calls":          results(llm.ToolResult{Parts: text("one")}, llm.ToolResult{Parts: text("two")}),
		"calls/names": func(r *llm.Request) {
			r.Tools[0] = &llm.ToolSpec{Name: "lookAt", Description: "Looks.", Input: r.Tools[0].Input}
			r.Messages = append(r.Messages, llm.Assistant(llm.ToolCall{ID: "a", Name: "lookAt", Args: []byte(`{"at":"x"}`)}),
				llm.Results(llm.ToolResult{CallID: "a", Parts: text("one")}))
		},
		"results/failed": results(llm.ToolResult{Parts: text("one")}, llm.ToolResult{Parts: text("no such place"), IsError: true}),
		"results/parts": results(llm.ToolResult{Parts: append(text("one, "), text(" and more\n")...)},
			llm.ToolResult{Parts: text(`{"n":[1,2.5e3]}`)}),
		"results/media": results(llm.ToolResult{Parts: append(text("a picture"), picture)}, llm.ToolResult{Parts: text("two")}),
		"results/same calls": func(r *llm.Request) {
			for _, found := range []string{"one", "two"} {
				r.Messages = append(r.Messages, llm.Assistant(llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{}`)}),
					llm.Results(llm.ToolResult{CallID: "a", Parts: text(found)}))
			}
		},
	}
}

// toolQuestions are about tools, the choice between them, and the output.
func toolQuestions() map[string]func(*llm.Request) {
	deep := json.RawMessage(`{"$defs":{"p":{"type":"object","properties":{"x":{"type":"number","minimum":0}},"required":["x"]}},
		"additionalProperties":false,"properties":{"at":{"description":"The place.","enum":["sky","sea"],"type":"string"},
		"list":{"items":{"$ref":"#/$defs/p"},"minItems":1,"type":"array"},"zip":{"pattern":"^[0-9]{5}$","type":"string"}},
		"required":["at"],"type":"object"}`)
	choose := func(c llm.ToolChoice) func(*llm.Request) { return func(r *llm.Request) { r.Choice = c } }
	return map[string]func(*llm.Request){
		"tools": func(r *llm.Request) {
			r.Tools = append(r.Tools, &llm.ToolSpec{Name: "go_to-2", Description: "Goes.\n\n- \"there\", or\n- back",
				Input: json.RawMessage(`{"type":"object"}`)})
		},
		"no tools":        func(r *llm.Request) { r.Tools = nil },
		"schemas":         func(r *llm.Request) { r.Tools[1].Input = deep },
		"choice/none":     choose(llm.ToolChoice{Mode: llm.ToolNone}),
		"choice/required": choose(llm.ToolChoice{Mode: llm.ToolRequired}),
		"choice/named":    choose(llm.Named("find")),
		"choice/several":  choose(llm.Named("find", "look")),
		"output":          func(r *llm.Request) { r.Output = deep },
	}
}

// settingQuestions are about Settings. Zero is a value where nil means the default.
func settingQuestions() map[string]func(*llm.Request) {
	set := func(change func(*llm.Settings)) func(*llm.Request) {
		return func(r *llm.Request) { change(&r.Settings) }
	}
	zero := 0.0
	quarter := 0.25
	most := 0.95
	yes := true
	no := false
	return map[string]func(*llm.Request){
		"settings/max_tokens":           set(func(s *llm.Settings) { s.MaxTokens = 123 }),
		"settings/temperature":          set(func(s *llm.Settings) { s.Temperature = &zero }),
		"settings/temperature/fraction": set(func(s *llm.Settings) { s.Temperature = &quarter }),
		"settings/top_p":                set(func(s *llm.Settings) { s.TopP = &most }),
		"settings/stop":                 set(func(s *llm.Settings) { s.StopSequences = []string{"END", "\n\n"} }),
		"settings/effort":               set(func(s *llm.Settings) { s.Effort = "low" }),
		"settings/parallel":             set(func(s *llm.Settings) { s.Parallel = &yes }),
		"settings/parallel/never":       set(func(s *llm.Settings) { s.Parallel = &no }),
	}
}
