package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/team"
)

// obeys is a model that makes the calls that the last message asks for, as in "call NAME", and
// else answers with its name. Each of its requests must be a valid conversation.
func obeys(t *testing.T, name string) *script.Model {
	return script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		if faults := llm.Check(req.Messages); len(faults) > 0 {
			t.Errorf("request of %s: %v", name, faults)
		}
		last := req.Messages[len(req.Messages)-1]
		if last.Role != llm.RoleUser {
			return script.Say(name + " answers")
		}
		var calls []script.Turn
		for _, tool := range strings.Fields(strings.TrimPrefix(last.Text(), "call ")) {
			if strings.HasPrefix(last.Text(), "call ") {
				calls = append(calls, script.Call(tool, `{}`))
			}
		}
		if len(calls) == 0 {
			return script.Say(name + " answers")
		}
		return script.Together(calls...)
	})))
}

func tool(name, result string, effect pawl.Effect) *pawl.Tool {
	return &pawl.Tool{Name: name, Effect: effect, Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.TextResult(result), nil
	}}
}

func handoff(t *testing.T, o *team.HandoffOptions, first *pawl.Agent, others ...team.Worker) *pawl.Agent {
	t.Helper()
	a, err := team.Handoff(first, o, others...)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// The agent that was handed the conversation answers from then on, also in later turns, with its
// own instructions, settings and tools, until it hands over again.
func TestHandoff(t *testing.T) {
	desk, billing := obeys(t, "desk"), obeys(t, "billing")
	first := &pawl.Agent{Name: "desk", Instructions: "You greet.", Model: desk,
		Tools: []pawl.Toolset{tool("clock", "desk's clock", pawl.EffectPure), tool("greet", "hello", pawl.EffectPure)}}
	other := &pawl.Agent{Name: "billing", Instructions: "You bill.", Model: billing, Settings: llm.Settings{MaxTokens: 7},
		Tools: []pawl.Toolset{tool("clock", "billing's clock", pawl.EffectPure), tool("refund", "paid", pawl.EffectPure)}}
	a := handoff(t, nil, first, team.Worker{Agent: other, Description: "Bills and refunds."})

	var msgs []llm.Message
	var notices []string
	turn := func(text string) *pawl.Result {
		t.Helper()
		var res *pawl.Result
		for e, err := range a.Stream(t.Context(), append(msgs, llm.User(text))...) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == pawl.EventNotice && e.Code == team.NoticeHandoff {
				notices = append(notices, string(e.Data))
			}
			if e.Kind == pawl.EventRunEnded {
				res = e.Result
			}
		}
		msgs = res.Messages
		return res
	}
	var got []string
	for _, text := range []string{"Hello.", "call refund clock", "call transfer_to_billing", "And?", "call greet clock refund", "call transfer_to_desk", "Bye."} {
		res := turn(text)
		line := text + " -> "
		for _, s := range res.Steps {
			for _, x := range s.Executions {
				line += fmt.Sprintf("%s %s; ", x.Outcome, x.Result.Text())
			}
		}
		got = append(got, line+res.Text())
	}
	want := []string{
		"Hello. -> desk answers",
		"call refund clock -> blocked Blocked: desk has no tool refund. Hand over to an agent that has it.; ok desk's clock; desk answers",
		"call transfer_to_billing -> ok The conversation is with billing now.; billing answers",
		"And? -> billing answers",
		"call greet clock refund -> blocked Blocked: billing has no tool greet. Hand over to an agent that has it.; ok billing's clock; ok paid; billing answers",
		"call transfer_to_desk -> ok The conversation is with desk now.; desk answers",
		"Bye. -> desk answers",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if diff := cmp.Diff(notices, []string{`{"from":"desk","note":"","to":"billing"}`, `{"from":"billing","note":"","to":"desk"}`}); diff != "" {
		t.Errorf("notices: got -, want +\n%s", diff)
	}
	req := billing.Requests()[0]
	var offered []string
	for _, s := range req.Tools {
		offered = append(offered, s.Name)
	}
	if got := strings.Join(offered, " "); got != "clock refund transfer_to_desk" || req.Settings.MaxTokens != 7 || req.Messages[0].Text() != "You bill." {
		t.Errorf("billing was asked with the tools %s, %+v and %q", got, req.Settings, req.Messages[0].Text())
	}
	if m := req.Messages[req.Turn]; m.Role != llm.RoleUser || m.Text() != "call transfer_to_billing" {
		t.Errorf("the turn begins with %+v", m)
	}
}

// A reply hands over once, the note reaches the next agent, and what it must not see is left out.
func TestHandoffNote(t *testing.T) {
	desk := script.New(
		script.Together(script.Think("Hm."), script.Call("clock", `{}`)),
		script.Together(script.Call("transfer_to_billing", `{"note":"She paid twice."}`), script.Call("transfer_to_sales", `{}`)))
	billing, sales := obeys(t, "billing"), obeys(t, "sales")
	for _, without := range []bool{false, true} {
		first := &pawl.Agent{Name: "desk", Model: desk, Tools: []pawl.Toolset{tool("clock", "noon", pawl.EffectPure)}}
		a := handoff(t, &team.HandoffOptions{WithoutCalls: without}, first,
			worker("billing", billing), worker("sales", sales))
		res, err := a.Run(t.Context(), llm.User("Help."))
		if err != nil || res.Text() != "billing answers" {
			t.Fatalf("got %v and %v", res, err)
		}
		if x := res.Steps[1].Executions; x[0].Outcome != pawl.OutcomeOK || x[1].Outcome != pawl.OutcomeError {
			t.Errorf("the handoffs ended %s and %s, want ok and error", x[0].Outcome, x[1].Outcome)
		}
		all := billing.Requests()
		var saw strings.Builder
		for _, m := range all[len(all)-1].Messages {
			for _, p := range m.Parts {
				fmt.Fprintf(&saw, "%T %v\n", p, p)
			}
		}
		if text := saw.String(); !strings.Contains(text, "She paid twice.") || strings.Contains(text, "Hm.") ||
			strings.Contains(text, "noon") == without {
			t.Errorf("without calls %v: billing saw\n%s", without, text)
		}
	}
}

// The policy of an agent decides about its calls alone. A question waits, and the answer goes to
// the agent that asked.
func TestHandoffApproval(t *testing.T) {
	denied := pawl.Approve(func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
		return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "no"}, nil
	})
	asked := pawl.Approve(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		if c.Name == "pay" {
			return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
	desk, billing := script.New(script.Call("transfer_to_billing", `{}`)), script.New(script.Call("pay", `{}`), script.Say("done"))
	billing.Skip = 1
	other := team.Worker{Agent: &pawl.Agent{Name: "billing", Model: billing, Middleware: []pawl.Middleware{asked},
		Tools: []pawl.Toolset{tool("pay", "paid", pawl.EffectWrite)}}}
	first := &pawl.Agent{Name: "desk", Model: desk}
	a := handoff(t, nil, first, other)
	e := &durable.Engine{Journal: &store.MemoryJournal{}}
	_, err := e.Runner("r1", a).Run(t.Context(), llm.User("Pay."))
	var stop *pawl.StopError
	if !errors.As(err, &stop) || len(stop.Result.Pending) != 1 {
		t.Fatalf("got %v", err)
	}
	again := e.Runner("r1", handoff(t, nil, first, other)) // as another process has it
	res, err := again.Run(t.Context(), llm.DecisionMessage(stop.Result.Pending[0].Approve("jo")))
	if err != nil || res.Text() != "done" {
		t.Fatalf("got %v and %v", res, err)
	}
	first.Middleware = []pawl.Middleware{denied}
	res, err = handoff(t, nil, first, other).Run(t.Context(), llm.User("Pay."))
	if err == nil || res.Steps[0].Executions[0].Outcome != pawl.OutcomeDenied {
		t.Errorf("a policy of desk that denies all let it hand over: %v", res.Steps)
	}
}

// Mistakes are errors before anything is sent.
func TestHandoffMistakes(t *testing.T) {
	m := script.New(script.Say("x"))
	agent := func(name string, tools ...pawl.Toolset) *pawl.Agent {
		return &pawl.Agent{Name: name, Model: m, Tools: tools}
	}
	output := agent("b")
	output.Output = []byte(`{"type":"object"}`)
	for want, b := range map[string]*pawl.Agent{
		"the name a is taken":                  agent("a"),
		"it has an Output of its own":          output,
		"have different tools named t":         agent("b", tool("t", "x", pawl.EffectWrite)),
		"the tool name transfer_to_c is taken": agent("b", tool("transfer_to_c", "x", pawl.EffectPure)),
	} {
		a, err := team.Handoff(agent("a", tool("t", "x", pawl.EffectPure)), nil, team.Worker{Agent: b})
		if err == nil {
			err = a.Check(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// For any calls of the models, each call runs for the agent that owns its tool and has the
// conversation.
func TestHandoffsOfRandomCalls(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		names := []string{"a", "b", "c"}
		var ran, want []string
		own := func(name string) *pawl.Tool {
			return &pawl.Tool{Name: "own_" + name, Effect: pawl.EffectPure,
				Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					ran = append(ran, name)
					return llm.TextResult("ok"), nil
				}}
		}
		agents := map[string]*pawl.Agent{}
		for _, n := range names {
			agents[n] = &pawl.Agent{Name: n, Model: obeys(t, n), Tools: []pawl.Toolset{own(n)}}
		}
		agents["a"].Parallel = pawl.Parallel{Limit: 1}
		a := handoff(t, nil, agents["a"], team.Worker{Agent: agents["b"]}, team.Worker{Agent: agents["c"]})
		at := "a"
		var msgs []llm.Message
		for range rapid.IntRange(1, 6).Draw(r, "turns") {
			any := rapid.SampledFrom([]string{"own_a", "own_b", "own_c", "transfer_to_a", "transfer_to_b", "transfer_to_c"})
			calls := rapid.SliceOfN(any, 1, 4).Draw(r, "calls")
			next := at
			for _, c := range calls {
				kind, name, _ := strings.Cut(c, "_")
				switch {
				case kind == "own" && name == at:
					want = append(want, at)
				case kind == "transfer" && !strings.HasSuffix(name, at) && next == at && firstTransfer(calls) == c:
					next = strings.TrimPrefix(name, "to_")
				}
			}
			at = next
			res, err := a.Run(t.Context(), append(msgs, llm.User("call "+strings.Join(calls, " ")))...)
			if err != nil {
				r.Fatal(err)
			}
			if got := res.Text(); got != at+" answers" {
				r.Fatalf("after %v: %q, want %s", calls, got, at)
			}
			msgs = res.Messages
		}
		if diff := cmp.Diff(ran, want); diff != "" {
			r.Fatalf("ran -, want +\n%s", diff)
		}
	})
}

func firstTransfer(calls []string) string {
	for _, c := range calls {
		if strings.HasPrefix(c, "transfer") {
			return c
		}
	}
	return ""
}
