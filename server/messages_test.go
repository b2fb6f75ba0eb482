package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
)

// thinker returns an agent that thinks before it answers.
func thinker() *pawl.Agent {
	turn := script.Together(script.Think("Let me see."), script.Say("Hello."))
	return &pawl.Agent{Name: "thinker", Model: script.New(script.Loop(turn))}
}

// Reasoning is a block of its own for a client that sends thinking, and is not sent to another.
func TestReasoningInMessages(t *testing.T) {
	for _, test := range []struct{ name, more, want string }{
		{"whole", ``, "text "},
		{"whole with thinking", `,"thinking":{"type":"adaptive"}`, "thinking text "},
		{"without thinking", `,"thinking":{"type":"disabled"}`, "text "},
		{"streamed", `,"stream":true`, "text "},
		{"streamed with thinking", `,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024}`, "thinking text "},
	} {
		v := serve(t, func(o *options) { o.Agents = []*pawl.Agent{thinker()} })
		_, reply := v.postJSONText("/v1/messages",
			`{"model":"thinker","max_tokens":100,"messages":[{"role":"user","content":"hi"}]`+test.more+`}`)

		got := ""
		for _, data := range frames(reply) {
			var m messageForm
			if json.Unmarshal([]byte(data), &m) != nil {
				t.Fatal(data)
			}
			for _, b := range append(m.Content, m.Block) {
				if b.Type != "" {
					got += b.Type + " "
				}
			}
		}
		if got != test.want {
			t.Errorf("%s: got the blocks %q, want %q:\n%s", test.name, got, test.want, reply)
		}
	}
}

// What a request has reaches the model: the system prompt, results with an error, text next to
// results, files, and the lower one of two limits.
func TestMessagesReachTheModel(t *testing.T) {
	model := script.New(script.Call("locate", "{}"), script.Say("Done."))
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{{Name: "clerk", Model: model, Settings: llm.Settings{MaxTokens: 500}}}
	})
	const begins = `{"model":"clerk","max_tokens":32000,"system":[{"type":"text","text":"Be short.","cache_control":{"type":"ephemeral"}}],` +
		`"tools":[{"name":"locate","input_schema":{"type":"object"}},{"type":"bash_20250124","name":"bash"}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"Where?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}`
	_, reply := v.postJSONText("/v1/messages", begins+`]}`)
	var first messageForm
	if err := json.Unmarshal([]byte(reply), &first); err != nil || first.Stop != "tool_use" {
		t.Fatal(reply)
	}
	id := first.Content[0].ID
	_, reply = v.postJSONText("/v1/messages", begins+`,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},`+
		`{"type":"tool_use","id":"`+id+`","name":"locate","input":{}}]},{"role":"user","content":[`+
		`{"type":"tool_result","tool_use_id":"`+id+`","is_error":true,"content":[{"type":"text","text":"no signal"}]},{"type":"text","text":"Guess."}]}]}`)
	if !strings.Contains(reply, "Done.") {
		t.Fatal(reply)
	}

	reqs := model.Requests()
	last := reqs[len(reqs)-1]
	system := last.Messages[0]
	end := last.Messages[len(last.Messages)-2:]
	result, _ := end[0].Parts[0].(llm.ToolResult)
	switch {
	case len(reqs) != 2 || last.Settings.MaxTokens != 500 || system.Text() != "Be short.":
		t.Errorf("%d requests, max_tokens %d, system prompt %q", len(reqs), last.Settings.MaxTokens, system.Text())
	case len(last.Tools) != 1:
		t.Errorf("%d tools", len(last.Tools))
	case len(last.Messages[1].Parts) != 2:
		t.Errorf("the first message is %+v", last.Messages[1])
	}
	if !result.IsError || result.Text() != "no signal" || end[1].Text() != "Guess." {
		t.Errorf("the last messages are %+v", end)
	}
	var list api.Runs
	v.do("GET", "/v1/runs", "", 200, &list)
	if len(list.Runs) != 1 {
		t.Errorf("%d runs", len(list.Runs))
	}
}

// Requests that are not understood are errors in Anthropic's form.
func TestMessagesRefuses(t *testing.T) {
	v := serve(t, nil)
	const one = `"messages":[{"role":"user","content":"x"}]`
	for body, want := range map[string]string{
		`{"model":"clerk","messages":[]}`:                                                                          "there is no message",
		`{"model":"clerk","messages":[{"role":"tool","content":"x"}]}`:                                             "there is no role tool",
		`{"model":"clerk","messages":[{"role":"user","content":5}]}`:                                               "neither text nor a list",
		`{"model":"clerk","messages":[{"role":"user","content":[{"type":"container_upload"}]}]}`:                   "are not taken",
		`{"model":"clerk","messages":[{"role":"user","content":[{"type":"image","source":{"type":"file"}}]}]}`:     "no files are stored",
		`{"model":"clerk","messages":[{"role":"user","content":[{"type":"image"}]}]}`:                              "no source",
		`{"model":"clerk","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"The answer"}]}`: "ends with the assistant",
		`{"model":"clerk","tool_choice":{"type":"sometimes"},` + one + `}`:                                         "tool_choice",
		`{"model":"clerk","tools":[{"name":"pay"}],` + one + `}`:                                                   "a tool pay of its own",
		`{"model":"clerk","output_config":{"format":{"type":"xml"}},` + one + `}`:                                  "no format xml",
		`{"model":"clerk","mcp_servers":[{"url":"https://example.com"}],` + one + `}`:                              "mcp_servers",
	} {
		status, reply := v.postJSONText("/v1/messages", body)
		var e struct {
			Type  string
			Error struct{ Type, Code, Message string }
		}
		if json.Unmarshal([]byte(reply), &e) != nil || status != 400 || e.Type != "error" ||
			e.Error.Type != "invalid_request_error" || !strings.Contains(e.Error.Message, want) {
			t.Errorf("%s: got %d: %s, want %q", body, status, reply, want)
		}
	}
}
