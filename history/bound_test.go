package history_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/find"
)

// thinker returns a model that binds its thinking to what stands before it, and a function that
// counts the requests that broke this. Without the rule, the adapter sends all thinking back.
func thinker(t *testing.T, m llm.Model, rule bool) (llm.Model, func() int) {
	t.Helper()
	s, err := pawltest.NewSimulator(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	o := &anthropic.Options{BaseURL: s.URL, Key: "none", Retries: -1}
	if !rule {
		if o.Catalog, err = catalog.Parse([]byte(`[{"provider":"anthropic","id":"claude-sonnet-5-5","bound":false}]`)); err != nil {
			t.Fatal(err)
		}
	}
	return anthropic.New("claude-sonnet-5-5", o), func() (refused int) {
		for i, r := range s.Received() { // a refused request is sent again without thinking
			if i > 0 && len(r.Request.Messages) == len(s.Received()[i-1].Request.Messages) {
				refused++
			}
		}
		return refused
	}
}

// thoughtful replies with thinking: to each turn two calls, then an answer.
var thoughtful = script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
	calls := 0
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role != llm.RoleUser; i-- {
		calls += len(req.Messages[i].Calls())
	}
	think := script.Think(fmt.Sprint("after ", len(req.Messages)))
	if calls < 2 {
		return script.Together(think, script.Call("look", map[string]any{"n": len(req.Messages)}))
	}
	return script.Together(think, script.Say("done "+strings.Repeat("and done ", 20)))
})))

// Thinking that is bound to what stands before it is left out behind each edit: no request is
// refused, by any function. Without the rule, requests are refused.
func TestBoundThinking(t *testing.T) {
	look := pawl.Func("look", "Look.", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return strings.Repeat(fmt.Sprint("seen ", in.N, "; "), 20), nil
	})
	for name, w := range map[string]pawl.Middleware{
		"DropPastToolCalls": history.DropPastToolCalls(),
		"LastTurns":         history.LastTurns(2),
		"Window": history.Window(&history.WindowOptions{Tokens: 1_000, Reserve: 200,
			Notes: script.New(script.Loop(script.Say("notes")))}),
		"nested": both(history.DropPastToolCalls(), history.LastTurns(3)),
	} {
		for _, rule := range []bool{true, false} {
			m, refused := thinker(t, thoughtful, rule)
			a := &pawl.Agent{Model: m, Instructions: "Look twice.", Tools: []pawl.Toolset{look}, Middleware: []pawl.Middleware{w}}
			var msgs []llm.Message
			for turn := range 8 {
				res, err := a.Run(context.Background(), append(msgs, llm.User(fmt.Sprint("turn ", turn)))...)
				if err != nil {
					t.Fatalf("%s, rule %v: turn %d: %v", name, rule, turn, err)
				}
				msgs = res.Messages
			}
			if n := refused(); (n > 0) == rule {
				t.Errorf("%s, rule %v: %d requests refused", name, rule, n)
			}
		}
	}
}

// A tool that tool_search finds is an edit too.
func TestBoundThinkingSearch(t *testing.T) {
	for _, rule := range []bool{true, false} {
		m, refused := thinker(t, script.New(
			script.Together(script.Think("search"), script.Call("tool_search", map[string]any{"query": "weather"})),
			script.Together(script.Think("call"), script.Call("weather", map[string]any{})),
			script.Together(script.Think("again"), script.Call("weather", map[string]any{})),
			script.Say("sunny")), rule)
		weather := pawl.Func("weather", "The weather.", func(context.Context, struct{}) (string, error) { return "sun", nil })
		tools := []pawl.Toolset{find.OnDemand(pawl.Toolsets{weather}, &find.Options{Least: 1})}
		a := &pawl.Agent{Model: m, Instructions: "Help.", Tools: tools}
		if _, err := a.Run(context.Background(), llm.User("Weather?")); err != nil {
			t.Fatalf("rule %v: %v", rule, err)
		}
		if n := refused(); (n > 0) == rule {
			t.Errorf("rule %v: %d requests refused", rule, n)
		}
	}
}
