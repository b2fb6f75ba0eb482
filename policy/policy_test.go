package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// does returns a tool of that effect that takes any arguments.
func does(name string, effect pawl.Effect, run pawl.ToolFunc) *pawl.Tool {
	return &pawl.Tool{Name: name, Effect: effect, Input: json.RawMessage(`{"type":"object"}`), Run: run}
}

// says returns a tool that answers every call with its name.
func says(name string, effect pawl.Effect) *pawl.Tool {
	return does(name, effect, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.TextResult(name + " ran"), nil
	})
}

// runs plays turns with ws and tools, and returns the executions of all steps.
func runs(t *testing.T, tools []pawl.Toolset, ws []pawl.Middleware, turns ...script.Turn) []pawl.Execution {
	t.Helper()
	a := &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...), Tools: tools, Middleware: ws,
		Limits: pawl.Limits{LoopThreshold: -1, Rounds: 1000}}
	res, err := a.Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	var xs []pawl.Execution
	for _, s := range res.Steps {
		xs = append(xs, s.Executions...)
	}
	return xs
}

// once executes one call.
func once(t *testing.T, tool *pawl.Tool, args string, ws ...pawl.Middleware) pawl.Execution {
	t.Helper()
	return runs(t, []pawl.Toolset{tool}, ws, script.Call(tool.Name, args))[0]
}

func TestARuleAboutNoToolEndsTheRunBeforeItBegins(t *testing.T) {
	tools := pawl.Toolsets{says("file_read", pawl.EffectRead), says("file_write", pawl.EffectWrite), says("sum", pawl.EffectPure)}
	for _, test := range []struct {
		name string
		w    pawl.Middleware
		want string // empty means no error
	}{
		{"rules", policy.Rules{Deny: []string{"file_write"}, Ask: []string{"file_*", "effect:read"}, Allow: []string{"shell_*"}}.Middleware(), ""},
		{"deny", policy.Rules{Deny: []string{"file-wirte"}}.Middleware(), `approval rules: deny: no tool is named "file-wirte"; did you mean "file_write"?`},
		{"ask", policy.Rules{Ask: []string{"shell"}}.Middleware(), `approval rules: ask: no tool is named "shell"; there are: file_read, file_write, sum`},
		{"effect", policy.Rules{Allow: []string{"effect:reads"}}.Middleware(), `approval rules: allow: unknown effect "reads"; known: unstated, write, idempotent, read, pure, compose`},
		{"pattern", policy.Rules{Allow: []string{"[file"}}.Middleware(), `approval rules: allow: "[file" is no pattern: syntax error in pattern`},
		{"rate", policy.Rate{Every: 1, Tools: []string{"sun"}}.Middleware(), `rate limit: no tool is named "sun"; did you mean "sum"?`},
		{"rate without time", policy.Rate{}.Middleware(), `rate limit: Every is 0s, and must be longer than nothing`},
		{"breaker", policy.Breaker{Tools: []string{"sun"}}.Middleware(), `circuit breaker: no tool is named "sun"; did you mean "sum"?`},
		{"cache", policy.Cache{Tools: []string{"sum"}}.Middleware(), ""},
		{"cache of a read", policy.Cache{Tools: []string{"file_read"}}.Middleware(), `cache: the effect of file_read is read, and only results of pure tools can be cached`},
	} {
		m := script.New(script.Say("hi"))
		_, err := (&pawl.Agent{Model: m, Tools: []pawl.Toolset{tools},
			Middleware: []pawl.Middleware{test.w}}).Run(t.Context(), llm.User("go"))
		if got := fmt.Sprint(err); err == nil != (test.want == "") || err != nil && got != "Middleware[0]: "+test.want {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
		if err != nil && len(m.Requests()) > 0 {
			t.Errorf("%s: the model was asked all the same", test.name)
		}
	}
}

func TestRules(t *testing.T) {
	read, write, remove := says("file_read", pawl.EffectRead), says("file_write", pawl.EffectWrite), says("file_delete", pawl.EffectWrite)
	all := []*pawl.Tool{read, write, remove}
	for _, test := range []struct {
		name  string
		rules policy.Rules
		want  string // a letter a tool: allow, ask (q), deny
	}{
		{"none", policy.Rules{}, "aqq"},
		{"deny", policy.Rules{Deny: []string{"file_delete"}}, "aqd"},
		{"deny wins", policy.Rules{Deny: []string{"*_delete"}, Ask: []string{"file_delete"}, Allow: []string{"file_*"}}, "aad"},
		{"ask wins over allow", policy.Rules{Ask: []string{"file_delete"}, Allow: []string{"*"}}, "aaq"},
		{"effects", policy.Rules{Deny: []string{"effect:read"}, Allow: []string{"effect:write"}}, "daa"},
		{"else deny", policy.Rules{Allow: []string{"effect:read"}, Default: pawl.VerdictDeny}, "add"},
		{"else ask", policy.Rules{Allow: []string{"effect:write"}, Default: pawl.VerdictAsk}, "qaa"},
		{"wary", policy.Rules{AskByDefault: []string{"file_read", "gone"}}, "qqq"},
		{"wary and allowed", policy.Rules{AskByDefault: []string{"file_read"}, Allow: []string{"file_read"}}, "aqq"},
		{"wary and denied", policy.Rules{AskByDefault: []string{"file_read"}, Deny: []string{"file_read"}}, "dqq"},
		{"wary and else", policy.Rules{AskByDefault: []string{"file_read"}, Default: pawl.VerdictAllow}, "aaa"},
		{"else allow", policy.Rules{Deny: []string{"file_delete"}, Default: pawl.VerdictAllow}, "aad"},
	} {
		got := ""
		for _, tool := range all {
			a, err := test.rules.Approve(t.Context(), llm.ToolCall{Name: tool.Name}, tool)
			if err != nil || a.Verdict != pawl.VerdictAllow && a.Reason == "" {
				t.Errorf("%s: %s: got %+v, %v", test.name, tool.Name, a, err)
			}
			got += map[pawl.Verdict]string{pawl.VerdictAllow: "a", pawl.VerdictAsk: "q", pawl.VerdictDeny: "d"}[a.Verdict]
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	// In a run, a denial is sent in words, and of several policies the strictest counts.
	ws := []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites),
		policy.Rules{Deny: []string{"file_delete"}, Allow: []string{"*"}}.Middleware()}
	x := once(t, remove, `{}`, ws...)
	if x.Outcome != pawl.OutcomeDenied || x.Result.Text() != "Denied: the rules of this agent do not let file_delete run. Do not repeat it." {
		t.Errorf("got %s, %q", x.Outcome, x.Result.Text())
	}
}

// A refusal and a question name the entry that decided, unless it is the name of the tool alone.
func TestRulesNameTheEntry(t *testing.T) {
	for _, test := range []struct {
		name  string
		rules policy.Rules
		want  string
	}{
		{"a name", policy.Rules{Deny: []string{"pay"}}, "the rules of this agent do not let pay run. Do not repeat it."},
		{
			"a pattern",
			policy.Rules{Deny: []string{"refund", "p*"}},
			"the rules of this agent do not let pay run, by the entry p*. Do not repeat it.",
		},
		{
			"a condition",
			policy.Rules{Deny: []string{"pay(amount > 100)", "pay(amount > 50)"}},
			"the rules of this agent do not let pay with these arguments run, by the entry pay(amount > 50). Do not repeat it.",
		},
		{"a name that asks", policy.Rules{Ask: []string{"pay"}}, "the rules ask before pay"},
		{"an effect that asks", policy.Rules{Ask: []string{"effect:write"}}, "the rules ask before pay, by the entry effect:write"},
		{
			"a condition that asks",
			policy.Rules{Ask: []string{"pay(amount > 50)"}, Allow: []string{"pay"}},
			"the rules ask before pay with these arguments, by the entry pay(amount > 50)",
		},
		{"no entry", policy.Rules{Default: pawl.VerdictAsk}, "no rule allows pay"},
		{"allowed", policy.Rules{Allow: []string{"pay(amount < 100)"}}, ""},
	} {
		call := llm.ToolCall{Name: "pay", Args: json.RawMessage(`{"amount":70}`)}
		got, err := test.rules.Approve(t.Context(), call, says("pay", pawl.EffectWrite))
		if err != nil || got.Reason != test.want {
			t.Errorf("%s: got %q, %v; want %q", test.name, got.Reason, err, test.want)
		}
	}
}

func ExampleRules() {
	tool := func(name string) *pawl.Tool {
		return pawl.Func(name, name+" a file.", func(context.Context, struct{}) (string, error) { return name + ": done", nil })
	}
	agent := &pawl.Agent{
		Model: script.New(script.Together(script.Call("file_write", nil), script.Call("file_delete", nil),
			script.Call("file_move", nil)), script.Say("Done.")),
		Tools:      []pawl.Toolset{tool("file_write"), tool("file_delete"), tool("file_move")},
		Middleware: []pawl.Middleware{policy.Rules{Allow: []string{"file_write"}, Deny: []string{"*_delete"}}.Middleware()},
	}
	res, err := agent.Run(context.Background(), llm.User("Tidy up."))
	for _, x := range res.Steps[0].Executions {
		fmt.Println(x.Call.Name, x.Outcome)
	}
	fmt.Println(err)

	agent.Middleware = []pawl.Middleware{policy.Rules{Deny: []string{"file_remove"}}.Middleware()}
	_, err = agent.Run(context.Background(), llm.User("Tidy up."))
	fmt.Println(strings.ReplaceAll(err.Error(), `"`, ""))
	// Output:
	// file_write ok
	// file_delete denied
	// file_move pending
	// pending: calls wait for an answer: file_move; Resume with a Decision for each
	// Middleware[0]: approval rules: deny: no tool is named file_remove; did you mean file_move?
}
