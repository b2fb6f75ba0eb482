package code_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// A program gets what the model would get: text, or parsed JSON. The tool's data replaces the text
// only if both are the same JSON and the text was shortened for the model.
func TestWhatACallGives(t *testing.T) {
	gives := func(name, text, data string) *pawl.Tool {
		return &pawl.Tool{Name: name, Effect: pawl.EffectRead, Input: json.RawMessage(`{"type":"object"}`),
			Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				res := llm.TextResult(text)
				if data != "" {
					res.Data = json.RawMessage(data)
				}
				return res, nil
			}}
	}
	var numbers []string
	for i := range 20_000 {
		numbers = append(numbers, fmt.Sprint(i))
	}
	list := `{"items": [` + strings.Join(numbers, ", ") + `]}`
	set := pawl.Toolsets{
		gives("file_read", "line 1\nline 2\n", `{"path":"a.txt","lines":2}`),
		gives("json", `{"a": 1}`, `{"other":2}`),
		gives("cut", list, strings.ReplaceAll(list, " ", "")),
		gives("page", list[:200], `{"path":"a.json","lines":1}`),
	}
	for _, in := range interpreters(t) {
		args, err := json.Marshal(map[string]string{"code": "c = call_tool('cut', {})\nset_result([call_tool('file_read', {}), call_tool('json', {}), len(c['items']), call_tool('page', {})[:10]])"})
		if err != nil {
			t.Fatal(err)
		}
		x := pawl.Toolsets{append(set, newTool(t, in, nil))}.Execute(t.Context(), llm.ToolCall{Name: "execute_code", Args: args})
		if got, want := strings.ReplaceAll(x.Result.Text(), ", ", ","),
			`["line 1\nline 2\n",{"a":1},20000,"{\"items\": "]`; strings.ReplaceAll(got, `": `, `":`) != strings.ReplaceAll(want, `": `, `":`) {
			t.Errorf("%s: got %s, want %s", in.Name(), got, want)
		}
	}
}
