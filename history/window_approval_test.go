package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// A call that waits for a person is never put away: its question has all arguments, and so has the
// request after the decision, though everything before it was put away for that request. The
// control: once it is old, it is put away like any other call.
func TestWindowApproval(t *testing.T) {
	reason := strings.Repeat("the wheel is broken; ", 150)
	read := pawl.Func("page_read", "Reads.", func(_ context.Context, in struct{ N int }) (string, error) {
		return strings.Repeat("line of the page\n", 250), nil
	})
	read.Effect = pawl.EffectRead
	paid := 0
	pay := pawl.Func("pay", "Pays.", func(context.Context, struct{ Reason string }) (string, error) {
		paid++
		return "paid", nil
	})
	replies := 0
	var sent []string
	model := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		b, _ := json.Marshal(req.Messages)
		sent = append(sent, string(b))
		page := script.Call("page_read", map[string]any{"N": replies})
		switch replies++; replies {
		case 5:
			return script.Together(page, script.Call("pay", map[string]any{"Reason": reason}))
		case 16:
			return script.Say("Done.")
		}
		return page
	})))
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{read, pay, artifact.Reader{}},
		Middleware: []pawl.Middleware{pawl.Approve(policy.Rules{Ask: []string{"pay"}, Default: pawl.VerdictAllow}.Approve),
			history.Window(&history.WindowOptions{Tokens: 5_000, Reserve: 1_000, Keep: 1})}}
	_, err := agent.Run(t.Context(), llm.User("Mend the mill."))
	var stop *pawl.StopError
	if !errors.As(err, &stop) || len(stop.Result.Pending) != 1 ||
		!strings.Contains(string(stop.Result.Pending[0].Call.Args), reason) {
		t.Fatalf("%v: the question is not whole", err)
	}
	var stored pawl.Result
	if err := json.Unmarshal([]byte(form(stop.Result)), &stored); err != nil {
		t.Fatal(err)
	}
	at := len(sent)
	res, err := agent.Resume(t.Context(), &stored, llm.DecisionMessage(stored.Pending[0].Approve("anna")))
	if err != nil || paid != 1 || res.Text() != "Done." {
		t.Fatalf("%v, paid %d times", err, paid)
	}
	if next := sent[at]; !strings.Contains(next, reason) || !strings.Contains(next, `"text":"paid"`) || !strings.Contains(next, "bytes put away") {
		t.Errorf("the request after the decision: %.3000s", next)
	}
	if last := sent[len(sent)-1]; strings.Contains(last, reason) {
		t.Error("the old call is still whole: nothing is tested")
	}
}
