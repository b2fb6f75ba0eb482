package cases

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Replies are the turns that a Model must return unchanged.
func Replies() map[string]script.Turn {
	long := strings.Repeat("Grüße, 世界 🌍 \"quoted\" \\ {braces}\n", 200)
	large := strings.Repeat(long, 30) + "."
	object := `{"text":` + quoted(long) + `,"n":[1,2.5e3,-0],"ok":true}`
	return map[string]script.Turn{
		"text":              script.Say("Hello."),
		"long text":         script.Say(long),
		"odd text":          script.Say(odd + "."),
		"call":              script.Call("look", `{"at":"the sky"}`),
		"exact numbers":     script.Call("look", `{"n":9007199254740993,"x":0.10}`),
		"long arguments":    script.Call("look", object),
		"escaped arguments": script.Call("look", `{"at":"\u00e9\ud83c\udf0d\n"}`),
		"empty object":      script.Call("look", `{}`),
		"broken arguments":  script.Call("look", `{"at": [1, 2`),
		"parallel calls": script.Together(script.Call("look", `{"at":"a"}`), script.Call("find", `{"at":"b"}`),
			script.Call("look", `{"at":"a"}`)),
		"text and calls":       script.Together(script.Say("I look."), script.Call("look", `{"at":"a"}`)),
		"reasoning, then text": script.Together(script.Think("Let me see."), script.Say("Yes.")),
		"reasoning, then calls": script.Together(script.Think("Let me see."), script.Call("look", `{"at":"a"}`),
			script.Call("find", `{"at":"b"}`)),
		"cut text": script.Cut(script.Say("And then")),
		"cut call": script.Cut(script.Call("look", `{"at":"th`)),
		"filtered": {Parts: []llm.Part{llm.Text{Text: "I "}}, Finish: llm.FinishReasonContentFilter},
		"usage":    {Parts: []llm.Part{llm.Text{Text: "x"}}, Usage: &llm.Usage{Input: 1000, Output: 200}},
		"usage details": {Parts: []llm.Part{llm.Text{Text: "x"}},
			Usage: &llm.Usage{Input: 1000, Output: 200, Reasoning: 150, CacheRead: 900}},
		"large fragment":  {Size: len(large), Parts: []llm.Part{llm.Text{Text: large}}},
		"large arguments": {Size: 2 * len(large), Parts: []llm.Part{llm.ToolCall{Name: "look", Args: []byte(`{"text":` + quoted(large) + `}`)}}},
	}
}

// quoted returns s as a JSON string.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string has a JSON form
	}
	return string(b)
}

// Picture is a reply with a medium.
func Picture() script.Turn {
	picture := llm.Media{MIME: "image/png", Data: []byte("\x89PNG\x00\xff")}
	return script.Turn{Parts: []llm.Part{llm.Text{Text: "A dot:"}, picture}}
}

// Opaque are replies with data that only their provider reads. Each has a call, so that it is sent
// back.
func Opaque() map[string]script.Turn {
	signed := func(text string) *llm.Opaque {
		return &llm.Opaque{Provider: "suite", Data: json.RawMessage(`{"signature":"` + text + `+/=","n":[1,null]}`)}
	}
	turns := map[string]script.Turn{
		"reasoning":        {Parts: []llm.Part{llm.Reasoning{Text: "Let me see. ", Opaque: signed("a")}}},
		"hidden reasoning": {Parts: []llm.Part{llm.Reasoning{Opaque: signed("a")}}},
		"more reasoning": {Parts: []llm.Part{llm.Reasoning{Text: "First.", Opaque: signed("a")}, llm.Text{Text: "I look."},
			llm.Reasoning{Text: "Then.", Opaque: signed("b")}}},
		"text": {Parts: []llm.Part{llm.Text{Text: "I look.", Opaque: signed("a")}}},
		"call": {Parts: []llm.Part{llm.ToolCall{Name: "look", Args: []byte(`{"at":"b"}`), Opaque: signed("a")}}},
	}
	for name, turn := range turns {
		turns[name] = script.Together(turn, script.Call("find", `{"at":"a"}`))
	}
	return turns
}

// EndedEarly are replies without a finish.
func EndedEarly() map[string][]llm.Delta {
	return map[string][]llm.Delta{
		"in a text": {{Part: llm.Text{Text: "And then"}}},
		"after a text": {{Part: llm.Text{Text: "And then"}, Done: true},
			{Usage: &llm.Usage{Input: 1, Output: 1}}},
		"in a call":    {{Part: llm.ToolCall{ID: "a", Name: "look"}}, {Part: llm.ToolCall{Args: []byte(`{"at":`)}}},
		"after a call": {{Part: llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{}`)}, Done: true}},
	}
}

// Broken are replies that break off.
func Broken() map[string]script.Turn {
	return map[string]script.Turn{
		"broken off": script.Together(script.Say("A long answer that breaks off, and "), script.Fail(errors.New("line down"))),
		"broken call": script.Together(script.Call("look", `{"at":"the end of the line`),
			script.Fail(errors.New("line down"))),
		"broken at once": script.Fail(errors.New("line down")),
	}
}
