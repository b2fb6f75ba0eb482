package anthropic_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func options(s string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"anthropic": raw(s)}
}

func ptr[T any](v T) *T { return &v }

func TestMessages(t *testing.T) {
	call := func(id, name, args string) llm.Part { return llm.ToolCall{ID: id, Name: name, Args: raw(args)} }
	result := func(id, text string) llm.ToolResult {
		return llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: text}}}
	}
	thought := llm.Reasoning{Text: "Hm.", Opaque: &llm.Opaque{Provider: "anthropic", Data: raw(`{"type":"thinking","thinking":"Hm.","signature":"sIg=="}`)}}
	for _, c := range []struct {
		name     string
		messages []llm.Message
		want     string // system and messages
	}{
		{"a question", []llm.Message{llm.User("hi")},
			`"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`},
		{"system and developer stand outside", []llm.Message{llm.System("A"), {Role: llm.RoleDeveloper, Parts: []llm.Part{llm.Text{Text: "B"}}}, llm.User("hi")},
			`"system":[{"type":"text","text":"A"},{"type":"text","text":"B"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`},
		{"a later system message stays in its place", []llm.Message{llm.User("hi"), llm.Assistant(llm.Text{Text: "yes"}), llm.System("Be brief."), llm.User("go")},
			`"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"yes"}]},` +
				`{"role":"user","content":[{"type":"text","text":"<system>\nBe brief.\n</system>"},{"type":"text","text":"go"}]}]`},
		{"one side is merged", []llm.Message{llm.User("a"), llm.User("b"), llm.Assistant(llm.Text{Text: "c"}),
			llm.Assistant(llm.Text{Text: "d"}), llm.User("e")},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]},{"role":"user","content":[{"type":"text","text":"e"}]}]`},
		{"results in one message, before text", []llm.Message{llm.User("a"), llm.Assistant(call("t1", "f", `{"x":1}`), call("t2", "f", `{"x": 2}`)),
			llm.User("hurry"), llm.Results(result("t1", "one"), result("t2", "two")), llm.User("well?")},
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"x":1}},{"type":"tool_use","id":"t2","name":"f","input":{"x": 2}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"tool_result","tool_use_id":"t2","content":"two"},` +
				`{"type":"text","text":"hurry"},{"type":"text","text":"well?"}]}]`},
		{"input is never left out", []llm.Message{llm.User("a"), llm.Assistant(call("t1", "f", ""), call("t2", "f", "{}"), call("t3", "f", `{"x":`), call("t4", "f", `[1]`)),
			llm.Results(result("t1", ""), result("t2", "0"), result("t3", "false"), result("t4", " "))},
			`{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"f","input":{}},` +
				`{"type":"tool_use","id":"t3","name":"f","input":{"raw_arguments":"{\"x\":"}},{"type":"tool_use","id":"t4","name":"f","input":{"raw_arguments":"[1]"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":""},{"type":"tool_result","tool_use_id":"t2","content":"0"},` +
				`{"type":"tool_result","tool_use_id":"t3","content":"false"},{"type":"tool_result","tool_use_id":"t4","content":" "}]}]`},
		{"an error is one", []llm.Message{llm.User("a"), llm.Assistant(call("t1", "f", "{}"), call("t2", "f", "{}")),
			llm.Results(llm.ToolResult{CallID: "t1", IsError: true, Parts: []llm.Part{llm.Text{Text: "no"}}},
				llm.ToolResult{CallID: "t2", IsError: true})},
			`{"type":"tool_result","tool_use_id":"t1","content":"no","is_error":true},{"type":"tool_result","tool_use_id":"t2","content":"Error","is_error":true}`},
		{"an image in a result", []llm.Message{llm.User("a"), llm.Assistant(call("t1", "f", "{}")),
			llm.Results(llm.ToolResult{CallID: "t1",
				Parts: []llm.Part{llm.Text{Text: "see"}, llm.Media{MIME: "image/png", Data: []byte("abc")}, llm.Media{MIME: "application/pdf", URL: "https://h/d"}}})},
			`"content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YWJj"}},{"type":"document","source":{"type":"url","url":"https://h/d"}}]}]}]`},
		{"thinking goes back as it was, before the call", []llm.Message{llm.User("a"),
			llm.Assistant(thought, llm.Reasoning{Opaque: &llm.Opaque{Provider: "anthropic",
				Data: raw(`{"type":"redacted_thinking","data":"x/y+"}`)}}, llm.Text{Text: "I look."}, call("t1", "f", "{}")),
			llm.Results(result("t1", "r"))},
			`{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sIg=="},{"type":"redacted_thinking","data":"x/y+"},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1"`},
		{"another's reasoning is left out", []llm.Message{llm.User("a"),
			llm.Assistant(llm.Reasoning{Text: "Mine."},
				llm.Reasoning{Opaque: &llm.Opaque{Provider: "openai", Data: raw(`{"type":"reasoning"}`)}}, llm.Text{Text: "b"}), llm.User("c")},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c"}]}]`},
		{"an empty reply vanishes", []llm.Message{llm.User("a"), llm.Assistant(), llm.User("b")},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`},
		{"text of nothing is refused by the API", []llm.Message{llm.User("a"), llm.Assistant(llm.Text{Text: "\n\n"}, llm.Text{Text: "b "}), llm.User("")},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b "}]}]`},
		{"a reply is gone on with", []llm.Message{llm.User("a"), llm.Assistant(llm.Text{Text: "It is \n"})},
			`{"role":"assistant","content":[{"type":"text","text":"It is"}]}]`},
	} {
		got := unmarked(encode(t, &llm.Request{Model: "claude-sonnet-4-5", Messages: c.messages, Whole: true}))
		if !strings.Contains(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestRequestMembers(t *testing.T) {
	schema := raw(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
	with := func(change func(*llm.Request)) *llm.Request {
		r := user("hi")
		r.Whole = true
		change(r)
		return r
	}
	const hi = `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	tools := `"tools":[{"name":"f","description":"Does f.","input_schema":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}]`
	for _, c := range []struct {
		name string
		req  *llm.Request
		want string
	}{
		{"the least", with(func(r *llm.Request) {}), `{"model":"claude-sonnet-4-5","max_tokens":16384,` + hi + `}`},
		{"an old model writes less", with(func(r *llm.Request) { r.Model = "claude-3-haiku-20240307" }), `"max_tokens":4096,`},
		{"streamed", with(func(r *llm.Request) { r.Whole = false }), hi + `,"stream":true}`},
		{"tools and auto", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f")} }), tools + `,` + hi + `,"tool_choice":{"type":"auto"}}`},
		{"none keeps the tools", with(func(r *llm.Request) {
			r.Tools, r.Choice = []*llm.ToolSpec{tool("f")}, llm.ToolChoice{Mode: llm.ToolNone}
		}), tools + `,` + hi + `,"tool_choice":{"type":"none"}}`},
		{"required", with(func(r *llm.Request) {
			r.Tools, r.Choice = []*llm.ToolSpec{tool("f")}, llm.ToolChoice{Mode: llm.ToolRequired}
		}), `"tool_choice":{"type":"any"}}`},
		{"named", with(func(r *llm.Request) { r.Tools, r.Choice = []*llm.ToolSpec{tool("f")}, llm.Named("f") }), `"tool_choice":{"type":"tool","name":"f"}}`},
		{"named, all of them", with(func(r *llm.Request) {
			r.Tools, r.Choice = []*llm.ToolSpec{tool("f"), tool("g")}, llm.Named("g", "f")
		}), `"tool_choice":{"type":"any"}}`},
		{"named, some of them", with(func(r *llm.Request) {
			r.Tools, r.Choice = []*llm.ToolSpec{tool("f"), tool("g"), tool("h")}, llm.Named("g", "f")
		}), "error unsupported: tool_choice: Anthropic can force one named tool"},
		{"named, not offered", with(func(r *llm.Request) { r.Tools, r.Choice = []*llm.ToolSpec{tool("f")}, llm.Named("g") }), `error invalid_request: tool choice: no tool "g" is offered`},
		{"one call at a time", with(func(r *llm.Request) {
			r.Tools, r.Settings.Parallel = []*llm.ToolSpec{tool("f")}, ptr(false)
		}), `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
		{"a choice without tools is not sent", with(func(r *llm.Request) { r.Choice = llm.ToolChoice{Mode: llm.ToolNone} }), hi + `}`},
		{"forced while thinking", with(func(r *llm.Request) {
			r.Tools, r.Choice, r.Settings.Effort = []*llm.ToolSpec{tool("f")}, llm.ToolChoice{Mode: llm.ToolRequired}, "high"
		}), "error unsupported: tool_choice: Anthropic refuses a forced call (required or named) while the model thinks"},
		{"forced while thinking by options", with(func(r *llm.Request) {
			r.Tools, r.Choice, r.Settings.Options = []*llm.ToolSpec{tool("f")}, llm.Named("f"), options(`{"thinking":{"type":"enabled","budget_tokens":1024}}`)
		}), "error unsupported: tool_choice: Anthropic refuses a forced call"},
		{"forced, and the model decides whether it thinks", with(func(r *llm.Request) {
			r.Model, r.Tools, r.Choice, r.Settings.Effort = "claude-opus-4-6", []*llm.ToolSpec{tool("f")},
				llm.ToolChoice{Mode: llm.ToolRequired}, "high"
		}), `"tool_choice":{"type":"any"},"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`},
		{"forced, thinking off", with(func(r *llm.Request) {
			r.Tools, r.Choice, r.Settings.Options = []*llm.ToolSpec{tool("f")}, llm.Named("f"), options(`{"thinking":{"type":"disabled"}}`)
		}), `"tool_choice":{"type":"tool","name":"f"}`},
		{"sampling and stops", with(func(r *llm.Request) {
			r.Settings = llm.Settings{MaxTokens: 5, Temperature: ptr(0.0), TopP: ptr(0.5), StopSequences: []string{"END", "0"}}
		}), `"max_tokens":5,` + hi + `,"temperature":0,"top_p":0.5,"stop_sequences":["END","0"]}`},
		{"effort as a budget", with(func(r *llm.Request) { r.Settings.Effort = "low" }), `"max_tokens":10240,` + hi + `,"thinking":{"type":"enabled","budget_tokens":2048}}`},
		{"a budget below the bound", with(func(r *llm.Request) { r.Settings.Effort, r.Settings.MaxTokens = "high", 4000 }), `"max_tokens":4000,` + hi + `,"thinking":{"type":"enabled","budget_tokens":3000}}`},
		{"no room to think", with(func(r *llm.Request) { r.Settings.Effort, r.Settings.MaxTokens = "high", 1000 }), "error invalid_request: settings.max_tokens: 1000 leaves no room"},
		{"effort as a word", with(func(r *llm.Request) { r.Model, r.Settings.Effort = "claude-opus-4-6", "max" }), hi + `,"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}}`},
		{"no effort", with(func(r *llm.Request) { r.Settings.Effort = "none" }), hi + `}`},
		{"a model that does not think", with(func(r *llm.Request) { r.Model, r.Settings.Effort = "claude-3-5-haiku-latest", "low" }), "error unsupported: settings.effort: claude-3-5-haiku-latest does not think"},
		{"an unknown effort", with(func(r *llm.Request) { r.Settings.Effort = "huge" }), `error invalid_request: settings.effort: "huge" is none of`},
		{"temperature while thinking", with(func(r *llm.Request) { r.Settings.Effort, r.Settings.Temperature = "low", ptr(0.2) }), "error unsupported: settings.temperature: "},
		{"structured output", with(func(r *llm.Request) { r.Output = schema }), hi + `,"output_config":{"format":{"type":"json_schema","schema":` + string(schema) + `}}}`},
		{"structured output of an older model", with(func(r *llm.Request) { r.Model, r.Output = "claude-sonnet-4-20250514", schema }), `"system":[{"type":"text","text":"When you give your final answer, give one JSON value`},
		{"structured output of an open schema", with(func(r *llm.Request) { r.Output = raw(`{"type":"object"}`) }), `It must fit this JSON Schema:\n{\"type\":\"object\"}"}],` + hi + `}`},
		{"options are merged, and win", with(func(r *llm.Request) {
			r.Settings.MaxTokens, r.Settings.Options = 5, options(`{"max_tokens": 9, "top_k":3,"metadata":{"user_id":"u"}}`)
		}), `{"model":"claude-sonnet-4-5",` + hi + `,"max_tokens":9,"top_k":3,"metadata":{"user_id":"u"}}`},
		{"the server's tools stand after", with(func(r *llm.Request) {
			r.Tools, r.Settings.Options = []*llm.ToolSpec{tool("f")}, options(`{"betas":["b1"],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`)
		}), strings.TrimSuffix(tools, "]") + `,{"type":"web_search_20250305","name":"web_search"}],` + hi + `,"tool_choice":{"type":"auto"}}`},
		{"the server's tools alone", with(func(r *llm.Request) {
			r.Settings.Options = options(`{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`)
		}), `"tools":[{"type":"web_search_20250305","name":"web_search"}],` + hi + `}`},
		{"a tool that the API defines", with(func(r *llm.Request) {
			r.Tools, r.Settings.Options = []*llm.ToolSpec{tool("computer"), tool("f")}, options(`{"tools":[{"type":"computer_20250124","name":"computer"}]}`)
		}), strings.TrimSuffix(tools, "]") + `,{"type":"computer_20250124","name":"computer"}],`},
		{"options that are none", with(func(r *llm.Request) { r.Settings.Options = options(`[]`) }), "error invalid_request: settings.options.anthropic: not a JSON object"},
		{"no model", with(func(r *llm.Request) { r.Model = "" }), "error invalid_request: model: no model is named"},
		{"two tools of a name", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("f"), tool("f")} }), `error invalid_request: tools: two tools are named "f"`},
		{"a name that does not fit", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{tool("a.b")} }), `"tools":[{"name":"a_b_`},
		{"a tool without arguments", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{{Name: "now"}} }), `"tools":[{"name":"now","input_schema":{"type":"object","properties":{}}}]`},
		{"a schema without a type", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{{Name: "now", Input: raw(`{"properties":{}}`)}} }), `"input_schema":{"properties":{},"type":"object"}`},
		{"a schema with a choice at its root", with(func(r *llm.Request) {
			r.Tools = []*llm.ToolSpec{{Name: "f", Input: raw(`{"oneOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`)}}
		}), `"input_schema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`},
		{"a tool that cannot be expressed is left out alone", with(func(r *llm.Request) {
			r.Tools = []*llm.ToolSpec{{Name: "g", Input: raw(`{"type":"string"}`)}, tool("f")}
		}), tools},
		{"and if it is the only one", with(func(r *llm.Request) { r.Tools = []*llm.ToolSpec{{Name: "g", Input: raw(`{"type":"string"}`)}} }), `"max_tokens":16384,` + hi + `}`},
		{"and if it is named", with(func(r *llm.Request) {
			r.Tools, r.Choice = []*llm.ToolSpec{{Name: "g", Input: raw(`{"type":"string"}`)}, tool("f")}, llm.Named("g")
		}), "error unsupported: tool_choice: g is not offered"},
		{"structured output with a limit that is not known", with(func(r *llm.Request) {
			r.Output = raw(`{"type":"object","properties":{"a":{"type":"integer","minimum":3}},"required":["a"]}`)
		}), `"schema":{"type":"object","properties":{"a":{"type":"integer","description":"at least 3"}},"required":["a"],"additionalProperties":false}`},
	} {
		got := unmarked(encode(t, c.req))
		if !strings.Contains(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestMedia(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	os.WriteFile("a.png", []byte("png"), 0o600)
	os.WriteFile("b.pdf", []byte("pdf"), 0o600)
	os.WriteFile("c.mp3", []byte("mp3"), 0o600)
	png := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString([]byte("png")) + `"}}`
	for _, c := range []struct {
		media llm.Media
		want  string
	}{
		{llm.Media{MIME: "image/png", Data: []byte("png")}, png},
		{llm.Media{URL: "data:image/png;base64,cG5n"}, png},
		{llm.Media{URL: "./a.png"}, png},
		{llm.Media{URL: "~/a.png"}, png},
		{llm.Media{URL: filepath.Join(dir, "a.png")}, png},
		{llm.Media{URL: "file://" + filepath.ToSlash(filepath.Join(dir, "a.png"))}, png},
		{llm.Media{URL: "./b.pdf"}, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"cGRm"}}`},
		{llm.Media{URL: "https://h/a"}, `{"type":"image","source":{"type":"url","url":"https://h/a"}}`},
		{llm.Media{URL: "https://h/a.PDF?x"}, `{"type":"document","source":{"type":"url","url":"https://h/a.PDF?x"}}`},
		{llm.Media{MIME: "text/markdown", Data: []byte("# a")}, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"# a"}}`},
		{llm.Media{MIME: "audio/mpeg", Data: []byte("a")}, `error unsupported: messages[0].parts[0]: Anthropic takes images, PDF documents and text, not media of type "audio/mpeg"`},
		{llm.Media{MIME: "image/tiff", Data: []byte("a")}, `error unsupported: messages[0].parts[0]: Anthropic takes images of type`},
		{llm.Media{MIME: "video/mp4", URL: "https://h/v"}, `error unsupported: messages[0].parts[0]: Anthropic takes images and PDF documents by URL, not video/mp4`},
		{llm.Media{URL: "./c.mp3"}, `error unsupported: `},
		{llm.Media{URL: "./absent.png"}, `error invalid_request: messages[0].parts[0]: stat ./absent.png: `},
	} {
		got := unmarked(encode(t, &llm.Request{Model: "claude",
			Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{c.media}}}}))
		if !strings.Contains(got, c.want) {
			t.Errorf("%+v:\n got %s\nwant %s", c.media, got, c.want)
		}
	}
	// A result of a tool must not make the adapter read files of the machine.
	got := encode(t, &llm.Request{Model: "claude",
		Messages: []llm.Message{llm.User("a"), llm.Assistant(llm.ToolCall{ID: "t", Name: "f"}),
			llm.Results(llm.ToolResult{CallID: "t", Parts: []llm.Part{llm.Media{URL: "./a.png"}}})}})
	if strings.Contains(got, "base64") || !strings.Contains(got, "is not shown: a result cannot name a local file") {
		t.Errorf("a local file in a result: %s", got)
	}
}

// IDs of any form and any repetition are converted to a form that the API accepts, and calls keep
// their results.
func TestIDs(t *testing.T) {
	ids := []string{"toolu_1", "call_1", "a.b", "a_b", "a:b", "functions.f:0", "", "é", strings.Repeat("x", 65), strings.Repeat("x", 200)}
	messages := []llm.Message{llm.User("a")}
	for range 3 { // IDs that start anew in each reply
		reply, results := llm.Message{Role: llm.RoleAssistant}, llm.Message{Role: llm.RoleTool}
		for i, id := range ids {
			if id == "toolu_1" && len(messages) > 1 {
				continue // Anthropic's own IDs do not repeat
			}
			reply.Parts = append(reply.Parts, llm.ToolCall{ID: id, Name: "f", Args: raw("{}")})
			results.Parts = append(results.Parts, llm.ToolResult{CallID: id,
				Parts: []llm.Part{llm.Text{Text: fmt.Sprint(i)}}})
		}
		messages = append(messages, reply, results)
	}
	body := encode(t, &llm.Request{Model: "claude", Messages: messages})
	var got struct {
		Messages []struct {
			Content []struct {
				ID     string `json:"id"`
				Answer string `json:"tool_use_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	fits, seen := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`), map[string]bool{}
	for i := 1; i < len(got.Messages); i += 2 {
		for j, b := range got.Messages[i].Content {
			if !fits.MatchString(b.ID) || seen[b.ID] {
				t.Errorf("message %d, call %d: id %q does not fit or is there twice", i, j, b.ID)
			}
			seen[b.ID] = true
			if a := got.Messages[i+1].Content[j].Answer; a != b.ID {
				t.Errorf("message %d: call %q has the result %q", i, b.ID, a)
			}
		}
	}
	if !seen["toolu_1"] || !seen["call_1"] || !seen["a_b"] {
		t.Error("an id that fits was changed")
	}
}

func TestCacheMarks(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	messages := []llm.Message{llm.System("S"), llm.User("one")}
	var before string
	for turn := range 5 {
		req := &llm.Request{Model: "claude-sonnet-4-5", Messages: messages, Tools: []*llm.ToolSpec{tool("f"), tool("g")}}
		body := encode(t, req)
		if n := strings.Count(body, mark); n > 4 || n < 3 {
			t.Errorf("turn %d: %d marks", turn, n)
		}
		for what, want := range map[string]string{
			"tools":             `"required":["x"]},` + mark + `}],"messages"`,
			"system":            `"text":"S",` + mark + `}]`,
			"the first message": `"text":"one",` + mark + `}]}`,
			"the end":           `,` + mark + `,"stream":true}`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("turn %d: no mark after %s: %s", turn, what, body)
			}
		}
		i := strings.Index(body, `],"tool_choice"`)
		if !strings.HasPrefix(body, before) {
			t.Errorf("turn %d does not begin with the turn before:\n%s\n%s", turn, before, body)
		}
		before = body[:i]
		id := fmt.Sprint("toolu_", turn)
		messages = append(messages, llm.Assistant(llm.ToolCall{ID: id, Name: "f", Args: raw("{}")}),
			llm.Results(llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: "r"}}}))
	}
	req := user("hi")
	req.Settings.Options = options(`{"cache_control":{"type":"ephemeral","ttl":"1h"}}`)
	if body := encode(t, req); strings.Contains(body, mark) || !strings.Contains(body, `"ttl":"1h"`) {
		t.Errorf("the options mark the cache themselves: %s", body)
	}
}

func TestMapsDoNotShow(t *testing.T) {
	req := user("hi")
	req.Tools = []*llm.ToolSpec{tool("a.b"), tool("c.d"), tool("e")}
	req.Settings.Options = options(`{"z":1,"y":2,"x":{"b":1,"a":2}}`)
	want := encode(t, req)
	for range 1000 {
		if got, _ := anthropic.EncodeMessages(req); string(got) != want {
			t.Fatalf("got %s\nwant %s", got, want)
		}
	}
}

// Instructions within a conversation follow a user turn as a turn of their own if the model accepts
// that, and otherwise are text.
func TestInstructionsInTheMiddle(t *testing.T) {
	say := []llm.Message{llm.User("a"), llm.System("s"), llm.Assistant(llm.Text{Text: "b"}), llm.System("t"),
		llm.User("c"), llm.System("u")}
	for model, want := range map[string]string{
		"claude-opus-4-8": `"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"system","content":[{"type":"text","text":"s"}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"<system>\nt\n</system>"},{"type":"text","text":"c"}]},` +
			`{"role":"system","content":[{"type":"text","text":"u"}]}]`,
		"claude-opus-4-7": `"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"<system>\ns\n</system>"}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"<system>\nt\n</system>"},{"type":"text","text":"c"},{"type":"text","text":"<system>\nu\n</system>"}]}]`,
	} {
		if got := unmarked(encode(t, &llm.Request{Model: model, Messages: say})); !strings.Contains(got, want) {
			t.Errorf("%s: got %s\nwant %s", model, got, want)
		}
	}
}

// An uploaded file is sent by its ID. Files of OpenAI are refused.
func TestUploadedFiles(t *testing.T) {
	for m, want := range map[*llm.Media]string{
		{URL: "file_1"}:                    `{"type":"document","source":{"type":"file","file_id":"file_1"}}`,
		{URL: "file_1", MIME: "image/png"}: `{"type":"image","source":{"type":"file","file_id":"file_1"}}`,
		{URL: "file-1"}:                    "error unsupported: messages[0].parts[0]: file-1 is a file at OpenAI; those at Anthropic begin with file_",
	} {
		got := unmarked(encode(t, &llm.Request{Model: "claude-opus-4-8",
			Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{*m}}}}))
		if !strings.Contains(got, want) {
			t.Errorf("%+v: got %s, want %s", *m, got, want)
		}
	}
}

// Without Retry-After, the exhausted limits give the waiting time.
func TestWaitsUntilTheLimitsReset(t *testing.T) {
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	m := anthropic.New("m", &anthropic.Options{BaseURL: "http://a.test", Retries: -1,
		HTTP: transport(func(*http.Request) (*http.Response, error) {
			return reply(429, `{"type":"error","error":{"type":"rate_limit_error","message":"no"}}`, "anthropic-ratelimit-requests-remaining", "3", "anthropic-ratelimit-requests-reset", at(time.Hour),
				"anthropic-ratelimit-tokens-remaining", "0", "anthropic-ratelimit-tokens-reset", at(time.Minute)), nil
		})})
	_, err := llm.Complete(t.Context(), m, user("go"))
	var e *llm.ProviderError
	if !errors.As(err, &e) || e.RetryAfter < 50*time.Second || e.RetryAfter > 70*time.Second {
		t.Errorf("got %v, retry after %v, want about a minute", err, e.RetryAfter)
	}
}
