package durable_test

import (
	"net/http"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// The request of a guard's model is no request of the run: the journal has the bytes of the run's
// own, although the guard's goes through the same Transport, and a replay sends neither.
func TestGuardIsNotRecorded(t *testing.T) {
	open := func(turn script.Turn) *pawltest.Simulator {
		s, err := pawltest.NewSimulator(script.New(script.Loop(turn)), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	inner := &http.Transport{DisableKeepAlives: true}
	model := func(s *pawltest.Simulator) llm.Model {
		return openai.NewChat("m", &openai.Options{BaseURL: s.URL, Key: "k", HTTP: durable.Transport(inner)})
	}
	run, judge := open(script.Say("fine")), open(script.Say(`{"action":"allow","text":""}`))
	agent := func() *pawl.Agent {
		check := policy.ModelCheck(model(judge), "No poems.")
		return &pawl.Agent{Model: model(run), Middleware: []pawl.Middleware{policy.Guard{Check: check}.Middleware()}}
	}
	for range 10 { // the two requests race
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		res, err := eng.Runner("r", agent()).Run(t.Context(), llm.User("go"))
		if err != nil || res.Spent.Requests != 3 {
			t.Fatalf("%+v, %v", res, err)
		}
		asked := len(run.Received()) + len(judge.Received())
		p, err := eng.Replay(t.Context(), "r", agent())
		if err != nil || p.Bytes != 1 || len(run.Received())+len(judge.Received()) != asked {
			t.Fatalf("%+v, %v; %d requests were sent", p, err, len(run.Received())+len(judge.Received())-asked)
		}
	}
}
