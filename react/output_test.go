package react_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

// The page on decisions asks for an output in every format, without an additional tool. An answer
// that does not fit is sent back as a message.
func TestOutputOfARun(t *testing.T) {
	look := &pawl.Tool{Name: "look", Effect: pawl.EffectRead,
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("wet"), nil }}
	for format, replies := range map[react.Format][]string{
		react.JSON: {`{"thought":"a","type":"call_tool","tool":"look","args":{}}`, `{"thought":"b","type":"final_answer","answer":{"rain":"maybe"}}`,
			`{"thought":"c","type":"final_answer","answer":{"rain":true}}`},
		react.Text: {"Thought: a\nAction: look\nAction Input: {}", "Thought: b\nFinal Answer: {\"rain\":\"maybe\"}", "Thought: c\nFinal Answer: {\"rain\":true}"},
		react.XML: {"<thought>a</thought><tool>look</tool><args>{}</args>", `<thought>b</thought><answer>{"rain":"maybe"}</answer>`,
			`<thought>c</thought><answer>{"rain":true}</answer>`},
		react.Plain: {"Calling tool: look with args: {}", `{"rain":"maybe"}`, `{"rain":true}`},
	} {
		inner := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
			said := 0
			for _, m := range req.Messages {
				if m.Role == llm.RoleAssistant {
					said++
				}
			}
			return script.Say(replies[said])
		})))
		a := &pawl.Agent{Model: react.New(inner, &react.Options{Format: format}), Tools: []pawl.Toolset{look},
			Output: json.RawMessage(`{"type":"object","properties":{"rain":{"type":"boolean"}},"required":["rain"]}`)}
		res, err := a.Run(t.Context(), llm.User("Does it rain?"))
		if err != nil || string(res.Output) != `{"rain":true}` || res.Spent.Corrections != 1 || res.Spent.Calls != 1 {
			t.Errorf("%s: got %v, %v", format, res, err)
			continue
		}
		reqs := inner.Requests()
		last := reqs[len(reqs)-1]
		var all strings.Builder
		for _, m := range last.Messages {
			all.WriteString(m.Text() + "\n")
		}
		if !strings.Contains(all.String(), "field rain: expected boolean") || !strings.Contains(all.String(), `"boolean"`) || strings.Contains(all.String(), "final_answer:") {
			t.Errorf("%s: the model was told\n%s", format, all.String())
		}
	}
}
