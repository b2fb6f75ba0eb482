package core_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func TestADecisionThatAnswersNoOpenCallIsAnError(t *testing.T) {
	ask := &pawl.Tool{Name: "ask", Passive: true}
	a := &pawl.Agent{Model: script.New(script.Call("ask", `{}`), script.Say("done")), Tools: []pawl.Toolset{ask}}
	res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopPending {
		t.Fatalf("stop %s, error %v, want a pending run", res.Stop, err)
	}
	w := res.Pending[0]
	good := w.Answer("a person", llm.TextResult("yes"))
	bad := good
	bad.Key = "run/7/3"
	if _, err := a.Resume(t.Context(), res, llm.DecisionMessage(bad)); err == nil ||
		!strings.Contains(err.Error(), string(w.Key)) {
		t.Errorf("resume with a decision for run/7/3: error %v, want one that names the open call %s", err, w.Key)
	}
	end, err := a.Resume(t.Context(), res, llm.DecisionMessage(good))
	if err != nil || end.Stop != pawl.StopAnswer {
		t.Fatalf("stop %s, error %v, want an answer", end.Stop, err)
	}
	if _, err := a.Resume(t.Context(), end, llm.DecisionMessage(good), llm.User("and now?")); err == nil ||
		!strings.Contains(err.Error(), "open: none") {
		t.Errorf("a decision used twice: error %v, want one that says that nothing is open", err)
	}
}
