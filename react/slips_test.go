package react_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

const (
	cutNote    = "cut off an observation that the model wrote itself"
	inlineNote = "read the final answer on the line of the thought"
)

// Slips with one meaning are read, with a note.
func TestSlipsWithOneMeaning(t *testing.T) {
	answer := func(thought, text string, notes ...string) react.Decision {
		return react.Decision{Thought: thought, Type: react.FinalAnswer, Answer: text, Notes: notes}
	}
	look := react.Decision{Thought: "I look.", Type: react.CallTool, Tool: "weather", Args: json.RawMessage(`{"city":"Oslo"}`),
		Notes: []string{cutNote}}
	for _, tt := range []struct {
		format react.Format
		text   string
		want   react.Decision
	}{
		{react.Text, "Thought: I know it. Final Answer: Take an umbrella.", answer("I know it.", "Take an umbrella.", inlineNote)},
		{react.JSON, "I know it. **Final Answer:** Take\nan umbrella.", answer("I know it.", "Take\nan umbrella.", inlineNote)},
		{react.Text, "Thought: I know. Final Answer: X\nObservation: sun", answer("I know.", "X", cutNote, inlineNote)},
		{react.Text, "Observation: rain\nThought: I know.\nFinal Answer: X", answer("I know.", "X", cutNote)},
		{react.Text, "Observation: rain\nThought: I know. Final Answer: X", answer("I know.", "X", cutNote, inlineNote)},
		{react.JSON, "\nObservation: rain\nThought: I look.\nAction: weather\nAction Input: {\"city\":\"Oslo\"}", look},
		{react.XML, "\nObservation: rain\n<thought>I look.</thought><tool>weather</tool><args>{\"city\":\"Oslo\"}</args>", look},
		{react.XML, "<observation>rain</observation><thought>I know.</thought><answer>X</answer>", answer("I know.", "X", cutNote)},
		{react.Plain, "Tool result: rain\nCalling tool: weather with args: {\"city\":\"Oslo\"}",
			react.Decision{Type: react.CallTool, Tool: "weather", Args: look.Args, Notes: look.Notes}},
	} {
		got, err := react.Read(tt.text, tt.format)
		if err != nil {
			t.Errorf("%s %q: %v", tt.format, tt.text, err)
		}
		if diff := cmp.Diff(got, tt.want); diff != "" {
			t.Errorf("%s %q: got -, want +\n%s", tt.format, tt.text, diff)
		}
	}
}

// Slips with several meanings, or none, are refused.
func TestSlipsThatAreRefused(t *testing.T) {
	for _, text := range []string{
		"Thought: either Final Answer: A or Final Answer: B?",
		`Thought: I end with "Final Answer: X".`,
		"Thought: the final answer: is not known yet",
		"Observation: rain",
		"Thought: I look.\nObservation: rain\nThought: I know.\nFinal Answer: X",
	} {
		if d, err := react.Read(text, react.Text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, d)
		}
	}
}

// A reply that is the answer as JSON, without a decision around it, costs no retry.
func TestBareJSONAnswer(t *testing.T) {
	form := json.RawMessage(`{"type":"object","properties":{"type":{"type":"string"},"rain":{"type":"boolean"}},"required":["rain"]}`)
	for _, tt := range []struct {
		output   json.RawMessage
		first    string
		want     string
		requests int
	}{
		{form, `{"rain":true}`, `{"rain":true}`, 1},
		{form, "```json\n{\"rain\":true,\"type\":\"shower\"}\n```", `{"rain":true,"type":"shower"}`, 1},
		{form, `{"rain":"maybe"}`, `{"rain":false}`, 2},
		{nil, `"Take an umbrella."`, "Take an umbrella.", 1},
		{nil, `{"city":"Oslo"}`, `{"rain":false}`, 2},
		{nil, `["Oslo"]`, `{"rain":false}`, 2},
	} {
		inner := script.New(script.Say(tt.first), script.Say(`{"type":"final_answer","thought":"","answer":"{\"rain\":false}"}`))
		a := &pawl.Agent{Model: react.New(inner, nil), Tools: []pawl.Toolset{weather()}, Output: tt.output}
		res, err := a.Run(t.Context(), llm.User("Does it rain?"))
		if err != nil {
			t.Errorf("%s: %v", tt.first, err)
			continue
		}
		if res.Text() != tt.want || len(inner.Requests()) != tt.requests {
			t.Errorf("%s: got %q after %d requests, want %q after %d", tt.first, res.Text(), len(inner.Requests()), tt.want, tt.requests)
		}
	}
}
