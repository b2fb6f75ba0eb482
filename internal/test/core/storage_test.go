package core_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// A transcript with any result of a tool can be stored and read.
func TestAnyResultCanBeStored(t *testing.T) {
	for name, res := range map[string]llm.ToolResult{
		"data that is no JSON":       {Data: json.RawMessage("{bad")},
		"data beside words":          {Parts: []llm.Part{llm.Text{Text: "fine"}}, Data: json.RawMessage("{bad")},
		"media without content":      {Parts: []llm.Part{llm.Media{}, llm.Text{Text: "fine"}}},
		"media by URL and by value":  {Parts: []llm.Part{llm.Media{URL: "https://example.com/a.png", Data: []byte("x")}}},
		"parts that are not results": {Parts: []llm.Part{llm.ToolCall{ID: "c"}, llm.Decision{}, llm.Text{Text: "fine"}}},
		"text that is not UTF-8":     {Parts: []llm.Part{llm.Text{Text: "a\xffb"}}},
	} {
		odd := &pawl.Tool{Name: "odd", Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			pawl.InvocationFrom(ctx).Emit("on the way", json.RawMessage("{bad"))
			return res, nil
		}}
		a := &pawl.Agent{Model: script.New(script.Call("odd", `{}`), script.Say("done")), Tools: []pawl.Toolset{odd}}
		for ev, err := range a.Stream(t.Context(), llm.User("go")) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			b, err := json.Marshal(ev)
			if err != nil {
				t.Errorf("%s: %s has no JSON form: %v", name, ev.Kind, err)
				continue
			}
			if err := json.Unmarshal(b, new(pawl.Event)); err != nil {
				t.Errorf("%s: %s cannot be read again: %v\n%s", name, ev.Kind, err, b)
			}
		}
	}
}

// Data that cannot be stored does not hide the reason why the call failed.
func TestBadDataDoesNotHideTheError(t *testing.T) {
	odd := &pawl.Tool{Name: "odd", Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: "no such city"}}, IsError: true, Data: json.RawMessage("{bad")}, nil
	}}
	x := pawl.Toolsets{odd}.Execute(t.Context(), llm.ToolCall{ID: "c", Name: "odd", Args: json.RawMessage(`{}`)})
	if x.Outcome != pawl.OutcomeError || x.Error != "no such city" || x.Result.Data != nil {
		t.Errorf("%s %q with data %q, want error %q without data", x.Outcome, x.Error, x.Result.Data, "no such city")
	}
}

// A duplicate field could have one value for the approver and another for the tool.
func TestAFieldWrittenTwiceIsRefused(t *testing.T) {
	ran := 0
	tool := func(schema string) *pawl.Tool {
		return &pawl.Tool{Name: "f", Input: json.RawMessage(schema),
			Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				ran++
				return llm.TextResult("ran"), nil
			}}
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`,
		`{"type":"object","properties":{"path":{"type":"string","minLength":1}}}`,
	} {
		for _, args := range []string{`{"path":"a","path":"b"}`, `{"path":"a","p\u0061th":"a"}`} {
			x := pawl.Toolsets{tool(schema)}.Execute(t.Context(),
				llm.ToolCall{ID: "c", Name: "f", Args: json.RawMessage(args)})
			if x.Outcome != pawl.OutcomeInvalid || !strings.Contains(x.Result.Text(), `"path" is there twice`) {
				t.Errorf("%s: %s %q, want invalid, and the field named", args, x.Outcome, x.Result.Text())
			}
		}
	}
	if ran > 0 {
		t.Errorf("the tool ran %d times", ran)
	}
}
