package policy_test

import (
	"context"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// TestFlowSealedAtEachDepth: after a sealed result a call that sends asks: in the conversation that
// has the result, in agents within it at any depth, in the rest of the program that read it, and
// after that program.
func TestFlowSealedAtEachDepth(t *testing.T) {
	const jane = "jane@example.com"
	profile := did("profile", `{}`, "The phone is 0170 5551234, and more text.")
	mail := did("send_mail", `{"to":["`+jane+`"],"body":"x y z"}`, "sent")
	call := func(a act) script.Turn { return script.Call(a.Name, string(a.Args)) }
	nested := func(name string, middleware pawl.Middleware, tools []pawl.Toolset, turns ...script.Turn) *pawl.Tool {
		a := &pawl.Agent{Name: name, Tools: tools, Middleware: []pawl.Middleware{middleware},
			Model: script.New(append(turns, script.Say("done"))...)}
		return a.Tool("an agent")
	}

	for name, test := range map[string]struct {
		reads string // the tool that the outer agent calls first
		depth int    // of the agent that sends
	}{
		"here":             {"profile", 0},
		"one agent within": {"profile", 1},
		"two within":       {"profile", 2},
		"three within":     {"profile", 3},
		"after a program":  {"program", 0},
	} {
		for _, label := range []string{"sealed", "out"} {
			w := office()
			w.tools = append(w.tools, &pawl.Tool{Name: "program", Effect: pawl.EffectCompose,
				Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
					_, err := pawl.InvocationFrom(ctx).Do(ctx, llm.ToolCall{Name: profile.Name, Args: profile.Args})
					return llm.TextResult("A summary of some length."), err
				}})
			m := (&policy.Flow{Labels: map[string]string{"profile": label}, Unattended: true}).Middleware()
			tools := w.tools
			turn := call(mail)
			for range test.depth {
				inner := nested("inner", m, tools, turn)
				tools = append(w.tools[:len(w.tools):len(w.tools)], inner)
				turn = script.Call("inner", `{"task":"Write to `+jane+`."}`)
			}
			w.next = []llm.ToolResult{profile.toolResult(), mail.toolResult()}
			first := script.Call(test.reads, `{}`)
			a := &pawl.Agent{Tools: tools, Middleware: []pawl.Middleware{m},
				Model: script.New(first, turn, script.Say("done"))}
			_, err := runtest.Ended(a.Run(t.Context(), llm.User("Write to "+jane+".")))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ran := len(w.next) == 0
			if ran != (label == "out") {
				t.Errorf("%s, %s: the mail was sent %t", name, label, ran)
			}
		}
	}
}
