package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// codexTools are tools in the forms that Codex CLI sends: functions, a custom tool, namespaces with
// equal names, and tools that OpenAI's servers execute.
const codexTools = `"tools":[
	{"type":"function","name":"locate","parameters":{"type":"object"}},
	{"type":"custom","name":"apply_patch","description":"Edits files.",
		"format":{"type":"grammar","syntax":"lark","definition":"start: begin"}},
	{"type":"namespace","name":"mcp__mail","description":"Mail.","tools":[
		{"type":"function","name":"send","parameters":{"type":"object"}},
		{"type":"custom","name":"note"}]},
	{"type":"namespace","name":"mcp","description":"Others.","tools":[
		{"type":"function","name":"mail__send","parameters":{"type":"object"}}]},
	{"type":"web_search","external_web_access":false},
	{"type":"image_generation"}, {"type":"web_search"}]`

// codexTurn calls the client's tools by the prompt, and says what it reads of the conversation.
func codexTurn(req *llm.Request) script.Turn {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == llm.RoleTool {
		call := req.Messages[len(req.Messages)-2].Calls()[0]
		return script.Say("read " + string(call.Args) + " and " + script.Results(req)[0].Text())
	}
	switch last.Text() {
	case "patch":
		return script.Call("apply_patch", `{"input":"*** Begin\n\"x\""}`)
	case "send":
		return script.Call("mcp__mail__send", `{}`)
	case "note":
		return script.Call("mcp__mail__note", `{"input":"hello"}`)
	}
	return script.Say("hello")
}

// codexAgent returns an agent, and the tools that its last request offered.
func codexAgent(offered *[]string) *pawl.Agent {
	return &pawl.Agent{Name: "clerk", Model: &script.Model{Turns: []script.Turn{
		script.Loop(script.Func(func(req *llm.Request) script.Turn {
			*offered = nil
			for _, t := range req.Tools {
				*offered = append(*offered, t.Name)
			}
			slices.Sort(*offered)
			return codexTurn(req)
		})),
	}}}
}

// outputItem is an item of a response.
type outputItem struct {
	ID, Type, Name, Namespace, Arguments, Input string
	CallID                                      string `json:"call_id"`
	Content                                     []struct{ Text string }
}

// Codex CLI's first message was refused for its tools. Its custom tools and namespaces work now, in
// a whole, a streamed and a stored response; hosted tools are skipped with a notice.
func TestToolsOfCodex(t *testing.T) {
	journal := new(store.MemoryJournal)
	var offered []string
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{codexAgent(&offered)}
		o.Journal = journal
	})
	for _, test := range []struct {
		prompt string
		want   outputItem
		back   string // the type of the result
		read   string
	}{
		{"patch", outputItem{Type: "custom_tool_call", Name: "apply_patch", Input: "*** Begin\n\"x\""},
			"custom_tool_call_output", `read {"input":"*** Begin\n\"x\""} and ok`},
		{"send", outputItem{Type: "function_call", Name: "send", Namespace: "mcp__mail", Arguments: "{}"},
			"function_call_output", `read {} and ok`},
		{"note", outputItem{Type: "custom_tool_call", Name: "note", Namespace: "mcp__mail", Input: "hello"},
			"custom_tool_call_output", `read {"input":"hello"} and ok`},
	} {
		t.Run(test.prompt, func(t *testing.T) {
			ask := `{"model":"clerk","input":"` + test.prompt + `",` + codexTools
			var whole struct {
				ID     string
				Output []outputItem
			}
			v.do("POST", "/v1/responses", ask+`}`, 200, &whole)
			if len(whole.Output) != 1 {
				t.Fatalf("got %+v", whole)
			}
			call := whole.Output[0]
			id := call.ID
			call.ID, call.CallID = "", ""
			if diff := cmp.Diff(call, test.want); diff != "" {
				t.Errorf("whole: got -, want +\n%s", diff)
			}
			names := []string{"apply_patch", "locate", "mcp__mail__note", "mcp__mail__send"}
			if len(offered) != 5 || !slices.Equal(offered[:4], names) || !strings.HasPrefix(offered[4], "mcp__mail__send_") {
				t.Errorf("the model was offered %q", offered)
			}

			// A stored response has the item in the same form, also in the next process.
			later := serve(t, func(o *options) {
				o.Agents = []*pawl.Agent{codexAgent(new([]string))}
				o.Journal = journal
			})
			stored := whole
			later.do("GET", "/v1/responses/"+whole.ID, "", 200, &stored)
			if diff := cmp.Diff(stored, whole); diff != "" {
				t.Errorf("stored: got -, want +\n%s", diff)
			}

			// The stream has it in its events.
			text, item := streamedItem(t, v.readAll("/v1/responses", ask+`,"stream":true}`))
			if want := test.want.Input + test.want.Arguments; text != want {
				t.Errorf("streamed %q, want %q", text, want)
			}
			item.ID, item.CallID = "", ""
			if diff := cmp.Diff(item, test.want); diff != "" {
				t.Errorf("streamed: got -, want +\n%s", diff)
			}

			// The result, alone and after a reference to the call.
			result := `{"type":"` + test.back + `","call_id":"` + whole.Output[0].CallID + `","output":"ok"}`
			var next struct{ Output []outputItem }
			v.do("POST", "/v1/responses", `{"model":"clerk","input":[`+result+`],`+codexTools+`}`, 200, &next)
			if got := next.Output[0].Content[0].Text; got != test.read {
				t.Errorf("after the result: got %q, want %q", got, test.read)
			}
			again := `[{"role":"user","content":"x"},{"type":"item_reference","id":"` + id + `"},` + result +
				`,{"role":"user","content":"thanks"}]`
			v.do("POST", "/v1/responses", `{"model":"clerk","input":`+again+`,`+codexTools+`}`, 200, &next)
			if got := next.Output[0].Content[0].Text; got != "hello" {
				t.Errorf("after a reference: got %q", got)
			}

			var notices []string
			for _, e := range v.events(v.request("GET", "/v1/runs/"+whole.ID+"/events", "").Body, func(s sent) bool {
				return s.event.Kind == pawl.EventRunEnded
			}) {
				if e.event.Code == "tools_skipped" {
					notices = append(notices, e.event.Code+" "+string(e.event.Data))
				}
			}
			want := []string{`tools_skipped {"types":["web_search","image_generation"]}`}
			if !slices.Equal(notices, want) {
				t.Errorf("got the notices %q, want %q", notices, want)
			}
		})
	}
	v.code("POST", "/v1/responses", `{"model":"clerk","input":"x","tools":[{"name":"a"}]}`, 400, "bad_request")
}

// streamedItem returns the input of the call in the events of a response, and its item at the end.
func streamedItem(t *testing.T, stream string) (input string, item outputItem) {
	t.Helper()
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type, Delta string
			Item        outputItem
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "response.custom_tool_call_input.delta", "response.function_call_arguments.delta":
			input += e.Delta
		case "response.output_item.done":
			item = e.Item
		}
	}
	return input, item
}

// Chat Completions has custom tools, too.
func TestCustomToolsOfChat(t *testing.T) {
	var offered []string
	v := serve(t, func(o *options) { o.Agents = []*pawl.Agent{codexAgent(&offered)} })
	const tools = `"tools":[{"type":"custom","custom":{"name":"apply_patch","format":{"type":"grammar",` +
		`"grammar":{"syntax":"lark","definition":"start: begin"}}}}],` +
		`"tool_choice":{"type":"custom","custom":{"name":"apply_patch"}}`
	var first struct {
		Choices []struct{ Message json.RawMessage }
	}
	v.do("POST", "/v1/chat/completions", `{"model":"clerk","messages":[{"role":"user","content":"patch"}],`+tools+`}`,
		200, &first)
	var said struct {
		ToolCalls []struct {
			ID, Type string
			Custom   struct{ Name, Input string }
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(first.Choices[0].Message, &said); err != nil {
		t.Fatal(err)
	}
	call := said.ToolCalls[0]
	if call.Type != "custom" || call.Custom.Name != "apply_patch" || call.Custom.Input != "*** Begin\n\"x\"" {
		t.Errorf("got %s", first.Choices[0].Message)
	}

	var next struct {
		Choices []struct{ Message struct{ Content string } }
	}
	v.do("POST", "/v1/chat/completions", `{"model":"clerk","messages":[{"role":"user","content":"patch"},`+
		string(first.Choices[0].Message)+`,{"role":"tool","tool_call_id":"`+call.ID+`","content":"ok"}],`+tools+`}`,
		200, &next)
	if got := next.Choices[0].Message.Content; got != `read {"input":"*** Begin\n\"x\""} and ok` {
		t.Errorf("got %q", got)
	}
}
