package examples

import (
	"context"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/obey"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

// obedient returns a model at a provider over HTTP, which answers with turns, and repeats the last
// one. The provider obeys the request as real ones do: see package obey.
func obedient(turns ...script.Turn) (model llm.Model, stop func()) {
	last := len(turns) - 1
	turns = append(turns[:last:last], script.Loop(turns[last]))
	sim, err := pawltest.NewSimulator(obey.Model(&script.Model{Turns: turns}), nil)
	if err != nil {
		panic(err)
	}
	model = openai.NewChat("m", &openai.Options{BaseURL: sim.URL, Key: "k"})
	return model, func() { _ = sim.Close() }
}

// The provider of the programs obeys what a request says about its tools.
func TestObedient(t *testing.T) {
	weather := pawl.Func("weather", "Current weather.", forecast)
	other := pawl.Func("other", "Another tool.", forecast)
	call := script.Call("weather", place{"Oslo"})
	for _, c := range []struct {
		turn   script.Turn
		tools  []pawl.Toolset
		choice llm.ToolChoice
		want   string
	}{
		{call, []pawl.Toolset{weather}, llm.ToolChoice{}, "call weather"},
		{call, []pawl.Toolset{weather}, llm.ToolChoice{Mode: llm.ToolNone}, "I cannot call weather."},
		{call, []pawl.Toolset{other}, llm.ToolChoice{}, "I cannot call weather."},
		{call, nil, llm.ToolChoice{}, "I cannot call weather."},
		{call, []pawl.Toolset{weather, other}, llm.Named("other"), "I cannot call weather."},
		{script.Say("hi"), []pawl.Toolset{weather}, llm.ToolChoice{Mode: llm.ToolRequired}, "call weather"},
		{script.Say("hi"), []pawl.Toolset{weather, other}, llm.Named("other"), "call other"},
		{script.Say("hi"), []pawl.Toolset{weather}, llm.ToolChoice{}, "hi"},
	} {
		model, stop := obedient(c.turn)
		a := &pawl.Agent{Model: model, Tools: c.tools, Choice: c.choice, Limits: pawl.Limits{Rounds: pawl.NoRounds}}
		res, _ := a.Run(context.Background(), llm.User("go"))
		stop()
		got := res.Text()
		for _, open := range res.Calls() {
			got = "call " + open.Name
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.choice, got, c.want)
		}
	}
}

// forecasts are the turns of the programs about the weather.
func forecasts() []script.Turn {
	return []script.Turn{script.Call("weather", place{"Oslo"}), script.Say("It rains.")}
}
