package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Text that only repeats a call is dropped and retracted from the consumers that received it. Prose
// is kept.
func TestLeaks(t *testing.T) {
	args := `{"city":"Oslo","days":[1,2.50]}`
	for _, test := range []struct {
		text string
		leak bool
	}{
		{`{"days":[1,2.50],"city":"Oslo"}`, true},
		{"```json\n{\"city\": \"Oslo\", \"days\": [1, 2.50]}\n```", true},
		{"```\n" + args + "```", true},
		{"```" + args + "```", true},
		{`{"name":"weather","arguments":` + args + `}`, true},
		{`{"name":"weather","parameters":` + args + `}`, true},
		{`{"name":"weather","arguments":"{\"city\":\"Oslo\",\"days\":[1,2.50]}"}`, true},
		{"  " + args + "\n", true},
		{`I call {"city":"Oslo","days":[1,2.50]}`, false},
		{args + ` is what I send`, false},
		{`{"city":"Bergen","days":[1,2.50]}`, false},
		{`{"name":"other","arguments":` + args + `}`, false},
		{`{}`, false},
		{`{"city":"Oslo"`, false},
		{`["Oslo"]`, false},
		{"Let me look.", false},
		{"", false},
	} {
		for way := range ways {
			turn := script.Together(script.Say(test.text), script.Call("weather", args), script.Say("After it."))
			a := &pawl.Agent{Model: script.New(turn, script.Say("done")), Tools: []pawl.Toolset{says("weather", "rain")}}
			events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
			if way == "whole" {
				res, err = a.Run(t.Context(), llm.User("go"))
			}
			if err != nil {
				t.Fatal(err)
			}
			want := test.text + "After it."
			if test.leak {
				want = "After it."
			}
			if got := res.Messages[1].Text(); got != want || len(res.Messages[1].Calls()) != 1 {
				t.Errorf("%s, %q: kept %q", way, test.text, got)
			}
			var shown, taken string
			for _, e := range events {
				switch {
				case e.Step != 1:
				case e.Kind == pawl.EventText && e.Index == 0:
					shown += e.Text
				case e.Kind == pawl.EventTextRetracted:
					taken += e.Text
				}
			}
			if shown != test.text || test.leak && taken != test.text || !test.leak && taken != "" {
				t.Errorf("%q: shown %q, taken back %q", test.text, shown, taken)
			}
		}
	}
	// Several leaked texts are retracted by the part numbers of their deltas.
	turn := script.Together(script.Say(args), script.Say("Fine."), script.Say(args), script.Call("weather", args))
	events, res, _ := collect((&pawl.Agent{Model: script.New(turn, script.Say("done")),
		Tools: []pawl.Toolset{says("weather", "rain")}}).Stream(t.Context(), llm.User("go")))
	var taken []int
	for _, e := range events {
		if e.Kind == pawl.EventTextRetracted {
			taken = append(taken, e.Index)
		}
	}
	if diff := cmp.Diff(taken, []int{0, 2}); diff != "" || res.Messages[1].Text() != "Fine." {
		t.Errorf("taken back %s", diff)
	}
	// A JSON answer is an answer and not a leaked call.
	res, err := (&pawl.Agent{Model: script.New(script.Say(args))}).Run(t.Context(), llm.User("go"))
	if err != nil || res.Text() != args {
		t.Errorf("got %q, %v", res.Text(), err)
	}
}
